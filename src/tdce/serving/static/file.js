// The page “File”: send a table, watch the job, stop it, download the results.
import { call, download, get, post } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { getSchema, outcomeText, title } from "./fields.js";
import { question, rules, state } from "./state.js";
import { language, t, whole } from "./words.js";

const POLL_MS = 500;
const CONTENT_TYPES = [[".csv.gz", "application/gzip"], [".parquet", "application/vnd.apache.parquet"], [".csv", "text/csv"]];
const NAMES = { "answer.csv": () => t("answers_csv"), "answer.jsonl": () => t("answers_jsonl"), "report.html": () => t("report_page") };

let running = null; // the id of this tab's job, whichever page is shown

export function file(main) {
  const place = h("div", { id: "job" });
  const pick = h("input", { type: "file", id: "file", accept: ".csv,.gz,.parquet", required: true });
  const sep = h("select", { id: "sep" }, [[",", t("comma")], [";", t("semicolon")], ["tab", t("tab")]].map(([value, text]) => h("option", { value }, text)));
  const decimal = h("select", { id: "decimal" }, [[".", t("point")], [",", t("comma")]].map(([value, text]) => h("option", { value }, text)));
  const form = h("form", { class: "card" }, h("h2", {}, t("file_rows")),
    h("div", { class: "fields" },
      h("div", { class: "field" }, h("label", { for: "file" }, t("file_table")), pick),
      h("div", { class: "field" }, h("label", { for: "sep" }, t("file_sep")), sep),
      h("div", { class: "field" }, h("label", { for: "decimal" }, t("file_decimal")), decimal)),
    h("p", { class: "small" }, settings()),
    h("button", { class: "main", id: "send" }, t("file_send")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = pick.files[0];
    const kind = CONTENT_TYPES.find(([ending]) => chosen.name.toLowerCase().endsWith(ending))?.[1];
    if (!kind) return fill(place, h("p", { class: "notice", role: "alert" }, t("file_ending")));
    await begin(place, chosen, kind, { ...question(), sep: sep.value, decimal: decimal.value, language: language() });
  });
  fill(main, h("h1", {}, t("file_heading")),
    h("p", { class: "lead" }, t("file_lead")), form, place);
  if (running) watch(place);
}

function settings() {
  const some = state(), parts = [t("options_per_row", { count: some.n })];
  if (some.closeness !== null) parts.push(t("settings_closeness", { closeness: some.closeness }));
  if (some.locks.length) parts.push(t("settings_locked", { columns: some.locks.map(title).join(", ") }));
  if (rules(some).length) parts.push(t("settings_rules", { rules: rules(some).join("; ") }));
  if (some.target !== null) parts.push(t("settings_target", { target: outcomeText(some.target) }));
  return t("settings", { settings: parts.join(" · ") });
}

async function begin(place, content, kind, request) {
  if (running) await stop();
  fill(place, h("p", { class: "loading" }, t("sending")));
  try {
    running = await createJob(content, kind, request);
    watch(place);
  } catch (error) {
    fill(place, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

// Creates a job, uploads its rows and returns its id.
async function createJob(content, kind, request) {
  const { id } = await post("/jobs", request);
  try {
    await call(`/jobs/${id}/rows`, { method: "PUT", body: content, headers: { "Content-Type": kind } });
  } catch (error) {
    await call(`/jobs/${id}`, { method: "DELETE" }).catch(() => {});
    throw error;
  }
  return id;
}

async function stop() {
  const id = running;
  running = null;
  if (id) await call(`/jobs/${id}`, { method: "DELETE" }).catch(() => {});
}

async function watch(place) {
  const bar = h("progress", { id: "progress", "aria-label": t("rows_explained"), value: 0, max: 1 });
  const status = h("p", { class: "num", role: "status" }, t("waiting"));
  const end = h("button", { id: "stop", onclick: async () => { await stop(); fill(place, h("p", { class: "notice" }, t("stopped"))); } }, t("stop"));
  fill(place, h("section", { class: "card", "aria-label": t("progress") }, bar, h("div", { class: "bar" }, status, end)));
  const id = running;
  while (running === id && place.isConnected) {
    let job;
    try {
      job = await get(`/jobs/${id}`);
    } catch (error) {
      if (running !== id) return;
      running = null;
      return fill(place, h("p", { class: "notice", role: "alert" }, error.message));
    }
    if (running !== id) return;
    bar.max = job.rows ?? 1;
    bar.value = job.done;
    status.textContent = t("progress_rows", { done: job.done, rows: job.rows ?? 0 });
    if (job.state === "failed") {
      await stop();
      return fill(place, h("p", { class: "notice", role: "alert" }, job.words));
    }
    if (job.state === "done") return fill(place, results(job, place));
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function results(job, place) {
  announce(t("file_done"));
  const counts = Object.entries(job.counts);
  return h("section", { class: "card", "aria-label": t("result") }, h("h2", {}, t("rows_done", { count: job.rows })),
    h("ul", { class: "tiles" }, counts.map(([status, count]) => h("li", {}, h("b", {}, whole(count)), h("span", {}, t(`status_${status}`))))),
    h("div", { class: "buttons" }, job.files.map((name) => h("button", { class: name === "report.html" ? "main" : "", onclick: () => saveResult(job.id, name, place) }, NAMES[name]())),
      h("button", { id: "forget", onclick: async () => { await stop(); fill(place); } }, t("forget"))));
}

async function saveResult(id, name, place) {
  try {
    await download(`/jobs/${id}/${name}`, name);
  } catch (error) {
    place.append(h("p", { class: "notice", role: "alert" }, error.message));
  }
}

// The report of a few rows that the page holds.
export async function createReport(rows, request) {
  const id = await createJob(toCsv(rows), "text/csv", { ...request, language: language() });
  try {
    for (;;) {
      const job = await get(`/jobs/${id}`);
      if (job.state === "failed") throw new Error(job.words);
      if (job.state === "done") return await (await call(`/jobs/${id}/report.html`)).blob();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    call(`/jobs/${id}`, { method: "DELETE" }).catch(() => {});
  }
}

function toCsv(rows) {
  const names = getSchema().features.map((column) => String(column.name));
  const cell = (value) => (value === null || value === undefined ? "" : `"${String(value === true ? "True" : value === false ? "False" : value).replaceAll('"', '""')}"`);
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}
