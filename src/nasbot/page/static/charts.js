"use strict";
// One kind of chart: axes, marks on them, and points of which the nearest to the pointer (or to the keyboard's cursor) is
// named in a tip and opened by a click or Enter.
//
//   chart({ title, describe, x: { label }, y: { label }, marks: [...], points: [...] })
//   marks    { kind: "line" | "step" | "band" | "bar" | "segment", data, class, colour }
//   points   { x, y, class, colour, trial, tip }, where tip() gives lines; with r: 0 it is pointed at, not drawn

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

function chart(options) {
  const figure = el("figure", { class: "chart" });
  const wrapper = el("div", { class: "plot", role: "group", tabindex: 0 });
  const tip = el("div", { class: "tip", hidden: true });
  const spoken = el("div", { class: "spoken", "aria-live": "polite" });
  figure.append(el("figcaption", {}, el("b", {}, options.title), options.describe ? el("span", { class: "quiet" }, ` ${options.describe}`) : null),
    wrapper, spoken);
  const hint = (options.points || []).some((p) => p.trial !== undefined) ? "; arrow keys move between points, Enter opens one" : "";
  wrapper.setAttribute("aria-label", `${options.title}${hint}`);
  let width = 0;
  const paint = () => {
    const now = Math.max(240, Math.min(1200, wrapper.clientWidth || options.width || 640));
    if (now === width) return;
    width = now;
    wrapper.replaceChildren(painted(options, width, options.height || Math.round(Math.min(320, Math.max(200, width * 0.5))), wrapper, tip, spoken), tip);
  };
  figure.paint = paint; // once it is in the document and has a width
  return figure;
}

function paintCharts(root) {
  for (const figure of root.querySelectorAll("figure.chart")) if (figure.paint) figure.paint();
}

function painted(options, width, height, wrapper, tip, spoken) {
  const marks = options.marks || [];
  const points = (options.points || []).filter((p) => isNumber(p.x) && isNumber(p.y));
  const xs = [...points.map((p) => p.x), ...marks.flatMap((m) => extent(m, "x"))].filter(isNumber);
  const ys = [...points.map((p) => p.y), ...marks.flatMap((m) => extent(m, "y"))].filter(isNumber);
  const margin = options.bare ? { top: 8, right: 8, bottom: 8, left: 8 } : MARGIN;
  const lanes = options.lanes;
  const x = scale(xs, margin.left, width - margin.right, { ...options.x });
  const y = scale(lanes ? [-0.5, lanes.length - 0.5] : ys, height - margin.bottom, margin.top, { vertical: true, tight: Boolean(lanes), ...options.y });
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${options.title}. ${summary(points, marks)}` });
  if (!options.bare) root.append(axes(options, x, y, width, height, margin, lanes));
  if (!xs.length) {
    root.append(svg("text", { x: width / 2, y: height / 2, class: "empty", "text-anchor": "middle" }, options.empty || "nothing to show yet"));
    return root;
  }
  const drawn = svg("g", {});
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
  return root;
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

function axes(options, x, y, width, height, margin, lanes) {
  const group = svg("g", { class: "axes" });
  const bottom = height - margin.bottom;
  for (const tick of x.ticks) {
    group.append(svg("line", { x1: x(tick), x2: x(tick), y1: margin.top, y2: bottom, class: "grid" }),
      svg("text", { x: x(tick), y: bottom + 15, "text-anchor": "middle" }, (options.x.format || tickLabel)(tick)));
  }
  const rows = lanes ? lanes.map((name, i) => [i, name]) : y.ticks.map((tick) => [tick, (options.y.format || tickLabel)(tick)]);
  for (const [at, words] of rows) {
    if (!lanes) group.append(svg("line", { x1: margin.left, x2: width - margin.right, y1: y(at), y2: y(at), class: "grid" }));
    group.append(svg("text", { x: margin.left - 6, y: y(at) + 4, "text-anchor": "end" }, words));
  }
  group.append(svg("text", { x: (margin.left + width - margin.right) / 2, y: height - 6, "text-anchor": "middle", class: "label" }, options.x.label));
  const middle = (margin.top + bottom) / 2;
  if (options.y.label) group.append(svg("text", { x: 12, y: middle, "text-anchor": "middle", class: "label", transform: `rotate(-90 12 ${middle})` }, options.y.label));
  return group;
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
    if (i >= 0) {
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
