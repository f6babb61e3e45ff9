// Errors in the language and the words of the page; what the page has no words for is told as the server says it.
import { h } from "./dom.js";
import { has, language, t } from "./words.js";

const MARKS = { ",": "comma", ";": "semicolon", tab: "tab", "|": "vertical_bar" };

// A notice about an error of the server (`Refused`), of a job, or of the page itself.
export function notice(error) {
  return h("div", { class: "notice", role: "alert" }, parts(error.problem ?? { detail: error.message, translated: true }));
}

function parts({ case: kind, facts = {}, detail, translated }) {
  const [first, ...place] = detail.split("\n"); // of a rule: the message, the rule, a caret under its character
  if (kind === "rule") return [h("p", {}, t("error_rule", facts)), h("pre", {}, place.join("\n")), h("p", { class: "small", lang: "en" }, first.replace(/^rule, character \d+: /, ""))];
  if (kind && has(`error_${kind}`)) return h("p", {}, t(`error_${kind}`, spoken(kind, facts)));
  const said = h("p", { lang: translated ? null : "en" }, detail);
  return translated || language() === "en" ? said : [h("p", {}, t("server_says")), said];
}

// Facts as people read them: rows are counted from 1, and a mark has a name in the menu.
function spoken(kind, facts) {
  if (kind === "file_separator") return { ...facts, mark: facts.mark === "tab" ? t("tab") : facts.mark, name: t(MARKS[facts.mark]), menu: t("file_sep") };
  return /^\d+$/.test(facts.row ?? "") ? { ...facts, row: String(Number(facts.row) + 1) } : facts;
}
