// The laws of the table on the page “Columns”, each with a switch.
import { h } from "./dom.js";
import { capital } from "./fields.js";
import { change, state } from "./state.js";
import { number, t } from "./words.js";

const WHOLE = 0.9995; // of the variance: a law that explains as much is exact

// A list item for each law that may be named; `fitted` are the laws as they were fitted.
export function lawItems(fitted) {
  return fitted.map((law) => {
    const id = `law-${law.number}`, words = h("span", { lang: "en" }), facts = h("p", { class: "small", id: `${id}-facts` }); // laws are in English, whatever the language of the page
    const box = h("input", { id, type: "checkbox", role: "switch", "aria-describedby": `${id}-facts`, onchange: () => flip(law, box.checked) });
    const element = h("li", {}, h("label", { for: id }, box, words), facts);
    const update = (now) => {
      box.checked = now.on;
      words.textContent = capital(now.words);
      facts.textContent = describe(now).join(" · ");
    };
    update({ ...law, on: state().laws.find((edit) => edit.number === law.number)?.on ?? law.on });
    return { number: law.number, element, update };
  });
}

function describe({ on, hard, support, exceptions, strength }) {
  const effect = !on ? t("law_off") : hard ? t("law_kept") : t("law_costs");
  const explained = strength !== null && strength < WHOLE ? [t("law_strength", { percent: number(100 * strength, { maximumFractionDigits: 1 }) })] : [];
  return [t("law_rows", { count: support }), exceptions ? t("law_exceptions", { count: exceptions }) : t("law_no_exceptions"), ...explained, effect];
}

// A switch is kept if it differs from the law as fitted, or from what “Follows” says about its columns.
function flip(law, on) {
  const others = state().laws.filter((edit) => edit.number !== law.number);
  const bound = law.follower !== null && state().columns.some((edit) => edit.follows && law.columns.includes(edit.name));
  change({ laws: on === law.on && !bound ? others : [...others, { number: law.number, on }] });
}

// The switches without those of laws by which a column follows others: “Follows” now says so.
export function withoutFollower(fitted, name) {
  const bound = new Set(fitted.filter((law) => law.follower !== null && law.columns.includes(name)).map((law) => law.number));
  return state().laws.filter((edit) => !bound.has(edit.number));
}
