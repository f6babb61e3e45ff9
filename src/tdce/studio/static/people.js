// The start: pick somebody from a table, or type somebody in.
import { get } from "./api.js";
import { h, fill, say } from "./dom.js";
import { blank, features, known, score, shown, title } from "./fields.js";
import { change } from "./state.js";

const PAGE = 25;
const FEW = 6; // columns that are shown beside the decision

let first = 0;
let only = "false"; // those whom the model refuses

export function people(main, go) {
  const favourable = known().favourable;
  const body = h("div", { class: "people" });
  const classes = known().outputs[0].classes;
  const choice = favourable === null ? null : h("label", { class: "inline" }, "The model says ",
    h("select", { id: "only", onchange: (event) => { only = event.target.value; first = 0; load(); } },
      h("option", { value: "false" }, classes ? `not “${favourable}”` : "not favourable"),
      h("option", { value: "true" }, classes ? `“${favourable}”` : "favourable"),
      h("option", { value: "" }, "anything")));
  if (choice) choice.querySelector("select").value = only;
  fill(main,
    h("h1", {}, "What would have to be different?"),
    h("p", { class: "lead" }, "Pick a person, see what the model decides, and find what would change the decision. Everything stays on this machine."),
    h("div", { class: "bar" }, choice ?? h("span"), h("button", { class: "main", id: "type-in", onclick: () => pick(null, blank(), go) }, "Type somebody in")),
    body);
  const load = async () => {
    const query = new URLSearchParams({ first, count: PAGE, ...(only && favourable !== null ? { met: only } : {}) });
    body.setAttribute("aria-busy", "true");
    try {
      const found = await get(`/people?${query}`);
      fill(body, table(found, go), turning(found.total, load));
      say(`${found.total} people`);
    } catch (error) {
      fill(body, h("p", { class: "notice", role: "alert" }, error.message));
    }
    body.removeAttribute("aria-busy");
  };
  fill(body, h("p", { class: "loading" }, "Loading …"));
  load();
}

function table(found, go) {
  const columns = features().map((each) => String(each.name)).slice(0, FEW);
  const about = found.source === "synthetic" ? "Synthetic people, drawn by the diffusion model: nobody’s record." : "The rows that the server was started with.";
  const head = ["Person", "Decision", known().outputs[0].classes ? `Chance of “${known().favourable ?? "its answer"}”` : "Prediction", ...columns.map(title)];
  return h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": "People" },
    h("table", { class: "rows lines" }, h("caption", { class: "small" }, about),
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, found.people.map((person) => h("tr", {},
        h("th", { scope: "row" }, h("button", { class: "link", onclick: () => pick(person.number, person.values, go) }, `Person ${person.number + 1}`)),
        h("td", {}, h("span", { class: `chip ${person.met ? "valid" : "best_effort"}` }, String(person.prediction))),
        h("td", { class: "num" }, score(person.score)),
        columns.map((name) => h("td", {}, shown(name, person.values[name]))))))));
}

function turning(total, load) {
  if (total <= PAGE) return null;
  const turn = (by) => { first += by; load(); };
  return h("div", { class: "bar" },
    h("p", { class: "small" }, `${first + 1} to ${Math.min(first + PAGE, total)} of ${total}`),
    h("div", { class: "buttons" },
      h("button", { disabled: first === 0, onclick: () => turn(-PAGE) }, "Before"),
      h("button", { disabled: first + PAGE >= total, onclick: () => turn(PAGE) }, "Next")));
}

function pick(number, values, go) {
  change({ number, person: { ...values }, trial: null });
  go("person");
}
