// The studio: navigation between its pages, and the tools that all pages share.
import { get } from "./api.js";
import { columns } from "./columns.js";
import { announce, byId, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { setSchema } from "./fields.js";
import { file } from "./file.js";
import { model } from "./model.js";
import { people } from "./people.js";
import { person } from "./person.js";
import { canRedo, canUndo, fromFragment, listen, redo, start, state, toFragment, undo } from "./state.js";
import { trial } from "./trial.js";
import { walk } from "./walk.js";
import { language, languages, rememberLanguage, setWords, t } from "./words.js";

const PAGES = { people, person, trial, walk, file, columns, model };
const PERSON_PAGES = ["person", "trial", "walk"];

let page = "people";

function go(next, { focus = true, push = true } = {}) {
  page = next in PAGES ? next : "people";
  if (PERSON_PAGES.includes(page) && state().person === null) page = "people";
  if (push) updateAddress(true);
  frame();
  const main = byId("main");
  PAGES[page](main, go);
  document.title = `${t(`page_${page}`)} · ${t("name")}`;
  if (focus) {
    main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

// The address follows the settings; a person's values are never in it.
function updateAddress(push = false) {
  const text = toFragment(page);
  if (text !== location.hash) history[push ? "pushState" : "replaceState"](null, "", text);
}

function frame() {
  fill(byId("pages"), Object.keys(PAGES).map((name) => h("button", {
    "aria-current": name === page ? "page" : null, disabled: PERSON_PAGES.includes(name) && state().person === null,
    onclick: () => go(name),
  }, t(`page_${name}`))));
  tools();
}

// A sign and a word; a phone, which has no room for it, hides the word from all but screen readers.
const signAndWord = (sign, word) => [h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", { class: "word" }, word)];

function tools() {
  const share = h("button", { id: "share", onclick: async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      announce(t("link_note"));
      fill(share, signAndWord("✓", t("link_copied")));
    } catch {
      fill(share, signAndWord("!", t("link_is_address")));
    }
    setTimeout(() => fill(share, signAndWord("↗", t("copy_link"))), 2500);
  }, title: t("link_title") }, signAndWord("↗", t("copy_link")));
  fill(byId("tools"),
    h("button", { id: "undo", disabled: !canUndo(), onclick: undo, title: t("undo_key") }, signAndWord("↶", t("undo"))),
    h("button", { id: "redo", disabled: !canRedo(), onclick: redo, title: t("redo_key") }, signAndWord("↷", t("redo"))), share, languageChoice());
}

function languageChoice() {
  const choice = h("select", { id: "language", "aria-label": t("language"), onchange: async () => {
    rememberLanguage(choice.value);
    await loadLanguage(choice.value);
    byId("skip").textContent = t("skip");
    byId("pages").setAttribute("aria-label", t("pages"));
    go(page, { focus: false, push: false });
    byId("language").focus();
  } }, languages().map(([name, own]) => h("option", { value: name, lang: name }, own)));
  choice.value = language();
  return choice;
}

// The messages of the pages first, which need no token; then the schema, which may need it.
async function loadLanguage(name) {
  const query = new URLSearchParams({ language: name });
  setWords(await get(`/words?${query}`));
  setSchema(await get(`/schema?${query}`));
}

listen((now, before, redraw) => {
  updateAddress();
  if (redraw) go(page, { focus: false, push: false });
  else {
    byId("undo").disabled = !canUndo();
    byId("redo").disabled = !canRedo();
    if ((now.person === null) !== (before.person === null)) frame();
  }
});

addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
  const key = event.key.toLowerCase();
  if (key !== "z" && key !== "y") return;
  event.preventDefault();
  if (key === "y" || event.shiftKey) redo();
  else undo();
});

addEventListener("popstate", () => begin(location.hash));
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

// Opens what an address says: a page, settings, and perhaps the number of a person in the table.
async function begin(hash) {
  const { page: wanted, settings } = fromFragment(hash);
  const known = state();
  if (settings.number !== undefined && settings.number !== known.number) {
    try {
      const found = await get(`/people/${settings.number}`);
      settings.person = found.values;
      settings.id = found.id;
    } catch {
      settings.number = null;
    }
  } else if (settings.number === undefined) {
    settings.number = null;
    settings.person = known.number === null ? known.person : null;
  } else Object.assign(settings, { person: known.person, id: known.id });
  start(settings);
  go(wanted, { push: false, focus: false });
}

try {
  const { searchParams } = new URL(location.href);
  if (searchParams.has("lang")) rememberLanguage(document.documentElement.lang); // as the server understood it
  await loadLanguage(document.documentElement.lang);
  await begin(location.hash);
} catch (error) {
  fill(byId("main"), notice(error));
}
