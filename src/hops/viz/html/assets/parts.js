// Builds answers, tables that sort, stacked bars and waterfalls; clicks show in the timelines what they are made of.
"use strict";

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What a click on an answer, a row or a bar shows.
function follow(show) {
  clearChosen();
  chosen.run = show.run ?? 0;
  if (show.rank !== null && show.rank !== undefined) chosen.rank = show.rank;
  if (show.cause) { chosen.cause = show.cause; chosen.causeRank = show.rank ?? null; }
  if (show.terms) show.terms.forEach((term) => chosen.terms.add(term));
  showTab(chosen.run);
  changed();
  const host = timelines[chosen.run] && timelines[chosen.run].host;
  if (host && !inSight(host)) host.scrollIntoView({ block: "start", behavior: "smooth" });
}

function inSight(host) {
  const { top, bottom } = host.getBoundingClientRect();
  return Math.min(bottom, innerHeight) - Math.max(top, 0) > 0.4 * Math.min(bottom - top, innerHeight);
}

function pressable(made, action) {
  made.tabIndex = 0;
  made.setAttribute("role", "button");
  made.addEventListener("click", action);
  made.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    action();
  });
  return made;
}

function answerCard(answer) {
  const card = element("article", { class: "card" }, element("h3", {}, answer.question), element("p", {}, answer.answer));
  if (answer.show && report.runs.length) {
    card.append(element("span", { class: "hint" }, "show it"));
    pressable(card, () => follow(answer.show));
  }
  return card;
}

function cellText(value, column) {
  if (value === null) return "–";
  if (typeof value !== "number") return String(value);
  const text = column.digits === null ? String(value) : value.toLocaleString("en", { minimumFractionDigits: column.digits, maximumFractionDigits: column.digits });
  return text.replace("-", "−");
}

function tablePart(part) {
  const body = element("tbody");
  const rows = part.rows.map((cells, at) => {
    const row = element("tr", {}, ...cells.map((value, i) => {
      const column = part.columns[i];
      const cell = element("td", { class: typeof value === "number" || value === null ? "number" : "" }, cellText(value, column));
      if (column.bar && value !== null) cell.append(element("i", { class: "bar", style: `width:${Math.min(value, 100)}%` }));
      return cell;
    }));
    if (part.shows[at]) pressable(row, () => follow(part.shows[at]));
    return { row, cells };
  });
  const heads = part.columns.map((column, i) => {
    const head = element("th", { scope: "col" }, column.name + (column.unit ? ` [${column.unit}]` : ""));
    pressable(head, () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      rows.sort((a, b) => (up ? 1 : -1) * compareCells(a.cells[i], b.cells[i]));
      body.append(...rows.map((each) => each.row));
    });
    return head;
  });
  body.append(...rows.map((each) => each.row));
  return partBox(part, element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)));
}

function compareCells(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

function stackPart(part) {
  const totals = part.values.map((values) => values.reduce((a, b) => a + b, 0));
  const most = Math.max(...totals, 1e-12);
  const used = part.parts.filter((_, i) => part.values.some((values) => values[i] > 0));
  const legend = element("div", { class: "legend" }, ...used.map((each) => {
    const entry = element("span", {}, element("i", { class: "swatch", style: `background:${each.colour}` }), each.name);
    return part.show && each.key !== "busy" ? pressable(entry, () => follow({ ...part.show, cause: each.key, rank: null })) : entry;
  }));
  const bars = part.names.map((name, at) => {
    const bar = element("div", { class: "shares" });
    part.parts.forEach((each, i) => {
      const value = part.values[at][i];
      if (value <= 0) return;
      const title = `${name}, ${each.name}: ${number(value, 4)} ${part.unit} (${number(100 * value / totals[at])} %)`;
      const piece = element("i", { style: `width:${100 * value / most}%;background:${each.colour}`, title });
      bar.append(part.show && each.key !== "busy" ? pressable(piece, () => follow({ ...part.show, cause: each.key, rank: at })) : piece);
    });
    return element("div", { class: "line" }, element("span", { class: "name" }, name), bar, element("span", { class: "value" }, number(totals[at], 4)));
  });
  return partBox(part, legend, element("div", { class: part.names.length > 16 ? "lines tight" : "lines" }, ...bars));
}

function waterfallPart(part) {
  const ends = part.steps.flatMap((step) => [step.start, step.start + step.change]);
  const wholes = part.steps.filter((step) => step.whole).map((step) => step.change);
  const inner = part.steps.filter((step) => !step.whole).flatMap((step) => [step.start, step.start + step.change]);
  const least = Math.min(...inner, ...wholes);
  const begin = least - 0.25 * (Math.max(...ends) - least);
  const cut = wholes.length > 1 && inner.length && begin > 0.3 * Math.max(...ends) ? begin : 0;
  const most = Math.max(...ends) - cut;
  const lines = part.steps.map((step) => {
    const from = Math.max(Math.min(step.start, step.start + step.change), cut);
    const to = Math.max(step.start, step.start + step.change);
    const kind = step.whole ? "whole" : wholes.length < 2 ? "piece" : step.change > 0 ? "more" : "less";
    const bar = element("i", { class: kind, style: `left:${100 * (from - cut) / most}%;width:${Math.max(100 * (to - from) / most, 0.15)}%` });
    const sign = kind === "more" ? "+" : kind === "less" ? "−" : "";
    const text = `${sign}${number(Math.abs(step.change), 4)} ${part.unit}`;
    const line = element("div", { class: "line" }, element("span", { class: "name" }, step.name), element("div", { class: "fall" }, bar), element("span", { class: "value" }, text));
    return step.terms.length && part.show ? pressable(line, () => follow({ ...part.show, terms: step.terms })) : line;
  });
  const box = partBox(part, element("div", { class: "lines wide" }, ...lines));
  if (cut) box.append(element("p", { class: "note" }, `The axis is cut: bars begin at ${number(cut, 4)} ${part.unit}.`));
  return box;
}

function partBox(part, ...content) {
  const box = element("section", { class: `part ${part.kind}` }, element("h3", {}, part.title), ...content);
  if (part.note) box.append(element("p", { class: "note" }, part.note));
  return box;
}

const partOf = (part) => ({ table: tablePart, stack: stackPart, waterfall: waterfallPart })[part.kind](part);
