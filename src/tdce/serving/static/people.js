// The start: pick somebody from a table, or type somebody in.
import { get } from "./api.js";
import { h, fill, say } from "./dom.js";
import { blank, known, outcome, said, score, seen, shown, title } from "./fields.js";
import { change } from "./state.js";
import { t } from "./words.js";

const PAGE = 25;
const FEW = 6; // columns that are shown beside the decision

let first = 0;
let only = "false"; // those whom the model refuses

export function people(main, go) {
  const favourable = known().favourable;
  const body = h("div", { class: "people" });
  const classes = known().outputs[0].classes;
  const choice = favourable === null ? null : h("label", { class: "inline" }, `${t("says")} `,
    h("select", { id: "only", onchange: (event) => { only = event.target.value; first = 0; load(); } },
      h("option", { value: "false" }, classes ? t("says_not", { outcome: outcome(favourable) }) : t("not_favourable")),
      h("option", { value: "true" }, classes ? outcome(favourable) : t("favourable")),
      h("option", { value: "" }, t("anything"))));
  if (choice) choice.querySelector("select").value = only;
  fill(main,
    h("h1", {}, t("people_heading")),
    h("p", { class: "lead" }, t("people_lead")),
    h("div", { class: "bar" }, choice ?? h("span"), h("button", { class: "main", id: "type-in", onclick: () => pick(null, blank(), go) }, t("type_in"))),
    body);
  const load = async () => {
    const query = new URLSearchParams({ first, count: PAGE, ...(only && favourable !== null ? { met: only } : {}) });
    body.setAttribute("aria-busy", "true");
    try {
      const found = await get(`/people?${query}`);
      fill(body, table(found, go), turning(found.total, load));
      say(t("people_found", { count: found.total }));
    } catch (error) {
      fill(body, h("p", { class: "notice", role: "alert" }, error.message));
    }
    body.removeAttribute("aria-busy");
  };
  fill(body, h("p", { class: "loading" }, t("loading")));
  load();
}

function table(found, go) {
  const columns = seen().map((each) => String(each.name)).slice(0, FEW);
  const about = found.source === "synthetic" ? t("synthetic") : t("rows_given");
  const head = [t("person"), t("decision"), chance(), ...columns.map(title)];
  return h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("page_people") },
    h("table", { class: "rows lines" }, h("caption", { class: "small" }, about),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, found.people.map((person) => h("tr", {},
        h("th", { scope: "row" }, h("button", { class: "link", onclick: () => pick(person.number, person.values, go) }, t("person_number", { number: person.number + 1 }))),
        h("td", {}, h("span", { class: `chip ${person.met ? "valid" : "best_effort"}` }, known().outputs[0].classes ? said(person.prediction) : score(person.prediction))),
        h("td", { class: "num" }, score(person.score)),
        columns.map((name) => h("td", {}, shown(name, person.values[name]))))))));
}

function chance() {
  const { favourable, outputs } = known();
  if (!outputs[0].classes) return t("prediction");
  return favourable === null ? t("chance_of_answer") : t("chance_of", { outcome: outcome(favourable) });
}

function turning(total, load) {
  if (total <= PAGE) return null;
  const turn = (by) => { first += by; load(); };
  return h("div", { class: "bar" },
    h("p", { class: "small" }, t("turned", { first: first + 1, last: Math.min(first + PAGE, total), total })),
    h("div", { class: "buttons" },
      h("button", { disabled: first === 0, onclick: () => turn(-PAGE) }, t("before")),
      h("button", { disabled: first + PAGE >= total, onclick: () => turn(PAGE) }, t("next"))));
}

function pick(number, values, go) {
  change({ number, person: { ...values }, trial: null });
  go("person");
}
