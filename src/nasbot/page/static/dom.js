"use strict";
// Elements and numbers. Whatever comes from a study goes through `el`, which makes text nodes of strings: nothing here
// or in the other files hands data to innerHTML, to eval, or to an attribute that could run it.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

// -- words for numbers ---------------------------------------------------------------------------------------------

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

function number(value, digits = 4) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  if (Number.isInteger(value)) return value.toLocaleString("en-GB");
  return Number(value.toPrecision(digits)).toLocaleString("en-GB", { maximumFractionDigits: 8 });
}

function duration(seconds) {
  if (!isNumber(seconds)) return "–";
  if (seconds === 0) return "0 s";
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${String(minutes).padStart(2, "0")} min`;
  return `${minutes} min ${String(whole % 60).padStart(2, "0")} s`;
}

function plural(count, word) {
  return `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;
}

// -- small parts ---------------------------------------------------------------------------------------------------

function trialLink(n, text) {
  return el("a", { href: `#/trial/${Number(n)}` }, text ?? `trial ${n}`);
}

function badge(state) {
  return el("span", { class: `badge ${String(state).replace(/[^a-z]/g, "")}` }, state);
}

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

function facts(rows) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return el("dl", { class: "facts" }, shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function shownCell(cell) {
  return typeof cell === "number" ? number(cell) : cell;
}

function table(caption, headings, rows) {
  const shown = rows.map((cells) => cells.map(shownCell));
  const isNumeric = headings.map((_, i) => shown.length > 0 && shown.every((cells) => typeof cells[i] === "string" && /^(–|[-−]?[\d.,]+(e-?\d+)?( M| %| ms| s)?)$/.test(cells[i])));
  const kind = (i) => (isNumeric[i] ? "num" : null);
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", {},
      el("caption", { class: "quiet" }, caption),
      el("thead", {}, el("tr", {}, headings.map((heading, i) => el("th", { scope: "col", class: kind(i) }, heading)))),
      el("tbody", {}, shown.map((cells) => el("tr", {}, cells.map((cell, i) => el("td", { class: kind(i) }, cell)))))));
}

function quiet(...words) {
  return el("p", { class: "quiet" }, ...words);
}

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}
