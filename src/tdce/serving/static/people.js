// The page “People”: search, sort and pick a person from a table, or enter one.
import { get } from "./api.js";
import { announce, debounced, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { defaultPerson, getSchema, outcomeText, quotedOutcome, scoreText, title, valueText, visible } from "./fields.js";
import { change } from "./state.js";
import { language, t } from "./words.js";

const PAGE_ROWS = 25;
const MAX_COLUMNS = 6; // shown beside the decision
const WAIT_MS = 200; // without a key before the server is asked

let first = 0;
let met = "false"; // show those whose decision is favourable ("true"), is not ("false"), or all ("")
let search = "";
let order = { sort: "", descending: false };

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
  const later = debounced(() => load(), WAIT_MS);
  const box = h("input", { id: "search", type: "search", value: search, placeholder: t("search"), "aria-label": t("search"), oninput: () => { search = box.value; first = 0; later(); } });
  fill(main,
    h("h1", {}, t("people_heading")),
    h("p", { class: "lead" }, t("people_lead")),
    h("div", { class: "bar" }, choice, box, h("button", { class: "main", id: "type-in", onclick: () => pick(null, null, defaultPerson(), go) }, t("type_in"))),
    body);
  let asked = 0;
  const load = async (focus = null) => {
    const mine = ++asked;
    const query = new URLSearchParams({ first, count: PAGE_ROWS, search, ...order, language: language(), ...(met && favourable !== null ? { met } : {}) });
    body.setAttribute("aria-busy", "true");
    try {
      const reply = await get(`/people?${query}`);
      if (mine !== asked) return; // somebody typed on
      fill(body, table(reply, go, load), paging(reply.total, load));
      announce(t("people_found", { count: reply.total }));
      if (focus !== null) body.querySelector(`[data-sort="${CSS.escape(focus)}"]`)?.focus();
    } catch (error) {
      fill(body, notice(error));
    }
    body.removeAttribute("aria-busy");
  };
  fill(body, h("p", { class: "loading" }, t("loading")));
  load();
}

function table({ source, people: rows }, go, load) {
  const columns = visible().map((each) => String(each.name)).slice(0, MAX_COLUMNS);
  const about = source === "synthetic" ? t("synthetic") : t("rows_given");
  const head = [["", t("person")], [null, t("decision")], ["score", scoreHeading()], ...columns.map((name) => [name, title(name)])];
  return h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("page_people") },
    h("table", { class: "rows lines" }, h("caption", { class: "small" }, rows.length ? about : t("nobody_found")),
      h("thead", {}, h("tr", {}, head.map(([by, text]) => heading(by, text, load)))),
      h("tbody", {}, rows.map((person) => h("tr", {},
        h("th", { scope: "row" }, h("button", { class: "link", onclick: () => pick(person.number, person.id, person.values, go) }, person.id ?? t("person_number", { number: person.number + 1 }))),
        h("td", {}, h("span", { class: `chip ${person.met ? "valid" : "best_effort"}` }, getSchema().outputs[0].classes ? outcomeText(person.prediction) : scoreText(person.prediction))),
        h("td", { class: "num" }, scoreText(person.score)),
        columns.map((name) => h("td", {}, valueText(name, person.values[name]))))))));
}

// The heading of a column; a press sorts by it, a second one turns the order round.
function heading(by, text, load) {
  if (by === null) return h("th", { scope: "col" }, text);
  const now = order.sort === by;
  const sign = now ? (order.descending ? " ↓" : " ↑") : " ↕";
  return h("th", { scope: "col", "aria-sort": now ? (order.descending ? "descending" : "ascending") : null },
    h("button", { class: "sort", "data-sort": by, title: t("sort_by", { column: text }), onclick: () => {
      order = { sort: by, descending: now ? !order.descending : false };
      first = 0;
      load(by);
    } }, text, h("span", { "aria-hidden": "true" }, sign)));
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

function pick(number, id, values, go) {
  change({ number, id, person: { ...values }, trial: null });
  go("person");
}
