// Draws one lane per rank: boxes where they can be told apart, else what share of every pixel each op covers.
"use strict";

const DENSE = 2.5; // pixels per box below which shares are drawn

const inks = new Map(); // of the theme in force; emptied when it changes
function ink(name) {
  if (!inks.has(name)) inks.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return inks.get(name);
}

const isDark = () => document.documentElement.dataset.theme === "dark";
const DARK_FILLS = { "#54306e": "#a987cf", "#44505c": "#9aa7b5" }; // what would vanish on a dark page
const onTheme = (colour) => (isDark() && DARK_FILLS[colour]) || colour;
const opFill = (op) => onTheme(report.ops[op].fill);
const causeColour = (key) => onTheme(report.causes.find((cause) => cause.key === key).colour);

// Fills into cover[pixel] what part of each pixel entries low to high cover; `weight` scales an entry.
function coverage(cover, table, low, high, view, pixels, weight = null) {
  const scale = pixels / (view.x1 - view.x0);
  for (let i = low; i < high; i++) {
    const amount = weight ? weight(i) : 1;
    if (!amount) continue;
    const from = Math.max((table.start[i] - view.x0) * scale, 0), to = Math.min((table.end[i] - view.x0) * scale, pixels);
    if (to <= from) continue;
    const first = Math.floor(from), last = Math.min(Math.floor(to), pixels - 1);
    if (first === last) { cover[first] += (to - from) * amount; continue; }
    cover[first] += (first + 1 - from) * amount;
    for (let pixel = first + 1; pixel < last; pixel++) cover[pixel] += amount;
    cover[last] += (to - last) * amount;
  }
}

const packed = new Map();
function pixelColour(colour) { // "#rrggbb" as the four bytes of a pixel
  if (!packed.has(colour)) {
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    packed.set(colour, (255 << 24) | (b << 16) | (g << 8) | r);
  }
  return packed.get(colour);
}

function mixed(under, over, amount) { // of two colours as pixels
  let pixel = 255 << 24;
  for (const shift of [0, 8, 16]) {
    const [low, high] = [(under >> shift) & 255, (over >> shift) & 255];
    pixel |= Math.round(low + (high - low) * amount) << shift;
  }
  return pixel;
}

// Dense lanes are written into one image, pixel by pixel: the browser then draws one thing and not a hundred thousand.
class LanePainter {
  constructor() { this.covers = []; this.image = null; this.out = null; this.used = false; }

  begin(ctx, width, height, left, top) {
    if (!this.image || this.image.width !== width || this.image.height !== height) {
      this.image = ctx.createImageData(width, height);
      this.out = new Uint32Array(this.image.data.buffer);
    }
    this.used = false;
    Object.assign(this, { left, top, width, height });
  }

  pixels() { // blank when first asked for
    if (!this.used) this.out.fill(pixelColour(ink("--page")));
    this.used = true;
    return this.out;
  }

  end(ctx) { if (this.used) ctx.putImageData(this.image, this.left, this.top); }

  cover(number, pixels) {
    if (!this.covers[number] || this.covers[number].length < pixels) this.covers[number] = new Float32Array(pixels);
    return this.covers[number].fill(0, 0, pixels);
  }

  // Bands from the foot upwards, as high as the share of the pixel that each part covers.
  bands(parts, box, ground, dimming) {
    const out = this.pixels(), { width } = this;
    const foot = box.top - this.top + box.height, page = pixelColour(ink("--page"));
    const idle = pixelColour(ground);
    const colours = parts.map((part) => (part.bright ? part.colour : mixed(part.colour, page, dimming)));
    for (let y = foot - box.height; y < foot; y++) out.fill(idle, y * width, y * width + box.width);
    for (let x = 0; x < box.width; x++) {
      let sum = 0, y = foot;
      for (let p = 0; p < parts.length; p++) {
        const share = parts[p].cover[x];
        if (!share) continue;
        sum += share;
        const until = foot - ((sum < 1 ? sum : 1) * box.height + 0.5 | 0);
        for (; y > until; y--) out[(y - 1) * width + x] = colours[p];
      }
    }
  }

  // Shares of all ops in a lane; those of a highlighted cause on top, in its colour.
  drawDense(run, low, high, view, box, gapShare, dimming) {
    const { start, end, op } = run.rows, { x0 } = view, { width } = box;
    const covers = new Array(report.ops.length).fill(null);
    const scale = width / (view.x1 - x0);
    for (let i = low; i < high; i++) {
      const from = Math.max((start[i] - x0) * scale, 0), to = Math.min((end[i] - x0) * scale, width);
      if (to <= from) continue;
      const cover = covers[op[i]] ?? (covers[op[i]] = this.cover(op[i], width));
      const first = from | 0, last = Math.min(to | 0, width - 1);
      if (first === last) { cover[first] += to - from; continue; }
      cover[first] += first + 1 - from;
      for (let pixel = first + 1; pixel < last; pixel++) cover[pixel] += 1;
      cover[last] += to - last;
    }
    const sorted = covers.map((cover, number) => cover && { cover, colour: pixelColour(opFill(number)) }).filter((each) => each);
    if (gapShare) {
      const cover = this.cover(9, box.width);
      coverage(cover, run.gaps, gapShare.low, gapShare.high, view, box.width, gapShare.weight);
      sorted.push({ cover, colour: pixelColour(gapShare.colour), bright: true });
    }
    this.bands(sorted, box, ink("--idle"), dimming);
  }

  drawBoxes(ctx, run, low, high, view, box, dimmed) {
    const { rows } = run;
    const scale = box.width / (view.x1 - view.x0);
    const right = box.left + box.width;
    ctx.fillStyle = ink("--idle");
    ctx.fillRect(box.left, box.top, box.width, box.height);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    const numbered = this.sizeNumbers(ctx, run, low, high, scale, box);
    for (let i = low; i < high; i++) {
      const from = Math.max(box.left + (rows.start[i] - view.x0) * scale, box.left);
      const to = Math.min(box.left + (rows.end[i] - view.x0) * scale, right);
      if (to <= from) continue;
      const look = report.ops[rows.op[i]];
      ctx.globalAlpha = dimmed && dimmed(i) ? 0.22 : 1;
      ctx.fillStyle = opFill(rows.op[i]);
      const edge = to - from > 4 ? 1 : 0;
      ctx.fillRect(from, box.top, Math.max(to - from - edge, 1), box.height);
      if (rows.stage[i] >= 0 && !run.firstChunk.has(rows.stage[i])) { // second and later chunks: a line at the foot
        ctx.fillStyle = look.text;
        ctx.fillRect(from, box.top + box.height * 0.88, Math.max(to - from - edge, 1), Math.max(box.height * 0.06, 1));
      }
      if (numbered && rows.microbatch[i] >= 0 && (rows.length[i] * scale - (to - from) < 1 || to - from > 2 * box.height)) {
        ctx.fillStyle = look.text;
        ctx.fillText(rows.microbatch[i], (from + to) / 2, box.top + box.height / 2 + 0.5);
      }
    }
    ctx.globalAlpha = 1;
  }

  // Sets the font in which every number of the lane fits into its box: all boxes of a row are numbered, or none.
  sizeNumbers(ctx, run, low, high, scale, box) {
    let narrowest = Infinity;
    for (let i = low; i < high; i++) if (run.rows.microbatch[i] >= 0 && run.rows.length[i] < narrowest) narrowest = run.rows.length[i];
    const most = Math.min(12 * devicePixelRatio, 0.72 * box.height);
    ctx.font = `${most}px system-ui, sans-serif`;
    const wide = ctx.measureText("8".repeat(String(run.microbatches - 1).length)).width;
    const size = Math.min(most, most * (narrowest * scale - 2) / wide);
    ctx.font = `${size}px system-ui, sans-serif`;
    return size >= 6.5 * devicePixelRatio;
  }

  // How much of each pixel messages cover, as darkness.
  drawTraffic(run, low, high, view, box, colour) {
    const cover = this.cover(10, box.width), out = this.pixels();
    coverage(cover, run.rows, low, high, view, box.width);
    const page = pixelColour(ink("--page")), full = pixelColour(colour);
    const shades = Array.from({ length: 33 }, (_, step) => mixed(page, full, 0.15 + 0.85 * step / 32));
    for (let x = 0; x < box.width; x++) {
      if (!cover[x]) continue;
      const pixel = shades[Math.min(32, Math.round(32 * cover[x]))];
      for (let y = box.top - this.top; y < box.top - this.top + box.height; y++) out[y * this.width + x] = pixel;
    }
  }

  drawStrip(ctx, run, low, high, view, box, colourOf) {
    const { rows } = run;
    const scale = box.width / (view.x1 - view.x0);
    for (let i = low; i < high; i++) {
      const from = Math.max((rows.start[i] - view.x0) * scale, 0), to = Math.min((rows.end[i] - view.x0) * scale, box.width);
      ctx.fillStyle = colourOf(i);
      ctx.globalAlpha = 0.8;
      if (to >= from) ctx.fillRect(box.left + from, box.top, Math.max(to - from, 1), box.height);
    }
    ctx.globalAlpha = 1;
  }

  // What the rank holds over time, the highest in each pixel; the full height is its device's memory.
  drawMemory(ctx, run, rank, view, box) {
    const { at, bytes } = run.memory[rank];
    const full = run.scales[rank];
    const step = (view.x1 - view.x0) / box.width;
    let next = firstFrom(at, view.x0, 0, at.length);
    let level = next ? bytes[next - 1] : run.static[rank];
    ctx.fillStyle = ink("--idle");
    ctx.fillRect(box.left, box.top, box.width, box.height);
    ctx.fillStyle = ink("--held");
    ctx.beginPath();
    ctx.moveTo(box.left, box.top + box.height);
    for (let x = 0; x < box.width; x++) {
      let most = level;
      const until = view.x0 + (x + 1) * step;
      while (next < at.length && at[next] < until) { level = bytes[next++]; if (level > most) most = level; }
      const y = box.top + box.height * (1 - most / full);
      ctx.lineTo(box.left + x, y);
      ctx.lineTo(box.left + x + 1, y);
    }
    ctx.lineTo(box.left + box.width, box.top + box.height);
    ctx.fill();
    const foot = box.height * run.static[rank] / full;
    ctx.fillStyle = ink("--static");
    ctx.fillRect(box.left, box.top + box.height - foot, box.width, foot);
    const capacity = run.capacity[rank];
    if (capacity && capacity < full) {
      ctx.fillStyle = ink("--alert");
      ctx.fillRect(box.left, box.top + box.height * (1 - capacity / full), box.width, devicePixelRatio);
    }
  }
}
