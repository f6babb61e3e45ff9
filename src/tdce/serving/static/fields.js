// Columns of the schema: their titles, values as text, and inputs.
import { h } from "./dom.js";
import { state } from "./state.js";
import { locale, number, quoted, t } from "./words.js";

let schema = null;
export function setSchema(loaded) {
  schema = loaded;
}

export const getSchema = () => schema;
export const title = (name) => capital(schema.spoken[name]?.title ?? name);
export const mayName = (name) => schema.spoken[name]?.named ?? true;
export const feature = (name) => schema.features.find((each) => String(each.name) === name);

// What the model says, in the words of the schema.
export const outcomeText = (outcome) => schema.said[String(outcome)] ?? String(outcome);
export const quotedOutcome = (outcome) => quoted(outcomeText(outcome));

// A value of a column as text.
export function valueText(name, value) {
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

// A probability in percent, or a predicted number.
export const scoreText = (value) => (schema.outputs[0].classes ? chanceText(value) : number(Number(value.toPrecision(4))));

const MOST_DIGITS = 4; // of a percentage: scores have six decimals

// A probability with as many digits as it takes to be on its side of the border: 49.97 % where 50 % would look like a yes.
export function chanceText(share, border = state().threshold ?? 0.5) {
  const limit = 100 * border;
  for (let digits = 0; ; digits++) {
    const shown = Number((100 * share).toFixed(digits));
    if (digits === MOST_DIGITS || (shown < limit) === (share < border)) return `${number(shown, { minimumFractionDigits: digits, maximumFractionDigits: digits })} %`;
  }
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const MISSING = "\u0000";

// An input for one column; calls `onChange` with the value as JSON has it.
export function input(column, value, id, onChange, describedby = null) {
  const name = String(column.name);
  const described = describedby ? { "aria-describedby": describedby } : {};
  if (column.kind === "categorical") {
    const choices = column.order?.length ? [...column.order, ...column.categories.filter((c) => !column.order.includes(c))] : column.categories;
    const select = h("select", { id, ...described },
      column.missing || value === null ? h("option", { value: MISSING }, t("not_known")) : null,
      choices.map((choice, i) => h("option", { value: String(i) }, valueText(name, choice))));
    select.value = value === null ? MISSING : String(choices.findIndex((choice) => choice === value));
    select.addEventListener("change", () => onChange(select.value === MISSING ? null : choices[Number(select.value)]));
    return select;
  }
  const box = h("input", {
    id, type: "number", inputmode: "decimal", step: column.step ?? "any",
    value: value === null ? "" : value, placeholder: column.missing ? t("not_known") : "", ...described,
  });
  box.addEventListener("input", () => {
    if (box.value === "" && !box.validity.badInput) onChange(null);
    else if (!Number.isNaN(box.valueAsNumber)) onChange(box.valueAsNumber);
  });
  return box;
}

// The range of a number, to show under its input.
export function hint(column) {
  if (column.kind === "categorical") return "";
  const name = String(column.name);
  const low = schema.spoken[name]?.format === "plain" ? number(column.low) : valueText(name, column.low);
  return t("range", { low, high: valueText(name, column.high) });
}

// The values that a new person starts with: medians and most common categories.
export const defaultPerson = () => ({ ...schema.usual });

// The columns that this reader may see, and the number of the others.
export const visible = () => schema.features.filter((column) => mayName(String(column.name)));
export const hiddenCount = () => schema.features.length - visible().length;
