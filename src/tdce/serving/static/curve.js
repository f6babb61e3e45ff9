// The score curve of one column: what the model would say if this value alone were another one.
import { h, svg } from "./dom.js";
import { getSchema, quotedOutcome, scoreText, valueText } from "./fields.js";
import { state } from "./state.js";
import { t } from "./words.js";

const MOST_NAMED = 3; // categories in a caption

// The drawing, and a caption that says the same.
export function curve(column, reply, scale) {
  const drawing = column.kind === "categorical" ? bars(reply, scale) : line(reply, scale);
  return [h("div", { class: "curve", "aria-hidden": "true" }, drawing), caption(column, reply)];
}

// The range of the drawings, the same for all columns: probabilities from 0 to 1, numbers from end to end.
export function scaleOf(curves) {
  if (getSchema().outputs[0].classes) return (score) => score;
  const all = curves.flatMap((each) => each.score), low = Math.min(...all), high = Math.max(...all);
  return (score) => (high > low ? (score - low) / (high - low) : 0.5);
}

function line({ values, score, met, own }, scale) {
  const known = values.map((value, i) => i).filter((i) => typeof values[i] === "number");
  if (known.length < 2) return null;
  const low = values[known[0]], high = values[known.at(-1)];
  const x = (i) => (100 * (values[i] - low)) / (high - low), y = (i) => 100 * (1 - scale(score[i]));
  const tints = runs(known.map((i) => met[i])).map(([from, to]) => { // halfway to the neighbours
    const start = from === 0 ? 0 : (x(known[from - 1]) + x(known[from])) / 2, end = to === known.length - 1 ? 100 : (x(known[to]) + x(known[to + 1])) / 2;
    return svg("rect", { x: start, y: 0, width: end - start, height: 100, class: "met" });
  });
  const parts = [svg("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none" }, tints, svg("polyline", { points: known.map((i) => `${x(i)},${y(i)}`).join(" ") }))];
  if (typeof values[own] === "number") {
    const dot = h("i", { class: "dot" });
    dot.style.left = `${x(own)}%`;
    dot.style.top = `${y(own)}%`;
    parts.push(dot);
  }
  return parts;
}

function bars({ values, score, met, own }, scale) {
  return h("div", { class: "bars" }, values.map((_, i) => {
    const bar = h("i", { class: `${met[i] ? "met" : ""}${i === own ? " own" : ""}` });
    bar.style.height = `${Math.max(4, 100 * scale(score[i]))}%`;
    return h("span", { class: met[i] ? "met" : "" }, bar);
  }));
}

// The first and last positions of each run of true.
function runs(flags) {
  const found = [];
  flags.forEach((flag, i) => {
    if (flag && flags[i - 1]) found.at(-1)[1] = i;
    else if (flag) found.push([i, i]);
  });
  return found;
}

function caption(column, { values, score, met }) {
  const name = String(column.name), classes = getSchema().outputs[0].classes;
  const outcome = classes ? quotedOutcome(state().target ?? getSchema().favourable ?? "") : t("curve_wanted");
  const ends = { outcome, low: scoreText(Math.min(...score)), high: scoreText(Math.max(...score)) };
  if (!met.some(Boolean)) return t("curve_never", ends);
  if (met.every(Boolean)) return t("curve_always", ends);
  if (column.kind === "categorical") {
    const named = values.filter((_, i) => met[i]).map((value) => valueText(name, value));
    const more = named.length - MOST_NAMED;
    const list = named.slice(0, MOST_NAMED).join(", ");
    return t("curve_with", { outcome, values: more > 0 ? t("and_more", { values: list, count: more }) : list });
  }
  const found = runs(met), [from, to] = found[0];
  if (found.length > 1 || (from > 0 && to < met.length - 1)) return t("curve_parts", { outcome, count: found.length });
  const gap = from > 0 ? values[from] - values[from - 1] : values[to + 1] - values[to];
  const exact = column.levels || (column.step && gap <= column.step * 1.001);
  if (from > 0) return t(exact ? "curve_from" : "curve_from_about", { outcome, start: valueText(name, values[from]) });
  return t(exact ? "curve_to" : "curve_to_about", { outcome, end: valueText(name, values[to]) });
}
