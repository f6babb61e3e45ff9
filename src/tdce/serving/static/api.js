// Requests to the HTTP API, as any other client makes them. A refusal becomes an error with the server's own message.
import { h, save } from "./dom.js";
import { t } from "./words.js";

const TOKEN_KEY = "tdce-token"; // in the storage of this tab
let token = givenToken() ?? storedToken();

// The token in the address, #token=…, which is removed from there: nobody shall copy it with a link. Nothing after # is
// sent to a server or logged.
function givenToken() {
  const parts = new URLSearchParams(location.hash.slice(1)), given = parts.get("token");
  if (given) {
    parts.delete("token");
    history.replaceState(null, "", `${location.pathname}${location.search}${parts.size ? `#${parts}` : ""}`);
    storeToken(given);
  }
  return given;
}

// A frame in a notebook may have no storage.
function storedToken() {
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

function storeToken(value) {
  try {
    sessionStorage.setItem(TOKEN_KEY, value);
  } catch { /* it lasts as long as the page */ }
}

// A refusal; `problem` is what the server says about it: detail, and perhaps case and facts.
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail);
    this.status = status;
    this.problem = problem;
  }
}

export const hasToken = () => Boolean(token);

export async function get(path, signal) {
  return (await call(path, { signal })).json();
}

export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return (await call(path, { method: "POST", body: JSON.stringify(body), headers, signal })).json();
}

export async function call(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: t("unreachable"), translated: true });
  }
  if (response.ok) return response;
  if (response.status === 401 && (await askToken())) return call(path, options);
  const reply = await response.json().catch(() => ({}));
  throw new Refused(response.status, reply.detail ? reply : { detail: t("answered", { status: String(response.status) }), translated: true });
}

// Saves a reply as a file; a plain link could not send the token.
export async function download(path, name) {
  save(await (await call(path)).blob(), name);
}

let dialogOpen = null;

// One dialog, however many requests wait for it.
function askToken() {
  dialogOpen ??= new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "off", required: true, id: "token" });
    const form = h("form", { method: "dialog" },
      h("h2", {}, t("token_heading")),
      h("label", { for: "token" }, t("token")), input,
      h("p", { class: "small" }, t("token_kept")),
      h("button", { class: "main", value: "yes" }, t("continue")));
    const dialog = h("dialog", {}, form);
    dialog.addEventListener("close", () => {
      if (dialog.returnValue === "yes") {
        token = input.value;
        storeToken(token);
      }
      dialog.remove();
      dialogOpen = null;
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return dialogOpen;
}
