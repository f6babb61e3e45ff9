// The page “Walk”: the reverse walk of the diffusion model, as an animation over its plot.
import { post } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { getSchema, percent, quotedOutcome, title, valueText, visible } from "./fields.js";
import { plot } from "./plot.js";
import { rules, state } from "./state.js";
import { language, t } from "./words.js";

const FRAME_MS = 140;

export async function walk(main) {
  const some = state(), box = h("div", {}, h("p", { class: "loading" }, t("walking")));
  fill(main, h("h1", {}, t("walk_heading")),
    h("p", { class: "notice", id: "walk-note" }, isSearch() ? t("walk_not_search") : t("walk_is_method", { method: getSchema().method.name })),
    h("p", { class: "lead" }, t("walk_lead")), box);
  const { person, target, threshold, locks, closeness } = some;
  try {
    const reply = await post("/walk", { row: person, target, threshold, immutable: locks, rules: rules(some), closeness, language: language() });
    if (box.isConnected) fill(box, player(reply, person));
  } catch (error) {
    fill(box, notice(error));
  }
}

const isSearch = () => getSchema().method.name.endsWith("Search");

function player(reply, person) {
  const frames = [...reply.frames, { ...reply.returned, last: true }], steps = frames.map((_, i) => i);
  const drawn = plot({
    label: t("walk_plot", { steps: frames.length }), x: steps, xLabel: t("step_axis"), xFormat: (i) => String(Math.round(i)), marker: 0, height: 240,
    series: [{ label: t("chance_line", { outcome: quotedOutcome(reply.target) }), values: frames.map((f) => f.score), colour: "--class-0", scale: "share" },
      { label: t("plausibility_line"), values: frames.map((f) => f.plausibility), colour: "--class-1", scale: "share", dash: [6, 4] }],
    scales: { share: { range: () => [0, 1], format: percent, side: 3 } },
  });
  const slider = h("input", { id: "step", type: "range", min: 0, max: frames.length - 1, step: 1, value: 0 });
  const where = h("output", { for: "step", id: "where" });
  const cells = new Map();
  const rows = visible().map((column) => String(column.name)).map((name) => {
    const value = h("td", {}), dot = h("i", { class: "dot" });
    const row = h("tr", {}, h("th", { scope: "row" }, title(name)), h("td", {}, valueText(name, person[name])), value, h("td", { class: "wide-only" }, h("span", { class: "track", "aria-hidden": "true" }, dot)));
    cells.set(name, { value, dot, row });
    return row;
  });
  let timer = 0;
  const show = (i) => {
    const frame = frames[i];
    slider.value = i;
    where.textContent = frame.last ? t("walk_end") : t("walk_step", { step: i + 1, steps: frames.length - 1, time: frame.t });
    drawn.move(i);
    for (const [name, { value, dot, row }] of cells) {
      value.textContent = valueText(name, frame.values[name]);
      dot.style.left = `${100 * frame.places[name]}%`;
      row.classList.toggle("moved", frame.values[name] !== person[name]);
    }
  };
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = t("play"); play.setAttribute("aria-pressed", "false"); };
  const play = h("button", { class: "main", id: "play", "aria-pressed": "false", onclick: () => {
    if (timer) return stop();
    if (Number(slider.value) === frames.length - 1) show(0);
    play.textContent = t("pause");
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      if (!slider.isConnected) return clearInterval(timer);
      const next = Number(slider.value) + 1;
      show(next);
      if (next === frames.length - 1) { stop(); announce(t("walk_ended")); }
    }, FRAME_MS);
  } }, t("play"));
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  show(0);
  return [
    h("section", { class: "card" }, drawn.element,
      h("div", { class: "player" }, play, h("label", { class: "sr", for: "step" }, t("step")), slider), h("p", { class: "small" }, where),
      h("p", { class: "note" }, t(reply.met ? "walk_met" : "walk_not_met", { algorithm: reply.algorithm }))),
    h("section", { class: "card flush scroll", tabindex: "0", role: "region", "aria-label": t("walk_values") },
      h("table", { class: "rows fit" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("column")), h("th", { scope: "col" }, t("now")), h("th", { scope: "col" }, t("at_this_step")), h("th", { scope: "col", class: "wide-only" }, t("position")))),
        h("tbody", {}, rows))),
    h("p", { class: "small" }, t("position_note")),
  ];
}
