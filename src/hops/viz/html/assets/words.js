// Says in words what is seen: times, sizes, actions, gaps and why a rank waited.
"use strict";

const number = (value, digits = 3) =>
  Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(digits)).toString();

function timeText(ns) {
  const size = Math.abs(ns);
  const [unit, per] = size >= 1e10 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const value = size / per;
  const text = value >= 1000 ? Math.round(value).toLocaleString("en") : value >= 100 ? value.toFixed(1) : number(value, 4);
  return `${ns < 0 ? "−" : ""}${text} ${unit}`;
}

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  while (bytes >= 1024 && step < 4) { bytes /= 1024; step++; }
  return `${bytes >= 100 ? Math.round(bytes) : number(bytes)} ${units[step]}`;
}

const opName = (op) => report.ops[op].name;
const actionName = (run, row) => `${run.rows.stage[row]}${opName(run.rows.op[row])}${run.rows.microbatch[row]}`;
const causeName = (key) => report.causes.find((cause) => cause.key === key).name;

function rowTitle(run, row) {
  const { rows } = run;
  const stream = rows.stream[row];
  if (stream === STREAM.FAULT) return rows.peer[row] < 0 ? `fault of rank ${rows.rank[row]}'s device` : `fault of the link from rank ${rows.rank[row]} to rank ${rows.peer[row]}`;
  if (stream === STREAM.LOST) return rows.peer[row] < 0 ? `work that a fault threw away on rank ${rows.rank[row]}` : `message that a fault threw away`;
  if (stream === STREAM.MESSAGE) return `message of ${actionName(run, row)}, rank ${rows.rank[row]} to rank ${rows.peer[row]}`;
  const label = report.ops[rows.op[row]].label;
  if (rows.microbatch[row] < 0) return `${label}, rank ${rows.rank[row]}`;
  return `${actionName(run, row)}: ${label}, of microbatch ${rows.microbatch[row]} on stage ${rows.stage[row]}, rank ${rows.rank[row]}`;
}

const interval = (table, i) =>
  `${timeText(table.start[i])} to ${timeText(table.end[i])}, takes ${timeText(table.length[i])}`;

// Why a gap is there, a sentence each.
function gapWhy(run, gap) {
  const { gaps, rows } = run;
  const lines = [];
  const source = gaps.source[gap], row = gaps.row[gap];
  if (row >= 0 && source >= 0) {
    const ready = gaps.ready[gap];
    lines.push(`${actionName(run, row)} takes the output of ${actionName(run, source)} from rank ${rows.rank[source]}, ` +
      (ready > 0 ? `which was made ${timeText(ready)} after the rank became idle.` : "which had been made already."));
  } else if (row < 0 && gaps.step[gap] > 0) lines.push("After the pipeline's end: reductions, other ranks' optimizer, the host.");
  else if (row < 0) lines.push("It has no action left in this iteration and waits for the pipeline's end.");
  if (gaps.holder[gap] >= 0) lines.push(`For ${timeText(gaps.held[gap])} of it, rank ${gaps.holder[gap]} computes at the end of this wait.`);
  const parts = report.causes.filter((cause) => gaps[cause.key][gap] > 0)
    .map((cause) => `${cause.name} ${timeText(gaps[cause.key][gap])}`);
  lines.push(`Causes: ${parts.join(", ")}.`);
  return lines;
}

const gapTitle = (run, gap) =>
  `rank ${run.gaps.rank[gap]} idle for ${timeText(run.gaps.length[gap])}` +
  (run.gaps.row[gap] >= 0 ? `, before ${actionName(run, run.gaps.row[gap])}` : "");

// What a row did and why it started when it did, a sentence each.
function rowWhy(run, row) {
  const { rows } = run;
  const lines = [interval(rows, row)];
  const stream = rows.stream[row];
  if (stream === STREAM.MESSAGE) {
    lines[0] += `, ${bytesText(rows.bytes[row])}`;
    const route = run.links.find(([source, target]) => source === rows.rank[row] && target === rows.peer[row]);
    if (route && route[2].length) lines.push(`Links: ${route[2].join(", ")}.`);
  }
  if (stream === STREAM.COMPUTE && rows.microbatch[row] >= 0) {
    const gap = run.gapBefore.get(row);
    if (gap === undefined) lines.push("Its rank worked until it started.");
    else lines.push(`Before it, the rank waited ${timeText(run.gaps.length[gap])}.`, ...gapWhy(run, gap));
    if (run.onPath.has(row)) lines.push("It lies on the critical path: were it shorter, so would be the iteration.");
  }
  return lines;
}

// The way of one microbatch: for each action, how long it lay ready, and for what.
function journey(run, iteration, microbatch) {
  const { rows } = run;
  const found = [];
  for (let i = 0; i < rows.rank.length; i++) {
    if (rows.stream[i] === STREAM.COMPUTE && rows.microbatch[i] === microbatch && rows.iteration[i] === iteration) found.push(i);
  }
  found.sort((a, b) => rows.start[a] - rows.start[b] || rows.end[a] - rows.end[b]);
  return found.map((row) => ({ row, ...waitOf(run, row) }));
}

// Before which other actions a rank idled although this one could have run: its order puts them first.
function idledFor(run, row, since) {
  const { gaps, rows } = run;
  const [low, high] = within(gaps, run.gapSpans[rows.rank[row]], since, rows.start[row]);
  const first = [];
  for (let i = low; i < high; i++) if (gaps.row[i] >= 0 && gaps.row[i] !== row) first.push(actionName(run, gaps.row[i]));
  if (!first.length) return "";
  const listed = first.length > 3 ? `${first.slice(0, 2).join(", ")} and ${first.length - 2} more` : first.join(", ");
  return `, waiting for the input of ${listed}, which its schedule puts first`;
}

function waitOf(run, row) {
  const { rows } = run;
  const producer = producerOf(run, row);
  if (producer < 0) return { waited: 0, why: "nothing to wait for: it starts the microbatch" };
  const waited = Math.max(rows.start[row] - rows.end[producer], 0);
  if (!waited) return { waited: 0, why: "started at once" };
  const message = rows.rank[producer] === rows.rank[row] ? -1 : messageFrom(run, producer);
  const there = message < 0 ? rows.end[producer] : Math.min(rows.end[message], rows.start[row]);
  const parts = [];
  if (there > rows.end[producer]) parts.push(`${timeText(there - rows.end[producer])} message from rank ${rows.rank[producer]}`);
  const lane = run.lanes[rows.rank[row]][STREAM.COMPUTE];
  const [low, high] = within(rows, lane, there, rows.start[row]);
  let busy = 0;
  const names = [];
  for (let i = low; i < high; i++) {
    const overlap = Math.min(rows.end[i], rows.start[row]) - Math.max(rows.start[i], there);
    if (i !== row && overlap > 0) { busy += overlap; names.push(actionName(run, i)); }
  }
  if (busy) {
    const listed = names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
    parts.push(`${timeText(busy)} rank ${rows.rank[row]} was busy with ${listed}`);
  }
  const rest = rows.start[row] - there - busy;
  if (rest > 0.005 * waited && rest >= 1) parts.push(`${timeText(rest)} rank ${rows.rank[row]} idled${idledFor(run, row, there)}`);
  return { waited, why: parts.join("; ") };
}
