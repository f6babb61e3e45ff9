// The people of a report: found, sorted and drawn card by card. Every text of the table is set as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const STATUSES = ["valid", "best_effort", "already", "infeasible"];
const MOST_PRINTED = 1000;

read().then(start);

async function read() {
  const block = $("data");
  if (block.type === "application/json") return JSON.parse(block.textContent);
  const bytes = Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function start({ people, words }) {
  const count = people.label.length;
  const numbers = new Intl.NumberFormat(document.documentElement.lang);
  const losses = new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  let found = [];
  let page = 0;

  document.documentElement.classList.add("scripted");
  for (const id of ["find", "above", "legend", "group-choice"]) if ($(id)) $(id).hidden = false;
  people.features.forEach((feature, i) => {
    if (feature.changed) $("feature").append(new Option(feature.label, i));
  });
  const lower = people.features.map((feature) => feature.texts.map((text) => text.toLowerCase()));
  const labels = people.label.map((text) => text.toLowerCase());

  // ---- finding

  function search() {
    const asked = $("search").value.trim().toLowerCase();
    const status = $("status").value;
    const feature = $("feature").value === "" ? -1 : Number($("feature").value);
    const hits = asked ? lower.map((texts) => Uint8Array.from(texts, (text) => text.includes(asked))) : [];
    found = [];
    for (let i = 0; i < count; i++) {
      if (asked && !labels[i].includes(asked) && !hits.some((hit, f) => hit[people.features[f].now[i]])) continue;
      if (status !== "" && !options(i).some((line) => people.status[line] === status)) continue;
      if (feature >= 0 && !options(i).some((line) => changesOf(line).some(([f]) => f === feature))) continue;
      found.push(i);
    }
    const key = KEYS[$("sort").value];
    if (key) {
      const keys = Float64Array.from({ length: count }, (_, i) => key(i));
      found.sort((a, b) => keys[a] - keys[b] || a - b);
    }
    page = 0;
    show();
  }

  const first = (i) => i * people.options;
  const missingLast = (value) => (value === null ? Infinity : value);
  const KEYS = {
    before: (i) => people.before.at[people.before.codes[i]],
    after: (i) => -people.after.at[people.after.codes[first(i)]],
    few: (i) => people.changes[first(i)].length,
    many: (i) => -people.changes[first(i)].length,
    effort: (i) => -people.effort[first(i)],
    typical: (i) => missingLast(people.plausibility[first(i)]),
  };

  function options(i) {
    return Array.from({ length: people.options }, (_, o) => first(i) + o);
  }

  function changesOf(line) {
    const flat = people.changes[line];
    return Array.from({ length: flat.length / 2 }, (_, k) => [flat[2 * k], flat[2 * k + 1]]);
  }

  // ---- pages

  function show() {
    const size = Number($("size").value);
    const pages = Math.max(1, Math.ceil(found.length / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    $("cards").replaceChildren(...found.slice(page * size, (page + 1) * size).map(card));
    $("count").textContent = say(found.length === 1 ? words.one : words.count, {
      found: numbers.format(found.length), all: numbers.format(count),
    });
    $("pages").hidden = pages < 2;
    $("page").value = page + 1;
    $("page").max = pages;
    $("of").textContent = say(words.of, { pages: numbers.format(pages) });
    $("previous").disabled = page === 0;
    $("next").disabled = page === pages - 1;
  }

  function turn(to) {
    page = to;
    show();
    const heading = $("cards").querySelector("h3");
    if (heading) heading.focus();
  }

  // ---- a card

  function card(i) {
    const lines = options(i);
    const title = make("h3", {}, say(words.row, { label: people.label[i] }));
    title.tabIndex = -1;
    const header = make("header", {}, title);
    const article = make("article", { class: "card" }, header);
    const same = lines.every((line) => people.changes[line].length === 0);
    const shown = same ? lines.slice(0, 1) : lines;
    if (shown.length === 1) header.append(chip(lines[0]));
    const grid = make("div", { class: shown.length > 1 ? "options" : "options one" });
    shown.forEach((line, o) => grid.append(option(i, line, o, shown.length > 1)));
    article.append(grid, values(i, shown));
    return article;
  }

  function chip(line) {
    const status = STATUSES[people.status[line]];
    return make("span", { class: `chip ${status}` }, words.statuses[status]);
  }

  function option(i, line, o, several) {
    const part = make("section", { class: "option" });
    if (several) part.append(make("h4", {}, say(words.option, { number: o + 1 }), chip(line)));
    if (!several || STATUSES[people.status[line]] !== "valid") {
      part.append(make("p", { class: "headline" }, `${coded(people.headline, line)}.`));
    }
    const changes = changesOf(line);
    const scales = make("div", { class: changes.length ? "" : "still" }, score(i, line, changes.length > 0), plausible(line));
    const body = make("div", { class: "body" }, scales);
    if (changes.length) body.append(make("div", {}, ...changes.map(([f, code], k) => change(i, f, code, people.loss.length ? people.loss[line][k] : null))));
    part.append(body);
    const unnamed = people.unnamed.length ? people.unnamed[line] : 0;
    if (unnamed) part.append(make("p", { class: "note" }, say(words.unnamed, { number: unnamed })));
    const note = coded(people.note, line);
    if (note) part.append(make("p", { class: "note" }, say(words.note, { note })));
    return part;
  }

  function score(i, line, moved) {
    const before = people.before.codes[i];
    const after = people.after.codes[line];
    const text = make("span", { class: "values" }, people.before.texts[before]);
    if (moved) text.append(` ${words.to} `, make("strong", {}, people.after.texts[after]));
    const borders = people.borders[people.goal.kind[i]];
    const track = make("div", { class: "track", "aria-hidden": "true" });
    const ends = make("div", { class: "ends" });
    track.append(...borders.at.map((at) => placed("border", at)));
    const [low, high] = [Math.min(...borders.at), Math.max(...borders.at)];
    const needed = [words.highest, words.threshold, words.band][borders.at.length];
    const label = make("span", { class: "at" }, say(needed, { score: borders.texts[0], high: borders.texts[1] }));
    label.style.left = `${borders.at.length ? Math.min(Math.max((low + high) / 2, 25), 75) : 50}%`;
    ends.append(label);
    if (moved) track.append(way(people.before.at[before], people.after.at[after]));
    track.append(placed("dot now", people.before.at[before]));
    if (moved) track.append(placed("dot then", people.after.at[after]));
    const name = make("div", { class: "name" }, make("b", {}, say(words.score, { goal: coded(people.goal, i) })), text);
    return make("div", { class: "scale" }, name, track, ends);
  }

  function plausible(line) {
    const share = people.plausibility[line];
    if (share === null) return "";
    const track = make("div", { class: "track", "aria-hidden": "true" }, way(0, share / 10), placed("dot then", share / 10));
    const name = make("div", { class: "name" }, make("b", {}, words.plausibility));
    return make("div", { class: "scale" }, name, track, make("p", { class: "beside" }, `${coded(people.typical, line)}.`));
  }

  function change(i, f, code, loss) {
    const feature = people.features[f];
    const now = feature.now[i];
    const arrow = make("span", { "aria-hidden": "true" }, " → ");
    const text = make("span", { class: "values" },
      make("span", { class: "sr" }, `${words.now}: `), make("span", { class: "old" }, feature.texts[now]), arrow,
      make("span", { class: "sr" }, `, ${words.then}: `), make("span", { class: "new" }, feature.texts[code]));
    const part = make("div", { class: "change" }, make("div", { class: "name" }, make("b", {}, feature.label), text));
    if (feature.at) part.append(...beside(i, feature, now, code, f));
    if (loss !== null && loss !== undefined) part.append(make("p", { class: "beside loss" }, say(words.loss, { loss: losses.format(loss) })));
    return part;
  }

  function beside(i, feature, now, code, f) {
    const drawing = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#plot-${f}`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("viewBox", "0 0 240 60");
    drawing.append(use);
    const plot = make("div", { class: "plot", "aria-hidden": "true" }, drawing);
    const [from, to] = [feature.at[now], feature.at[code]];
    if (from !== null && to !== null) plot.append(way(from, to));
    if (from !== null) plot.append(placed("dot now", from));
    if (to !== null) plot.append(placed("dot then", to));
    const ends = make("div", { class: "ends", "aria-hidden": "true" }, make("span", {}, feature.ends[0]), make("span", {}, feature.ends[1]));
    const shares = people.classes.map((name, k) => {
      const [a, b] = [feature.share[k][now], feature.share[k][code]];
      return say(words.shares, { name, now: a === null ? "–" : percent(a), then: b === null ? "–" : percent(b) });
    });
    const said = say(feature.number ? words.below : words.alike, { shares: shares.join("; ") });
    const parts = [plot, make("p", { class: "beside" }, said)];
    if (feature.number) parts.splice(1, 0, ends);
    return parts;
  }

  function values(i, lines) {
    const head = make("tr", {}, make("th", { scope: "col" }, words.feature), make("th", { scope: "col" }, words.now));
    lines.forEach((_, o) => {
      head.append(make("th", { scope: "col" }, lines.length > 1 ? say(words.option, { number: o + 1 }) : words.then));
    });
    const after = lines.map((line) => new Map(changesOf(line)));
    const body = make("tbody", {}, ...people.features.map((feature, f) => {
      const changed = after.some((map) => map.has(f));
      const row = make("tr", changed ? { class: "changed" } : {}, make("th", { scope: "row" }, feature.label));
      row.append(make("td", {}, feature.texts[feature.now[i]]));
      for (const map of after) {
        const cell = map.has(f) ? make("strong", {}, feature.texts[map.get(f)]) : feature.texts[feature.now[i]];
        row.append(make("td", {}, cell));
      }
      return row;
    }));
    const caption = make("caption", {}, make("span", {}, say(words.caption, { label: people.label[i] })));
    const table = make("table", {}, caption, make("thead", {}, head), body);
    const region = make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption.textContent }, table);
    region.hidden = $("values").getAttribute("aria-pressed") !== "true";
    region.classList.add("all");
    return region;
  }

  const coded = (column, i) => column.texts[column.codes[i]];
  const percent = (share) => say(words.percent, { share });

  // ---- what people do

  let later;
  $("find").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("input", () => {
    clearTimeout(later);
    later = setTimeout(search, 120);
  });
  for (const id of ["status", "feature", "sort"]) $(id).addEventListener("change", search);
  $("size").addEventListener("change", () => turn(0));
  $("previous").addEventListener("click", () => turn(page - 1));
  $("next").addEventListener("click", () => turn(page + 1));
  $("page").addEventListener("change", () => turn((Number($("page").value) || 1) - 1));
  $("values").addEventListener("click", () => {
    const open = $("values").getAttribute("aria-pressed") !== "true";
    $("values").setAttribute("aria-pressed", String(open));
    for (const region of document.querySelectorAll("#cards .all")) region.hidden = !open;
  });
  $("print").addEventListener("click", () => {
    $("cards").replaceChildren(...found.slice(0, MOST_PRINTED).map(card));
    $("count").textContent = say(words.printed, {
      shown: numbers.format(Math.min(found.length, MOST_PRINTED)), found: numbers.format(found.length), all: numbers.format(count),
    });
    addEventListener("afterprint", show, { once: true });
    print();
  });
  if ($("group")) {
    const groups = [...document.querySelectorAll(".group")];
    $("group").addEventListener("change", () => {
      groups.forEach((group, i) => group.toggleAttribute("data-later", String(i) !== $("group").value));
    });
  }
  search();
}

// ---- making elements

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function placed(kind, at) {
  const element = make("i", { class: kind });
  element.style.left = `${at}%`;
  return element;
}

function way(from, to) {
  const element = placed("way", Math.min(from, to));
  element.style.width = `${Math.abs(to - from)}%`;
  return element;
}

function say(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}
