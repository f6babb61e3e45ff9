// Line plots, drawn by uPlot in the colours of the page, with the same numbers as a table for screen readers.
import { h } from "./dom.js";
import { t } from "./words.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// series: [{label, values, colour: "--accent", scale, dash}]; scales: {name: {range, format, side}}
export function plot({ label, x, xLabel, xFormat, series, scales, height = 220, marker = null, points = false }) {
  const box = h("div", { class: "plot", role: "img", "aria-label": label });
  let drawn = null;
  const draw = () => {
    drawn?.destroy();
    const ink = colour("--soft"), grid = { stroke: colour("--line"), width: 1 };
    const axes = [{ stroke: ink, grid: { show: false }, ticks: grid, values: (_, ticks) => ticks.map(xFormat), label: xLabel, labelSize: 22, labelFont: FONT, font: FONT, size: 34 }];
    for (const [scale, { format, side, label: axisLabel, tint }] of Object.entries(scales))
      axes.push({ scale, side, stroke: tint ? colour(tint) : ink, grid: side === 3 ? grid : { show: false }, ticks: { show: false }, values: (_, ticks) => ticks.map(format), size: 52, label: axisLabel, labelSize: axisLabel ? 20 : 0, labelFont: FONT, font: FONT });
    drawn = new window.uPlot({
      width: Math.max(200, box.clientWidth), height,
      cursor: { show: false }, legend: { show: false },
      scales: { x: { time: false }, ...Object.fromEntries(Object.entries(scales).map(([name, { range }]) => [name, { range }])) },
      axes,
      series: [{}, ...series.map((each) => ({
        label: each.label, scale: each.scale, stroke: colour(each.colour), width: 2.5, dash: each.dash, spanGaps: true,
        points: { show: points, size: 9, fill: colour("--paper"), width: 2.5 },
      }))],
      hooks: { draw: [(u) => mark(u)] },
    }, [x, ...series.map((each) => each.values)], box);
  };
  const mark = (u) => {
    if (marker === null) return;
    const at = Math.round(u.valToPos(marker, "x", true)), { ctx, bbox } = u;
    ctx.save();
    ctx.strokeStyle = colour("--ink");
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash([]);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  };
  new ResizeObserver(() => (drawn ? drawn.setSize({ width: Math.max(200, box.clientWidth), height }) : draw())).observe(box);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const again = () => (box.isConnected ? draw() : scheme.removeEventListener("change", again));
  scheme.addEventListener("change", again);
  const legend = h("p", { class: "legend" }, series.map((each) => h("span", { class: "key" },
    h("span", { class: `swatch ${each.colour.slice(2)}${each.dash ? " dashed" : ""}` }), each.label)));
  const table = h("details", { class: "numbers" }, h("summary", {}, t("the_numbers")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("plot_numbers") }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, xLabel), series.map((each) => h("th", { scope: "col" }, each.label)))),
      h("tbody", {}, x.map((at, i) => h("tr", {}, h("th", { scope: "row" }, xFormat(at)),
        series.map((each) => h("td", {}, each.values[i] === null ? "–" : scales[each.scale].format(each.values[i])))))))));
  return {
    element: h("figure", {}, legend, box, table),
    move(to) {
      marker = to;
      drawn?.redraw(false);
    },
  };
}

const FONT = "12px system-ui, sans-serif";
