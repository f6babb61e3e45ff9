// The HTTP API, as every other client sees it. A refusal becomes an error with the server's own words.
import { h, save } from "./dom.js";
import { t } from "./words.js";

const TOKEN = "tdce-token"; // kept for this tab only

export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export async function get(path, signal) {
  return (await call(path, { signal })).json();
}

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await call(path, { method: "POST", body: JSON.stringify(body), headers, signal })).json();
}

export async function call(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, t("unreachable"));
  }
  if (response.ok) return response;
  if (response.status === 401 && (await askToken())) return call(path, options);
  const told = await response.json().catch(() => ({}));
  throw new Refused(response.status, told.detail || t("answered", { status: String(response.status) }));
}

// What a plain link cannot fetch from a server with a token, as a file.
export async function download(path, name) {
  save(await (await call(path)).blob(), name);
}

let asking = null;

// One dialog, however many requests wait for it.
function askToken() {
  asking ??= new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, id: "token" });
    const form = h("form", { method: "dialog" },
      h("h2", {}, t("token_heading")),
      h("label", { for: "token" }, t("token")), input,
      h("p", { class: "small" }, t("token_kept")),
      h("button", { class: "main", value: "yes" }, t("go_on")));
    const dialog = h("dialog", {}, form);
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "yes") sessionStorage.setItem(TOKEN, input.value);
      dialog.remove();
      asking = null;
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}
