// The page “Person”: the decision and, directly under it, the options; limits and trade-off folded; values beside them.
import { post } from "./api.js";
import { announce, debounced, fill, h, save } from "./dom.js";
import { notice } from "./errors.js";
import { chanceText, getSchema, hiddenCount, hint, input, outcomeText, percent, quotedOutcome, scoreText, title, visible } from "./fields.js";
import { optionCards } from "./options.js";
import { plot } from "./plot.js";
import { change, listen, question, state } from "./state.js";
import { createReport } from "./file.js";
import { decimals, language, rich, t } from "./words.js";

const POSITIONS = [0, 0.25, 0.5, 0.75, 1]; // of closeness, at which the trade-off is measured
const WAIT_MS = 150; // without a change before the server is asked
const cache = new Map(); // lines of answers by request, in this tab's memory only
const MAX_CACHED = 200;

const requestBody = (some) => ({ rows: [some.person], ...question(some), audience: "analyst", language: language() });

// The lines of the answer for a state; the server is asked once.
export async function answer(some, signal) {
  const body = requestBody(some);
  const key = JSON.stringify(body);
  if (!cache.has(key)) {
    const { lines } = await post("/explain", body, signal);
    cache.set(key, lines);
    if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value);
  }
  return cache.get(key);
}

let current = null; // the elements on the page now

export function person(main, go) {
  const some = state();
  const decision = h("section", { class: "card decision", "aria-live": "polite", "aria-label": t("decision") }, h("p", { class: "loading" }, t("asking")));
  const optionsBox = h("section", { "aria-label": t("options"), id: "options" }, h("p", { class: "loading" }, t("looking")));
  const along = h("div", { id: "along" });
  current = { heading: h("h1", {}, heading(some)), decision, optionsBox, along, go, controller: null };
  fill(main, current.heading,
    h("div", { class: "two answer" },
      h("div", {}, decision, optionsBox, constraints(some), tradeOff(some)),
      h("div", {}, values(some))));
  ask();
}

const heading = ({ number, id }) => (number === null ? t("own_person") : id ?? t("person_number", { number: number + 1 }));

const unfolded = { constraints: false, trade_off: false }; // as long as the studio is open

// A part of the page that is folded until somebody needs it.
function fold(name, head, ...children) {
  const element = h("details", { class: "card fold", id: name, open: unfolded[name], ontoggle: () => (unfolded[name] = element.open) }, h("summary", {}, head), children);
  return element;
}

const later = debounced(() => ask(), WAIT_MS);

listen((now, before, redraw) => {
  if (!current?.optionsBox.isConnected || now.person === null) return;
  if (redraw) return; // the page is built anew
  current.heading.textContent = heading(now);
  later();
});

async function ask() {
  if (!current?.optionsBox.isConnected) return;
  const here = current, some = state();
  here.controller?.abort();
  const { signal } = (here.controller = new AbortController());
  here.optionsBox.setAttribute("aria-busy", "true");
  try {
    const { decisions } = await post("/predict", { rows: [some.person] }, signal);
    showDecision(here.decision, decisions[0], some);
    const lines = await answer(some, signal);
    fill(here.optionsBox, h("h2", {}, lines.length > 1 ? t("side_by_side") : t("would_change")),
      optionCards(lines, { onTry: (line) => { change({ trial: { ...state().person, ...line.values } }); here.go("trial"); } }),
      h("div", { class: "buttons after" }, h("button", { id: "export", onclick: (event) => exportReport(event.target) }, t("export"))));
    showTradeOff(here, some);
    announce(t("options_found", { count: lines.length, sentence: lines[0]?.sentence ?? "" }));
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(here.optionsBox, notice(error));
  }
  here.optionsBox.removeAttribute("aria-busy");
}

function showDecision(element, { prediction, probabilities }, some) {
  const target = some.target ?? getSchema().favourable;
  const p = probabilities?.[String(target)];
  const good = String(prediction) === String(target);
  fill(element,
    h("p", { class: "small" }, t("says")),
    h("p", { class: `decision-text ${good ? "yes" : "no"}` }, probabilities ? quotedOutcome(prediction) : scoreText(prediction)),
    p === undefined ? null : h("p", {}, rich("chance", { outcome: quotedOutcome(target), chance: h("b", { class: "num" }, chanceText(p)) })));
}

async function exportReport(button) {
  const label = button.textContent;
  button.disabled = true;
  button.textContent = t("exporting");
  try {
    save(await createReport([state().person], question()), "report.html");
    announce(t("exported"));
  } catch (error) {
    button.after(notice(error));
  }
  button.disabled = false;
  button.textContent = label;
}

// Values

function values(some) {
  const field = (column) => {
    const name = String(column.name), id = `value-${name}`, locked = some.locks.includes(name);
    const mine = getSchema().may_change[name] !== "no";
    const lock = h("button", {
      class: "lock", "aria-pressed": String(locked || !mine), disabled: !mine, "aria-label": t("keep", { column: title(name) }),
      title: mine ? t("keep_title") : t("never_changes"),
      onclick: (event) => {
        const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
        event.currentTarget.setAttribute("aria-pressed", String(on));
        const { locks } = state();
        change({ locks: on ? [...locks, name] : locks.filter((each) => each !== name) });
      },
    }, h("span", { "aria-hidden": "true" }));
    return h("div", { class: "field" }, h("label", { for: id }, title(name)), h("div", { class: "row" },
      input(column, some.person[name], id, (value) => change({ number: null, id: null, person: { ...state().person, [name]: value } }, `value ${name}`)), lock),
      hint(column) ? h("span", { class: "small" }, hint(column)) : null);
  };
  const open = !matchMedia("(max-width: 34rem)").matches || some.number === null;
  return h("details", { class: "card", open, id: "values" }, h("summary", {}, h("h2", {}, t("values"))),
    h("p", { class: "small" }, t("values_lead")),
    h("div", { class: "fields" }, visible().map(field)),
    hiddenCount() ? h("p", { class: "small", id: "unseen" }, t("kept_unseen", { count: hiddenCount() })) : null);
}

// Constraints

function constraints(some) {
  const classes = getSchema().outputs[0].classes;
  const free = visible().filter((column) => getSchema().may_change[String(column.name)] !== "no");
  const picked = h("select", { id: "constraint-of" }, free.map((column) => h("option", { value: String(column.name) }, title(String(column.name)))));
  const editor = h("div", { class: "editor" });
  const edit = () => fill(editor, constraintEditor(free.find((column) => String(column.name) === picked.value)));
  picked.addEventListener("change", edit);
  if (free.length) edit();
  const rules = h("textarea", { id: "rules", rows: 3, spellcheck: "false", "aria-describedby": "rules-hint", placeholder: "at most 2 changes" });
  rules.value = some.rules.join("\n");
  rules.addEventListener("input", () => { change({ rules: rules.value.split("\n").filter((line) => line.trim()) }, "rules"); showTags(); });
  const number = h("input", { id: "n", type: "number", min: 1, max: 12, step: 1, value: some.n });
  number.addEventListener("input", () => { if (number.validity.valid && number.value) change({ n: number.valueAsNumber }, "n"); });
  const target = classes
    ? h("select", { id: "target" }, classes.map((value, i) => h("option", { value: i }, outcomeText(value))))
    : h("input", { id: "target", placeholder: t("target_example"), value: some.target ?? "" });
  if (classes) target.value = String(classes.findIndex((value) => value === (some.target ?? getSchema().favourable)));
  target.addEventListener("change", () => {
    const value = classes ? classes[Number(target.value)] : target.value.trim() || null;
    change({ target: value === getSchema().favourable ? null : value });
  });
  return fold("constraints", [h("h2", {}, t("constraints_heading")), counted()],
    h("div", { class: "fields short" },
      h("div", { class: "field" }, h("label", { for: "target" }, t("target")), target),
      h("div", { class: "field" }, h("label", { for: "n" }, t("options")), number)),
    free.length ? h("div", { class: "field" }, h("label", { for: "constraint-of" }, t("constraint_on")), picked) : null, editor, tagList(),
    h("div", { class: "field" }, h("label", { for: "rules" }, t("rules")), rules,
      h("span", { class: "small", id: "rules-hint" }, t("rules_example", { rule: example(free) }))));
}

// A rule about this table.
function example(free) {
  const column = free.find((each) => each.kind !== "categorical" && /^[A-Za-z_]\w*$/.test(each.name));
  return column ? `${column.name} <= ${column.high}` : "at most 2 changes";
}

function constraintEditor(column) {
  const name = String(column.name), some = state();
  const [low, high] = some.ranges[name] ?? [null, null];
  const number = (value) => (value === "" ? null : Number(value));
  const put = (map, key, value, none) => {
    const { [key]: _, ...rest } = map;
    return none ? rest : { ...map, [key]: value };
  };
  const box = (id, label, value, changed, more = {}) => {
    const field = h("input", { id, type: "number", step: "any", value: value ?? "", ...more });
    field.addEventListener("input", () => { if (!field.validity.badInput) { changed(number(field.value)); showTags(); } });
    return h("div", { class: "field" }, h("label", { for: id }, label), field);
  };
  const range = (at) => (value) => {
    const pair = [...(state().ranges[name] ?? [null, null])];
    pair[at] = value;
    change({ ranges: put(state().ranges, name, pair, pair.every((end) => end === null)) }, `range ${name} ${at}`);
  };
  const ordered = column.kind !== "categorical" || (column.order?.length ?? 0) > 1;
  const direction = h("select", { id: "direction" }, h("option", { value: "" }, t("any_way")), h("option", { value: "increase" }, t("only_up")), h("option", { value: "decrease" }, t("only_down")));
  direction.value = some.directions[name] ?? "";
  direction.addEventListener("change", () => { change({ directions: put(state().directions, name, direction.value, !direction.value) }); showTags(); });
  return h("div", { class: "fields short" },
    column.kind === "categorical" ? null : [box("low", t("at_least"), low, range(0), { placeholder: column.low }), box("high", t("at_most"), high, range(1), { placeholder: column.high })],
    ordered ? h("div", { class: "field" }, h("label", { for: "direction" }, t("direction")), direction) : null,
    box("cost", t("cost"), some.costs[name], (value) => change({ costs: put(state().costs, name, value, value === null) }, `cost ${name}`), { min: 0, placeholder: 1 }));
}

// The constraints that are set, each with a button to remove it.
let tags = null;
let count = null; // of them, which is also seen while they are folded
const counted = () => (count = h("span", { class: "small" }));
function tagList() {
  tags = h("ul", { class: "tags", id: "constraints-set" });
  showTags();
  return tags;
}

function showTags() {
  if (!tags) return;
  const some = state(), items = [];
  const without = (map, name) => { const { [name]: _, ...rest } = map; return rest; };
  const tag = (text, removal) => h("li", {}, text, h("button", { "aria-label": t("remove", { constraint: text }), onclick: () => { change(removal()); showTags(); } }, "×"));
  for (const [name, [low, high]] of Object.entries(some.ranges))
    items.push(tag(t(low === null ? "set_at_most" : high === null ? "set_at_least" : "set_range", { column: title(name), low, high }), () => ({ ranges: without(state().ranges, name) })));
  for (const [name, direction] of Object.entries(some.directions))
    items.push(tag(t(direction === "increase" ? "set_up" : "set_down", { column: title(name) }), () => ({ directions: without(state().directions, name) })));
  for (const [name, cost] of Object.entries(some.costs))
    items.push(tag(t("set_cost", { column: title(name), cost }), () => ({ costs: without(state().costs, name) })));
  fill(tags, items);
  const set = items.length + some.rules.length;
  count.textContent = set ? ` ${t("limits_set", { count: set })}` : "";
}

// The trade-off between proximity and plausibility

function tradeOff(some) {
  if (!getSchema().method.has_trade_off) return null;
  const byDefault = getSchema().method.closeness ?? 0.5;
  const slider = h("input", { id: "closeness", type: "range", min: 0, max: 1, step: 0.05, value: some.closeness ?? byDefault, "aria-describedby": "closeness-value" });
  const output = h("span", { id: "closeness-value" }, closenessText(Number(slider.value), some.closeness === null));
  slider.addEventListener("input", () => {
    output.textContent = closenessText(slider.valueAsNumber, false);
    reset.hidden = false;
    change({ closeness: slider.valueAsNumber }, "closeness");
  });
  const reset = h("button", { class: "link", hidden: some.closeness === null, onclick: () => { slider.value = byDefault; output.textContent = closenessText(byDefault, true); reset.hidden = true; slider.focus(); change({ closeness: null }); } }, t("reset"));
  return fold("trade_off", [h("h2", {}, t("trade_off")), h("span", { class: "small" }, " ", output)],
    h("div", { class: "bar" }, h("label", { for: "closeness" }, t("closeness")), reset),
    slider, h("div", { class: "ends small" }, h("span", {}, t("typical_end")), h("span", {}, t("near_end"))),
    current.along);
}

const closenessText = (value, isDefault) => (isDefault ? t("default", { value: decimals(value) }) : decimals(value));

// Draws distance and plausibility of the first option at every position that has been measured.
function showTradeOff(here, some) {
  if (!getSchema().method.has_trade_off || !here.along.isConnected) return;
  const byDefault = getSchema().method.closeness ?? 0.5, measured = new Map();
  for (const at of [...Array(21).keys()].map((i) => i / 20)) {
    const lines = cached({ ...some, closeness: at }) ?? (at === byDefault ? cached({ ...some, closeness: null }) : null);
    if (lines?.[0]) measured.set(at, lines[0]);
  }
  const complete = POSITIONS.every((at) => measured.has(at));
  const x = [...measured.keys()], marker = some.closeness ?? byDefault;
  const parts = [];
  if (x.length > 1) {
    const far = x.map((at) => measured.get(at).distance), typical = x.map((at) => measured.get(at).plausibility);
    parts.push(plot({
      label: t("trade_off_plot", { positions: x.length }),
      x, xLabel: t("closeness_axis"), xFormat: (value) => decimals(value), marker, points: true, height: 200,
      series: [{ label: t("distance_left"), values: far, colour: "--class-1", scale: "far", dash: [6, 4] }, { label: t("plausibility_right"), values: typical, colour: "--class-0", scale: "typical" }],
      scales: {
        far: { range: (_, low, high) => [0, Math.max(1, high * 1.1)], format: (value) => decimals(value, 1), side: 3, tint: "--class-1" },
        typical: { range: () => [0, 1], format: percent, side: 1, tint: "--class-0" },
      },
    }).element);
  }
  if (!complete) parts.push(h("button", { id: "measure", onclick: (event) => measure(event.target, here) }, t("measure")));
  fill(here.along, parts);
}

function cached(some) {
  return cache.get(JSON.stringify(requestBody(some)));
}

async function measure(button, here) {
  button.disabled = true;
  const some = state();
  for (const at of POSITIONS) {
    button.textContent = t("measuring", { at: decimals(at) });
    try {
      await answer({ ...some, closeness: at });
    } catch (error) {
      button.after(notice(error));
      break;
    }
    if (!here.along.isConnected) return;
  }
  showTradeOff(here, state());
  announce(t("measured"));
}
