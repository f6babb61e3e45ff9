// Columns as people see them: titles, values, and inputs that fit the schema.
import { h } from "./dom.js";

let schema = null;
export function learn(found) {
  schema = found;
}

export const features = () => schema.features;
export const known = () => schema;
export const title = (name) => capital(schema.spoken[name]?.title ?? name);
export const named = (name) => schema.spoken[name]?.named ?? true;
export const feature = (name) => schema.features.find((each) => String(each.name) === name);

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 10 });

export function shown(name, value) {
  if (value === null || value === undefined) return "not known";
  const words = schema.spoken[name];
  if (words && String(value) in words.values) return words.values[String(value)];
  if (typeof value !== "number") return String(value);
  if (words?.format === "money") {
    const digits = Number.isInteger(value) ? 0 : 2;
    return new Intl.NumberFormat("en", { style: "currency", currency: words.unit, currencyDisplay: "code", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
  }
  if (words?.format === "percent") return `${plain.format(100 * value)} %`;
  if (words?.format === "year") return String(value);
  const [one, several] = (words?.unit ?? "").split("|");
  const unit = value === 1 ? one : several ?? one;
  return unit ? `${plain.format(value)} ${unit}` : plain.format(value);
}

export const percent = (share) => `${Math.round(100 * share)} %`;

// A predicted number, or a probability.
export const score = (value) => (schema.outputs[0].classes ? percent(value) : plain.format(Number(value.toPrecision(4))));

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const MISSING = "\u0000";

// An input for one column; `changed` is told the value as JSON has it.
export function input(column, value, id, changed, describedby = null) {
  const name = String(column.name);
  const more = describedby ? { "aria-describedby": describedby } : {};
  if (column.kind === "categorical") {
    const choices = column.order?.length ? [...column.order, ...column.categories.filter((c) => !column.order.includes(c))] : column.categories;
    const select = h("select", { id, ...more },
      column.missing || value === null ? h("option", { value: MISSING }, "not known") : null,
      choices.map((choice, i) => h("option", { value: String(i) }, shown(name, choice))));
    select.value = value === null ? MISSING : String(choices.findIndex((choice) => choice === value));
    select.addEventListener("change", () => changed(select.value === MISSING ? null : choices[Number(select.value)]));
    return select;
  }
  const box = h("input", {
    id, type: "number", inputmode: "decimal", step: column.step ?? "any",
    value: value === null ? "" : value, placeholder: column.missing ? "not known" : "", ...more,
  });
  box.addEventListener("input", () => {
    if (box.value === "" && !box.validity.badInput) changed(null);
    else if (!Number.isNaN(box.valueAsNumber)) changed(box.valueAsNumber);
  });
  return box;
}

// What is typical of the column, under its input.
export function hint(column) {
  if (column.kind === "categorical") return "";
  const name = String(column.name);
  const low = schema.spoken[name]?.format === "plain" ? plain.format(column.low) : shown(name, column.low);
  return `${low} to ${shown(name, column.high)}`;
}

// Somebody in the middle, to begin with.
export function blank() {
  return Object.fromEntries(schema.features.map((column) => [String(column.name), middle(column)]));
}

function middle(column) {
  if (column.kind === "categorical") return column.categories[0];
  if (column.levels) return column.levels[Math.floor(column.levels.length / 2)];
  const step = column.step ?? (column.high - column.low) / 100;
  return Number((column.low + Math.round((column.high - column.low) / 3 / step) * step).toPrecision(12));
}
