// What was pointed at in a box by the pointer, and what was clicked in a panel: a row, a gap, a cause, a microbatch.
"use strict";

function hitLines(run, hit) {
  if (!hit) return null;
  const lines = [];
  let title = `rank ${hit.rank}, ${run.devices[hit.rank]}`;
  if (hit.row >= 0) { title = rowTitle(run, hit.row); lines.push(...rowWhy(run, hit.row)); }
  else if (hit.gap >= 0) { title = gapTitle(run, hit.gap); lines.push(interval(run.gaps, hit.gap), ...gapWhy(run, hit.gap)); }
  if (hit.fault >= 0) lines.push(`${rowTitle(run, hit.fault)}: ${interval(run.rows, hit.fault)}.`);
  if (run.memory.length && (hit.memory || hit.row < 0)) {
    const capacity = run.capacity[hit.rank];
    lines.push(`Rank ${hit.rank} holds ${bytesText(heldAt(run, hit.rank, hit.time))}${capacity ? ` of ${bytesText(capacity)}` : ""} at ${timeText(hit.time)}.`);
  }
  return { title, lines };
}

function heldAt(run, rank, time) {
  const { at, bytes } = run.memory[rank];
  const next = firstFrom(at, time + 1, 0, at.length);
  return next ? bytes[next - 1] : run.static[rank];
}

function showTip(timeline, hit, event) {
  const tip = document.getElementById("tip");
  const found = hitLines(timeline.run, hit);
  if (!found) { hideTip(); return; }
  tip.replaceChildren(element("b", {}, found.title), ...found.lines.map((line) => element("p", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 16;
  tip.style.transform = `translate(${Math.max(x, 4)}px, ${Math.max(y, 4)}px)`;
}

function hideTip() { document.getElementById("tip").hidden = true; }

function clearChosen() {
  Object.assign(chosen, { row: -1, gap: -1, microbatch: null, iteration: null, cause: null, causeRank: null });
  chosen.terms.clear();
}

function choose(timeline, hit) {
  const { run } = timeline;
  clearChosen();
  chosen.run = run.number;
  if (hit) Object.assign(chosen, { rank: hit.rank, row: hit.row, gap: hit.gap });
  showTab(run.number);
  changed();
}

function chooseRow(run, row) {
  clearChosen();
  Object.assign(chosen, { run: run.number, row, rank: run.rows.rank[row] });
  if (run.rows.end[row] < view.x0 || run.rows.start[row] > view.x1 || run.rows.length[row] < (view.x1 - view.x0) / 400) showInterval(run.rows.start[row], run.rows.end[row], 12);
  showTab(run.number);
  changed();
}

function chooseGap(run, gap) {
  Object.assign(chosen, { run: run.number, gap, row: -1, rank: run.gaps.rank[gap] });
  showInterval(run.gaps.start[gap], run.gaps.end[gap], 3);
  changed();
}

function followMicrobatch(run, iteration, microbatch) {
  clearChosen();
  Object.assign(chosen, { run: run.number, iteration, microbatch });
  const found = journey(run, iteration, microbatch);
  if (found.length) {
    const end = Math.max(...found.map((each) => run.rows.end[each.row]));
    showInterval(run.rows.start[found[0].row], end, 0.65);
  }
  showTab(run.number);
  changed();
  const { host } = timelines[run.number];
  if (!inSight(host)) host.scrollIntoView({ block: "start", behavior: "smooth" });
}

function showPath(run) {
  const on = chosen.terms.has("*");
  clearChosen();
  chosen.run = run.number;
  if (!on) chosen.terms.add("*");
  changed();
}

const button = (text, action) => element("button", { type: "button", onclick: action }, text);

// The panel under the timelines.
function updateDetails() {
  const panel = document.getElementById("details");
  const run = report.runs[chosen.run];
  const content = detailsOf(run);
  panel.replaceChildren(...content);
}

function detailsOf(run) {
  const { rows } = run;
  if (chosen.microbatch !== null) return journeyPanel(run);
  if (chosen.row >= 0) {
    const row = chosen.row;
    const buttons = [];
    if (rows.microbatch[row] >= 0) buttons.push(button(`follow microbatch ${rows.microbatch[row]}`, () => followMicrobatch(run, rows.iteration[row], rows.microbatch[row])));
    const source = rows.stream[row] === STREAM.MESSAGE ? actionOfMessage(run, row) : producerOf(run, row);
    if (source >= 0 && rows.microbatch[row] >= 0) buttons.push(button(`${rows.stream[row] === STREAM.MESSAGE ? "sent by" : "takes the output of"} ${actionName(run, source)}`, () => chooseRow(run, source)));
    const message = rows.stream[row] === STREAM.COMPUTE && rows.microbatch[row] >= 0 ? messageFrom(run, row) : -1;
    if (message >= 0) buttons.push(button("its message", () => chooseRow(run, message)));
    buttons.push(button("critical path", () => showPath(run)));
    return [element("h3", {}, rowTitle(run, row)), ...rowWhy(run, row).map((line) => element("p", {}, line)), element("div", { class: "buttons" }, ...buttons)];
  }
  if (chosen.cause && chosen.gap < 0) return causePanel(run);
  if (chosen.gap >= 0) {
    const { gaps } = run;
    const buttons = gaps.source[chosen.gap] >= 0 ? [button(`waits for ${actionName(run, gaps.source[chosen.gap])}`, () => chooseRow(run, gaps.source[chosen.gap]))] : [];
    return [element("h3", {}, gapTitle(run, chosen.gap)), element("p", {}, interval(gaps, chosen.gap)), ...gapWhy(run, chosen.gap).map((line) => element("p", {}, line)), element("div", { class: "buttons" }, ...buttons)];
  }
  if (chosen.terms.size) {
    const shown = chosen.terms.has("*") ? "The critical path" : `On the critical path: ${[...chosen.terms].slice(0, 6).join(", ")}${chosen.terms.size > 6 ? " …" : ""}`;
    return [element("h3", {}, shown), element("p", {}, "The line goes through what fills the iteration without overlap: each piece starts because the one before it ended.")];
  }
  return [element("h3", {}, "Point at anything, click to keep it"), element("p", {}, "Click an action to see why it started when it did and to follow its microbatch; click a bar below to see in the timeline what it is made of. Or ask why a microbatch waited:"), askMicrobatch(run)];
}

function actionOfMessage(run, message) {
  const { rows } = run;
  return run.byKey.get(actionKey(run, rows.iteration[message], rows.stage[message], rows.op[message], rows.microbatch[message])) ?? -1;
}

function askMicrobatch(run, label = "why did it wait?") {
  const input = element("input", { type: "number", min: 0, max: run.microbatches - 1, value: Math.min(5, run.microbatches - 1), "aria-label": "microbatch" });
  const go = () => followMicrobatch(run, run.iterations[0].number, Math.min(Math.max(Number(input.value), 0), run.microbatches - 1));
  input.addEventListener("keydown", (event) => { event.stopPropagation(); if (event.key === "Enter") go(); });
  return element("div", { class: "buttons ask" }, "microbatch ", input, button(label, go));
}

function journeyPanel(run) {
  const steps = journey(run, chosen.iteration, chosen.microbatch);
  const total = steps.reduce((sum, step) => sum + step.waited, 0);
  const body = element("tbody", {}, ...steps.map(({ row, waited, why }) => pressable(element("tr", {},
    element("td", {}, actionName(run, row)), element("td", { class: "number" }, String(run.rows.rank[row])),
    element("td", { class: "number" }, timeText(run.rows.start[row])), element("td", { class: "number" }, timeText(run.rows.length[row])),
    element("td", { class: "number" }, waited ? timeText(waited) : "–"), element("td", {}, why)), () => chooseRow(run, row))));
  const heads = ["action", "rank", "starts at", "takes", "waited before", "why"];
  return [
    element("h3", {}, `Microbatch ${chosen.microbatch} of iteration ${chosen.iteration}: waited ${timeText(total)} in all`),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))), body)),
    askMicrobatch(run),
  ];
}

function causePanel(run) {
  const { gaps } = run;
  const mine = [];
  for (let i = 0; i < gaps.rank.length; i++) {
    if (gaps[chosen.cause][i] > 0 && (chosen.causeRank === null || gaps.rank[i] === chosen.causeRank)) mine.push(i);
  }
  mine.sort((a, b) => gaps[chosen.cause][b] - gaps[chosen.cause][a]);
  const total = mine.reduce((sum, i) => sum + gaps[chosen.cause][i], 0);
  const where = chosen.causeRank === null ? "on all ranks" : `on rank ${chosen.causeRank}`;
  const body = element("tbody", {}, ...mine.slice(0, 12).map((i) => pressable(element("tr", {},
    element("td", { class: "number" }, String(gaps.rank[i])), element("td", { class: "number" }, timeText(gaps.start[i])), element("td", { class: "number" }, timeText(gaps.length[i])),
    element("td", { class: "number" }, timeText(gaps[chosen.cause][i])), element("td", {}, gaps.row[i] >= 0 ? actionName(run, gaps.row[i]) : "–"),
    element("td", {}, gaps.holder[i] >= 0 ? `rank ${gaps.holder[i]}` : "–")), () => chooseGap(run, i))));
  const heads = ["rank", "from", "idle for", `of it ${causeName(chosen.cause)}`, "before", "while computes"];
  return [
    element("h3", {}, `${causeName(chosen.cause)} ${where}: ${timeText(total)} in ${mine.length} gaps of what is shown`),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", {}, head)))), body)),
    mine.length > 12 ? element("p", { class: "note" }, `The longest 12 of ${mine.length}.`) : element("p"),
  ];
}
