// The reverse walk of the diffusion model, as an animation over its plot.
import { post } from "./api.js";
import { fill, h, say } from "./dom.js";
import { features, named, percent, shown, title } from "./fields.js";
import { plot } from "./plot.js";
import { rules, state } from "./state.js";

const EVERY = 140; // milliseconds per frame

export async function walk(main) {
  const some = state(), box = h("div", {}, h("p", { class: "loading" }, "Walking …"));
  fill(main, h("h1", {}, "The reverse walk"),
    h("p", { class: "lead" }, "The diffusion model adds noise to the person, then takes it away step by step, towards what is wanted. At each step: what it believes the person would be."), box);
  const { person, target, threshold, locks, closeness } = some;
  try {
    const told = await post("/walk", { row: person, target, threshold, immutable: locks, rules: rules(some), closeness });
    if (box.isConnected) fill(box, room(told, person));
  } catch (error) {
    fill(box, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

function room(told, person) {
  const frames = [...told.frames, { ...told.returned, last: true }], steps = frames.map((_, i) => i);
  const drawn = plot({
    about: `The model’s score and the plausibility at each of ${frames.length} steps`, x: steps, xLabel: "step", xFormat: (i) => String(Math.round(i)), marker: 0, height: 240,
    series: [{ label: `chance of “${told.target}”`, values: frames.map((f) => f.score), colour: "--class-0", scale: "share" },
      { label: "plausibility", values: frames.map((f) => f.plausibility), colour: "--class-1", scale: "share", dash: [6, 4] }],
    scales: { share: { range: () => [0, 1], format: percent, side: 3 } },
  });
  const slider = h("input", { id: "step", type: "range", min: 0, max: frames.length - 1, step: 1, value: 0 });
  const where = h("output", { for: "step", id: "where" });
  const cells = new Map();
  const rows = features().map((column) => String(column.name)).filter(named).map((name) => {
    const value = h("td", {}), dot = h("i", { class: "dot" });
    const row = h("tr", {}, h("th", { scope: "row" }, title(name)), h("td", {}, shown(name, person[name])), value, h("td", { class: "wide-only" }, h("span", { class: "track", "aria-hidden": "true" }, dot)));
    cells.set(name, { value, dot, row });
    return row;
  });
  let timer = 0;
  const show = (i) => {
    const frame = frames[i];
    slider.value = i;
    where.textContent = frame.last ? "the answer: on the grid, within all limits" : `step ${i + 1} of ${frames.length - 1}, time ${frame.t}`;
    drawn.move(i);
    for (const [name, { value, dot, row }] of cells) {
      value.textContent = shown(name, frame.values[name]);
      dot.style.left = `${100 * frame.places[name]}%`;
      row.classList.toggle("moved", frame.values[name] !== person[name]);
    }
  };
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
  const play = h("button", { class: "main", id: "play", "aria-pressed": "false", onclick: () => {
    if (timer) return stop();
    if (Number(slider.value) === frames.length - 1) show(0);
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      if (!slider.isConnected) return clearInterval(timer);
      const next = Number(slider.value) + 1;
      show(next);
      if (next === frames.length - 1) { stop(); say("The walk has ended."); }
    }, EVERY);
  } }, "Play");
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  show(0);
  return [
    h("section", { class: "card" }, drawn.element,
      h("div", { class: "player" }, play, h("label", { class: "sr", for: "step" }, "Step"), slider), h("p", { class: "small" }, where),
      h("p", { class: "note" }, `${told.algorithm}. It ends ${told.met ? "with what is wanted" : "without what is wanted"}; the options come from a search that changes far less.`)),
    h("section", { class: "card flush scroll", tabindex: "0", role: "region", "aria-label": "Values on the way" },
      h("table", { class: "rows fit" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Column"), h("th", { scope: "col" }, "Now"), h("th", { scope: "col" }, "At this step"), h("th", { scope: "col", class: "wide-only" }, "Place"))),
        h("tbody", {}, rows))),
    h("p", { class: "small" }, "Place: of a number the share of people below it, of a category the weight of others than the person’s own."),
  ];
}
