// What was learned: the data, the columns, the laws, and how good the model is.
import { download, get } from "./api.js";
import { fill, h } from "./dom.js";
import { known, named, percent, said, seen, title, unseen } from "./fields.js";
import { rich, t, whole } from "./words.js";

export async function model(main) {
  const box = h("div", {}, h("p", { class: "loading" }, t("loading")));
  const { label, favourable } = known();
  fill(main, h("h1", {}, t("model_heading")), h("p", { class: "lead" }, label === null ? t("model_given") : rich(favourable === null ? "model_decides" : "model_hope", { label: h("b", {}, label), outcome: h("b", {}, said(favourable)) })), box);
  try {
    const [report, laws] = await Promise.all([get("/report"), get("/laws")]);
    fill(box, tiles(report), columns(), lawful(laws), hints(report.hints), versions(report));
  } catch (error) {
    fill(box, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

function tiles(report) {
  const tile = (value, words) => h("li", {}, h("b", {}, value), h("span", {}, words));
  return h("ul", { class: "tiles" },
    tile(whole(report.rows), t("tile_rows")),
    tile(whole(seen().length + unseen()), t("tile_columns")),
    report.accuracy == null ? null : tile(percent(report.accuracy), t("tile_accuracy", { rows: report.test_rows })),
    report.commonest_class == null ? null : tile(percent(report.commonest_class), t("tile_commonest")),
    report.calibration_error == null ? null : tile(percent(report.calibration_error), t("tile_calibration")));
}

function columns() {
  const { described, may_change } = known();
  return h("section", {}, h("h2", {}, t("columns")),
    h("div", { class: "scroll card flush", tabindex: "0", role: "region", "aria-label": t("columns") }, h("table", { class: "rows" },
      h("thead", {}, h("tr", {}, [t("column"), t("kind"), t("column_values"), t("may_change")].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, seen().map((column) => {
        const name = String(column.name);
        return h("tr", {}, h("th", { scope: "row" }, title(name), title(name).toLowerCase() === name ? null : h("code", { class: "small" }, ` ${name}`)), h("td", {}, kind(column.kind)), h("td", { class: "text" }, described[name]), h("td", {}, t(`may_change_${may_change[name]}`)));
      })))),
    unseen() ? h("p", { class: "small" }, t("kept_unseen", { count: unseen() })) : null);
}

// A kind that somebody added has the name that they gave it.
const kind = (name) => (["numeric", "categorical"].includes(name) ? t(`kind_${name}`) : name);

// Laws, rules and hints are written in the language of rules, which is English.
function lawful({ laws: every, rules: given }) {
  const laws = every.filter((law) => law.columns.every(named)), barred = known().features.map((column) => String(column.name)).filter((name) => !named(name));
  const rules = given.filter((rule) => !barred.some((name) => rule.includes(name)));
  return h("section", {}, h("h2", {}, t("laws")),
    laws.length ? h("ul", { class: "said", lang: "en" }, laws.map((law) => h("li", { class: law.on ? "" : "off" }, law.sentence))) : h("p", { class: "small" }, t("no_laws")),
    rules.length ? [h("h3", {}, t("schema_rules")), h("ul", { class: "said", lang: "en" }, rules.map((rule) => h("li", {}, h("code", {}, rule))))] : null);
}

function hints(texts) {
  return texts.length ? h("section", {}, h("h2", {}, t("worth_knowing")), h("ul", { class: "said", lang: "en" }, texts.map((text) => h("li", {}, text)))) : null;
}

function versions(report) {
  return h("section", {}, h("h2", {}, t("made_with")), h("p", { class: "small" }, Object.entries(report.versions ?? {}).map(([name, version]) => `${name} ${version}`).join(" · ")),
    h("p", { class: "small" }, rich("for_programs", { api: file("/openapi.json", "openapi.json", t("http_api")), counters: file("/metrics", "metrics.txt", t("counters")) })));
}

// Fetched with the token, if there is one; the address is for those who copy it.
function file(path, name, words) {
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
