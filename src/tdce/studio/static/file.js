// A whole file: send it, watch it, stop it, fetch what was found.
import { call, get, post } from "./api.js";
import { fill, h, save, say } from "./dom.js";
import { known, title } from "./fields.js";
import { question, rules, state } from "./state.js";

const EVERY = 500; // milliseconds between looks
const KINDS = [[".csv.gz", "application/gzip"], [".parquet", "application/vnd.apache.parquet"], [".csv", "text/csv"]];
const NAMES = { "answer.csv": "Answers, CSV", "answer.jsonl": "Answers, JSON lines", "report.html": "Report, a page" };
const STATUS = { valid: "would change the decision", best_effort: "nearer, but not there", already: "nothing to change", infeasible: "nothing may change" };

let running = null; // the job of this tab, wherever one goes

export function file(main) {
  const place = h("div", { id: "job" });
  const pick = h("input", { type: "file", id: "file", accept: ".csv,.gz,.parquet", required: true });
  const sep = h("select", { id: "sep" }, [[",", "comma"], [";", "semicolon"], ["tab", "tab"]].map(([value, text]) => h("option", { value }, text)));
  const decimal = h("select", { id: "decimal" }, [[".", "point"], [",", "comma"]].map(([value, text]) => h("option", { value }, text)));
  const form = h("form", { class: "card" }, h("h2", {}, "Rows to explain"),
    h("div", { class: "fields" },
      h("div", { class: "field" }, h("label", { for: "file" }, "A table: .csv, .csv.gz or .parquet"), pick),
      h("div", { class: "field" }, h("label", { for: "sep" }, "Cells are separated by"), sep),
      h("div", { class: "field" }, h("label", { for: "decimal" }, "Decimal mark"), decimal)),
    h("p", { class: "small" }, settings()),
    h("button", { class: "main", id: "send" }, "Explain the file"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = pick.files[0];
    const kind = KINDS.find(([ending]) => chosen.name.toLowerCase().endsWith(ending))?.[1];
    if (!kind) return fill(place, h("p", { class: "notice", role: "alert" }, "The file must end in .csv, .csv.gz or .parquet."));
    await begin(place, chosen, kind, { ...question(), sep: sep.value, decimal: decimal.value });
  });
  fill(main, h("h1", {}, "A whole file"),
    h("p", { class: "lead" }, "Every row gets its options, with the settings of the person page. What you send is kept in a folder of its own on the server and deleted with the job."), form, place);
  if (running) watch(place);
}

function settings() {
  const some = state(), parts = [`${some.n} ${some.n === 1 ? "option" : "options"} per row`];
  if (some.closeness !== null) parts.push(`closeness ${some.closeness}`);
  if (some.locks.length) parts.push(`locked: ${some.locks.map(title).join(", ")}`);
  if (rules(some).length) parts.push(`rules: ${rules(some).join("; ")}`);
  if (some.target !== null) parts.push(`wanted: ${some.target}`);
  return `Settings: ${parts.join(" · ")}.`;
}

async function begin(place, content, kind, asked) {
  if (running) await stop();
  fill(place, h("p", { class: "loading" }, "Sending …"));
  try {
    running = await sent(content, kind, asked);
    watch(place);
  } catch (error) {
    fill(place, h("p", { class: "notice", role: "alert" }, error.message));
  }
}

// A job with its rows: its id.
async function sent(content, kind, asked) {
  const { id } = await post("/jobs", asked);
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
  const bar = h("progress", { id: "progress", "aria-label": "Rows explained", value: 0, max: 1 });
  const words = h("p", { class: "num", role: "status" }, "Waiting …");
  const end = h("button", { id: "stop", onclick: async () => { await stop(); fill(place, h("p", { class: "notice" }, "Stopped; nothing was kept.")); } }, "Stop");
  fill(place, h("section", { class: "card", "aria-label": "Progress" }, bar, h("div", { class: "bar" }, words, end)));
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
    words.textContent = `${job.done.toLocaleString("en")} of ${(job.rows ?? 0).toLocaleString("en")} rows`;
    if (job.state === "failed") {
      await stop();
      return fill(place, h("p", { class: "notice", role: "alert" }, job.words));
    }
    if (job.state === "done") return fill(place, done(job, place));
    await new Promise((resolve) => setTimeout(resolve, EVERY));
  }
}

function done(job, place) {
  say("The file is explained.");
  const counts = Object.entries(job.counts);
  return h("section", { class: "card", "aria-label": "Result" }, h("h2", {}, `${job.rows.toLocaleString("en")} rows are explained`),
    h("ul", { class: "tiles" }, counts.map(([status, count]) => h("li", {}, h("b", {}, count.toLocaleString("en")), h("span", {}, STATUS[status] ?? status)))),
    h("div", { class: "buttons" }, job.files.map((name) => h("button", { class: name === "report.html" ? "main" : "", onclick: () => fetched(job.id, name, place) }, NAMES[name])),
      h("button", { id: "forget", onclick: async () => { await stop(); fill(place); } }, "Delete from the server")));
}

async function fetched(id, name, place) {
  try {
    save(await (await call(`/jobs/${id}/${name}`)).blob(), name);
  } catch (error) {
    place.append(h("p", { class: "notice", role: "alert" }, error.message));
  }
}

// The report of a few rows that are here already.
export async function report(rows, asked) {
  const id = await sent(csv(rows), "text/csv", asked);
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

function csv(rows) {
  const names = known().features.map((column) => String(column.name));
  const cell = (value) => (value === null || value === undefined ? "" : `"${String(value === true ? "True" : value === false ? "False" : value).replaceAll('"', '""')}"`);
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}
