// Puts the page together, and listens to keys.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
let memoryChart = null;

const KEYS = [
  ["drag, ← →, a d", "move in time"], ["+ −, w s, Ctrl + wheel, double click", "zoom"], ["Shift + drag", "zoom to a stretch"], ["0", "all of it"], ["1 … 9", "iteration of that place"],
  ["↑ ↓", "choose a rank"], ["n p", "next or previous action of the rank"], ["g", "go to what the action waited for"], ["f", "follow its microbatch"], ["c", "critical path"],
  ["Esc", "choose nothing"], ["t", "light or dark"], ["?", "this list"],
];

function changed() {
  updateDetails();
  const near = timelines[chosen.run].host.parentElement; // what is said stands under the run that it is about
  if (near.nextElementSibling !== document.getElementById("details")) near.after(document.getElementById("details"));
  if (memoryChart) memoryChart.redraw();
  requestDraw();
}

function showTab(number) {
  document.querySelectorAll("[role=tab]").forEach((tab, i) => tab.setAttribute("aria-selected", i === number));
  document.querySelectorAll("[role=tabpanel]").forEach((panel, i) => { panel.hidden = i !== number; });
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  inks.clear();
  if (!timelines.length) return;
  document.getElementById("legend").replaceWith(legend());
  changed();
}

function head() {
  const first = report.runs[0];
  document.getElementById("head").append(
    element("div", {}, element("h1", {}, report.title), ...report.runs.slice(0, 1).map(() => element("p", {}, `${first.title}: ${first.figures}`))),
    element("div", { class: "buttons" }, button("light / dark", () => setTheme(isDark() ? "light" : "dark")), button("keys ?", showHelp)),
  );
}

function showHelp() {
  const dialog = document.getElementById("help");
  dialog.replaceChildren(element("h2", {}, "Keys and pointer"),
    element("table", {}, ...KEYS.map(([keys, what]) => element("tr", {}, element("td", {}, keys), element("td", {}, what)))),
    element("form", { method: "dialog" }, element("button", {}, "close")));
  dialog.showModal();
}

function legend() {
  const seen = new Set(report.runs.flatMap((run) => [...new Set(run.rows.op)]));
  const entries = report.ops.map((op, i) => [seen.has(i), op.label, `background:${onTheme(op.fill)}`]).filter(([there]) => there);
  const swatch = (label, style) => element("span", {}, element("i", { class: "swatch", style }), label);
  const found = entries.map(([, label, style]) => swatch(label, style));
  found.push(swatch("idle", "background:var(--idle)"), swatch("message under way (strip below the boxes)", "background:var(--message)"));
  if (report.runs.some((run) => run.rank_of_stage.length > run.ranks)) found.push(element("span", {}, "line at the foot of a box: a later chunk of its rank"));
  if (report.runs.some((run) => run.memory.length)) found.push(swatch("memory (full height: the device's): held all the time", "background:var(--static)"), swatch("activations", "background:var(--held)"));
  if (report.runs.some((run) => run.rows.stream.some((stream) => stream === STREAM.FAULT))) found.push(swatch("fault, or what it threw away", "background:var(--alert);opacity:.5"));
  return element("div", { class: "legend", id: "legend" }, ...found);
}

function toolbar() {
  return element("div", { class: "buttons", id: "toolbar", role: "toolbar" },
    button("−", () => zoom(1.6)), button("+", () => zoom(0.6)), button("all", fit),
    ...report.runs[0].iterations.slice(0, 6).map((each) => button(`iteration ${each.number}`, () => showInterval(each.start, each.end, 0.52))),
    button("critical path", () => showPath(report.runs[chosen.run])),
    button("nothing chosen", () => { clearChosen(); changed(); }),
    element("span", { class: "note" }, "drag to move, Ctrl + wheel or double click to zoom, ? for keys"));
}

function timelineSection(run) {
  const host = element("div", { class: "lanes" });
  const notes = run.notes.map((note) => element("p", { class: "note" }, note));
  return { host, section: element("section", { class: "timeline" }, element("h2", {}, run.name, element("small", {}, ` ${run.title.replace(`${run.name}, `, "")}: ${run.figures}`)), host, ...notes) };
}

function build() {
  const main = document.getElementById("main");
  main.replaceChildren();
  const cards = report.answers.map(answerCard);
  if (report.runs.length) {
    const asks = askMicrobatch(report.runs[0], "why?");
    cards.push(element("article", { class: "card" }, element("h3", {}, "Why did a microbatch wait?"), element("p", {}, "Its way through the ranks, and what each step waited for:"), asks));
  }
  if (cards.length) main.append(element("div", { class: "cards" }, ...cards));
  report.notes.forEach((note) => main.append(element("p", { class: "note lines-kept" }, note)));
  if (report.runs.length) {
    const sections = report.runs.map(timelineSection);
    const memoryHost = element("div", { class: "lanes" });
    main.append(toolbar(), legend(), ...sections.map((each) => each.section),
      element("section", { id: "details", "aria-live": "polite" }),
      element("section", { class: "timeline" }, element("h3", { id: "memory-title" }), memoryHost));
    view.full = Math.max(...report.runs.map((run) => run.end));
    const first = report.runs[0].iterations[0];
    const longest = Math.max(...report.runs.map((run) => run.iterations[0].end - run.iterations[0].start));
    Object.assign(view, { x0: first.start - 0.01 * longest, x1: first.start + 1.02 * longest });
    sections.forEach((each, i) => timelines.push(new Timeline(report.runs[i], each.host)));
    memoryChart = new MemoryChart(memoryHost);
    const redraw = MemoryChart.prototype.redraw.bind(memoryChart);
    timelines.push({ redraw, host: null });
    updateDetails();
  }
  if (report.parts.length) main.append(element("div", { class: "parts" }, ...report.parts.map(partOf)));
  if (report.runs.length) main.append(...runTabs());
  main.append(element("footer", {}, `HOPS report, ${report.format}. One file, nothing is loaded from elsewhere.`));
}

function runTabs() {
  const panels = report.runs.map((run) => element("div", { role: "tabpanel", class: "parts", hidden: true }, ...run.parts.map(partOf)));
  const tabs = report.runs.map((run, i) => element("button", { role: "tab", type: "button", onclick: () => showTab(i) }, run.name));
  return [element("div", { role: "tablist", class: "buttons", hidden: report.runs.length < 2 }, ...tabs), ...panels];
}

function step(run, forward) {
  const rank = chosen.rank ?? 0;
  const [low, high] = run.lanes[rank][STREAM.COMPUTE];
  const at = chosen.row >= 0 && run.rows.rank[chosen.row] === rank ? chosen.row + (forward ? 1 : -1) : firstFrom(run.rows.start, view.x0, low, high);
  if (at >= low && at < high) chooseRow(run, at);
}

function chooseRank(run, down) {
  const rank = Math.min(Math.max((chosen.rank ?? -1) + (down ? 1 : -1), 0), run.ranks - 1);
  clearChosen();
  chosen.rank = rank;
  changed();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea") || !report.runs.length) return;
  const run = report.runs[chosen.run];
  const { rows } = run;
  const acts = {
    ArrowLeft: () => pan(-0.15), a: () => pan(-0.15), ArrowRight: () => pan(0.15), d: () => pan(0.15),
    "+": () => zoom(0.6), "=": () => zoom(0.6), w: () => zoom(0.6), "-": () => zoom(1.6), s: () => zoom(1.6), 0: fit,
    ArrowUp: () => chooseRank(run, false), ArrowDown: () => chooseRank(run, true), n: () => step(run, true), p: () => step(run, false),
    g: () => { const source = chosen.row >= 0 ? producerOf(run, chosen.row) : -1; if (source >= 0) chooseRow(run, source); },
    f: () => { if (chosen.row >= 0 && rows.microbatch[chosen.row] >= 0) followMicrobatch(run, rows.iteration[chosen.row], rows.microbatch[chosen.row]); },
    c: () => showPath(run), Escape: () => { clearChosen(); changed(); }, t: () => setTheme(isDark() ? "light" : "dark"), "?": showHelp,
  };
  if (/^[1-9]$/.test(event.key) && run.iterations[event.key - 1]) {
    const each = run.iterations[event.key - 1];
    showInterval(each.start, each.end, 0.52);
  } else if (acts[event.key]) acts[event.key]();
  else return;
  event.preventDefault();
}

async function start() {
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the report; use one from 2023 or later");
  report.ops.forEach((op, i) => { OP[op.name] = i; });
  Object.assign(STREAM, report.streams);
  const place = document.getElementById("columns");
  const buffer = await unpack(place.textContent);
  place.remove();
  report.runs.forEach((run, number) => openRun(report, run, number, buffer));
  head();
  build();
  showTab(0);
  if (report.runs.length) changed();
  addEventListener("keydown", onKey);
  addEventListener("resize", requestDraw);
  document.body.dataset.ready = "yes";
}

start().catch((error) => { document.getElementById("main").textContent = `The report cannot be shown: ${error.message}`; throw error; });
