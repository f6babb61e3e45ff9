// The page “Why not this?”: change values by hand and see what the model would say and which constraints are violated.
import { post } from "./api.js";
import { debounced, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { curve, scaleOf } from "./curve.js";
import { getSchema, input, percent, quotedOutcome, scoreText, title, valueText, visible } from "./fields.js";
import { scoreBars } from "./options.js";
import { change, listen, rules, state } from "./state.js";
import { decimals, language, t } from "./words.js";

const WAIT_MS = 80; // without a change before the server is asked
const CURVES_WAIT_MS = 300; // the same for the curves, which take longer
let current = null; // the elements on the page now

export function trial(main) {
  const some = state(), own = some.person, tried = some.trial ?? own;
  const decision = h("section", { class: "card sticky", "aria-live": "polite", "aria-label": t("decision") }, h("p", { class: "loading" }, t("asking")));
  const curves = new Map();
  const field = (column) => {
    const name = String(column.name), id = `trial-${name}`;
    const was = h("span", { class: "small", id: `${id}-was` });
    const drawing = h("div", { class: "beside" }), said = h("span", { class: "small", id: `${id}-curve` });
    curves.set(name, { column, drawing, said });
    const row = h("div", { class: "field" }, h("label", { for: id }, title(name)),
      h("div", { class: "row" }, input(column, tried[name], id, (value) => { change({ trial: { ...(state().trial ?? own), [name]: value } }, `trial ${name}`); mark(); }, `${id}-was ${id}-curve`), drawing), said, was);
    const mark = () => {
      const moved = (state().trial ?? own)[name] !== own[name];
      row.classList.toggle("moved", moved);
      was.textContent = moved ? t("trial_now", { value: valueText(name, own[name]) }) : "";
    };
    mark();
    return row;
  };
  const glance = h("p", { class: "glance", "aria-hidden": "true" }); // on a phone, where the decision is out of sight
  current = { decision, glance, curves, controller: null, drawer: null };
  fill(main,
    h("h1", {}, t("page_trial")),
    h("p", { class: "lead" }, t("trial_lead"), " ", t(getSchema().outputs[0].classes ? "curve_lead" : "curve_lead_number")),
    h("div", { class: "two turned" },
      h("section", { class: "card", "aria-label": t("trial_values") },
        h("div", { class: "bar" }, h("h2", {}, t("trial_values")), h("button", { id: "reset", onclick: () => { change({ trial: { ...own } }); trial(main); } }, t("trial_back"))),
        h("div", { class: "fields" }, visible().map(field))),
      h("div", {}, decision)), glance);
  check();
  draw();
}

const later = debounced(() => check(), WAIT_MS);
const drawLater = debounced(() => draw(), CURVES_WAIT_MS);
listen(() => {
  if (!current?.decision.isConnected) return;
  later();
  drawLater();
});

// Draws the curves of all columns, from the values as they are tried now.
async function draw() {
  if (!current?.decision.isConnected) return;
  const here = current, some = state();
  if (some.person === null) return;
  here.drawer?.abort();
  const { signal } = (here.drawer = new AbortController());
  try {
    const reply = await post("/curves", { values: some.trial ?? some.person, target: some.target, threshold: some.threshold, audience: "analyst" }, signal);
    const scale = scaleOf(reply.curves);
    for (const each of reply.curves) {
      const place = here.curves.get(each.name);
      if (!place) continue;
      const [drawing, said] = curve(place.column, each, scale);
      fill(place.drawing, drawing);
      place.said.textContent = said;
    }
  } catch (error) {
    if (error.name !== "AbortError") for (const { drawing, said } of here.curves.values()) fill(drawing), (said.textContent = ""); // the decision says what is wrong
  }
}

async function check() {
  if (!current?.decision.isConnected) return;
  const here = current, some = state();
  if (some.person === null) return;
  here.controller?.abort();
  const { signal } = (here.controller = new AbortController());
  const { target, threshold, locks } = some;
  try {
    const body = { row: some.person, values: some.trial ?? some.person, target, threshold, immutable: locks, rules: rules(some), audience: "analyst", language: language() };
    const reply = await post("/check", body, signal);
    fill(here.decision, details(reply));
    const violations = reply.broken.length + reply.not_allowed.length;
    fill(here.glance, h("b", { class: reply.met ? "yes" : "no" }, saysText(reply)), ` ${scoreText(reply.score_after)}${violations ? ` · ${t("violations", { count: violations })}` : ""}`);
  } catch (error) {
    if (error.name !== "AbortError") fill(here.decision, notice(error));
  }
}

const saysText = (reply) => (getSchema().outputs[0].classes ? quotedOutcome(reply.prediction) : scoreText(reply.score_after));

function details(reply) {
  const list = (heading, texts, kind) => texts.length
    ? [h("h3", {}, heading), h("ul", { class: `texts ${kind}` }, texts.map((text) => h("li", {}, text)))] : null;
  const fine = !reply.broken.length && !reply.not_allowed.length;
  return [
    h("p", { class: "small" }, t("would_say")),
    h("p", { class: `decision-text ${reply.met ? "yes" : "no"}` }, saysText(reply)),
    getSchema().outputs[0].classes ? scoreBars(reply) : null,
    h("dl", { class: "facts" },
      h("div", {}, h("dt", {}, t("plausibility")), h("dd", {}, reply.plausibility === null ? t("not_known") : t("plausible", { share: percent(reply.plausibility) }))),
      h("div", {}, h("dt", {}, t("distance")), h("dd", { class: "num" }, decimals(reply.distance))),
      h("div", {}, h("dt", {}, t("changed")), h("dd", {}, reply.changed.length ? reply.changed.map(title).join(", ") : t("nothing_yet")))),
    fine && reply.changed.length ? h("p", { class: "fine" }, t("nothing_broken")) : null,
    list(t("broken"), reply.broken, "bad"), list(t("not_allowed"), reply.not_allowed, "bad"), list(t("unusual"), reply.unusual, ""),
  ];
}
