// What was learned: the data, the columns, the laws, and how good the model is.
import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { features, known, percent, title } from "./fields.js";

export async function model(main) {
  const box = h("div", {}, h("p", { class: "loading" }, "Loading …"));
  const { label, favourable } = known();
  fill(main, h("h1", {}, "The model"), h("p", { class: "lead" }, label === null ? "A model that was given." : ["What decides about ", h("b", {}, label), favourable === null ? "." : [", where people hope for ", h("b", {}, String(favourable)), "."]]), box);
  try {
    const [report, laws] = await Promise.all([get("/report"), get("/laws")]);
    fill(box, tiles(report), columns(), lawful(laws), hints(report.hints), versions(report));
  } catch (error) {
    fill(box, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

function tiles(report) {
  const tile = (value, words) => h("li", {}, h("b", {}, value), h("span", {}, words));
  const whole = (number) => number.toLocaleString("en");
  return h("ul", { class: "tiles" },
    tile(whole(report.rows), "rows were learned"),
    tile(whole(features().length), "columns"),
    report.accuracy == null ? null : tile(percent(report.accuracy), `right, of ${whole(report.test_rows)} rows it had not seen`),
    report.commonest_class == null ? null : tile(percent(report.commonest_class), "right if it always said the most common class"),
    report.calibration_error == null ? null : tile(percent(report.calibration_error), "how far its probabilities are from what happens, on average"));
}

function columns() {
  const { described, may_change } = known();
  return h("section", {}, h("h2", {}, "Columns"),
    h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": "Columns" }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, ["Column", "Kind", "Values", "May change"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, features().map((column) => {
        const name = String(column.name);
        return h("tr", {}, h("th", { scope: "row" }, title(name), title(name).toLowerCase() === name ? null : h("code", { class: "small" }, ` ${name}`)), h("td", {}, column.kind), h("td", { class: "text" }, described[name]), h("td", {}, may_change[name]));
      })))));
}

function lawful({ laws, rules }) {
  return h("section", {}, h("h2", {}, "Laws and rules"),
    laws.length ? h("ul", { class: "said" }, laws.map((law) => h("li", { class: law.on ? "" : "off" }, law.sentence))) : h("p", { class: "small" }, "No law was found between the columns of the table."),
    rules.length ? [h("h3", {}, "Rules, given with the schema"), h("ul", { class: "said" }, rules.map((rule) => h("li", {}, h("code", {}, rule))))] : null);
}

function hints(texts) {
  return texts.length ? h("section", {}, h("h2", {}, "Worth knowing"), h("ul", { class: "said" }, texts.map((text) => h("li", {}, text)))) : null;
}

function versions(report) {
  return h("section", {}, h("h2", {}, "Made with"), h("p", { class: "small" }, Object.entries(report.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(" · ")),
    h("p", { class: "small" }, "For programs: ", h("a", { href: "/openapi.json" }, "the HTTP API"), " and ", h("a", { href: "/metrics" }, "its counters"), "."));
}
