// “Why not this?”: change values by hand and see what the model would say, and what is broken.
import { post } from "./api.js";
import { debounced, fill, h } from "./dom.js";
import { features, input, known, named, percent, score, shown, title } from "./fields.js";
import { scale } from "./options.js";
import { change, listen, rules, state } from "./state.js";

const WAIT = 80;
let room = null;

export function trial(main) {
  const some = state(), own = some.person, tried = some.trial ?? own;
  const verdict = h("section", { class: "card sticky", "aria-live": "polite", "aria-label": "Verdict" }, h("p", { class: "loading" }, "Asking the model …"));
  const field = (column) => {
    const name = String(column.name), id = `trial-${name}`;
    const was = h("span", { class: "small", id: `${id}-was` });
    const row = h("div", { class: "field" }, h("label", { for: id }, title(name)),
      input(column, tried[name], id, (value) => { change({ trial: { ...(state().trial ?? own), [name]: value } }, `trial ${name}`); mark(); }, `${id}-was`), was);
    const mark = () => {
      const moved = (state().trial ?? own)[name] !== own[name];
      row.classList.toggle("moved", moved);
      was.textContent = moved ? `now: ${shown(name, own[name])}` : "";
    };
    mark();
    return row;
  };
  const glance = h("p", { class: "glance", "aria-hidden": "true" }); // on a phone, where the verdict is out of sight
  room = { verdict, glance, controller: null };
  fill(main,
    h("h1", {}, "Why not this?"),
    h("p", { class: "lead" }, "Change any value and see at once what the model would say, how plausible that is, and what it breaks."),
    h("div", { class: "two turned" },
      h("section", { class: "card", "aria-label": "Values to try" },
        h("div", { class: "bar" }, h("h2", {}, "Values to try"), h("button", { id: "reset", onclick: () => { change({ trial: { ...own } }); trial(main); } }, "Back to the person")),
        h("div", { class: "fields" }, features().filter((column) => named(String(column.name))).map(field))),
      h("div", {}, verdict)), glance);
  check();
}

const later = debounced(() => check(), WAIT);
listen(() => { if (room?.verdict.isConnected) later(); });

async function check() {
  if (!room?.verdict.isConnected) return;
  const here = room, some = state();
  if (some.person === null) return;
  here.controller?.abort();
  const { signal } = (here.controller = new AbortController());
  const { target, threshold, locks } = some;
  try {
    const body = { row: some.person, values: some.trial ?? some.person, target, threshold, immutable: locks, rules: rules(some), audience: "analyst" };
    const told = await post("/check", body, signal);
    fill(here.verdict, found(told));
    const broken = told.broken.length + told.not_allowed.length;
    fill(here.glance, h("b", { class: told.met ? "yes" : "no" }, said(told)), ` ${score(told.score_after)}${broken ? ` · breaks ${broken}` : ""}`);
  } catch (error) {
    if (error.name !== "AbortError") fill(here.verdict, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

const said = (told) => (known().outputs[0].classes ? `“${told.prediction}”` : score(told.score_after));

function found(told) {
  const list = (heading, texts, kind) => texts.length
    ? [h("h3", {}, heading), h("ul", { class: `said ${kind}` }, texts.map((text) => h("li", {}, text)))] : null;
  const fine = !told.broken.length && !told.not_allowed.length;
  return [
    h("p", { class: "small" }, "The model would say"),
    h("p", { class: `verdict ${told.met ? "yes" : "no"}` }, said(told)),
    known().outputs[0].classes ? scale(told) : null,
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, "Plausibility"), h("dd", {}, told.plausibility === null ? "not known" : `more typical than ${percent(told.plausibility)} of people with the wanted outcome`)),
      h("div", {}, h("dt", {}, "Distance"), h("dd", { class: "num" }, told.distance.toFixed(2))),
      h("div", {}, h("dt", {}, "Changed"), h("dd", {}, told.changed.length ? told.changed.map(title).join(", ") : "nothing yet"))),
    fine && told.changed.length ? h("p", { class: "fine" }, "No law, rule or limit is broken.") : null,
    list("Breaks", told.broken, "bad"), list("Not allowed in an answer", told.not_allowed, "bad"), list("Unusual", told.unusual, ""),
  ];
}
