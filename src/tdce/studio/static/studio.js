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

const PAGES = { people: ["People", people], person: ["Person", person], trial: ["Why not this?", trial], walk: ["Walk", walk], file: ["File", file], model: ["Model", model] };
const OF_A_PERSON = ["person", "trial", "walk"];

let page = "people";

function go(next, { focus = true, push = true } = {}) {
  page = next in PAGES ? next : "people";
  if (OF_A_PERSON.includes(page) && state().person === null) page = "people";
  if (push) address(true);
  frame();
  const main = byId("main");
  PAGES[page][1](main, go);
  document.title = `${PAGES[page][0]} · tdce studio`;
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
  fill(byId("pages"), Object.entries(PAGES).map(([name, [title]]) => h("button", {
    "aria-current": name === page ? "page" : null, disabled: OF_A_PERSON.includes(name) && state().person === null,
    onclick: () => go(name),
  }, title)));
  tools();
}

function tools() {
  const share = h("button", { id: "share", onclick: async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      say("The link is copied. It has the settings, and nobody’s values.");
      share.textContent = "Link copied";
    } catch {
      share.textContent = "The address is the link";
    }
    setTimeout(() => (share.textContent = "Copy link"), 2500);
  }, title: "The settings of this page, without anybody’s values" }, "Copy link");
  fill(byId("tools"),
    h("button", { id: "undo", disabled: !canUndo(), onclick: undo, title: "Ctrl+Z" }, "Undo"),
    h("button", { id: "redo", disabled: !canRedo(), onclick: redo, title: "Ctrl+Shift+Z" }, "Redo"), share);
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
  learn(await get("/schema"));
  await begin(location.hash);
} catch (error) {
  fill(byId("main"), h("p", { class: "notice", role: "alert" }, error.message));
}
