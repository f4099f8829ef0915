// Reads what the page carries: text as JSON, columns as typed arrays, and makes runs of them that can be searched.
"use strict";

const TYPES = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function column(buffer, place) {
  const stored = new TYPES[place.type](buffer, place.at, place.length);
  if (!place.steps) return stored;
  const sums = new Float64Array(place.length);
  let sum = 0;
  for (let i = 0; i < sums.length; i++) sums[i] = sum += stored[i];
  return sums;
}

function columns(buffer, places) {
  return Object.fromEntries(Object.entries(places).map(([name, place]) => [name, column(buffer, place)]));
}

function endsOf(table) {
  const end = new Float64Array(table.start.length);
  for (let i = 0; i < end.length; i++) end[i] = table.start[i] + table.length[i];
  return end;
}

// Rows of one rank and stream lie together and are sorted by start: [first, beyond, longest].
function lanesOf(run) {
  const { rank, stream, length } = run.rows;
  const lanes = Array.from({ length: run.ranks }, () => Array.from({ length: 6 }, () => [0, 0, 0]));
  for (let i = 0; i < rank.length; i++) {
    const lane = lanes[rank[i]][stream[i]];
    if (lane[1] === lane[0]) lane[0] = i;
    lane[1] = i + 1;
    if (length[i] > lane[2]) lane[2] = length[i];
  }
  return lanes;
}

function spansByRank(table, ranks) {
  const spans = Array.from({ length: ranks }, () => [0, 0, 0]);
  for (let i = 0; i < table.rank.length; i++) {
    const span = spans[table.rank[i]];
    if (span[1] === span[0]) span[0] = i;
    span[1] = i + 1;
    if (table.length[i] > span[2]) span[2] = table.length[i];
  }
  return spans;
}

function firstFrom(sorted, value, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The part of a lane that can touch the times from x0 to x1.
function within(table, lane, x0, x1) {
  return [firstFrom(table.start, x0 - lane[2], lane[0], lane[1]), firstFrom(table.start, x1, lane[0], lane[1])];
}

// The entry of a lane that covers a time, the shortest where several do; -1: none.
function entryAt(table, lane, time) {
  const [low, high] = within(table, lane, time, time + 1);
  let found = -1;
  for (let i = low; i < high; i++) {
    if (table.start[i] <= time && time <= table.end[i] && (found < 0 || table.length[i] < table.length[found])) found = i;
  }
  return found;
}

const actionKey = (run, iteration, stage, op, microbatch) =>
  ((iteration * run.rank_of_stage.length + stage) * 8 + op) * run.microbatches + microbatch;

function indexActions(run) {
  const { rows } = run;
  const byKey = new Map(), messageOf = new Map();
  for (let i = 0; i < rows.rank.length; i++) {
    if (rows.microbatch[i] < 0 || rows.op[i] > OP.W) continue;
    const key = actionKey(run, rows.iteration[i], rows.stage[i], rows.op[i], rows.microbatch[i]);
    if (rows.stream[i] === STREAM.COMPUTE) byKey.set(key, i);
    else if (rows.stream[i] === STREAM.MESSAGE) messageOf.set(key, i);
  }
  return { byKey, messageOf };
}

const OP = {}, STREAM = {};

function openRun(data, run, number, buffer) {
  run.number = number;
  for (const name of ["rows", "gaps", "path"]) {
    run[name] = columns(buffer, run[name]);
    run[name].end = endsOf(run[name]);
  }
  run.memory = run.memory.map((each) => columns(buffer, each));
  run.lanes = lanesOf(run);
  run.gapSpans = spansByRank(run.gaps, run.ranks);
  run.gapBefore = new Map();
  run.gaps.row.forEach((row, gap) => { if (row >= 0) run.gapBefore.set(row, gap); });
  run.onPath = new Set(run.path.row);
  Object.assign(run, indexActions(run));
  run.end = Math.max(...run.iterations.map((each) => each.end));
  const peaks = run.memory.map((each, rank) => each.bytes.reduce((a, b) => Math.max(a, b), run.static[rank]));
  run.scales = peaks.map((peak, rank) => Math.max(run.capacity[rank] ? peak : Math.max(...peaks), run.capacity[rank] ?? 0, 1));
  run.firstChunk = new Set(run.rank_of_stage.map((rank) => run.rank_of_stage.indexOf(rank)));
  return run;
}

// The action whose output this one takes, its own rank included; -1: none.
function producerOf(run, row) {
  const { rows } = run;
  const [stage, op, iteration, microbatch] = [rows.stage[row], rows.op[row], rows.iteration[row], rows.microbatch[row]];
  const last = run.rank_of_stage.length - 1;
  const find = (s, o) => run.byKey.get(actionKey(run, iteration, s, o, microbatch));
  if (op === OP.F) return stage ? find(stage - 1, OP.F) ?? -1 : -1;
  if (op === OP.W) return find(stage, OP.I) ?? (stage < last ? find(stage + 1, OP.I) ?? -1 : find(stage, OP.F) ?? -1);
  if (stage === last) return find(stage, OP.F) ?? -1;
  return find(stage + 1, OP.B) ?? find(stage + 1, OP.I) ?? -1;
}

// The message that a row (an action) sends; -1: none.
function messageFrom(run, row) {
  const { rows } = run;
  return run.messageOf.get(actionKey(run, rows.iteration[row], rows.stage[row], rows.op[row], rows.microbatch[row])) ?? -1;
}
