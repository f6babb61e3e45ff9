// The cards of a report: search, filters, sorting, pages. Texts from the table are set as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const STATUSES = ["valid", "best_effort", "already", "infeasible"];
const MAX_PRINTED = 1000;

readData().then(start);

async function readData() {
  const block = $("data");
  if (block.type === "application/json") return JSON.parse(block.textContent);
  const bytes = Uint8Array.from(atob(block.textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function start({ people, words }) {
  const count = people.label.length;
  const wholeNumbers = new Intl.NumberFormat(document.documentElement.lang);
  const twoDecimals = new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  let matches = []; // the people that the search and the filters leave, in order
  let page = 0;

  document.documentElement.classList.add("scripted");
  for (const id of ["find", "above", "legend", "group-choice"]) if ($(id)) $(id).hidden = false;
  people.features.forEach((feature, i) => {
    if (feature.changed) $("feature").append(new Option(feature.label, i));
  });
  const lower = people.features.map((feature) => feature.texts.map((text) => text.toLowerCase()));
  const labels = people.label.map((text) => text.toLowerCase());

  // ---- search, filters and sorting

  function search() {
    const text = $("search").value.trim().toLowerCase();
    const status = $("status").value;
    const feature = $("feature").value === "" ? -1 : Number($("feature").value);
    const hits = text ? lower.map((texts) => Uint8Array.from(texts, (each) => each.includes(text))) : [];
    matches = [];
    for (let i = 0; i < count; i++) {
      if (text && !labels[i].includes(text) && !hits.some((hit, f) => hit[people.features[f].now[i]])) continue;
      if (status !== "" && !options(i).some((line) => people.status[line] === status)) continue;
      if (feature >= 0 && !options(i).some((line) => changesOf(line).some(([f]) => f === feature))) continue;
      matches.push(i);
    }
    const key = SORT_KEYS[$("sort").value];
    if (key) {
      const keys = Float64Array.from({ length: count }, (_, i) => key(i));
      matches.sort((a, b) => keys[a] - keys[b] || a - b);
    }
    page = 0;
    show();
  }

  const first = (i) => i * people.options; // the line of a person's first option
  const missingLast = (value) => (value === null ? Infinity : value);
  const SORT_KEYS = {
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
    const pages = Math.max(1, Math.ceil(matches.length / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    $("cards").replaceChildren(...matches.slice(page * size, (page + 1) * size).map(card));
    $("count").textContent = fillIn(matches.length === 1 ? words.one : words.count, {
      found: wholeNumbers.format(matches.length), all: wholeNumbers.format(count),
    });
    $("pages").hidden = pages < 2;
    $("page").value = page + 1;
    $("page").max = pages;
    $("of").textContent = fillIn(words.of, { pages: wholeNumbers.format(pages) });
    $("previous").disabled = page === 0;
    $("next").disabled = page === pages - 1;
  }

  function turnTo(next) {
    page = next;
    show();
    const heading = $("cards").querySelector("h3");
    if (heading) heading.focus();
  }

  // ---- a card

  function card(i) {
    const lines = options(i);
    const title = element("h3", {}, fillIn(words.row, { label: people.label[i] }));
    title.tabIndex = -1;
    const header = element("header", {}, title);
    const article = element("article", { class: "card" }, header);
    const same = lines.every((line) => people.changes[line].length === 0);
    const shown = same ? lines.slice(0, 1) : lines;
    if (shown.length === 1) header.append(chip(lines[0]));
    const grid = element("div", { class: shown.length > 1 ? "options" : "options one" });
    shown.forEach((line, o) => grid.append(option(i, line, o, shown.length > 1)));
    article.append(grid, allValues(i, shown));
    return article;
  }

  function chip(line) {
    const status = STATUSES[people.status[line]];
    return element("span", { class: `chip ${status}` }, words.statuses[status]);
  }

  function option(i, line, o, several) {
    const part = element("section", { class: "option" });
    if (several) part.append(element("h4", {}, fillIn(words.option, { number: o + 1 }), chip(line)));
    if (!several || STATUSES[people.status[line]] !== "valid") {
      part.append(element("p", { class: "headline" }, `${textOf(people.headline, line)}.`));
    }
    const changes = changesOf(line);
    const scales = element("div", { class: changes.length ? "" : "still" }, scoreScale(i, line, changes.length > 0), plausibilityScale(line));
    const body = element("div", { class: "body" }, scales);
    if (changes.length) body.append(element("div", {}, ...changes.map(([f, code], k) => change(i, f, code, people.loss.length ? people.loss[line][k] : null))));
    part.append(body);
    const unnamed = people.unnamed.length ? people.unnamed[line] : 0;
    if (unnamed) part.append(element("p", { class: "note" }, fillIn(words.unnamed, { number: unnamed })));
    const note = textOf(people.note, line);
    if (note) part.append(element("p", { class: "note" }, fillIn(words.note, { note })));
    return part;
  }

  function scoreScale(i, line, moved) {
    const before = people.before.codes[i];
    const after = people.after.codes[line];
    const text = element("span", { class: "values" }, people.before.texts[before]);
    if (moved) text.append(` ${words.to} `, element("strong", {}, people.after.texts[after]));
    const thresholds = people.thresholds[people.goal.kind[i]];
    const track = element("div", { class: "track", "aria-hidden": "true" });
    const ends = element("div", { class: "ends" });
    track.append(...thresholds.at.map((at) => mark("threshold", at)));
    const [low, high] = [Math.min(...thresholds.at), Math.max(...thresholds.at)];
    const needed = [words.highest, words.threshold, words.band][thresholds.at.length];
    const label = element("span", { class: "at" }, fillIn(needed, { score: thresholds.texts[0], high: thresholds.texts[1] }));
    label.style.left = `${thresholds.at.length ? Math.min(Math.max((low + high) / 2, 25), 75) : 50}%`;
    ends.append(label);
    if (moved) track.append(step(people.before.at[before], people.after.at[after]));
    track.append(mark("dot now", people.before.at[before]));
    if (moved) track.append(mark("dot then", people.after.at[after]));
    const name = element("div", { class: "name" }, element("b", {}, fillIn(words.score, { goal: textOf(people.goal, i) })), text);
    return element("div", { class: "scale" }, name, track, ends);
  }

  function plausibilityScale(line) {
    const share = people.plausibility[line];
    if (share === null) return "";
    const track = element("div", { class: "track", "aria-hidden": "true" }, step(0, share / 10), mark("dot then", share / 10));
    const name = element("div", { class: "name" }, element("b", {}, words.plausibility));
    return element("div", { class: "scale" }, name, track, element("p", { class: "beside" }, `${textOf(people.typical, line)}.`));
  }

  function change(i, f, code, loss) {
    const feature = people.features[f];
    const now = feature.now[i];
    const arrow = element("span", { "aria-hidden": "true" }, " → ");
    const text = element("span", { class: "values" },
      element("span", { class: "sr" }, `${words.now}: `), element("span", { class: "old" }, feature.texts[now]), arrow,
      element("span", { class: "sr" }, `, ${words.then}: `), element("span", { class: "new" }, feature.texts[code]));
    const part = element("div", { class: "change" }, element("div", { class: "name" }, element("b", {}, feature.label), text));
    if (feature.at) part.append(...amongPopulation(feature, now, code, f));
    if (loss !== null && loss !== undefined) part.append(element("p", { class: "beside loss" }, fillIn(words.loss, { loss: twoDecimals.format(loss) })));
    return part;
  }

  // Where the old and the new value stand in the population.
  function amongPopulation(feature, now, code, f) {
    const drawing = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#plot-${f}`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("viewBox", "0 0 240 60");
    drawing.append(use);
    const plot = element("div", { class: "plot", "aria-hidden": "true" }, drawing);
    const [from, to] = [feature.at[now], feature.at[code]];
    if (from !== null && to !== null) plot.append(step(from, to));
    if (from !== null) plot.append(mark("dot now", from));
    if (to !== null) plot.append(mark("dot then", to));
    const ends = element("div", { class: "ends", "aria-hidden": "true" }, element("span", {}, feature.ends[0]), element("span", {}, feature.ends[1]));
    const shares = people.classes.map((name, k) => {
      const [a, b] = [feature.share[k][now], feature.share[k][code]];
      return fillIn(words.shares, { name, now: a === null ? "–" : percent(a), then: b === null ? "–" : percent(b) });
    });
    const summary = fillIn(feature.number ? words.below : words.alike, { shares: shares.join("; ") });
    const parts = [plot, element("p", { class: "beside" }, summary)];
    if (feature.number) parts.splice(1, 0, ends);
    return parts;
  }

  function allValues(i, lines) {
    const head = element("tr", {}, element("th", { scope: "col" }, words.feature), element("th", { scope: "col" }, words.now));
    lines.forEach((_, o) => {
      head.append(element("th", { scope: "col" }, lines.length > 1 ? fillIn(words.option, { number: o + 1 }) : words.then));
    });
    const after = lines.map((line) => new Map(changesOf(line)));
    const body = element("tbody", {}, ...people.features.map((feature, f) => {
      const changed = after.some((map) => map.has(f));
      const row = element("tr", changed ? { class: "changed" } : {}, element("th", { scope: "row" }, feature.label));
      row.append(element("td", {}, feature.texts[feature.now[i]]));
      for (const map of after) {
        const cell = map.has(f) ? element("strong", {}, feature.texts[map.get(f)]) : feature.texts[feature.now[i]];
        row.append(element("td", {}, cell));
      }
      return row;
    }));
    const caption = element("caption", {}, element("span", {}, fillIn(words.caption, { label: people.label[i] })));
    const table = element("table", {}, caption, element("thead", {}, head), body);
    const region = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption.textContent }, table);
    region.hidden = $("values").getAttribute("aria-pressed") !== "true";
    region.classList.add("all");
    return region;
  }

  const textOf = (column, i) => column.texts[column.codes[i]];
  const percent = (share) => fillIn(words.percent, { share });

  // ---- controls

  let timer;
  $("find").addEventListener("submit", (event) => event.preventDefault());
  $("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  for (const id of ["status", "feature", "sort"]) $(id).addEventListener("change", search);
  $("size").addEventListener("change", () => turnTo(0));
  $("previous").addEventListener("click", () => turnTo(page - 1));
  $("next").addEventListener("click", () => turnTo(page + 1));
  $("page").addEventListener("change", () => turnTo((Number($("page").value) || 1) - 1));
  $("values").addEventListener("click", () => {
    const open = $("values").getAttribute("aria-pressed") !== "true";
    $("values").setAttribute("aria-pressed", String(open));
    for (const region of document.querySelectorAll("#cards .all")) region.hidden = !open;
  });
  $("print").addEventListener("click", () => {
    $("cards").replaceChildren(...matches.slice(0, MAX_PRINTED).map(card));
    $("count").textContent = fillIn(words.printed, {
      shown: wholeNumbers.format(Math.min(matches.length, MAX_PRINTED)), found: wholeNumbers.format(matches.length), all: wholeNumbers.format(count),
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

// ---- elements

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// A mark on a scale, at a place in percent.
function mark(kind, at) {
  const made = element("i", { class: kind });
  made.style.left = `${at}%`;
  return made;
}

// The step between two places on a scale.
function step(from, to) {
  const made = mark("step", Math.min(from, to));
  made.style.width = `${Math.abs(to - from)}%`;
  return made;
}

function fillIn(message, values) {
  return message.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}
