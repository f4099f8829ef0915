// One timeline per run, all on one time axis: uPlot keeps scales, axis and pointer, the lanes are drawn into its plot.
"use strict";

const PX = () => devicePixelRatio;
const view = { x0: 0, x1: 1, full: 1 };
const chosen = { run: 0, rank: null, row: -1, gap: -1, microbatch: null, iteration: null, cause: null, causeRank: null, terms: new Set() };
const timelines = [];

function setView(x0, x1) {
  const span = Math.min(Math.max(x1 - x0, 20), view.full * 1.02);
  const middle = Math.min(Math.max((x0 + x1) / 2, span / 2 - view.full * 0.01), view.full * 1.01 - span / 2);
  view.x0 = middle - span / 2;
  view.x1 = middle + span / 2;
  requestDraw();
}

let asked = false;
function requestDraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const each of timelines) each.redraw();
  });
}

const zoom = (factor, at = (view.x0 + view.x1) / 2) => setView(at - (at - view.x0) * factor, at + (view.x1 - at) * factor);
const pan = (part) => setView(view.x0 + part * (view.x1 - view.x0), view.x1 + part * (view.x1 - view.x0));
const fit = () => setView(0, view.full);

function showInterval(start, end, margin = 1.5) {
  const half = Math.max((end - start) * margin, view.full / 1e5);
  setView(start - half, end + half);
}

class Timeline {
  constructor(run, host) {
    this.run = run;
    this.painter = new LanePainter();
    this.host = host;
    const lane = Math.min(Math.max(Math.floor(Math.min(innerHeight * 0.62, 620) / run.ranks), run.ranks > 32 ? 14 : 20), 72);
    this.laneHeight = lane;
    this.plot = new uPlot(this.options(), [[0, 1], [null, null]], host);
    this.plot.root.style.touchAction = "pan-y";
    this.listen();
  }

  options() {
    const { run } = this;
    const axis = { stroke: () => ink("--text"), grid: { stroke: () => ink("--rule"), width: 1 }, ticks: { stroke: () => ink("--rule"), width: 1 } };
    return {
      width: this.host.clientWidth,
      height: this.laneHeight * run.ranks + 66,
      padding: [18, 8, 0, 0],
      legend: { show: false },
      scales: { x: { time: false, range: () => [view.x0, view.x1] }, y: { range: () => [0, run.ranks] } },
      series: [{}, { show: false }],
      axes: [
        { ...axis, values: (_, splits) => this.axisTexts(splits), space: 90, size: 30, label: "time since the first iteration shown", labelSize: 18, labelFont: "12px system-ui, sans-serif", font: "12px system-ui, sans-serif" },
        { ...axis, size: this.labelWidth(), grid: { show: false }, ticks: { show: false }, splits: () => [], font: "12px system-ui, sans-serif" },
      ],
      cursor: { drag: { x: false, y: false }, y: false, points: { show: false }, sync: { key: "runs" } },
      hooks: { draw: [(plot) => this.draw(plot)] },
    };
  }

  labelWidth() { return Math.min(150, Math.max(64, this.host.clientWidth * 0.14)); }

  // All numbers of the axis in one unit, so that neighbours can be compared.
  axisTexts(splits) {
    const step = splits.length > 1 ? splits[1] - splits[0] : view.full;
    const [unit, per] = step >= 1e9 ? ["s", 1e9] : step >= 1e4 && view.x1 >= 1e6 ? ["ms", 1e6] : step >= 10 && view.x1 >= 1e3 ? ["µs", 1e3] : ["ns", 1];
    const digits = Math.max(0, -Math.floor(Math.log10(step / per) + 1e-9));
    return splits.map((value) => `${(value / per).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "−")} ${unit}`);
  }

  redraw() {
    if (this.host.clientWidth !== this.plot.width) this.plot.setSize({ width: this.host.clientWidth, height: this.laneHeight * this.run.ranks + 66 });
    this.plot.setScale("x", { min: view.x0, max: view.x1 });
  }

  // Where things lie on the canvas, in its pixels.
  place(plot = this.plot) {
    const { left, top, width } = plot.bbox;
    const height = this.laneHeight * PX();
    const scale = width / (view.x1 - view.x0);
    const roomy = this.laneHeight >= 34, hasMemory = roomy && this.run.memory.length > 0;
    const boxPart = hasMemory ? 0.52 : roomy ? 0.74 : this.laneHeight >= 18 ? 0.74 : 0.9;
    const part = (lane, from, to) => ({ left, width, top: Math.round(lane + from * height), height: Math.max(Math.round((to - from) * height), 1) });
    const parts = (rank) => {
      const lane = top + rank * height;
      const strip = roomy ? 0.07 : 0.1;
      return {
        boxes: part(lane, 0.06, boxPart),
        messages: part(lane, boxPart + 0.02, boxPart + 0.02 + strip),
        collectives: part(lane, boxPart + 0.03 + strip, Math.min(boxPart + 0.03 + 2 * strip, 1)),
        memory: hasMemory ? part(lane, 0.73, 0.98) : null,
      };
    };
    return { left, top, width, height, parts, x: (time) => left + (time - view.x0) * scale };
  }

  draw(plot) {
    const { ctx } = plot, { run } = this;
    const place = this.place(plot);
    ctx.save();
    this.painter.begin(ctx, place.width, Math.ceil(place.height * run.ranks), place.left, place.top);
    const sparse = [];
    for (let rank = 0; rank < run.ranks; rank++) sparse.push(...this.drawLane(ctx, rank, place));
    this.painter.end(ctx);
    sparse.forEach((drawIt) => drawIt());
    ctx.beginPath();
    ctx.rect(place.left, place.top - 16 * PX(), place.width, place.height * run.ranks + 16 * PX());
    ctx.clip();
    for (let rank = 0; rank < run.ranks; rank++) drawFaults(ctx, run, rank, view, place);
    drawIterations(ctx, run, view, place, place.top + place.height * run.ranks);
    if (chosen.microbatch !== null && chosen.run === run.number) drawFollowed(ctx, run, view, place);
    else if (!chosen.terms.size) drawArrows(ctx, run, view, place);
    if (chosen.terms.size) drawPath(ctx, run, view, place);
    if (chosen.run === run.number) this.frameChosen(ctx, place);
    ctx.restore();
  }

  // Draws what is dense into the painter's image; gives what is to be drawn over it.
  drawLane(ctx, rank, place) {
    const { run, painter } = this;
    const parts = place.parts(rank);
    const later = [];
    const [low, high] = within(run.rows, run.lanes[rank][STREAM.COMPUTE], view.x0, view.x1);
    const showsGaps = chosen.cause !== null && (chosen.causeRank === null || (chosen.causeRank === rank && chosen.run === run.number));
    const follows = chosen.microbatch !== null && chosen.run === run.number;
    const most = place.width / PX() / DENSE;
    if (high - low > most) {
      const [gapLow, gapHigh] = within(run.gaps, run.gapSpans[rank], view.x0, view.x1);
      const share = showsGaps && { low: gapLow, high: gapHigh, colour: causeColour(chosen.cause), weight: (i) => run.gaps[chosen.cause][i] / run.gaps.length[i] };
      painter.drawDense(run, low, high, view, parts.boxes, share, follows || chosen.terms.size || chosen.cause ? 0.65 : 0);
    } else {
      const dimmed = follows ? (i) => run.rows.microbatch[i] !== chosen.microbatch || run.rows.iteration[i] !== chosen.iteration
        : chosen.terms.size ? (i) => !run.onPath.has(i) : chosen.cause ? () => true : null;
      later.push(() => painter.drawBoxes(ctx, run, low, high, view, parts.boxes, dimmed));
      if (showsGaps) later.push(() => drawGaps(ctx, run, rank, view, parts.boxes, place));
    }
    for (const [stream, box] of [[STREAM.MESSAGE, parts.messages], [STREAM.COLLECTIVE, parts.collectives], [STREAM.HOST, parts.collectives]]) {
      const [first, beyond] = within(run.rows, run.lanes[rank][stream], view.x0, view.x1);
      const colourOf = stream === STREAM.MESSAGE ? () => ink("--message") : (i) => opFill(run.rows.op[i]);
      if (beyond - first > most) painter.drawTraffic(run, first, beyond, view, box, colourOf(first));
      else if (beyond > first) later.push(() => painter.drawStrip(ctx, run, first, beyond, view, box, colourOf));
    }
    if (parts.memory) later.push(() => painter.drawMemory(ctx, run, rank, view, parts.memory));
    later.push(() => this.nameLane(ctx, rank, place));
    return later;
  }

  nameLane(ctx, rank, place) {
    const { run } = this;
    const roomy = this.laneHeight >= 34;
    const mine = chosen.rank === rank && chosen.run === run.number;
    const middle = place.top + (rank + 0.5) * place.height;
    ctx.fillStyle = ink(mine ? "--accent" : "--text");
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    const size = Math.min(12, this.laneHeight - 3) * PX();
    ctx.font = `${mine ? "bold " : ""}${size}px system-ui, sans-serif`;
    ctx.fillText(`rank ${rank}`, place.left - 8 * PX(), roomy ? middle - 0.6 * size : middle);
    if (!roomy) return;
    ctx.fillStyle = ink("--quiet");
    ctx.font = `${size * 0.88}px system-ui, sans-serif`;
    ctx.fillText(run.devices[rank], place.left - 8 * PX(), middle + 0.6 * size, (this.labelWidth() - 10) * PX());
  }

  frameChosen(ctx, place) {
    if (chosen.row >= 0) frameRow(ctx, this.run, chosen.row, place, ink("--accent"), 2.5);
    if (chosen.gap < 0) return;
    const { gaps } = this.run;
    const { top, height } = place.parts(gaps.rank[chosen.gap]).boxes;
    ctx.strokeStyle = ink("--accent");
    ctx.lineWidth = 2.5 * PX();
    ctx.strokeRect(place.x(gaps.start[chosen.gap]), top, place.x(gaps.end[chosen.gap]) - place.x(gaps.start[chosen.gap]), height);
  }

  // What lies under a point of the plot, in CSS pixels from its corner.
  hit(x, y) {
    const rank = Math.floor(y / this.laneHeight);
    if (rank < 0 || rank >= this.run.ranks) return null;
    const { run } = this;
    const time = view.x0 + x / (this.plot.bbox.width / PX()) * (view.x1 - view.x0);
    const place = this.place();
    const parts = place.parts(rank);
    const at = place.top + y * PX();
    const inside = (box, slack = 2 * PX()) => box && at >= box.top - slack && at <= box.top + box.height + slack;
    const fault = [STREAM.FAULT, STREAM.LOST].map((stream) => entryAt(run.rows, run.lanes[rank][stream], time)).find((i) => i >= 0) ?? -1;
    if (inside(parts.boxes, 0)) {
      const row = entryAt(run.rows, run.lanes[rank][STREAM.COMPUTE], time);
      if (row >= 0) return { rank, time, row, gap: -1, fault };
      return { rank, time, row: -1, gap: entryAt(run.gaps, run.gapSpans[rank], time), fault };
    }
    for (const [name, streams] of [["messages", [STREAM.MESSAGE]], ["collectives", [STREAM.COLLECTIVE, STREAM.HOST]]]) {
      if (!inside(parts[name])) continue;
      const row = streams.map((stream) => entryAt(run.rows, run.lanes[rank][stream], time)).find((i) => i >= 0) ?? -1;
      if (row >= 0) return { rank, time, row, gap: -1, fault };
    }
    return { rank, time, row: -1, gap: -1, fault, memory: parts.memory && inside(parts.memory) };
  }

  listen() {
    const over = this.plot.over;
    over.style.cursor = "crosshair";
    let drag = null;
    over.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, x0: view.x0, x1: view.x1, moved: false, zooms: event.shiftKey };
      over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointermove", (event) => {
      const at = over.getBoundingClientRect();
      if (drag && Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
      if (drag && drag.moved && !drag.zooms) {
        const shift = (drag.x - event.clientX) / at.width * (drag.x1 - drag.x0);
        setView(drag.x0 + shift, drag.x1 + shift);
      }
      if (!drag || !drag.moved) showTip(this, this.hit(event.clientX - at.left, event.clientY - at.top), event);
      else hideTip();
    });
    over.addEventListener("pointerup", (event) => {
      const at = over.getBoundingClientRect();
      const ended = drag;
      drag = null;
      if (!ended) return;
      if (!ended.moved) choose(this, this.hit(event.clientX - at.left, event.clientY - at.top));
      else if (ended.zooms) {
        const time = (x) => view.x0 + (x - at.left) / at.width * (view.x1 - view.x0);
        const [a, b] = [time(ended.x), time(event.clientX)].sort((one, two) => one - two);
        setView(a, b);
      }
    });
    over.addEventListener("pointerleave", hideTip);
    over.addEventListener("dblclick", (event) => {
      const at = over.getBoundingClientRect();
      zoom(0.25, view.x0 + (event.clientX - at.left) / at.width * (view.x1 - view.x0));
    });
    over.addEventListener("wheel", (event) => {
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) { event.preventDefault(); pan(event.deltaX / 800); return; }
      if (!event.ctrlKey && !event.metaKey && !event.altKey) return; // the page scrolls
      event.preventDefault();
      const at = over.getBoundingClientRect();
      zoom(Math.exp(event.deltaY / 300), view.x0 + (event.clientX - at.left) / at.width * (view.x1 - view.x0));
    }, { passive: false });
  }
}
