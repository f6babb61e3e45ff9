// The state of the studio, undo and redo, and the part of the state that an address may hold.
//
// The address holds settings and the number of a person of the table. Values of a person are never in it.

export const EMPTY = {
  number: null, // the person's number in the table; null: values were entered by hand
  id: null, // the person's id in the table
  person: null, // their values, by column
  trial: null, // other values, tried by hand
  target: null,
  n: 3,
  closeness: null, // null: the method's own
  threshold: null,
  locks: [],
  ranges: {}, // by column: [low, high], either may be null
  directions: {}, // by column: "increase" or "decrease"
  costs: {},
  rules: [],
  columns: [], // settings of columns that are tried: {name, role, direction, step, cost, follows}, those that differ
  laws: [], // switches of laws that are tried: {number, on}
};
const SETTINGS = ["target", "n", "closeness", "threshold", "locks", "ranges", "directions", "costs", "rules", "columns", "laws"];
const MAX_UNDO = 200; // steps

let now = structuredClone(EMPTY);
let past = [];
let future = [];
const listeners = new Set();

export const state = () => now;
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;
export const listen = (listener) => listeners.add(listener);

// Makes a change that can be undone; consecutive changes with the same `typing`, those of one input, are one step.
let typed = "";
export function change(part, typing = "") {
  const next = { ...now, ...part };
  if (JSON.stringify(next) === JSON.stringify(now)) return;
  if (!typing || typing !== typed) past = [...past, now].slice(-MAX_UNDO);
  typed = typing;
  future = [];
  set(next);
}

export function undo() {
  if (!past.length) return;
  future.push(now);
  typed = "";
  set(past.pop(), true);
}

export function redo() {
  if (!future.length) return;
  past.push(now);
  typed = "";
  set(future.pop(), true);
}

// `redraw`: the whole page shows another state.
function set(next, redraw = false) {
  const before = now;
  now = next;
  for (const listener of listeners) listener(now, before, redraw);
}

export function start(initial) {
  now = { ...structuredClone(EMPTY), ...initial };
}

const quoted = (name) => `\`${name}\``;

// All rules of the state: ranges and directions, written as docs/rules.md has them, and the user's own.
export function rules({ ranges, directions, rules: own }) {
  const derived = [];
  for (const [name, [low, high]] of Object.entries(ranges)) {
    if (low !== null) derived.push(`${quoted(name)} >= ${low}`);
    if (high !== null) derived.push(`${quoted(name)} <= ${high}`);
  }
  for (const [name, direction] of Object.entries(directions))
    derived.push(`${quoted(name)} ${direction === "increase" ? ">=" : "<="} was(${quoted(name)})`);
  return [...derived, ...own.filter((rule) => rule.trim())];
}

// The arguments of `explain`, besides the rows.
export function question(current = now) {
  const { target, n, closeness, threshold, locks, costs } = current;
  return { target, n, closeness, threshold, immutable: locks, costs, rules: rules(current) };
}

export function toFragment(page, current = now) {
  const parts = new URLSearchParams({ page });
  if (current.number !== null) parts.set("person", current.number);
  for (const name of SETTINGS)
    if (JSON.stringify(current[name]) !== JSON.stringify(EMPTY[name])) parts.set(name, JSON.stringify(current[name]));
  return `#${parts}`;
}

// The page and the settings of an address, which anybody may have written: what does not fit is left out.
export function fromFragment(text) {
  const parts = new URLSearchParams(text.replace(/^#/, ""));
  const settings = {};
  for (const name of SETTINGS) {
    if (!parts.has(name)) continue;
    try {
      const value = JSON.parse(parts.get(name));
      if (fits(name, value)) settings[name] = value;
    } catch { /* not JSON: left out */ }
  }
  const number = Number(parts.get("person"));
  if (parts.has("person") && Number.isInteger(number) && number >= 0) settings.number = number;
  return { page: parts.get("page") ?? "", settings };
}

function fits(name, value) {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
  if (name === "locks" || name === "rules") return Array.isArray(value) && value.every((v) => typeof v === "string");
  if (name === "ranges")
    return isObject && Object.values(value).every((pair) => Array.isArray(pair) && pair.length === 2
      && pair.every((end) => end === null || typeof end === "number"));
  if (name === "directions") return isObject && Object.values(value).every((v) => v === "increase" || v === "decrease");
  if (name === "costs") return isObject && Object.values(value).every((v) => typeof v === "number");
  if (name === "columns") return Array.isArray(value) && value.every((v) => v !== null && typeof v === "object" && typeof v.name === "string");
  if (name === "laws") return Array.isArray(value) && value.every((v) => v !== null && typeof v === "object" && Number.isInteger(v.number) && typeof v.on === "boolean");
  if (name === "n") return Number.isInteger(value) && value >= 1 && value <= 12;
  if (name === "target") return value === null || ["string", "number", "boolean"].includes(typeof value);
  return value === null || (typeof value === "number" && value >= 0 && value <= 1);
}
