"use strict";
// One kind of chart: axes, marks on them, and points of which the nearest to the pointer (or to the keyboard's cursor) is
// named in a tip and opened by a click or Enter.
//
//   chart({ title, describe, x: { label }, y: { label }, marks: [...], points: [...] })
//   marks    { kind: "line" | "step" | "band" | "bar" | "segment", data, class, colour }
//   points   { x, y, class, colour, trial, tip }, where tip() gives lines; with r: 0 it is pointed at, not drawn
//
// Dragging a rectangle zooms in, a double click zooms out; axes may be made logarithmic, and the plot downloaded.

const MARGIN = { top: 12, right: 14, bottom: 40, left: 58 };

function niceTicks(low, high, wanted) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) || power * 10;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && ticks.length < 50; k++) ticks.push(k * step);
  return ticks;
}

function logTicks(low, high) {
  const ticks = [];
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((to - from) / 6));
  for (let k = from; k <= to; k += every) if (10 ** k >= low * 0.999 && 10 ** k <= high * 1.001) ticks.push(10 ** k);
  return ticks.length > 1 ? ticks : niceTicks(low, high, 4).filter((tick) => tick > 0);
}

// A scale from values to pixels. Logarithmic where asked for, or where `auto` values are positive and span decades.
function scale(values, from, to, options = {}) {
  const known = values.filter(isNumber);
  let [low, high] = [Math.min(...(known.length ? known : [0])), Math.max(...(known.length ? known : [1]))];
  if (options.domain) [low, high] = options.domain;
  if (options.zero) [low, high] = [Math.min(0, low), Math.max(0, high)];
  const isLog = low > 0 && (options.log === true || (options.log === "auto" && high / low > 300));
  if (low === high) [low, high] = isLog ? [low / 2, high * 2] : [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  else if (!isLog && !options.tight) {
    const room = (high - low) * 0.05;
    [low, high] = [options.zero && low === 0 ? 0 : low - room, high + room];
  }
  const turned = isLog ? Math.log10 : (v) => v;
  const [a, b] = [turned(low), turned(high)];
  const place = (value) => from + ((turned(value) - a) / (b - a)) * (to - from);
  place.invert = (pixel) => {
    const at = a + ((pixel - from) / (to - from)) * (b - a);
    return isLog ? 10 ** at : at;
  };
  place.isLog = isLog;
  place.ticks = isLog ? logTicks(low, high) : niceTicks(low, high, Math.abs(to - from) / (options.vertical ? 45 : 90));
  if (options.whole) place.ticks = place.ticks.filter(Number.isInteger);
  return place;
}

function tickLabel(value) {
  const size = Math.abs(value);
  if (size >= 1e6 && size < 1e9) return number(value);
  if (size && (size >= 1e9 || size < 1e-3)) return value.toExponential(0).replace("e+", "e");
  return Number(value.toPrecision(6)).toLocaleString("en-GB", { maximumFractionDigits: 6 });
}

const PALETTE = 8; // classes c0 … c7 of page.css

function heat(share) {
  // From dark blue over green to yellow, evenly light enough on both backgrounds.
  const stops = [[68, 60, 140], [52, 105, 148], [33, 150, 140], [90, 190, 100], [225, 205, 50]];
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const i = Math.min(stops.length - 2, Math.floor(at));
  const mixed = stops[i].map((c, k) => Math.round(c + (stops[i + 1][k] - c) * (at - i)));
  return `rgb(${mixed.join(",")})`;
}

// What was zoomed and made logarithmic, by page and title: charts are made anew at every update.
const chartViews = new Map();

function chart(options) {
  const figure = el("figure", { class: "chart" });
  const key = `${location.hash.split("?")[0]} ${options.title}`;
  const view = chartViews.get(key) || {};
  const change = (changes) => {
    chartViews.set(key, Object.assign(view, changes));
    width = 0;
    paint();
  };
  const wrapper = el("div", { class: "plot", role: "group", tabindex: 0 });
  const tip = el("div", { class: "tip", hidden: true });
  const spoken = el("div", { class: "spoken", "aria-live": "polite" });
  const tools = el("span", { class: "plot-tools" });
  figure.append(el("figcaption", {}, el("span", {}, el("b", {}, options.title), options.describe ? el("span", { class: "quiet" }, ` ${options.describe}`) : null), tools),
    wrapper, spoken);
  const hint = (options.points || []).some((p) => p.trial !== undefined) ? "; arrow keys move between points, Enter opens one" : "";
  wrapper.setAttribute("aria-label", `${options.title}${hint}`);
  let width = 0;
  const paint = () => {
    const now = Math.max(240, Math.min(1200, wrapper.clientWidth || options.width || 640));
    if (now === width) return;
    width = now;
    const height = options.height || Math.round(Math.min(320, Math.max(200, width * 0.5)));
    const root = painted(options, width, height, wrapper, tip, spoken, view, change);
    wrapper.replaceChildren(root, tip);
    showTools(tools, options, root, view, change);
  };
  figure.paint = paint; // once it is in the document and has a width
  return figure;
}

function paintCharts(root) {
  for (const figure of root.querySelectorAll("figure.chart")) if (figure.paint) figure.paint();
}

function showTools(tools, options, root, view, change) {
  const button = (words, about, press, pressed) => el("button", { type: "button", "aria-label": `${about}: ${options.title}`, title: about, "aria-pressed": pressed === undefined ? null : String(pressed), click: press }, words);
  const axis = (name) => {
    const place = root.places && root.places[name];
    if (!place || !place.mayBeLog) return null;
    return button(`log ${name}`, `logarithmic ${name} axis`, () => change({ [`${name}Log`]: !place.isLog, [name]: undefined }), place.isLog);
  };
  tools.replaceChildren(...[
    view.x || view.y ? button("zoom out", "show all again", () => change({ x: undefined, y: undefined })) : null,
    axis("x"), axis("y"),
    root.places ? button("SVG", "download this plot", () => download(`${fileWords(options.title)}.svg`, "image/svg+xml", standalone(root))) : null,
  ].filter(Boolean));
}

function fileWords(title) {
  return title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "plot";
}

// The plot as a file of its own: colours and fonts written into it, since they come from the page's style.
const KEPT_STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "font-family"];

function standalone(root) {
  const copy = root.cloneNode(true);
  const [from, to] = [root, copy].map((node) => [node, ...node.querySelectorAll("*")]);
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    for (const name of KEPT_STYLES) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  copy.setAttribute("xmlns", SVG_NAMESPACE);
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: getComputedStyle(document.documentElement).backgroundColor }));
  return new XMLSerializer().serializeToString(copy);
}

let clips = 0;

function painted(options, width, height, wrapper, tip, spoken, view, change) {
  const marks = options.marks || [];
  let points = (options.points || []).filter((p) => isNumber(p.x) && isNumber(p.y));
  const xs = [...points.map((p) => p.x), ...marks.flatMap((m) => extent(m, "x"))].filter(isNumber);
  const ys = [...points.map((p) => p.y), ...marks.flatMap((m) => extent(m, "y"))].filter(isNumber);
  const margin = options.bare ? { top: 8, right: 8, bottom: 8, left: 8 } : options.columns ? { top: 22, right: 56, bottom: 50, left: 56 } : { ...MARGIN };
  const lanes = options.lanes;
  const seen = (name) => ({ ...(view[`${name}Log`] === undefined ? {} : { log: view[`${name}Log`] }), ...(view[name] ? { domain: view[name], tight: true, zero: false } : {}) });
  const y = scale(lanes ? [-0.5, lanes.length - 0.5] : ys, height - margin.bottom, margin.top, { vertical: true, tight: Boolean(lanes), ...options.y, ...(lanes ? {} : seen("y")) });
  if (!options.bare && !options.columns && !lanes) margin.left = Math.max(margin.left, 26 + 6.6 * Math.max(0, ...tickRows(options, y).map(([, words]) => String(words).length))); // the label stands left of the ticks
  const x = scale(xs, margin.left, width - margin.right, { ...options.x, ...seen("x") });
  x.mayBeLog = !options.bare && !lanes && !options.x.names && xs.length > 1 && xs.every((v) => v > 0);
  y.mayBeLog = !options.bare && !lanes && !options.y.domain && ys.length > 1 && ys.every((v) => v > 0);
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${options.title}. ${summary(points, marks)}` });
  if (!options.bare) root.append(axes(options, x, y, width, height, margin, lanes));
  if (!xs.length) {
    root.append(svg("text", { x: width / 2, y: height / 2, class: "empty", "text-anchor": "middle" }, options.empty || "nothing to show yet"));
    return root;
  }
  root.places = { x, y };
  const [left, right, top, bottom] = [margin.left, width - margin.right, margin.top, height - margin.bottom];
  const isZoomed = view.x || view.y;
  const clip = `clip-${++clips}`;
  if (isZoomed) {
    root.append(svg("clipPath", { id: clip }, svg("rect", { x: left, y: top, width: right - left, height: bottom - top })));
    points = points.filter((p) => x(p.x) >= left - 1 && x(p.x) <= right + 1 && y(p.y) >= top - 1 && y(p.y) <= bottom + 1);
  }
  const drawn = svg("g", { "clip-path": isZoomed ? `url(#${clip})` : null });
  for (const mark of marks) drawn.append(paintedMark(mark, x, y));
  root.append(drawn);
  const placed = points.map((p) => ({ ...p, px: x(p.x), py: y(p.y) }));
  const dots = svg("g", {});
  for (const p of placed) {
    if (p.r === 0) continue; // only to be pointed at
    const dot = svg("circle", { cx: p.px.toFixed(1), cy: p.py.toFixed(1), r: p.r || 3.2, class: `dot ${p.class || "c0"}` });
    if (p.colour) dot.style.fill = p.colour; // one of ours, see `heat`
    dots.append(dot);
  }
  const ring = svg("circle", { class: "ring", r: 7, visibility: "hidden" });
  root.append(dots, ring);
  if (placed.length) pickable(root, placed, ring, wrapper, tip, spoken, width);
  if (!options.fixed) zoomable(root, { left, right, top, bottom }, x, lanes ? null : y, change);
  return root;
}

// A rectangle drawn with the mouse becomes the whole plot; a finger scrolls the page instead.
function zoomable(root, area, x, y, change) {
  let start = null;
  const frame = svg("rect", { class: "zoom", visibility: "hidden" });
  root.append(frame);
  const at = (event) => {
    const box = root.getBoundingClientRect();
    const within = (v, low, high) => Math.max(low, Math.min(high, v));
    return [within(event.clientX - box.left, area.left, area.right), within(event.clientY - box.top, area.top, area.bottom)];
  };
  const sides = (event) => {
    const [px, py] = at(event);
    return { x: [start[0], px].sort((a, b) => a - b), y: y ? [start[1], py].sort((a, b) => a - b) : [area.top, area.bottom] };
  };
  root.addEventListener("pointerdown", (event) => {
    root.wasDragged = false;
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    start = at(event);
  });
  root.addEventListener("pointermove", (event) => {
    if (!start) return;
    const { x: across, y: down } = sides(event);
    if (across[1] - across[0] < 6 && (!y || down[1] - down[0] < 6)) return;
    root.wasDragged = true;
    if (!root.hasPointerCapture(event.pointerId)) root.setPointerCapture(event.pointerId);
    for (const [name, value] of Object.entries({ x: across[0], y: down[0], width: across[1] - across[0], height: down[1] - down[0], visibility: "visible" })) frame.setAttribute(name, value);
  });
  root.addEventListener("pointerup", (event) => {
    if (!start) return;
    const { x: across, y: down } = sides(event);
    start = null;
    frame.setAttribute("visibility", "hidden");
    if (!root.wasDragged || across[1] - across[0] < 6 || down[1] - down[0] < 6) return;
    change({ x: across.map(x.invert), ...(y ? { y: [y.invert(down[1]), y.invert(down[0])] } : {}) });
  });
  root.addEventListener("dblclick", () => change({ x: undefined, y: undefined }));
}

function extent(mark, axis) {
  if (mark.kind === "band") return mark.data.flatMap((d) => (axis === "x" ? [d.x] : [d.low, d.high]));
  if (mark.kind === "segment") return mark.data.flatMap((d) => [d[axis], d[`${axis}2`]]);
  if (mark.kind === "bar") return mark.data.flatMap((d) => (axis === "x" ? [d.x, d.x2] : [d.y]));
  return mark.data.map((d) => d[axis]);
}

function summary(points, marks) {
  const n = points.length || marks.reduce((sum, mark) => sum + mark.data.length, 0);
  return n ? `${n} values` : "no values yet";
}

// One vertical axis for each column of parallel coordinates: its name below, its ends written at both of them.
function columnAxes(options, x, height, margin) {
  const group = svg("g", { class: "axes" });
  const bottom = height - margin.bottom;
  const room = (x(1) - x(0)) / 6.3;
  const cut = (words) => (words.length > room ? `${words.slice(0, Math.max(3, Math.floor(room) - 1))}…` : words);
  options.columns.forEach((column, k) => group.append(
    svg("line", { x1: x(k), x2: x(k), y1: margin.top, y2: bottom, class: "grid column" }),
    svg("text", { x: x(k), y: margin.top - 5, "text-anchor": "middle" }, cut(column.high)),
    svg("text", { x: x(k), y: bottom + 13, "text-anchor": "middle" }, cut(column.low)),
    svg("text", { x: x(k), y: height - 6 - 13 * (k % 2 ? 0 : 1) + 4, "text-anchor": "middle", class: "label" }, cut(column.name))));
  return group;
}

function tickRows(options, y) {
  return y.ticks.map((tick) => [tick, (options.y.format || tickLabel)(tick)]);
}

function axes(options, x, y, width, height, margin, lanes) {
  if (options.columns) return columnAxes(options, x, height, margin);
  const group = svg("g", { class: "axes" });
  const bottom = height - margin.bottom;
  for (const tick of x.ticks) {
    group.append(svg("line", { x1: x(tick), x2: x(tick), y1: margin.top, y2: bottom, class: "grid" }),
      tickText(x(tick), bottom + 15, (options.x.format || tickLabel)(tick), width));
  }
  const rows = lanes ? lanes.map((name, i) => [i, name]) : tickRows(options, y);
  for (const [at, words] of rows) {
    if (!lanes) group.append(svg("line", { x1: margin.left, x2: width - margin.right, y1: y(at), y2: y(at), class: "grid" }));
    group.append(svg("text", { x: margin.left - 6, y: y(at) + 4, "text-anchor": "end" }, words));
  }
  group.append(svg("text", { x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle", class: "label" }, fitting(options.x.label, width - margin.left - margin.right)));
  const middle = (margin.top + bottom) / 2;
  if (options.y.label) group.append(svg("text", { x: 12, y: middle, "text-anchor": "middle", class: "label", transform: `rotate(-90 12 ${middle})` }, fitting(options.y.label, bottom - margin.top + 20)));
  return group;
}

// Below its tick, or ending at the plot's edge where it would be cut there.
function tickText(x, y, words, width) {
  const isCut = x + words.length * 3.2 > width - 1;
  return svg("text", { x: isCut ? width - 1 : x, y, "text-anchor": isCut ? "end" : "middle" }, words);
}

// Of several ways to say it, the longest first, one for which there is room.
function fitting(label, room) {
  const ways = Array.isArray(label) ? label : [label || ""];
  return ways.find((words) => words.length * 6.3 <= room) || ways[ways.length - 1];
}

function paintedMark(mark, x, y) {
  const data = mark.data.filter((d) => isNumber(d.x));
  const look = { class: `mark ${mark.kind} ${mark.class || "c0"}`, stroke: mark.colour || null };
  const at = (d) => `${x(d.x).toFixed(1)} ${y(d.y).toFixed(1)}`;
  switch (mark.kind) {
    case "line": {
      const known = data.filter((d) => isNumber(d.y));
      return svg("path", { ...look, d: known.map((d, i) => (i ? "L" : "M") + at(d)).join("") });
    }
    case "step": {
      const known = data.filter((d) => isNumber(d.y));
      return svg("path", { ...look, d: known.map((d, i) => (i ? `H${x(d.x).toFixed(1)}V${y(d.y).toFixed(1)}` : "M" + at(d))).join("") });
    }
    case "band": {
      const known = data.filter((d) => isNumber(d.low) && isNumber(d.high));
      const upper = known.map((d, i) => `${i ? "L" : "M"}${x(d.x).toFixed(1)} ${y(d.high).toFixed(1)}`);
      const lower = known.slice().reverse().map((d) => `L${x(d.x).toFixed(1)} ${y(d.low).toFixed(1)}`);
      return svg("path", { ...look, d: known.length ? [...upper, ...lower, "Z"].join("") : "" });
    }
    case "bar":
      return svg("g", look, data.map((d) => {
        const [left, right] = [x(d.x), x(d.x2)].sort((a, b) => a - b);
        const thick = mark.thick || 14;
        return svg("rect", { x: left.toFixed(1), y: (y(d.y) - thick / 2).toFixed(1), width: Math.max(1, right - left).toFixed(1), height: thick, rx: 2, class: d.class || null });
      }));
    default:
      return svg("g", look, data.filter((d) => isNumber(d.y) && isNumber(d.x2) && isNumber(d.y2)).map((d) =>
        svg("line", { x1: x(d.x).toFixed(1), y1: y(d.y).toFixed(1), x2: x(d.x2).toFixed(1), y2: y(d.y2).toFixed(1), class: d.class || null })));
  }
}

function pickable(root, placed, ring, wrapper, tip, spoken, width) {
  const order = placed.map((p, i) => i).sort((a, b) => placed[a].px - placed[b].px || placed[a].py - placed[b].py);
  let chosen = -1;
  const show = (i) => {
    chosen = i;
    const p = placed[i];
    ring.setAttribute("cx", p.px);
    ring.setAttribute("cy", p.py);
    ring.setAttribute("visibility", "visible");
    tip.replaceChildren(...p.tip().map((line) => el("div", {}, line)));
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(width - 190, p.px + 12))}px`;
    tip.style.top = `${Math.max(0, p.py - 12)}px`;
  };
  const hide = () => {
    chosen = -1;
    ring.setAttribute("visibility", "hidden");
    tip.hidden = true;
  };
  const open = () => {
    if (chosen >= 0 && placed[chosen].trial !== undefined) location.hash = `#/trial/${placed[chosen].trial}`;
  };
  const nearest = (event) => {
    const box = root.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [best, found] = [30 * 30, -1];
    placed.forEach((p, i) => {
      const far = (p.px - px) ** 2 + (p.py - py) ** 2;
      if (far < best) [best, found] = [far, i];
    });
    return found;
  };
  root.addEventListener("pointermove", (event) => {
    const i = nearest(event);
    if (i < 0) hide();
    else show(i);
    root.classList.toggle("over", i >= 0 && placed[i].trial !== undefined);
  });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("click", (event) => {
    const i = nearest(event);
    if (i >= 0 && !root.wasDragged) {
      show(i);
      open();
    }
  });
  wrapper.onblur = hide;
  wrapper.onkeydown = (event) => {
    const at = order.indexOf(chosen);
    const to = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: order.length - 1 }[event.key];
    if (event.key === "Enter") open();
    else if (event.key === "Escape") hide();
    else if (to !== undefined) {
      event.preventDefault();
      show(order[Math.max(0, Math.min(order.length - 1, to))]);
      spoken.textContent = placed[chosen].tip().join(", ");
    }
  };
}
