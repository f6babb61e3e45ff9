// Columns as people see them: titles, values, and inputs that fit the schema.
import { h } from "./dom.js";
import { locale, number, quoted, t } from "./words.js";

let schema = null;
export function learn(found) {
  schema = found;
}

export const features = () => schema.features;
export const known = () => schema;
export const title = (name) => capital(schema.spoken[name]?.title ?? name);
export const named = (name) => schema.spoken[name]?.named ?? true;
export const feature = (name) => schema.features.find((each) => String(each.name) === name);

// What the model says, by the schema’s word for it.
export const said = (outcome) => schema.said[String(outcome)] ?? String(outcome);
export const outcome = (of) => quoted(said(of));

export function shown(name, value) {
  if (value === null || value === undefined) return t("not_known");
  const words = schema.spoken[name];
  if (words && String(value) in words.values) return words.values[String(value)];
  if (typeof value !== "number") return String(value);
  if (words?.format === "money") {
    const digits = Number.isInteger(value) ? 0 : 2;
    return new Intl.NumberFormat(locale(), { style: "currency", currency: words.unit, currencyDisplay: "code", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
  }
  if (words?.format === "percent") return `${number(100 * value)} %`;
  if (words?.format === "year") return String(value);
  const [one, several] = (words?.unit ?? "").split("|");
  const unit = value === 1 ? one : several ?? one;
  return unit ? `${number(value)} ${unit}` : number(value);
}

export const percent = (share) => `${number(Math.round(100 * share))} %`;

// A predicted number, or a probability.
export const score = (value) => (schema.outputs[0].classes ? percent(value) : number(Number(value.toPrecision(4))));

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const MISSING = "\u0000";

// An input for one column; `changed` is told the value as JSON has it.
export function input(column, value, id, changed, describedby = null) {
  const name = String(column.name);
  const more = describedby ? { "aria-describedby": describedby } : {};
  if (column.kind === "categorical") {
    const choices = column.order?.length ? [...column.order, ...column.categories.filter((c) => !column.order.includes(c))] : column.categories;
    const select = h("select", { id, ...more },
      column.missing || value === null ? h("option", { value: MISSING }, t("not_known")) : null,
      choices.map((choice, i) => h("option", { value: String(i) }, shown(name, choice))));
    select.value = value === null ? MISSING : String(choices.findIndex((choice) => choice === value));
    select.addEventListener("change", () => changed(select.value === MISSING ? null : choices[Number(select.value)]));
    return select;
  }
  const box = h("input", {
    id, type: "number", inputmode: "decimal", step: column.step ?? "any",
    value: value === null ? "" : value, placeholder: column.missing ? t("not_known") : "", ...more,
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
  const low = schema.spoken[name]?.format === "plain" ? number(column.low) : shown(name, column.low);
  return t("range", { low, high: shown(name, column.high) });
}

// Somebody usual, to begin with.
export const blank = () => ({ ...schema.usual });

// Columns that may be named to whoever reads this; how many others there are.
export const seen = () => schema.features.filter((column) => named(String(column.name)));
export const unseen = () => schema.features.length - seen().length;
