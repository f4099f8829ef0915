// The memory of the chosen rank over time, one curve per run, on the timelines' axis.
"use strict";

class MemoryChart {
  constructor(host) { this.host = host; this.plot = null; this.shown = ""; }

  // Draw anew for another rank; otherwise only follow the view.
  redraw() {
    const rank = chosen.rank ?? fullestRank(report.runs[0]);
    const key = `${rank}/${isDark()}/${this.host.clientWidth}`;
    if (key !== this.shown) { this.shown = key; this.build(rank); }
    else if (this.plot) this.plot.setScale("x", { min: view.x0, max: view.x1 });
  }

  build(rank) {
    const runs = report.runs.filter((run) => run.memory.length > rank);
    document.getElementById("memory-title").textContent = runs.length ? `Memory of rank ${rank}` : "Memory is not known from these runs";
    if (this.plot) this.plot.destroy();
    this.plot = null;
    if (!runs.length) return;
    const capacity = runs[0].capacity[rank];
    const tables = runs.map((run) => {
      const { at, bytes } = run.memory[rank];
      return [[0, ...at, run.end], [run.static[rank], ...bytes, bytes.length ? bytes[bytes.length - 1] : run.static[rank]]];
    });
    const data = uPlot.join(tables.map(([x, y]) => sameTimesOnce(x, y)), tables.map(() => [2]));
    const strokes = ["--accent", "--path", "--series3", "--series4"];
    const most = Math.max(...tables.map(([, y]) => y.reduce((a, b) => Math.max(a, b), 0)));
    const top = capacity && capacity < 2.5 * most ? Math.max(capacity, most) : most;
    const axis = { stroke: () => ink("--text"), grid: { stroke: () => ink("--rule"), width: 1 }, ticks: { stroke: () => ink("--rule"), width: 1 }, font: "12px system-ui, sans-serif" };
    this.plot = new uPlot({
      width: this.host.clientWidth,
      height: 170,
      padding: [8, 8, 0, 0],
      scales: { x: { time: false, range: () => [view.x0, view.x1] }, y: { range: () => [0, top * 1.06] } },
      legend: { live: true },
      cursor: { drag: { x: false, y: false }, sync: { key: "runs" }, y: false },
      axes: [
        { ...axis, space: 90, values: (_, splits) => timelines[0].axisTexts(splits) },
        { ...axis, size: timelines[0].labelWidth(), values: (_, splits) => splits.map(bytesText), incrs: byteSteps() },
      ],
      series: [
        { label: "at", value: (_, value) => (value === null ? "" : timeText(value)) },
        ...runs.map((run, i) => ({
          label: `${run.name}, peak ${bytesText(tables[i][1].reduce((a, b) => Math.max(a, b), 0))}${run.capacity[rank] ? ` of ${bytesText(run.capacity[rank])}` : ""}`,
          stroke: () => ink(strokes[i % strokes.length]),
          width: 1.5,
          paths: uPlot.paths.stepped({ align: 1 }),
          points: { show: false },
          value: (_, value) => (value === null ? "" : bytesText(value)),
        })),
      ],
      hooks: { draw: [(plot) => drawCapacity(plot, capacity)] },
    }, data, this.host);
  }
}

const byteSteps = () => Array.from({ length: 46 }, (_, power) => 2 ** power);

function drawCapacity(plot, capacity) {
  if (!capacity || capacity > plot.scales.y.max) return;
  const y = plot.valToPos(capacity, "y", true);
  plot.ctx.fillStyle = ink("--alert");
  plot.ctx.fillRect(plot.bbox.left, y, plot.bbox.width, 1.5 * PX());
  plot.ctx.textAlign = "right";
  plot.ctx.textBaseline = "bottom";
  plot.ctx.font = `${11 * PX()}px system-ui, sans-serif`;
  plot.ctx.fillText(`device memory ${bytesText(capacity)}`, plot.bbox.left + plot.bbox.width - 4, y - 2);
}

function sameTimesOnce(x, y) { // the last value of a time stands
  const xs = [], ys = [];
  for (let i = 0; i < x.length; i++) {
    if (i + 1 < x.length && x[i + 1] <= x[i]) continue;
    xs.push(x[i]);
    ys.push(y[i]);
  }
  return [xs, ys];
}

function fullestRank(run) {
  let best = 0, most = -1;
  run.memory.forEach(({ bytes }, rank) => {
    const peak = bytes.reduce((a, b) => Math.max(a, b), 0) / (run.capacity[rank] || 1);
    if (peak > most) [best, most] = [rank, peak];
  });
  return best;
}
