// The page “People”: pick a person from a table, or enter one.
import { get } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { defaultPerson, getSchema, outcomeText, quotedOutcome, scoreText, title, valueText, visible } from "./fields.js";
import { change } from "./state.js";
import { t } from "./words.js";

const PAGE_ROWS = 25;
const MAX_COLUMNS = 6; // shown beside the decision

let first = 0;
let met = "false"; // show those whose decision is favourable ("true"), is not ("false"), or all ("")

export function people(main, go) {
  const favourable = getSchema().favourable;
  const body = h("div", { class: "people" });
  const classes = getSchema().outputs[0].classes;
  const choice = favourable === null ? null : h("label", { class: "inline" }, `${t("says")} `,
    h("select", { id: "only", onchange: (event) => { met = event.target.value; first = 0; load(); } },
      h("option", { value: "false" }, classes ? t("says_not", { outcome: quotedOutcome(favourable) }) : t("not_favourable")),
      h("option", { value: "true" }, classes ? quotedOutcome(favourable) : t("favourable")),
      h("option", { value: "" }, t("anything"))));
  if (choice) choice.querySelector("select").value = met;
  fill(main,
    h("h1", {}, t("people_heading")),
    h("p", { class: "lead" }, t("people_lead")),
    h("div", { class: "bar" }, choice ?? h("span"), h("button", { class: "main", id: "type-in", onclick: () => pick(null, defaultPerson(), go) }, t("type_in"))),
    body);
  const load = async () => {
    const query = new URLSearchParams({ first, count: PAGE_ROWS, ...(met && favourable !== null ? { met } : {}) });
    body.setAttribute("aria-busy", "true");
    try {
      const reply = await get(`/people?${query}`);
      fill(body, table(reply, go), paging(reply.total, load));
      announce(t("people_found", { count: reply.total }));
    } catch (error) {
      fill(body, h("p", { class: "notice", role: "alert" }, error.message));
    }
    body.removeAttribute("aria-busy");
  };
  fill(body, h("p", { class: "loading" }, t("loading")));
  load();
}

function table({ source, people: rows }, go) {
  const columns = visible().map((each) => String(each.name)).slice(0, MAX_COLUMNS);
  const about = source === "synthetic" ? t("synthetic") : t("rows_given");
  const head = [t("person"), t("decision"), scoreHeading(), ...columns.map(title)];
  return h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("page_people") },
    h("table", { class: "rows lines" }, h("caption", { class: "small" }, about),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows.map((person) => h("tr", {},
        h("th", { scope: "row" }, h("button", { class: "link", onclick: () => pick(person.number, person.values, go) }, t("person_number", { number: person.number + 1 }))),
        h("td", {}, h("span", { class: `chip ${person.met ? "valid" : "best_effort"}` }, getSchema().outputs[0].classes ? outcomeText(person.prediction) : scoreText(person.prediction))),
        h("td", { class: "num" }, scoreText(person.score)),
        columns.map((name) => h("td", {}, valueText(name, person.values[name]))))))));
}

function scoreHeading() {
  const { favourable, outputs } = getSchema();
  if (!outputs[0].classes) return t("prediction");
  return favourable === null ? t("chance_of_decision") : t("chance_of", { outcome: quotedOutcome(favourable) });
}

function paging(total, load) {
  if (total <= PAGE_ROWS) return null;
  const turn = (by) => { first += by; load(); };
  return h("div", { class: "bar" },
    h("p", { class: "small" }, t("shown_range", { first: first + 1, last: Math.min(first + PAGE_ROWS, total), total })),
    h("div", { class: "buttons" },
      h("button", { disabled: first === 0, onclick: () => turn(-PAGE_ROWS) }, t("previous")),
      h("button", { disabled: first + PAGE_ROWS >= total, onclick: () => turn(PAGE_ROWS) }, t("next"))));
}

function pick(number, values, go) {
  change({ number, person: { ...values }, trial: null });
  go("person");
}
