// The page “Model”: the data, the columns, the laws and rules, and how good the model is.
import { download, get } from "./api.js";
import { fill, h } from "./dom.js";
import { getSchema, hiddenCount, mayName, outcomeText, percent, title, visible } from "./fields.js";
import { rich, t, whole } from "./words.js";

export async function model(main) {
  const box = h("div", {}, h("p", { class: "loading" }, t("loading")));
  const { label, favourable } = getSchema();
  fill(main, h("h1", {}, t("model_heading")), h("p", { class: "lead" }, label === null ? t("model_given") : rich(favourable === null ? "model_predicts" : "model_favourable", { label: h("b", {}, label), outcome: h("b", {}, outcomeText(favourable)) })), box);
  try {
    const [report, laws] = await Promise.all([get("/report"), get("/laws")]);
    fill(box, tiles(report), columns(), constraints(laws), hints(report.hints), versions(report));
  } catch (error) {
    fill(box, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

function tiles(report) {
  const tile = (value, words) => h("li", {}, h("b", {}, value), h("span", {}, words));
  return h("ul", { class: "tiles" },
    tile(whole(report.rows), t("tile_rows")),
    tile(whole(visible().length + hiddenCount()), t("tile_columns")),
    report.accuracy == null ? null : tile(percent(report.accuracy), t(`tile_accuracy_${report.accuracy_rows}`, { rows: report.test_rows })),
    report.commonest_class == null ? null : tile(percent(report.commonest_class), t("tile_commonest")),
    report.calibration_error == null ? null : tile(percent(report.calibration_error), t("tile_calibration")));
}

function columns() {
  const { described, may_change } = getSchema();
  return h("section", {}, h("h2", {}, t("columns")),
    h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("columns") }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, [t("column"), t("kind"), t("column_values"), t("may_change")].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, visible().map((column) => {
        const name = String(column.name);
        return h("tr", {}, h("th", { scope: "row" }, title(name), title(name).toLowerCase() === name ? null : h("code", { class: "small" }, ` ${name}`)), h("td", {}, kind(column.kind)), h("td", { class: "text" }, described[name]), h("td", {}, t(`may_change_${may_change[name]}`)));
      })))),
    hiddenCount() ? h("p", { class: "small" }, t("kept_unseen", { count: hiddenCount() })) : null);
}

// A kind that somebody added has the name that they gave it.
const kind = (name) => (["numeric", "categorical"].includes(name) ? t(`kind_${name}`) : name);

// Laws, rules and hints are in English, whatever the language of the page.
function constraints({ laws: allLaws, rules: allRules }) {
  const laws = allLaws.filter((law) => law.columns.every(mayName)), hidden = getSchema().features.map((column) => String(column.name)).filter((name) => !mayName(name));
  const rules = allRules.filter((rule) => !hidden.some((name) => rule.includes(name)));
  return h("section", {}, h("h2", {}, t("laws")),
    laws.length ? h("ul", { class: "texts", lang: "en" }, laws.map((law) => h("li", { class: law.on ? "" : "off" }, law.sentence))) : h("p", { class: "small" }, t("no_laws")),
    rules.length ? [h("h3", {}, t("schema_rules")), h("ul", { class: "texts", lang: "en" }, rules.map((rule) => h("li", {}, h("code", {}, rule))))] : null);
}

function hints(texts) {
  return texts.length ? h("section", {}, h("h2", {}, t("worth_knowing")), h("ul", { class: "texts", lang: "en" }, texts.map((text) => h("li", {}, text)))) : null;
}

function versions(report) {
  return h("section", {}, h("h2", {}, t("made_with")), h("p", { class: "small" }, Object.entries(report.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(" · ")),
    h("p", { class: "small" }, rich("for_programs", { api: fileLink("/openapi.json", "openapi.json", t("http_api")), counters: fileLink("/metrics", "metrics.txt", t("counters")) })));
}

// A link whose file is fetched with the token, if there is one; its address can be copied.
function fileLink(path, name, words) {
  return h("a", { href: path, onclick: async (event) => {
    event.preventDefault();
    const link = event.currentTarget;
    try {
      await download(path, name);
    } catch (error) {
      link.after(h("span", { class: "notice", role: "alert" }, error.message));
    }
  } }, words);
}
