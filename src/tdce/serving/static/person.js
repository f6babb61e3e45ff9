// One person: values and limits on the left, the decision, the dial and the options on the right.
import { post } from "./api.js";
import { debounced, fill, h, save, say } from "./dom.js";
import { hint, input, known, outcome, percent, said, score, seen, title, unseen } from "./fields.js";
import { options } from "./options.js";
import { plot } from "./plot.js";
import { change, listen, question, state } from "./state.js";
import { report } from "./file.js";
import { decimals, language, rich, t } from "./words.js";

const POSITIONS = [0, 0.25, 0.5, 0.75, 1];
const WAIT = 150; // milliseconds without a change before the server is asked
const cache = new Map(); // answers by question, in this tab's memory only
const MOST = 200;

const asked = (some) => ({ rows: [some.person], ...question(some), audience: "analyst", language: language() });

// The answer to the question of this state; asked once.
export async function answer(some, signal) {
  const body = asked(some);
  const key = JSON.stringify(body);
  if (!cache.has(key)) {
    const { lines } = await post("/explain", body, signal);
    cache.set(key, lines);
    if (cache.size > MOST) cache.delete(cache.keys().next().value);
  }
  return cache.get(key);
}

let room = null; // what is on the page now

export function person(main, go) {
  const some = state();
  const decision = h("section", { class: "card decision", "aria-live": "polite", "aria-label": t("decision") }, h("p", { class: "loading" }, t("asking")));
  const found = h("section", { "aria-label": t("options"), id: "options" }, h("p", { class: "loading" }, t("looking")));
  const along = h("div", { id: "along" });
  room = { heading: h("h1", {}, heading(some)), decision, found, along, go, controller: null };
  fill(main, room.heading,
    h("div", { class: "two" },
      h("div", {}, values(some)),
      h("div", {}, decision, h("div", { class: "pair" }, dial(some), limits(some)), found)));
  ask();
}

const heading = ({ number }) => (number === null ? t("own_person") : t("person_number", { number: number + 1 }));

const later = debounced(() => ask(), WAIT);

listen((now, before, whole) => {
  if (!room?.found.isConnected || now.person === null) return;
  if (whole) return; // the page is made anew
  room.heading.textContent = heading(now);
  later();
});

async function ask() {
  if (!room?.found.isConnected) return;
  const here = room, some = state();
  here.controller?.abort();
  const { signal } = (here.controller = new AbortController());
  here.found.setAttribute("aria-busy", "true");
  try {
    const { decisions } = await post("/predict", { rows: [some.person] }, signal);
    decided(here.decision, decisions[0], some);
    const lines = await answer(some, signal);
    fill(here.found, h("div", { class: "bar" }, h("h2", {}, lines.length > 1 ? t("side_by_side") : t("would_change")),
      h("button", { id: "export", onclick: (event) => exported(event.target) }, t("export"))),
      options(lines, { onTry: (line) => { change({ trial: { ...state().person, ...line.values } }); here.go("trial"); } }));
    shownAlong(here, some);
    say(t("options_found", { count: lines.length, sentence: lines[0]?.sentence ?? "" }));
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(here.found, h("p", { class: "notice", role: "alert" }, error.message));
  }
  here.found.removeAttribute("aria-busy");
}

function decided(element, found, some) {
  const wanted = some.target ?? known().favourable;
  const p = found.probabilities?.[String(wanted)];
  const good = String(found.prediction) === String(wanted);
  fill(element,
    h("p", { class: "small" }, t("says")),
    h("p", { class: `verdict ${good ? "yes" : "no"}` }, found.probabilities ? outcome(found.prediction) : score(found.prediction)),
    p === undefined ? null : h("p", {}, rich("chance", { outcome: outcome(wanted), chance: h("b", { class: "num" }, percent(p)) })));
}

async function exported(button) {
  const words = button.textContent;
  button.disabled = true;
  button.textContent = t("exporting");
  try {
    save(await report([state().person], question()), "report.html");
    say(t("exported"));
  } catch (error) {
    button.after(h("p", { class: "notice", role: "alert" }, error.message));
  }
  button.disabled = false;
  button.textContent = words;
}

// Values

function values(some) {
  const field = (column) => {
    const name = String(column.name), id = `value-${name}`, locked = some.locks.includes(name);
    const mine = known().may_change[name] !== "no";
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
      input(column, some.person[name], id, (value) => change({ number: null, person: { ...state().person, [name]: value } }, `value ${name}`)), lock),
      hint(column) ? h("span", { class: "small" }, hint(column)) : null);
  };
  const open = !matchMedia("(max-width: 34rem)").matches || some.number === null;
  return h("details", { class: "card", open, id: "values" }, h("summary", {}, h("h2", {}, t("values"))),
    h("p", { class: "small" }, t("values_lead")),
    h("div", { class: "fields" }, seen().map(field)),
    unseen() ? h("p", { class: "small", id: "unseen" }, t("kept_unseen", { count: unseen() })) : null);
}

// Limits

function limits(some) {
  const classes = known().outputs[0].classes;
  const free = seen().filter((column) => known().may_change[String(column.name)] !== "no");
  const picked = h("select", { id: "limit-of" }, free.map((column) => h("option", { value: String(column.name) }, title(String(column.name)))));
  const editor = h("div", { class: "editor" });
  const edit = () => fill(editor, limit(free.find((column) => String(column.name) === picked.value)));
  picked.addEventListener("change", edit);
  if (free.length) edit();
  const rules = h("textarea", { id: "rules", rows: 3, spellcheck: "false", "aria-describedby": "rules-hint", placeholder: "at most 2 changes" });
  rules.value = some.rules.join("\n");
  rules.addEventListener("input", () => change({ rules: rules.value.split("\n").filter((line) => line.trim()) }, "rules"));
  const count = h("input", { id: "n", type: "number", min: 1, max: 12, step: 1, value: some.n });
  count.addEventListener("input", () => { if (count.validity.valid && count.value) change({ n: count.valueAsNumber }, "n"); });
  const target = classes
    ? h("select", { id: "target" }, classes.map((value, i) => h("option", { value: i }, said(value))))
    : h("input", { id: "target", placeholder: t("wanted_number"), value: some.target ?? "" });
  if (classes) target.value = String(classes.findIndex((value) => value === (some.target ?? known().favourable)));
  target.addEventListener("change", () => {
    const value = classes ? classes[Number(target.value)] : target.value.trim() || null;
    change({ target: value === known().favourable ? null : value });
  });
  return h("section", { class: "card", "aria-label": t("limits") }, h("h2", {}, t("limits_heading")),
    h("div", { class: "fields short" },
      h("div", { class: "field" }, h("label", { for: "target" }, t("wanted")), target),
      h("div", { class: "field" }, h("label", { for: "n" }, t("options")), count)),
    free.length ? h("div", { class: "field" }, h("label", { for: "limit-of" }, t("limit_on")), picked) : null, editor, set(),
    h("div", { class: "field" }, h("label", { for: "rules" }, t("rules")), rules,
      h("span", { class: "small", id: "rules-hint" }, t("rules_example", { rule: example(free) }))));
}

// A rule about this table.
function example(free) {
  const column = free.find((each) => each.kind !== "categorical" && /^[A-Za-z_]\w*$/.test(each.name));
  return column ? `${column.name} <= ${column.high}` : "at most 2 changes";
}

function limit(column) {
  const name = String(column.name), some = state();
  const [low, high] = some.ranges[name] ?? [null, null];
  const number = (value) => (value === "" ? null : Number(value));
  const put = (map, key, value, none) => {
    const { [key]: _, ...rest } = map;
    return none ? rest : { ...map, [key]: value };
  };
  const box = (id, label, value, changed, more = {}) => {
    const field = h("input", { id, type: "number", step: "any", value: value ?? "", ...more });
    field.addEventListener("input", () => { if (!field.validity.badInput) { changed(number(field.value)); sets(); } });
    return h("div", { class: "field" }, h("label", { for: id }, label), field);
  };
  const range = (at) => (value) => {
    const pair = [...(state().ranges[name] ?? [null, null])];
    pair[at] = value;
    change({ ranges: put(state().ranges, name, pair, pair.every((end) => end === null)) }, `range ${name} ${at}`);
  };
  const ordered = column.kind !== "categorical" || (column.order?.length ?? 0) > 1;
  const way = h("select", { id: "direction" }, h("option", { value: "" }, t("any_way")), h("option", { value: "increase" }, t("only_up")), h("option", { value: "decrease" }, t("only_down")));
  way.value = some.directions[name] ?? "";
  way.addEventListener("change", () => { change({ directions: put(state().directions, name, way.value, !way.value) }); sets(); });
  return h("div", { class: "fields short" },
    column.kind === "categorical" ? null : [box("low", t("at_least"), low, range(0), { placeholder: column.low }), box("high", t("at_most"), high, range(1), { placeholder: column.high })],
    ordered ? h("div", { class: "field" }, h("label", { for: "direction" }, t("may_go")), way) : null,
    box("cost", t("cost"), some.costs[name], (value) => change({ costs: put(state().costs, name, value, value === null) }, `cost ${name}`), { min: 0, placeholder: 1 }));
}

// All limits that are set, each with a way to take it back.
let list = null;
function set() {
  list = h("ul", { class: "tags", id: "limits-set" });
  sets();
  return list;
}

function sets() {
  if (!list) return;
  const some = state(), tags = [];
  const without = (map, name) => { const { [name]: _, ...rest } = map; return rest; };
  const tag = (words, back) => h("li", {}, words, h("button", { "aria-label": t("take_back", { limit: words }), onclick: () => { change(back()); sets(); } }, "×"));
  for (const [name, [low, high]] of Object.entries(some.ranges))
    tags.push(tag(t(low === null ? "set_at_most" : high === null ? "set_at_least" : "set_range", { column: title(name), low, high }), () => ({ ranges: without(state().ranges, name) })));
  for (const [name, way] of Object.entries(some.directions))
    tags.push(tag(t(way === "increase" ? "set_up" : "set_down", { column: title(name) }), () => ({ directions: without(state().directions, name) })));
  for (const [name, cost] of Object.entries(some.costs))
    tags.push(tag(t("set_cost", { column: title(name), cost }), () => ({ costs: without(state().costs, name) })));
  fill(list, tags);
}

// The dial

function dial(some) {
  if (!known().method.has_dial) return null;
  const usual = known().method.closeness ?? 0.5;
  const slider = h("input", { id: "closeness", type: "range", min: 0, max: 1, step: 0.05, value: some.closeness ?? usual, "aria-describedby": "closeness-said" });
  const said = h("output", { id: "closeness-said", for: "closeness" }, spoken(Number(slider.value), some.closeness === null));
  slider.addEventListener("input", () => {
    said.textContent = spoken(slider.valueAsNumber, false);
    back.hidden = false;
    change({ closeness: slider.valueAsNumber }, "closeness");
  });
  const back = h("button", { class: "link", hidden: some.closeness === null, onclick: () => { slider.value = usual; said.textContent = spoken(usual, true); back.hidden = true; slider.focus(); change({ closeness: null }); } }, t("as_usual"));
  return h("section", { class: "card", "aria-label": t("dial") },
    h("div", { class: "bar" }, h("h2", {}, h("label", { for: "closeness" }, t("closeness"))), h("span", {}, said, " ", back)),
    slider, h("div", { class: "ends small" }, h("span", {}, t("typical_end")), h("span", {}, t("near_end"))),
    room.along);
}

const spoken = (value, usual) => (usual ? t("usual", { value: decimals(value) }) : decimals(value));

// Distance and plausibility of the first option at every position that has been asked about.
function shownAlong(here, some) {
  if (!known().method.has_dial || !here.along.isConnected) return;
  const usual = known().method.closeness ?? 0.5, seen = new Map();
  for (const at of [...Array(21).keys()].map((i) => i / 20)) {
    const lines = cached({ ...some, closeness: at }) ?? (at === usual ? cached({ ...some, closeness: null }) : null);
    if (lines?.[0]) seen.set(at, lines[0]);
  }
  const whole = POSITIONS.every((at) => seen.has(at));
  const x = [...seen.keys()], current = some.closeness ?? usual;
  const parts = [];
  if (x.length > 1) {
    const far = x.map((at) => seen.get(at).distance), typical = x.map((at) => seen.get(at).plausibility);
    parts.push(plot({
      about: t("dial_plot", { positions: x.length }),
      x, xLabel: t("closeness_axis"), xFormat: (value) => decimals(value, 1), marker: current, points: true, height: 200,
      series: [{ label: t("distance_left"), values: far, colour: "--class-1", scale: "far", dash: [6, 4] }, { label: t("plausibility_right"), values: typical, colour: "--class-0", scale: "typical" }],
      scales: {
        far: { range: (_, low, high) => [0, Math.max(1, high * 1.1)], format: (value) => decimals(value, 1), side: 3, tint: "--class-1" },
        typical: { range: () => [0, 1], format: percent, side: 1, tint: "--class-0" },
      },
    }).element);
  }
  if (!whole) parts.push(h("button", { id: "measure", onclick: (event) => measure(event.target, here) }, t("measure")));
  fill(here.along, parts);
}

function cached(some) {
  return cache.get(JSON.stringify(asked(some)));
}

async function measure(button, here) {
  button.disabled = true;
  const some = state();
  for (const at of POSITIONS) {
    button.textContent = t("measuring", { at: decimals(at) });
    try {
      await answer({ ...some, closeness: at });
    } catch (error) {
      button.after(h("p", { class: "notice", role: "alert" }, error.message));
      break;
    }
    if (!here.along.isConnected) return;
  }
  shownAlong(here, state());
  say(t("measured"));
}
