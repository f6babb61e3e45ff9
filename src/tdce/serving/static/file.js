// The page “File”: send a table; a list of the files on the server, to watch, to download and to delete.
import { call, download, get, post } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { notice } from "./errors.js";
import { getSchema, outcomeText, title } from "./fields.js";
import { question, rules, state } from "./state.js";
import { language, t, whole } from "./words.js";

const POLL_MS = 500;
const JOBS_KEY = "tdce-jobs"; // the ids of this browser's jobs, kept over a reload; nothing else is
const CONTENT_TYPES = [[".csv.gz", "application/gzip"], [".parquet", "application/vnd.apache.parquet"], [".csv", "text/csv"]];
const NAMES = { "answer.csv": () => t("answers_csv"), "answer.jsonl": () => t("answers_jsonl"), "report.html": () => t("report_page") };
const STATUSES = ["valid", "best_effort", "already", "infeasible"];

export function file(main) {
  const place = h("div", { id: "job" }), list = h("div", { id: "jobs" });
  const pick = h("input", { type: "file", id: "file", accept: ".csv,.gz,.parquet", required: true });
  const sep = h("select", { id: "sep" }, [[",", t("comma")], [";", t("semicolon")], ["tab", t("tab")], ["|", t("vertical_bar")]].map(([value, text]) => h("option", { value }, text)));
  const decimal = h("select", { id: "decimal" }, [[".", t("point")], [",", t("comma")]].map(([value, text]) => h("option", { value }, text)));
  const form = h("form", { class: "card" }, h("h2", {}, t("file_rows")),
    h("div", { class: "fields" },
      h("div", { class: "field" }, h("label", { for: "file" }, t("file_table")), pick),
      h("div", { class: "fields short" },
        h("div", { class: "field" }, h("label", { for: "sep" }, t("file_sep")), sep),
        h("div", { class: "field" }, h("label", { for: "decimal" }, t("file_decimal")), decimal))),
    h("p", { class: "small" }, settings()),
    h("button", { class: "main", id: "send" }, t("file_send")));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = pick.files[0];
    const kind = CONTENT_TYPES.find(([ending]) => chosen.name.toLowerCase().endsWith(ending))?.[1];
    if (!kind) return fill(place, notice(new Error(t("file_ending"))));
    fill(place, h("p", { class: "loading" }, t("sending")));
    try {
      const request = { ...question(), sep: sep.value, decimal: decimal.value, language: language(), name: chosen.name.slice(0, 200) };
      keep([await createJob(chosen, kind, request), ...kept()]);
      fill(place);
      watch(list, place);
    } catch (error) {
      fill(place, notice(error));
    }
  });
  fill(main, h("h1", {}, t("file_heading")),
    h("p", { class: "lead" }, t("file_lead")), form, place,
    h("section", { "aria-label": t("jobs") }, h("h2", {}, t("jobs")), h("p", { class: "small" }, t("jobs_lead")), list));
  watch(list, place);
}

function settings() {
  const some = state(), parts = [t("options_per_row", { count: some.n })];
  if (some.closeness !== null) parts.push(t("settings_closeness", { closeness: some.closeness }));
  if (some.locks.length) parts.push(t("settings_locked", { columns: some.locks.map(title).join(", ") }));
  if (rules(some).length) parts.push(t("settings_rules", { rules: rules(some).join("; ") }));
  if (some.target !== null) parts.push(t("settings_target", { target: outcomeText(some.target) }));
  return t("settings", { settings: parts.join(" · ") });
}

let remembered = []; // where there is no storage

// The list, which this browser keeps: whoever has an id has the results, so the server has no list for everybody.
function kept() {
  try {
    const ids = JSON.parse(localStorage.getItem(JOBS_KEY) ?? "[]");
    return Array.isArray(ids) ? ids.filter((id) => /^[\w-]{1,64}$/.test(id)) : [];
  } catch {
    return remembered;
  }
}

function keep(ids) {
  remembered = ids;
  try {
    localStorage.setItem(JOBS_KEY, JSON.stringify(ids));
  } catch { /* a frame in a notebook may have no storage: the list lasts as long as the page */ }
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

let watching = null; // the list on the page now

// Shows the jobs, and asks about those that are not done until they are.
async function watch(list, place) {
  const mine = (watching = {}), cards = new Map();
  const remove = async (id) => {
    keep(kept().filter((each) => each !== id));
    await call(`/jobs/${id}`, { method: "DELETE" }).catch(() => {});
    if (!list.isConnected) return;
    cards.get(id)?.element.remove();
    cards.delete(id);
    fill(place, h("p", { class: "notice", role: "status" }, t("stopped")));
    if (!cards.size) fill(list, h("p", { class: "small" }, t("jobs_none")));
  };
  let open = kept();
  fill(list, open.length ? null : h("p", { class: "small" }, t("jobs_none")));
  while (open.length && watching === mine && list.isConnected) {
    for (const id of open) {
      let job;
      try {
        job = await get(`/jobs/${id}`);
      } catch (error) {
        if (error.status !== 404) return fill(place, notice(error));
        keep(kept().filter((each) => each !== id)); // its time is over, or the server is another one
        cards.get(id)?.element.remove();
        open = open.filter((each) => each !== id);
        continue;
      }
      if (watching !== mine || !list.isConnected) return;
      if (!kept().includes(id)) continue; // deleted in the meantime
      if (!cards.has(id)) {
        cards.set(id, jobCard(remove, place));
        list.append(cards.get(id).element);
      }
      if (cards.get(id).show(job)) open = open.filter((each) => each !== id);
    }
    open = open.filter((id) => kept().includes(id));
    if (open.length) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  if (!list.firstChild) fill(list, h("p", { class: "small" }, t("jobs_none")));
}

// The card of one job; `show` says whether nothing will change any more.
function jobCard(remove, place) {
  const heading = h("h3", {}), body = h("div", {}), element = h("section", { class: "card job" }, heading, body);
  const bar = h("progress", { "aria-label": t("rows_explained"), value: 0, max: 1 }), status = h("p", { class: "num", role: "status" }, t("waiting"));
  let state = "";
  const button = (job, words) => h("button", { class: "forget", onclick: () => remove(job.id) }, words);
  const show = (job) => {
    heading.textContent = job.name || t("job_unnamed");
    bar.max = job.rows || 1;
    bar.value = job.done;
    status.textContent = t("progress_rows", { done: job.done, rows: job.rows ?? 0 });
    const next = ["done", "failed"].includes(job.state) ? job.state : "running";
    if (next !== state) {
      if (next === "running") fill(body, bar, h("div", { class: "bar" }, status, button(job, t("stop"))));
      if (next === "failed") fill(body, notice({ problem: { detail: job.words, case: job.case, facts: job.facts } }), button(job, t("forget")));
      if (next === "done") fill(body, results(job, place, button));
      if (next === "done" && state) announce(t("file_done"));
    }
    state = next;
    return state !== "running";
  };
  return { element, show };
}

function results(job, place, button) {
  const counts = STATUSES.filter((status) => job.people[status]).map((status) => [status, job.people[status]]);
  return [h("p", {}, h("b", {}, t("people_done", { count: job.rows }))),
    h("ul", { class: "tiles" }, counts.map(([status, count]) => h("li", {}, h("b", {}, whole(count)), h("span", {}, t(`people_${status}`))))),
    h("div", { class: "buttons" }, job.files.map((name) => h("button", { class: name === "report.html" ? "main" : "", onclick: () => saveResult(job.id, name, place) }, NAMES[name]())),
      button(job, t("forget"))),
    h("p", { class: "small" }, `${t("csv_safe")} ${t("job_expires", { minutes: Math.ceil(job.seconds_left / 60) })}`)];
}

async function saveResult(id, name, place) {
  try {
    await download(`/jobs/${id}/${name}`, name);
  } catch (error) {
    fill(place, notice(error));
  }
}

// The report of a few rows that the page holds.
export async function createReport(rows, request) {
  const id = await createJob(toCsv(rows), "text/csv", { ...request, language: language() });
  try {
    for (;;) {
      const job = await get(`/jobs/${id}`);
      if (job.state === "failed") throw Object.assign(new Error(job.words), { problem: { detail: job.words, case: job.case, facts: job.facts } });
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
