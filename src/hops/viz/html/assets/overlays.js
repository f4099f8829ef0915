// Draws over the lanes: arrows of messages, faults, the critical path, what is followed, and edges of iterations.
"use strict";

const MOST_ARROWS = 500;

function drawArrow(ctx, run, row, view, place, colour, width = 1) {
  const { rows } = run;
  const [from, to] = [place.x(rows.start[row]), place.x(rows.end[row])];
  const down = rows.peer[row] > rows.rank[row];
  const box = (rank) => place.parts(rank).boxes;
  const [source, target] = [box(rows.rank[row]), box(rows.peer[row])];
  const y0 = down ? source.top + source.height : source.top, y1 = down ? target.top : target.top + target.height;
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = width * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(from, y0);
  ctx.lineTo(to, y1);
  ctx.stroke();
  const size = 3.5 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(to, y1);
  ctx.lineTo(to - size, y1 + (down ? -size : size));
  ctx.lineTo(to + size, y1 + (down ? -size : size));
  ctx.fill();
}

function drawArrows(ctx, run, view, place) {
  const seen = [];
  for (let rank = 0; rank < run.ranks; rank++) {
    const [low, high] = within(run.rows, run.lanes[rank][STREAM.MESSAGE], view.x0, view.x1);
    if (seen.length + high - low > MOST_ARROWS) return;
    for (let i = low; i < high; i++) seen.push(i);
  }
  for (const row of seen) drawArrow(ctx, run, row, view, place, ink("--message"));
}

// The microbatch that is followed: its actions in frames, its messages as arrows.
function drawFollowed(ctx, run, view, place) {
  const { rows } = run;
  for (let i = 0; i < rows.rank.length; i++) {
    if (rows.microbatch[i] !== chosen.microbatch || rows.iteration[i] !== chosen.iteration) continue;
    if (rows.end[i] < view.x0 || rows.start[i] > view.x1) continue;
    if (rows.stream[i] === STREAM.MESSAGE) drawArrow(ctx, run, i, view, place, ink("--accent"), 2);
    else if (rows.stream[i] === STREAM.COMPUTE) {
      const { top, height } = place.parts(rows.rank[i]).boxes;
      ctx.fillStyle = opFill(rows.op[i]);
      ctx.fillRect(place.x(rows.start[i]), top, Math.max(place.x(rows.end[i]) - place.x(rows.start[i]), 2), height);
      frameRow(ctx, run, i, place, ink("--accent"), 1.5);
    }
  }
}

function frameRow(ctx, run, row, place, colour, width) {
  const { rows } = run;
  const parts = place.parts(rows.rank[row]);
  const part = rows.stream[row] === STREAM.MESSAGE ? parts.messages : rows.stream[row] === STREAM.COLLECTIVE || rows.stream[row] === STREAM.HOST ? parts.collectives : parts.boxes;
  const from = Math.max(place.x(rows.start[row]), place.left - 5), to = Math.min(place.x(rows.end[row]), place.left + place.width + 5);
  ctx.strokeStyle = colour;
  ctx.lineWidth = width * devicePixelRatio;
  ctx.strokeRect(from, part.top, Math.max(to - from, 2), part.height);
}

// The critical path as a line through the boxes that it passes; chosen terms as frames around theirs.
function drawPath(ctx, run, view, place) {
  const { path, rows } = run;
  const all = chosen.terms.has("*");
  const [low] = within(path, [0, path.start.length, run.end], view.x0, view.x1);
  const middle = (rank) => { const { top, height } = place.parts(rank).boxes; return top + height / 2; };
  ctx.lineJoin = "round";
  for (const [colour, width] of [[ink("--page"), 5], [ink("--path"), 2.5]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.beginPath();
    let joined = false, rank = -1, drawnTo = -Infinity;
    for (let i = low; i < path.start.length && path.start[i] <= view.x1; i++) {
      const shown = all || chosen.terms.has(run.terms[path.term[i]]);
      if (path.end[i] < view.x0 || !shown) { joined = false; continue; }
      const row = path.row[i];
      const next = row >= 0 ? rows.rank[row] : pathRankAfter(run, i);
      const from = rank >= 0 && joined ? rank : pathRankBefore(run, i, next);
      const [x0, x1] = [place.x(path.start[i]), place.x(path.end[i])];
      if (x1 - drawnTo < 0.5 && joined && next === rank) continue;
      if (!joined) ctx.moveTo(x0, middle(from));
      if (row >= 0) ctx.lineTo(x0, middle(next));
      ctx.lineTo(x1, middle(next));
      [joined, rank, drawnTo] = [true, next, x1];
    }
    ctx.stroke();
  }
}

function pathRankAfter(run, step) {
  for (let i = step + 1; i < Math.min(step + 3, run.path.row.length); i++) if (run.path.row[i] >= 0) return run.rows.rank[run.path.row[i]];
  return pathRankBefore(run, step, 0);
}

function pathRankBefore(run, step, otherwise) {
  for (let i = step - 1; i >= Math.max(step - 2, 0); i--) if (run.path.row[i] >= 0) return run.rows.rank[run.path.row[i]];
  return otherwise;
}

// Gaps with the chosen cause: as high as the cause's share of the gap.
function drawGaps(ctx, run, rank, view, box, place) {
  const { gaps } = run;
  const [low, high] = within(gaps, run.gapSpans[rank], view.x0, view.x1);
  ctx.fillStyle = causeColour(chosen.cause);
  for (let i = low; i < high; i++) {
    const share = gaps[chosen.cause][i] / gaps.length[i];
    if (!share) continue;
    const from = Math.max(place.x(gaps.start[i]), box.left), to = Math.min(place.x(gaps.end[i]), box.left + box.width);
    if (to > from) ctx.fillRect(from, box.top, Math.max(to - from, 1), box.height * share);
  }
}

function drawFaults(ctx, run, rank, view, place) {
  const { rows } = run;
  const parts = place.parts(rank);
  for (const stream of [STREAM.FAULT, STREAM.LOST]) {
    const [low, high] = within(rows, run.lanes[rank][stream], view.x0, view.x1);
    for (let i = low; i < high; i++) {
      const from = Math.max(place.x(rows.start[i]), place.left), to = Math.min(place.x(rows.end[i]), place.left + place.width);
      if (to < from) continue;
      ctx.strokeStyle = ctx.fillStyle = ink("--alert");
      ctx.lineWidth = devicePixelRatio;
      if (rows.peer[i] >= 0) { // of a link: a line along both lanes
        for (const end of [rank, rows.peer[i]]) {
          const { top, height } = place.parts(end).boxes;
          ctx.fillRect(from, top + height, Math.max(to - from, 2), 3 * devicePixelRatio);
        }
        continue;
      }
      ctx.globalAlpha = stream === STREAM.FAULT ? 0.16 : 0.3;
      ctx.fillRect(from, parts.boxes.top, Math.max(to - from, 2), parts.boxes.height);
      ctx.globalAlpha = 1;
      ctx.strokeRect(from, parts.boxes.top, Math.max(to - from, 2), parts.boxes.height);
    }
  }
}

function drawIterations(ctx, run, view, place, bottom) {
  ctx.fillStyle = ink("--text");
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  for (const each of run.iterations) {
    const x = place.x(each.start);
    if (x < place.left - 1 || x > place.left + place.width) continue;
    ctx.fillRect(x, place.top - 4 * devicePixelRatio, devicePixelRatio, bottom - place.top + 4 * devicePixelRatio);
    ctx.fillText(`iteration ${each.number}`, x + 3 * devicePixelRatio, place.top - 1);
  }
}
