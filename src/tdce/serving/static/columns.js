// The page “Columns”: set what each column is and which laws hold, and see what five people would then be told.
import { get, post } from "./api.js";
import { announce, debounced, fill, h, save } from "./dom.js";
import { notice } from "./errors.js";
import { hiddenCount, title, visible } from "./fields.js";
import { lawItems, withoutFollower } from "./laws.js";
import { change, listen, state } from "./state.js";
import { language, number, rich, t } from "./words.js";

const PEOPLE = 5;
const WAIT_MS = 300; // without a change before the server is asked
const cache = new Map(); // replies by request, in this tab's memory only
const MAX_CACHED = 100;

let current = null; // the elements on the page now, and the people

export async function columns(main, go) {
  const box = h("div", {}, h("p", { class: "loading" }, t("loading")));
  const here = (current = { box, go, people: [], rows: [], laws: [], controller: null });
  fill(main, h("h1", {}, t("columns_heading")), h("p", { class: "lead" }, rich("columns_lead", { command: h("code", {}, "tdce fit --schema") })), box);
  try {
    here.people = (await get(`/people?met=false&count=${PEOPLE}`)).people;
    here.fitted = await reply(here, [], []);
    if (!box.isConnected) return;
    draw(here);
    await show(here);
  } catch (error) {
    if (error.name !== "AbortError") fill(box, notice(error));
  }
}

const later = debounced(() => { if (current?.box.isConnected) show(current); }, WAIT_MS);
listen((now, before, redraw) => {
  if (!redraw && (now.columns !== before.columns || now.laws !== before.laws) && current?.box.isConnected && current.fitted) {
    mark(current);
    expire(current);
    later();
  }
});

// What the server says of these settings; it is asked once.
async function reply(here, edits, laws, signal) {
  const { target, closeness, threshold } = state();
  const body = { rows: here.people.map((person) => person.values), columns: edits, laws, target, closeness, threshold, audience: "analyst", language: language() };
  const key = JSON.stringify(body);
  if (!cache.has(key)) {
    cache.set(key, await post("/columns", body, signal));
    if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value);
  }
  return cache.get(key);
}

// The settings that differ from those fitted

const editOf = (name) => state().columns.find((edit) => edit.name === name) ?? { name };

// `undefined` is the setting that was fitted. The last edit comes last: it may be the one that turns a law round.
function put(name, key, value, typing = "") {
  const { [key]: _, ...rest } = editOf(name);
  const edit = value === undefined ? rest : { ...rest, [key]: value };
  const others = state().columns.filter((each) => each.name !== name);
  change({ columns: isEmpty(edit) ? others : [...others, edit] }, typing);
}

const isEmpty = (edit) => Object.keys(edit).length === 1;

// One of the columns that a law binds follows the others: what was said about the same columns no longer holds.
function follow(here, name, sources, fitted) {
  const group = keyOf([name, ...sources]);
  const others = state().columns.filter((edit) => edit.name !== name).map((edit) => {
    const { follows, ...rest } = edit;
    return follows?.length && keyOf([edit.name, ...follows]) === group ? rest : edit;
  });
  const { follows: _, ...rest } = editOf(name);
  const same = keyOf(sources) === keyOf(fitted ?? []);
  change({ columns: [...others, same ? rest : { ...rest, follows: sources }].filter((edit) => !isEmpty(edit)), laws: withoutFollower(here.fitted.laws, name) });
}

const keyOf = (names) => JSON.stringify([...names].sort());

// The table of the columns

function draw(here) {
  const known = new Map(here.fitted.columns.map((column) => [column.name, column]));
  const shown = visible().map((column) => known.get(String(column.name))).filter(Boolean);
  const bound = shown.some((column) => column.may_follow.length);
  here.rows = shown.map((column) => row(here, column, bound));
  here.laws = lawItems(here.fitted.laws);
  here.answers = h("div", { id: "answers" }, h("p", { class: "loading" }, t("looking")));
  here.count = h("p", { class: "small", id: "answers-changed" });
  here.glance = h("p", { class: "glance", "aria-hidden": "true" }); // on a phone, where the answers are out of sight
  here.download = h("button", { class: "main", id: "download-schema", onclick: () => save(new Blob([here.reply.edited_schema], { type: "application/json" }), "schema.json") }, t("columns_download"));
  here.reset = h("button", { id: "columns-reset", onclick: () => { change({ columns: [], laws: [] }); columns(here.box.parentElement, here.go); } }, t("columns_reset"));
  const heads = [t("column"), t("role"), t("direction"), t("step"), t("cost_short"), ...(bound ? [t("follows")] : [])];
  fill(here.box,
    h("div", { class: "two turned settings" },
      h("div", {},
        h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("columns") }, h("table", { class: "rows edit" },
          h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))),
          h("tbody", {}, here.rows.map((each) => each.element)))),
        h("p", { class: "small" }, t("columns_empty"), bound ? ` ${t("columns_follows_note")}` : ""),
        hiddenCount() ? h("p", { class: "small" }, t("kept_unseen", { count: hiddenCount() })) : null,
        h("section", { class: "card", "aria-labelledby": "laws-heading" }, h("h2", { id: "laws-heading" }, t("columns_laws")),
          h("p", { class: "small" }, here.laws.length ? t("columns_laws_note") : t("no_laws")),
          here.laws.length ? h("ul", { class: "switches" }, here.laws.map((each) => each.element)) : null)),
      h("section", { class: "card sticky tall", "aria-label": t("columns_people") },
        h("h2", {}, t("columns_people")), here.count,
        h("div", { class: "buttons" }, here.download, here.reset), here.answers)),
    here.glance);
  mark(here);
}

function row(here, fitted, bound) {
  const { name } = fitted, label = title(name), numeric = fitted.direction !== null;
  const labelled = (id, setting) => ({ id: `${id}-${name}`, "aria-label": t("setting_of", { setting, column: label }) });
  const holds = h("span", { class: "small" }, fitted.described);
  const role = h("select", { ...labelled("role", t("role")), onchange: () => put(name, "role", role.value === fitted.role ? undefined : role.value) });
  const direction = numeric ? h("select", { ...labelled("direction", t("direction")), onchange: () => {
    const own = direction.value === fitted.direction && !("role" in editOf(name)); // another role has another default
    put(name, "direction", own ? undefined : direction.value);
  } }) : null;
  const box = (setting, text, placeholder, more) => {
    const field = h("input", { ...labelled(setting, text), type: "number", inputmode: "decimal", step: "any", value: editOf(name)[setting] ?? "", placeholder, ...more });
    field.addEventListener("input", () => { if (!field.validity.badInput) put(name, setting, field.value === "" ? undefined : field.valueAsNumber, `${setting} ${name}`); });
    return field;
  };
  const step = numeric ? box("step", t("step"), fitted.step === null ? t("any_step") : number(fitted.step)) : null;
  const cost = box("cost", t("cost_short"), number(fitted.cost), { min: 0, max: 1000 });
  const follows = fitted.may_follow.length ? h("select", { ...labelled("follows", t("follows")), onchange: () => follow(here, name, JSON.parse(follows.value), fitted.follows) }) : null;
  const cell = (text, control) => h("td", { "data-label": text, class: control ? "" : "none" }, control);
  const element = h("tr", {}, h("th", { scope: "row" }, label, h("br"), holds), cell(t("role"), role), cell(t("direction"), direction), cell(t("step"), step), cell(t("cost_short"), cost),
    bound ? cell(t("follows"), follows) : null);
  const update = (now) => {
    holds.textContent = now.described;
    choose(role, here.fitted.roles.map((each) => [each, roleText(each === "actionable" && now.follows ? "follows" : each)]), now.role);
    if (direction) choose(direction, [["any", t("any_way")], ["increase", t("only_up")], ["decrease", t("only_down")]], now.direction);
    if (follows) choose(follows, [["[]", t("follows_nothing")], ...now.may_follow.map((group) => [keyOf(group), group.map(title).join(", ")])], keyOf(now.follows ?? []));
    for (const control of [direction, step, cost]) if (control) control.disabled = now.may_change === "no" && control !== document.activeElement;
  };
  update(fitted);
  return { name, element, update };
}

const roleText = (role) => t(`role_${role.replaceAll(" ", "_")}`);

// The options of a select, filled anew only if they are others: it may be open.
function choose(select, pairs, value) {
  const old = [...select.options].map((option) => [option.value, option.text]);
  if (JSON.stringify(old) !== JSON.stringify(pairs)) fill(select, pairs.map(([each, text]) => h("option", { value: each }, text)));
  select.value = value;
}

// Marks the columns and laws that are set otherwise than they were fitted.
function mark(here) {
  for (const { name, element } of here.rows) element.classList.toggle("moved", !isEmpty(editOf(name)));
  for (const { number: place, element } of here.laws) element.classList.toggle("moved", state().laws.some((edit) => edit.number === place));
  here.reset.disabled = state().columns.length === 0 && state().laws.length === 0;
}

// The answers

// What was asked before is out of date: it must not set a control back, nor be saved.
function expire(here) {
  here.controller?.abort();
  here.answers.setAttribute("aria-busy", "true");
  here.download.disabled = true;
}

async function show(here) {
  expire(here);
  const { signal } = (here.controller = new AbortController());
  try {
    here.reply = await reply(here, state().columns, state().laws, signal);
    const known = new Map(here.reply.columns.map((column) => [column.name, column]));
    for (const { name, update } of here.rows) update(known.get(name));
    const laws = new Map(here.reply.laws.map((law) => [law.number, law]));
    for (const { number: place, update } of here.laws) update(laws.get(place));
    here.download.disabled = false;
    fill(here.answers, answers(here));
  } catch (error) {
    if (error.name === "AbortError") return;
    for (const text of [here.count, here.glance]) text.textContent = "";
    fill(here.answers, notice(error));
  }
  here.answers.removeAttribute("aria-busy");
}

const told = ({ status, values, sentence, score_after }) => JSON.stringify([status, values, sentence, score_after]);

function answers(here) {
  const before = here.fitted.lines, lines = here.reply.lines;
  const changed = lines.map((line, i) => told(line) !== told(before[i])), count = changed.filter(Boolean).length;
  const summary = lines.length ? t("answers_changed", { count, total: lines.length }) : t("columns_nobody");
  for (const text of [here.count, here.glance]) text.textContent = summary;
  if (lines.length) announce(summary);
  return h("ul", { class: "changes" }, lines.map((line, i) => h("li", { class: changed[i] ? "told moved" : "told" },
    h("div", { class: "bar" }, h("button", { class: "link", onclick: () => pick(here, here.people[i]) }, t("person_number", { number: here.people[i].number + 1 })),
      changed[i] ? h("b", { class: "chip valid" }, t("answer_changed")) : h("span", { class: "small" }, t("answer_same"))),
    h("p", { class: "sentence" }, line.sentence, line.note ? ` ${t("note", { note: line.note })}` : ""),
    changed[i] ? h("p", { class: "small" }, t("answer_before", { sentence: before[i].sentence })) : null)));
}

function pick(here, { number: place, values }) {
  change({ number: place, person: { ...values }, trial: null });
  here.go("person");
}
