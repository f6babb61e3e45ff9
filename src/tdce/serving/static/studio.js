// The studio: which page is shown, and what all pages share.
import { get } from "./api.js";
import { byId, fill, h, say } from "./dom.js";
import { learn } from "./fields.js";
import { file } from "./file.js";
import { model } from "./model.js";
import { people } from "./people.js";
import { person } from "./person.js";
import { canRedo, canUndo, change, fragment, listen, read, redo, start, state, undo } from "./state.js";
import { trial } from "./trial.js";
import { walk } from "./walk.js";
import { language, languages, remember, speak, t } from "./words.js";

const PAGES = { people, person, trial, walk, file, model };
const OF_A_PERSON = ["person", "trial", "walk"];

let page = "people";

function go(next, { focus = true, push = true } = {}) {
  page = next in PAGES ? next : "people";
  if (OF_A_PERSON.includes(page) && state().person === null) page = "people";
  if (push) address(true);
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
function address(push = false) {
  const text = fragment(page);
  if (text !== location.hash) history[push ? "pushState" : "replaceState"](null, "", text);
}

function frame() {
  fill(byId("pages"), Object.keys(PAGES).map((name) => h("button", {
    "aria-current": name === page ? "page" : null, disabled: OF_A_PERSON.includes(name) && state().person === null,
    onclick: () => go(name),
  }, t(`page_${name}`))));
  tools();
}

// A word, for which a phone has no room: there the sign is seen and the word is read out.
const signed = (sign, word) => [h("span", { class: "sign", "aria-hidden": "true" }, sign), h("span", { class: "word" }, word)];

function tools() {
  const share = h("button", { id: "share", onclick: async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say(t("link_said"));
      fill(share, signed("✓", t("link_copied")));
    } catch {
      fill(share, signed("!", t("link_is_address")));
    }
    setTimeout(() => fill(share, signed("↗", t("copy_link"))), 2500);
  }, title: t("link_title") }, signed("↗", t("copy_link")));
  fill(byId("tools"),
    h("button", { id: "undo", disabled: !canUndo(), onclick: undo, title: t("undo_key") }, signed("↶", t("undo"))),
    h("button", { id: "redo", disabled: !canRedo(), onclick: redo, title: t("redo_key") }, signed("↷", t("redo"))), share, tongue());
}

function tongue() {
  const choice = h("select", { id: "language", "aria-label": t("language"), onchange: async () => {
    remember(choice.value);
    await read_in(choice.value);
    byId("skip").textContent = t("skip");
    byId("pages").setAttribute("aria-label", t("pages"));
    go(page, { focus: false, push: false });
    byId("language").focus();
  } }, languages().map(([name, own]) => h("option", { value: name, lang: name }, own)));
  choice.value = language();
  return choice;
}

// Words of the pages first, which a server tells everybody; then those of the columns, for which it may want its token.
async function read_in(name) {
  const asked = new URLSearchParams({ language: name });
  speak(await get(`/words?${asked}`));
  learn(await get(`/schema?${asked}`));
}

listen((now, before, whole) => {
  address();
  if (whole) go(page, { focus: false, push: false });
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

// What an address says: settings, and perhaps somebody of the table.
async function begin(hash) {
  const { page: wanted, settings } = read(hash);
  const known = state();
  if (settings.number !== undefined && settings.number !== known.number) {
    try {
      settings.person = (await get(`/people/${settings.number}`)).values;
    } catch {
      settings.number = null;
    }
  } else if (settings.number === undefined) {
    settings.number = null;
    settings.person = known.number === null ? known.person : null;
  } else settings.person = known.person;
  start(settings);
  go(wanted, { push: false, focus: false });
}

try {
  const { searchParams } = new URL(location.href);
  if (searchParams.has("lang")) remember(document.documentElement.lang); // as the server understood it
  await read_in(document.documentElement.lang);
  await begin(location.hash);
} catch (error) {
  fill(byId("main"), h("p", { class: "notice", role: "alert" }, error.message));
}
