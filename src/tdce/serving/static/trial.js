// “Why not this?”: change values by hand and see what the model would say, and what is broken.
import { post } from "./api.js";
import { debounced, fill, h } from "./dom.js";
import { input, known, outcome, percent, score, seen, shown, title } from "./fields.js";
import { scale } from "./options.js";
import { change, listen, rules, state } from "./state.js";
import { decimals, language, t } from "./words.js";

const WAIT = 80;
let room = null;

export function trial(main) {
  const some = state(), own = some.person, tried = some.trial ?? own;
  const verdict = h("section", { class: "card sticky", "aria-live": "polite", "aria-label": t("verdict") }, h("p", { class: "loading" }, t("asking")));
  const field = (column) => {
    const name = String(column.name), id = `trial-${name}`;
    const was = h("span", { class: "small", id: `${id}-was` });
    const row = h("div", { class: "field" }, h("label", { for: id }, title(name)),
      input(column, tried[name], id, (value) => { change({ trial: { ...(state().trial ?? own), [name]: value } }, `trial ${name}`); mark(); }, `${id}-was`), was);
    const mark = () => {
      const moved = (state().trial ?? own)[name] !== own[name];
      row.classList.toggle("moved", moved);
      was.textContent = moved ? t("trial_now", { value: shown(name, own[name]) }) : "";
    };
    mark();
    return row;
  };
  const glance = h("p", { class: "glance", "aria-hidden": "true" }); // on a phone, where the verdict is out of sight
  room = { verdict, glance, controller: null };
  fill(main,
    h("h1", {}, t("page_trial")),
    h("p", { class: "lead" }, t("trial_lead")),
    h("div", { class: "two turned" },
      h("section", { class: "card", "aria-label": t("trial_values") },
        h("div", { class: "bar" }, h("h2", {}, t("trial_values")), h("button", { id: "reset", onclick: () => { change({ trial: { ...own } }); trial(main); } }, t("trial_back"))),
        h("div", { class: "fields" }, seen().map(field))),
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
    const body = { row: some.person, values: some.trial ?? some.person, target, threshold, immutable: locks, rules: rules(some), audience: "analyst", language: language() };
    const told = await post("/check", body, signal);
    fill(here.verdict, found(told));
    const broken = told.broken.length + told.not_allowed.length;
    fill(here.glance, h("b", { class: told.met ? "yes" : "no" }, said(told)), ` ${score(told.score_after)}${broken ? ` · ${t("breaks", { count: broken })}` : ""}`);
  } catch (error) {
    if (error.name !== "AbortError") fill(here.verdict, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

const said = (told) => (known().outputs[0].classes ? outcome(told.prediction) : score(told.score_after));

function found(told) {
  const list = (heading, texts, kind) => texts.length
    ? [h("h3", {}, heading), h("ul", { class: `said ${kind}` }, texts.map((text) => h("li", {}, text)))] : null;
  const fine = !told.broken.length && !told.not_allowed.length;
  return [
    h("p", { class: "small" }, t("would_say")),
    h("p", { class: `verdict ${told.met ? "yes" : "no"}` }, said(told)),
    known().outputs[0].classes ? scale(told) : null,
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, t("plausibility")), h("dd", {}, told.plausibility === null ? t("not_known") : t("plausible", { share: percent(told.plausibility) }))),
      h("div", {}, h("dt", {}, t("distance")), h("dd", { class: "num" }, decimals(told.distance))),
      h("div", {}, h("dt", {}, t("changed")), h("dd", {}, told.changed.length ? told.changed.map(title).join(", ") : t("nothing_yet")))),
    fine && told.changed.length ? h("p", { class: "fine" }, t("nothing_broken")) : null,
    list(t("broken"), told.broken, "bad"), list(t("not_allowed"), told.not_allowed, "bad"), list(t("unusual"), told.unusual, ""),
  ];
}
