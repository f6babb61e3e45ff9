// The options of an answer, side by side.
import { h } from "./dom.js";
import { feature, getSchema, scoreText, title, valueText } from "./fields.js";
import { decimals, t } from "./words.js";

export function optionCards(lines, { onTry }) {
  return h("div", { class: `options of-${Math.min(lines.length, 3)}` }, lines.map((line) => card(line, lines.length > 1, onTry)));
}

function card(line, several, onTry) {
  return h("article", { class: "card option" },
    h("header", {}, h("h3", {}, several ? t("option", { number: line.option + 1 }) : t("would_change")),
      h("span", { class: `chip ${line.status}` }, t(`status_${line.status}`))),
    h("p", { class: "headline" }, line.sentence),
    line.changes.length ? h("ul", { class: "changes" }, line.changes.map(change)) : null,
    line.unnamed ? h("p", { class: "note" }, t("unnamed", { count: line.unnamed })) : null,
    getSchema().outputs[0].classes ? scoreBars(line) : h("p", {}, `${scoreText(line.score_before)} → ${scoreText(line.score_after)}`),
    line.typical ? h("p", { class: "note" }, `${line.typical.charAt(0).toUpperCase()}${line.typical.slice(1)}.`) : null,
    line.note ? h("p", { class: "note" }, t("note", { note: line.note })) : null,
    reasons(line),
    h("div", { class: "buttons end" },
      h("button", { onclick: () => onTry(line) }, t("try")),
      h("button", { onclick: (event) => copy(event.target, line.letter) }, t("copy_letter"))));
}

// What reverting each change would cost; left out where the model was not queried for it.
function reasons({ reasons: all }) {
  const known = all.filter((reason) => reason.loss !== null);
  if (known.length < 2) return null;
  return h("details", { class: "reasons" }, h("summary", {}, t("reasons")),
    h("p", { class: "small" }, t("reasons_lead")),
    h("ol", {}, known.map((reason) => h("li", {}, `${reason.words} `, h("b", { class: "num" }, decimals(reason.loss))))));
}

function change(each) {
  return h("li", {}, h("b", {}, title(each.feature)),
    h("span", { class: "before-after" }, h("s", {}, valueText(each.feature, each.before)), h("span", { class: "arrow", "aria-hidden": "true" }, "→"),
      h("span", { class: "sr" }, ` ${t("becomes")} `), h("strong", {}, valueText(each.feature, each.after))),
    track(each));
}

// Where a number is and where it would be, within the range of the table.
function track({ feature: name, before, after }) {
  const column = feature(name);
  if (column.kind === "categorical" || typeof before !== "number" || typeof after !== "number" || column.high <= column.low) return null;
  const at = (value) => 100 * Math.min(1, Math.max(0, (value - column.low) / (column.high - column.low)));
  const step = h("i", { class: "step" }), was = h("i", { class: "dot was" }), is = h("i", { class: "dot" });
  step.style.left = `${Math.min(at(before), at(after))}%`;
  step.style.width = `${Math.abs(at(after) - at(before))}%`;
  was.style.left = `${at(before)}%`;
  is.style.left = `${at(after)}%`;
  return h("span", { class: "track", "aria-hidden": "true" }, step, was, is);
}

// The model's score before and after, as two bars.
export function scoreBars(line) {
  const bar = (share, kind) => {
    const inner = h("i", { class: kind });
    inner.style.width = `${100 * share}%`;
    return h("span", { class: "meter", "aria-hidden": "true" }, inner);
  };
  return h("div", { class: "scale" }, h("span", {}, t("chance_now")), bar(line.score_before, "now"), h("span", { class: "num" }, scoreText(line.score_before)),
    h("span", {}, t("chance_then")), bar(line.score_after, "then"), h("span", { class: "num" }, scoreText(line.score_after)));
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = t("copied");
  } catch {
    button.textContent = t("not_copied");
  }
  setTimeout(() => (button.textContent = t("copy_letter")), 2000);
}
