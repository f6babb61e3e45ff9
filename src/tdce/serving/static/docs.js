// The description of the HTTP API: every request with its arguments and an example that can be run.
import { call, get, hasToken } from "./api.js";
import { byId, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { rich, setWords, t } from "./words.js";

const MAX_SHOWN = 4000; // characters of an answer

let job = null; // the id of the job that was created here

async function begin() {
  setWords(await get(`/words?${new URLSearchParams({ language: document.documentElement.lang })}`));
  const api = await get("/openapi.json");
  const operations = Object.entries(api.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, each]) => ({ path, method: method.toUpperCase(), ...each })));
  fill(byId("main"), h("h1", {}, t("docs_title")), h("p", { class: "lead" }, t("docs_lead")),
    hasToken() ? h("p", {}, rich("docs_token", { header: h("code", {}, "Authorization: Bearer TOKEN") })) : null,
    operations.map((operation) => section(operation, api)), errors(api));
}

function section(operation, api) {
  const { path, method, description, summary, parameters = [], requestBody } = operation;
  const [kind, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const body = content?.example;
  const answer = h("div", { "aria-live": "polite" });
  const run = h("button", { onclick: () => ask(run, answer, operation, kind, body) }, t("docs_run"));
  const inBody = content?.schema?.$ref ? fields(api, content.schema.$ref) : [];
  const inPath = parameters.map((each) => ({ name: each.name, needed: each.required, text: each.description, value: each.schema?.default }));
  return h("section", { class: "card api", "aria-label": `${method} ${path}` },
    h("h2", {}, h("code", {}, `${method} ${path}`)),
    h("p", { lang: "en" }, description ?? summary),
    inPath.length + inBody.length ? h("details", {}, h("summary", {}, t("docs_arguments")), argumentTable([...inPath, ...inBody])) : null,
    h("details", {}, h("summary", {}, t("docs_example")), h("pre", { tabindex: "0" }, curl(operation, kind, body))),
    h("div", { class: "buttons" }, run), answer);
}

function fields(api, reference) {
  const { properties = {}, required = [] } = api.components.schemas[reference.split("/").at(-1)];
  return Object.entries(properties).map(([name, each]) => ({ name, needed: required.includes(name), text: each.description, value: each.default }));
}

function argumentTable(rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("docs_arguments") }, h("table", { class: "rows" }, h("tbody", {}, rows.map(({ name, needed, text, value }) => h("tr", {},
    h("th", { scope: "row" }, h("code", {}, name)), h("td", { lang: "en" }, text ?? ""),
    h("td", { class: "small" }, needed ? t("docs_required") : t("docs_default", { value: JSON.stringify(value ?? null) })))))));
}

// The path with the values of its example, and the query of those that have one.
function address({ path, parameters = [] }) {
  const query = new URLSearchParams();
  let filled = path;
  for (const { name, in: place, example } of parameters) {
    if (place === "path") filled = filled.replace(`{${name}}`, name === "id" ? job ?? "$id" : example);
    else if (example !== undefined) query.set(name, example);
  }
  return query.size ? `${filled}?${query}` : filled;
}

function curl(operation, kind, body) {
  const parts = [`curl -s ${operation.method === "GET" || operation.method === "POST" ? "" : `-X ${operation.method} `}'${location.origin}${address(operation)}'`];
  if (hasToken()) parts.push("-H \"Authorization: Bearer $TDCE_TOKEN\"");
  if (body !== undefined) parts.push(`-H 'Content-Type: ${kind}'`, typeof body === "string" ? `--data-binary '${body.replaceAll("'", "'\\''")}'` : `-d '${JSON.stringify(body, null, 1).replaceAll("'", "'\\''")}'`);
  return parts.join(" \\\n  ");
}

async function ask(button, place, operation, kind, body) {
  if (operation.path.includes("{id}") && job === null) return fill(place, notice(new Error(t("docs_job_first"))));
  button.disabled = true;
  fill(place, h("p", { class: "loading" }, t("docs_running")));
  try {
    const options = body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body), headers: { "Content-Type": kind } };
    const response = await call(address(operation), { method: operation.method, ...options });
    const text = await response.text();
    if (operation.path === "/jobs") job = JSON.parse(text).id;
    if (operation.method === "DELETE") job = null;
    fill(place, h("p", { class: "small" }, t("docs_answer", { status: String(response.status) })), text ? h("pre", { tabindex: "0" }, shown(text)) : null);
  } catch (error) {
    fill(place, notice(error));
  }
  button.disabled = false;
}

function shown(text) {
  let nice = text;
  try {
    nice = JSON.stringify(JSON.parse(text), null, 1);
  } catch { /* not JSON: as it is */ }
  return nice.length > MAX_SHOWN ? `${nice.slice(0, MAX_SHOWN)}\n${t("docs_cut", { count: nice.length - MAX_SHOWN })}` : nice;
}

function errors(api) {
  const known = new Map();
  for (const methods of Object.values(api.paths)) for (const { responses } of Object.values(methods)) for (const [code, { description }] of Object.entries(responses)) if (Number(code) >= 400) known.set(code, description);
  return h("section", { class: "card", "aria-label": t("docs_errors") }, h("h2", {}, t("docs_errors")), h("p", {}, t("docs_errors_lead")),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("docs_errors") }, h("table", { class: "rows" }, h("tbody", {}, [...known].sort().map(([code, text]) => h("tr", {}, h("th", { scope: "row" }, code), h("td", { lang: "en" }, text)))))));
}

try {
  await begin();
} catch (error) {
  fill(byId("main"), notice(error));
}
