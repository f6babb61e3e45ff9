// The cards of a report: search, filters, sorting, pages; the page of one applicant has a card and none of these.
// Texts from the table are set as text, never as markup.
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
  const listed = $("find") !== null; // or it is the page of one applicant
  const wholeNumbers = new Intl.NumberFormat(document.documentElement.lang);
  const twoDecimals = new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  let matches = []; // the people that the search and the filters leave, in order
  let page = 0;

  document.documentElement.classList.add("scripted");
  if (!listed) {
    $("cards").append(card(0));
    return;
  }
  for (const id of ["find", "above", "group-choice"]) if ($(id)) $(id).hidden = false;
  $("worth").hidden = people.loss.length === 0;
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

  const missingLast = (value) => (value === null ? Infinity : value);
  const SORT_KEYS = {
    before: (i) => people.before.at[people.before.codes[i]],
    after: (i) => -people.after.at[people.after.codes[first(i)]],
    few: (i) => people.changes[first(i)].length,
    many: (i) => -people.changes[first(i)].length,
    effort: (i) => -people.effort[first(i)],
    typical: (i) => missingLast(people.plausibility[first(i)]),
  };

  // The line of a person's first option.
  function first(i) {
    return i * people.options;
  }

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
    draw(matches.slice(page * size, (page + 1) * size));
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

  function draw(shown) {
    $("cards").replaceChildren(...shown.map(card));
    $("worth-rows").replaceChildren(...shown.map(worth));
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
    const title = element("h3", {}, people.label[i]);
    title.tabIndex = -1;
    const header = element("header", {}, title);
    const article = element("article", { class: "card" }, header);
    const same = lines.every((line) => people.changes[line].length === 0);
    const shown = same ? lines.slice(0, 1) : lines;
    if (shown.length === 1) header.append(chip(lines[0]));
    article.append(element("p", { class: "sentence" }, textOf(people.lead, lines[0])));
    const grid = element("div", { class: shown.length > 1 ? "options" : "options one" });
    shown.forEach((line, o) => grid.append(option(i, line, o, shown.length > 1)));
    if (shown.some((line) => people.changes[line].length) && people.classes.length) article.append(legend());
    article.append(grid);
    if (listed) article.append(allValues(i, shown));
    return article;
  }

  function legend() {
    const parts = people.classes.map((name, k) => element("span", { class: "key" }, element("i", { class: `swatch class-${k}` }), name));
    const dots = [["now", words.now], ["then", words.then]].map(([kind, text]) => element("span", { class: "key" }, element("i", { class: `dot ${kind}` }), text));
    return element("p", { class: "legend" }, ...parts, ...dots);
  }

  function chip(line) {
    const status = STATUSES[people.status[line]];
    return element("span", { class: `chip ${status}` }, words.statuses[status]);
  }

  function option(i, line, o, several) {
    const part = element("section", { class: "option" });
    if (several) part.append(element("h4", {}, fillIn(words.option, { number: o + 1 }), chip(line)));
    if (several && o > 0) part.append(element("p", { class: "sentence other" }, textOf(people.lead, line)));
    const changes = changesOf(line);
    const body = element("div", { class: "body" }, scoreScale(i, line, changes.length > 0));
    if (changes.length) body.append(element("div", { class: "list" }, ...changes.map(([f, code]) => change(i, f, code))));
    part.append(body);
    const follows = textOf(people.follows, line);
    if (follows) part.append(element("p", { class: "note" }, follows));
    const unnamed = people.unnamed.length ? people.unnamed[line] : 0;
    if (unnamed) part.append(element("p", { class: "note" }, fillIn(words.unnamed, { number: unnamed })));
    const typical = textOf(people.typical, line);
    if (changes.length && typical) part.append(element("p", { class: "note" }, `${typical}.`));
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
    const name = element("div", { class: "name" }, element("b", {}, fillIn(people.score, { goal: textOf(people.goal, i) })), text);
    return element("div", { class: "scale" }, name, track, ends);
  }

  function change(i, f, code) {
    const feature = people.features[f];
    const now = feature.now[i];
    const arrow = element("span", { "aria-hidden": "true" }, " → ");
    const text = element("span", { class: "values" },
      element("span", { class: "sr" }, `${words.now}: `), element("span", { class: "old" }, feature.texts[now]), arrow,
      element("span", { class: "sr" }, `, ${words.then}: `), element("span", { class: "new" }, feature.texts[code]));
    const part = element("div", { class: "change" }, element("div", { class: "name" }, element("b", {}, feature.label), text));
    if (feature.at) part.append(...distribution(feature, now, code, f));
    else if (feature.share) part.append(...[[code, "then"], [now, "now"]].map(([at, when]) => tally(feature, at, when)));
    return part;
  }

  // ---- charts: how many other people have a value

  // A number: where the old and the new value lie among people of both classes.
  function distribution(feature, now, code, f) {
    const drawing = document.createElementNS(SVG, "svg");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#plot-${f}`);
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("viewBox", "0 0 240 60");
    drawing.append(use);
    const label = fillIn(words.chart_number, { feature: feature.label, outcome: people.classes[0], now: feature.texts[now], then: feature.texts[code] });
    const plot = element("div", { class: "plot", role: "img", "aria-label": label }, drawing);
    const [from, to] = [feature.at[now], feature.at[code]];
    if (from !== null && to !== null) plot.append(step(from, to));
    if (from !== null) plot.append(mark("dot now", from));
    if (to !== null) plot.append(mark("dot then", to));
    const ends = element("div", { class: "ends", "aria-hidden": "true" }, element("span", {}, feature.ends[0]), element("span", {}, feature.ends[1]));
    const shares = [code, now].filter((at) => feature.share[0][at] !== null).map((at, k) => fillIn(k ? words.less_too : words.less, {
      frequency: frequency(feature.share[0][at]), outcome: people.classes[0], value: feature.texts[at],
    }));
    return [plot, ends, element("p", { class: "beside" }, shares.length ? `${capitalise(shares.join("; "))}.` : "")];
  }

  // A category: ten people of each class, as many filled as have it.
  function tally(feature, at, when) {
    const rows = people.classes.map((name, k) => {
      const share = feature.share[k][at];
      if (share === null) return "";
      const filled = Math.round(share / 10);
      const dots = element("span", { class: `ten class-${k}`, "aria-hidden": "true" });
      for (let d = 0; d < 10; d++) dots.append(element("i", d < filled ? { class: "has" } : {}));
      return element("span", { class: "tally" }, dots, element("span", {}, fillIn(words.with_outcome, { frequency: frequency(share), outcome: name })));
    });
    return element("div", { class: `having ${when}` }, element("span", { class: "what" }, `${words[when]}: ${feature.texts[at]}`), ...rows);
  }

  // A share in percent as people out of ten or a hundred.
  function frequency(share) {
    if (share < 1) return words.hardly;
    if (share > 95) return words.nearly_all;
    return share < 10 ? fillIn(words.in_hundred, { number: share }) : fillIn(words.in_ten, { number: Math.round(share / 10) });
  }

  // ---- the appendix

  // A person's reasons by each method; with each change of the first option, what it is worth.
  function worth(i) {
    const line = first(i);
    const changes = changesOf(line);
    const own = (people.loss[line] || []).map((loss, k) => [people.features[changes[k][0]].label, loss]).filter(([, loss]) => loss !== null);
    const row = element("tr", {}, element("th", { scope: "row" }, people.label[i]));
    row.append(element("td", {}, own.map(([feature, loss]) => fillIn(words.worth_change, { feature, loss: twoDecimals.format(loss) })).join("; ") || "–"));
    for (const everybody of Object.values(people.reasons)) {
      row.append(element("td", {}, everybody[i].map((f) => people.features[f].label).join("; ") || "–"));
    }
    return row;
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

  function textOf(column, i) {
    return column.texts[column.codes[i]];
  }

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
    draw(matches.slice(0, MAX_PRINTED));
    $("count").textContent = fillIn(words.printed, {
      shown: wholeNumbers.format(Math.min(matches.length, MAX_PRINTED)), found: wholeNumbers.format(matches.length), all: wholeNumbers.format(count),
    });
    addEventListener("afterprint", show, { once: true });
    print();
  });
  for (const link of document.querySelectorAll("[data-find]")) {
    link.addEventListener("click", () => {
      $("search").value = link.dataset.find;
      search();
    });
  }
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

function capitalise(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

function fillIn(message, values) {
  return message.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}
