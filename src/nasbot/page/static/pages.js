"use strict";
// The pages. Each is an async function of the source and the address's arguments, and answers with nodes; main.js puts
// them in place. Words and numbers of a study go through `el` and `svg`, as text.

const PAGES = {
  overview: { title: "Overview", show: overviewPage },
  trials: { title: "Trials", show: trialsPage },
  trial: { title: "Trial", show: trialPage, hidden: true },
  map: { title: "Map", show: mapPage },
  lineage: { title: "Lineage", show: lineagePage },
  surrogate: { title: "Surrogate", show: surrogatePage },
  compare: { title: "Compare", show: comparePage },
  about: { title: "About", show: aboutPage },
};

// What a value is, in ways of different lengths, the longest first: for an axis as long as it is.
function valueName(source, about = source.about) {
  const name = about.metric || "value";
  const sense = about.direction === "minimise" ? "lower is better" : "higher is better";
  const whole = about.unit ? `${name} [${about.unit}]` : name;
  return [`${whole}, ${sense}`, whole, name];
}

// With what a network was trained beside its recipe: "learning_rate 0.02, schedule cosine".
function paramsInWords(trial) {
  return Object.entries(trial.params || {}).map(([name, value]) => `${name} ${isNumber(value) ? number(value) : value}`).join(", ");
}

// How much of a training it had, where that was not just one.
function shareInWords(trial) {
  const share = trial.fidelity ?? 1;
  if (share === 1) return "";
  if (share > 1) return `${number(share, 3)} full trainings`;
  const part = Math.round(1 / share);
  return part <= 100 && Math.abs(share * part - 1) < 1e-6 ? `1/${part} of a training` : `${Math.round(100 * share)} % of a training`;
}

function trialTip(source, n) {
  const trial = source.trials[n];
  if (!trial) return [`trial ${n}`];
  const lines = [`trial ${n}, ${trial.state}`];
  if (isNumber(trial.value)) lines.push(`${source.about.metric || "value"} ${number(trial.value, 6)}`, ...scores(trial).map(([name, value]) => `${name} ${value}`));
  if (trial.cause) lines.push(`failed: ${trial.cause}`);
  if (trial.modifiers.length) lines.push(trial.modifiers.join(" + "));
  lines.push(...[shareInWords(trial), paramsInWords(trial)].filter(Boolean));
  lines.push(`${trial.layers} layers, ${trial.edges} edges`);
  return lines;
}

function drawing(source, n, words) {
  const address = source.drawing(n);
  if (!address) return quiet("The report holds no drawing of this network.");
  return el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "drawing" }, el("img", { src: address, alt: words || `layer graph of trial ${n}`, loading: "lazy", decoding: "async" }));
}

// A choice that lives in the address, so that a link keeps it.
function choice(label, name, options, chosen, args) {
  return el("div", { class: "tools" }, el("div", { class: "choice pages", role: "group", "aria-label": label },
    options.map(([key, words]) => el("button", { type: "button", id: `${name}-${key}`, "aria-pressed": String(key === chosen), click: () => go(args.page, { ...args.query, [name]: key }) }, words))));
}

// "16 + 2 waiting": networks that wait are no trials that ran.
const begun = ({ trials, waiting }) => `${(trials - waiting).toLocaleString("en-GB")}${waiting ? ` + ${waiting.toLocaleString("en-GB")} waiting` : ""}`;

const SLOW = 3000; // milliseconds after which a wait is explained

function later(known, promise, render) {
  const slot = el("div", {});
  const fill = (answer) => {
    slot.replaceChildren(...[render(answer)].flat(4).filter(Boolean));
    paintCharts(slot);
  };
  if (known) fill(known);
  else {
    slot.append(quiet("computing…"));
    setTimeout(() => slot.firstChild?.textContent === "computing…" && slot.replaceChildren(quiet("computing… The first time after an installation the distance is compiled, in 10 to 30 s; a search that runs goes first.")), SLOW);
  }
  promise.then(fill, (error) => slot.replaceChildren(quiet(`not available: ${error.message}`)));
  return slot;
}

function legend(rows) {
  return el("ul", { class: "legend" }, rows.map(([kind, words]) => el("li", { class: kind }, el("span", {}, words))));
}

// -- overview --------------------------------------------------------------------------------------------------------

async function overviewPage(source, args) {
  const names = ["history", "timeline", "costs", "curves", "failures", "layer_use", "time_sums", "traits", "rungs"];
  const [history, timeline, costs, curves, failures, layerUse, timeSums, traits, rungs] = await Promise.all(names.map((name) => source.series(name)));
  const best = source.strip.best;
  return [
    excerptNote(source),
    summaryPart(source),
    el("div", { class: "columns" },
      el("div", {},
        section("Progress", historyChart(source, history, args), timelineChart(source, timeline)),
        section("Cost and value", costsChart(source, costs))),
      el("div", {},
        section("Best network so far", best ? bestPart(source, best) : quiet("No trial has a value yet.")),
        section("While networks are evaluated", curvesChart(source, curves)))),
    modelPart(source),
    el("div", { class: "columns" },
      section("Failures", failures.rows.length ? failuresTable(failures) : quiet(failures.message)),
      section("Layers of the best", layerUse.rows.length ? layerUseTable(layerUse) : quiet(layerUse.message)),
      section("Where the time went", spentPart(source), timeSumsPart(timeSums))),
    rungs.points.length ? section("Who was trained longer", rungsChart(source, rungs)) : null,
    traitsPart(source, traits),
  ];
}

function historyChart(source, history, args) {
  const byTime = args.query.by === "time";
  const at = (p) => (byTime ? p.seconds : p.place);
  const good = history.points.filter((p) => isNumber(p.value));
  const bestLine = history.points.filter((p) => isNumber(p.best)).map((p) => ({ x: at(p), y: p.best }));
  return el("div", {},
    choice("horizontal axis", "by", [["trial", "by trial"], ["time", "by time"]], byTime ? "time" : "trial", args),
    chart({
      title: "Best so far",
      describe: `${plural(history.points.length, "finished trial")}, ${history.points.length - good.length} without a value`,
      x: { label: byTime ? "time" : "finished trials", format: byTime ? duration : undefined, whole: !byTime },
      y: { label: valueName(source), log: "auto" },
      marks: [{ kind: "step", data: bestLine, class: "lit" }],
      points: good.map((p) => ({ x: at(p), y: p.value, trial: p.trial, class: p.is_record ? "lit" : p.fidelity < 1 ? "c0 hollow" : "c0", r: p.is_record ? 4 : 3, tip: () => trialTip(source, p.trial) })),
      empty: history.message,
    }),
    legend([["c0", good.some((p) => p.fidelity < 1) ? "a trial's value (hollow: a shorter training)" : "a trial's value"], ["lit", "best so far"]]));
}

function timelineChart(source, timeline) {
  const lanes = Array.from({ length: timeline.n_workers }, (_, i) => `worker ${i + 1}`);
  return el("div", {},
    chart({
      title: "Timeline",
      describe: timeline.spans.length ? `workers were busy ${number(100 * timeline.busy, 3)} % of the time` : "",
      height: Math.max(90, 50 + 24 * lanes.length),
      lanes,
      x: { label: "time", format: duration, zero: true },
      y: {},
      marks: [{ kind: "bar", thick: 16, data: timeline.spans.map((s) => ({ x: s.start, x2: s.end, y: s.worker, class: `state-${s.state}` })) }],
      points: timeline.spans.map((s) => ({ x: (s.start + s.end) / 2, y: s.worker, r: 0, trial: s.trial, tip: () => [...trialTip(source, s.trial), duration(s.end - s.start)] })),
      empty: timeline.message,
    }),
    legend([["c0", "completed"], ["bad", "failed"], ["c4", "running"], ["faint", "stopped early or cancelled"]]));
}

function bestPart(source, best) {
  const trial = source.trials[best.trial];
  if (!trial) return quiet("…");
  return [facts([
    ["trial", trialLink(best.trial)], [valueName(source)[1], number(best.value, 6)], ...scores(trial), ["found after", duration(best.at)],
    ["layers", trial.layers || "none: a linear model"], ["edges", trial.edges], ["parameters", trial.details.parameters === undefined ? null : number(trial.details.parameters)],
  ]), el("div", { class: "short" }, drawing(source, best.trial, `layer graph of the best network, trial ${best.trial}`))];
}

function costsChart(source, costs) {
  const front = costs.points.filter((p) => p.on_front).sort((a, b) => a.cost - b.cost);
  return chart({
    title: `Value against ${costs.cost}`,
    describe: "the line joins networks that no other beats in both",
    x: { label: costs.cost, log: "auto" },
    y: { label: valueName(source), log: "auto" },
    marks: [{ kind: "step", data: front.map((p) => ({ x: p.cost, y: p.value })), class: "lit thin" }],
    points: costs.points.map((p) => ({ x: p.cost, y: p.value, trial: p.trial, class: p.on_front ? "lit" : "c0", tip: () => [...trialTip(source, p.trial), `${costs.cost} ${number(p.cost)}`] })),
    empty: costs.message,
  });
}

function curvesChart(source, curves) {
  const shown = curves.curves;
  return chart({
    title: "Learning curves",
    describe: shown.length ? `${shown.length} of ${plural(curves.n_all, "curve")}: the best, the running and the latest` : "",
    x: { label: "step", whole: true },
    y: { label: valueName(source), log: "auto" },
    marks: shown.map((c) => ({ kind: "line", class: c.is_best ? "lit" : c.state === "running" ? "c4" : "c0 thin", data: c.steps.map((step, i) => ({ x: step, y: c.values[i] })) })),
    points: shown.filter((c) => c.steps.length).map((c) => ({ x: c.steps[c.steps.length - 1], y: c.values[c.values.length - 1], r: 2.4, class: c.is_best ? "lit" : c.state === "running" ? "c4" : "c0", trial: c.trial, tip: () => trialTip(source, c.trial) })),
    empty: curves.message,
  });
}

function failuresTable(failures) {
  return table(`${failures.n_failed} of ${failures.n_finished} finished trials failed`, ["cause", "trials", "time spent", "latest message"],
    failures.rows.map((row) => [
      el("a", { href: address("trials", { state: "failed", q: row.cause }) }, row.cause),
      el("span", {}, row.trials.slice(0, 8).map((n, i) => [i ? ", " : "", trialLink(n, n)]), row.n > 8 ? ` and ${(row.n - 8).toLocaleString("en-GB")} more` : ""),
      duration(row.seconds), el("span", { class: "quiet" }, row.example),
    ]));
}

function layerUseTable(use) {
  return table(`share of processing layers among the ${use.n_best} best and all ${use.n_all} networks`, ["layer", "best", "all", "networks of the best"],
    use.rows.map((row) => [row.label, `${Math.round(100 * row.share_best)} %`, `${Math.round(100 * row.share_all)} %`, row.networks_best]));
}

const STANDINGS = { promoted: "good", promotable: "c0", discarded: "faint", stopped: "bad", full: "c0", final: "lit" };

// One column for each length of training; the dashed line is the cut above which successive halving promotes.
function rungsChart(source, rungs) {
  const counts = rungs.rungs.map((_, i) => rungs.points.filter((p) => p.rung === i).length);
  const met = rungs.rungs.map(() => 0);
  const points = rungs.points.map((p) => ({ ...p, x: p.rung + 0.76 * ((met[p.rung]++ + 0.5) / counts[p.rung] - 0.5) }));
  const byTrial = new Map(points.map((p) => [p.trial, p]));
  const ways = points.filter((p) => byTrial.has(p.promoted_from)).map((p) => ({ x: byTrial.get(p.promoted_from).x, y: byTrial.get(p.promoted_from).value, x2: p.x, y2: p.value }));
  const cuts = rungs.rungs.map((rung, i) => ({ x: i - 0.42, x2: i + 0.42, y: rung.cut, y2: rung.cut, class: "lit" })).filter((d) => isNumber(d.y));
  return [
    chart({
      title: "Rungs",
      describe: "a line joins the trainings of one network; a thick one is the cut of its rung",
      x: { label: "length of a training", format: (v) => (rungs.rungs[v] ? rungs.rungs[v].name : ""), whole: true },
      y: { label: valueName(source), log: "auto" },
      marks: [{ kind: "segment", data: ways, class: "good" }, { kind: "segment", data: cuts, class: "lit" }],
      points: points.map((p) => ({ x: p.x, y: p.value, trial: p.trial, class: `${STANDINGS[p.standing] || "c0"}${rungs.rungs[p.rung].fidelity < 1 ? " hollow" : ""}`, tip: () => [...trialTip(source, p.trial), p.standing] })),
    }),
    legend([["good", "promoted"], ["c0", "promotable, or a full training"], ["faint", "discarded"], ["bad", "stopped early"], ["lit", "final"]]),
    table("lengths of training", ["length", "trained", "promoted", "discarded", "cut"],
      rungs.rungs.map((rung) => [rung.name, String(rung.n_trials), String(rung.n_promoted), String(rung.n_discarded), number(rung.cut, 5)])),
  ];
}

// The plan of the budget, what trials took of the workers' time, and whether more of them promise anything.
function spentPart(source) {
  const { plan, spent, outlook } = source.strip;
  return [
    plan ? el("p", {}, `Plan: ${plan}.`) : null,
    spent && spent.length ? facts(spent.map((entry) => [`${entry.what} (${plural(entry.trials, "trial")})`, duration(entry.seconds)])) : null,
    outlook ? el("p", {}, `${outlook.text}.`) : null,
  ];
}

function timeSumsPart(sums) {
  if (!sums.n_trials) return quiet(sums.message);
  const deciding = sums.deciding;
  const total = deciding.distances + deciding.fitting + deciding.maximising + deciding.other;
  return facts([
    ["evaluating networks", duration(sums.training)], ["choosing networks", duration(total)],
    ["of that: distances", duration(deciding.distances)], ["fitting", duration(deciding.fitting)], ["maximising", duration(deciding.maximising)],
    ["a choice takes", deciding.n_proposals ? duration(total / deciding.n_proposals) : null],
  ]);
}

// -- trials ----------------------------------------------------------------------------------------------------------

const COLUMNS = [
  ["number", "trial", (t) => t.number], ["state", "state", (t) => t.state], ["value", "value", (t) => t.value],
  ["predicted", "predicted", (t) => t.predicted && t.predicted.median], ["seconds", "time", (t) => t.seconds],
  ["layers", "layers", (t) => t.layers], ["mass", "mass", (t) => t.mass], ["parameters", "parameters", (t) => t.details.parameters],
  ["fidelity", "training", (t) => t.fidelity], ["params", "params", paramsInWords],
  ["parents", "made from", (t) => t.parents[0]], ["modifiers", "by", (t) => t.modifiers.join(" + ")], ["line", "message", (t) => t.cause || t.line],
];
// Columns that many studies leave empty, and what a trial has that fills them.
const ONLY_WHERE = { parameters: (t) => isNumber(t.details.parameters), fidelity: shareInWords, params: paramsInWords };
const ROWS_PER_PAGE = 100;
const SORTED_BY_SERVER = ["number", "state", "value", "seconds"];

// What is shown of a study of very many trials.
function excerptNote(source) {
  const excerpt = source.about.excerpt;
  if (!excerpt) return null;
  const table = source.isLive ? "The table, counts and downloads are of all." : "Counts are of all.";
  return quiet(`This study has ${plural(excerpt.n_all, "trial")}. Plots, sums and shares are of ${excerpt.n_shown.toLocaleString("en-GB")} of them: records, the best, the latest, failures, and others evenly. ${table}`);
}

function chosenTrials(source, query) {
  const words = (query.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const kept = source.trials.filter((t) => (!query.state || t.state === query.state)
    && words.every((word) => `${t.number} ${t.state} ${t.cause || ""} ${t.line} ${t.modifiers.join(" ")} ${t.searcher || ""} ${t.fingerprint} ${paramsInWords(t)}`.toLowerCase().includes(word)));
  const by = COLUMNS.find(([key]) => key === query.sort) || COLUMNS[0];
  const sign = query.order === "down" ? -1 : 1;
  const isKnown = (v) => v !== null && v !== undefined && v !== "";
  return kept.sort((a, b) => {
    const [x, y] = [by[2](a), by[2](b)];
    if (isKnown(x) !== isKnown(y)) return isKnown(x) ? -1 : 1; // what is not known comes last, either way
    const order = typeof x === "string" ? x.localeCompare(y) : (x ?? 0) - (y ?? 0);
    return sign * order || a.number - b.number;
  });
}

async function trialsPage(source, args) {
  const query = args.query;
  const asked = args.printing ? null : await source.table(query); // sorted, filtered and cut by the server
  const found = asked ? asked.trials : chosenTrials(source, query);
  const n = asked ? asked.n : found.length;
  const from = Math.max(0, Math.min(Number(query.from) || 0, Math.max(0, n - 1)));
  const shown = asked || args.printing ? found : found.slice(from, from + ROWS_PER_PAGE);
  const columns = COLUMNS.filter(([key]) => !(key in ONLY_WHERE) || source.trials.some(ONLY_WHERE[key]));
  const change = (changes) => go("trials", { ...query, from: undefined, ...changes });
  return [
    el("h2", {}, "Trials"),
    el("form", { class: "tools", submit: (event) => event.preventDefault() },
      el("label", {}, "find", el("input", { id: "find", type: "search", value: query.q || "", placeholder: "words, causes, modifiers", input: (event) => change({ q: event.target.value || undefined }) })),
      el("label", {}, "state", el("select", { id: "of-state", change: (event) => change({ state: event.target.value || undefined }) },
        ["", "completed", "stopped", "failed", "running", "waiting", "cancelled"].map((state) => el("option", { value: state, selected: state === (query.state || "") }, state || "all")))),
      asked ? el("a", { class: "button", id: "csv", href: "api/trials.csv", download: "" }, "CSV of all")
        : el("button", { type: "button", id: "csv", click: () => download(`${fileName(source)}.csv`, "text/csv", csv(found)) }, "CSV"),
      asked ? el("a", { class: "button", id: "json", href: "api/trials.json", download: "" }, "JSON of all")
        : el("button", { type: "button", id: "json", click: () => download(`${fileName(source)}.json`, "application/json", JSON.stringify(found, null, 1)) }, "JSON"),
      el("span", { class: "quiet", role: "status" }, `${n.toLocaleString("en-GB")} of ${plural(asked ? source.total : source.trials.filter(Boolean).length, "trial")}`)),
    excerptNote(source),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "table of trials" }, el("table", { id: "trials" },
      el("thead", {}, el("tr", {}, columns.map(([key, words]) => (asked && !SORTED_BY_SERVER.includes(key) ? el("th", { scope: "col", class: isNumeric(key) ? "num" : null }, words) : heading(key, words, query, change))))),
      el("tbody", {}, shown.map((t) => trialRow(t, columns))))),
    args.printing || n <= ROWS_PER_PAGE ? null : el("div", { class: "pages" },
      el("button", { type: "button", id: "earlier", disabled: from === 0, click: () => go("trials", { ...query, from: Math.max(0, from - ROWS_PER_PAGE) || undefined }) }, "previous"),
      el("span", {}, `${from + 1} to ${Math.min(from + ROWS_PER_PAGE, n)}`),
      el("button", { type: "button", id: "further", disabled: from + ROWS_PER_PAGE >= n, click: () => go("trials", { ...query, from: from + ROWS_PER_PAGE }) }, "next")),
  ];
}

function isNumeric(key) {
  return ["number", "value", "predicted", "seconds", "layers", "mass", "parameters"].includes(key);
}

function heading(key, words, query, change) {
  const isSorted = (query.sort || "number") === key;
  const order = query.order === "down" ? "descending" : "ascending";
  const next = isSorted && order === "ascending" ? "down" : undefined;
  return el("th", { scope: "col", class: isNumeric(key) ? "num" : null, "aria-sort": isSorted ? order : null },
    el("button", { type: "button", id: `sort-${key}`, click: () => change({ sort: key, order: next }) }, words));
}

function trialRow(t, columns) {
  const cells = {
    number: () => trialLink(t.number, t.number), state: () => badge(t.state), value: () => number(t.value, 6),
    predicted: () => number(t.predicted && t.predicted.median), seconds: () => duration(t.seconds), layers: () => t.layers,
    mass: () => number(t.mass), parameters: () => number(t.details.parameters), fidelity: () => shareInWords(t) || "full", params: () => paramsInWords(t),
    parents: () => (t.parents.length ? t.parents.map((n, i) => [i ? ", " : "", trialLink(n, n)]) : t.searcher === "pool" ? "pool" : "–"),
    modifiers: () => t.modifiers.join(" + "), line: () => (t.cause ? `${t.cause}: ${t.line}` : t.line),
  };
  return el("tr", {}, columns.map(([key]) => el("td", { class: isNumeric(key) ? "num" : key === "line" ? "message" : key === "modifiers" ? "by" : null }, cells[key]())));
}

function fileName(source) {
  return `${String(source.about.name || "study").replace(/[^A-Za-z0-9._-]+/g, "-")}-trials`;
}

// A cell that a spreadsheet would take for a formula is made a text by an apostrophe.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csv(trials) {
  const names = ["number", "state", "value", "cause", "started", "finished", "seconds", "attempts", "fidelity", "promoted_from", "searcher", "layers", "edges", "mass", "utility", "deciding", "fingerprint"];
  const params = [...new Set(trials.flatMap((t) => Object.keys(t.params || {})))].sort();
  const details = [...new Set(trials.flatMap((t) => Object.keys(t.details)))];
  const head = [...names, "parents", "modifiers", "predicted", "lower", "upper", ...params.map((name) => `params.${name}`), ...details.map((name) => `details.${name}`), "message"];
  const rows = trials.map((t) => [...names.map((name) => t[name]), t.parents.join(" "), t.modifiers.join(" "),
    ...["median", "lower", "upper"].map((name) => t.predicted && t.predicted[name]), ...params.map((name) => (t.params || {})[name]), ...details.map((name) => t.details[name]), t.line]);
  return [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

// -- one trial -------------------------------------------------------------------------------------------------------

async function trialPage(source, args) {
  const n = Number(args.rest[0]);
  if (!Number.isInteger(n) || n < 0 || n >= source.total) return [el("h2", {}, "There is no such trial"), quiet(`The study has ${plural(source.total, "trial")}, numbered from 0.`)];
  const trial = await source.whole(n);
  if (!trial) return [el("h2", {}, `Trial ${n}`), excerptNote(source), quiet("This report does not hold this trial; the live page has all.")];
  const last = source.total - 1;
  return [
    el("div", { class: "tools" },
      el("h2", {}, `Trial ${n} `, badge(trial.state), source.strip.best && source.strip.best.trial === n ? [" ", el("span", { class: "badge completed" }, "best so far")] : null),
      el("span", {}, n > 0 ? el("a", { href: `#/trial/${n - 1}`, id: "before" }, "← before") : "", " ", n < last ? el("a", { href: `#/trial/${n + 1}`, id: "after" }, "after →") : "")),
    facts([
      [valueName(source)[1], number(trial.value, 6)], ...scores(trial), ["started after", duration(trial.started)], ["took", duration(trial.seconds)],
      ["attempts", trial.attempts], ["interrupted by the driver's end", trial.interruptions || null],
      ["training", shareInWords(trial)], ["promoted from", isNumber(trial.promoted_from) ? trialLink(trial.promoted_from) : null],
      ...Object.entries(trial.params || {}).map(([name, value]) => [name, isNumber(value) ? number(value) : value]),
      ["layers, edges", `${trial.layers || "a linear model"}, ${trial.edges}`], ["mass", number(trial.mass)], ["fingerprint", trial.fingerprint],
    ]),
    el("div", { class: "columns" },
      el("div", {}, section("Network", drawing(source, n), layerList(trial))),
      el("div", {}, whyPart(source, trial), messagePart(trial),
        trial.curve.length ? section("Learning curve", curveChart(source, trial)) : null, detailsPart(trial))),
  ];
}

function layerList(trial) {
  const parents = trial.network.layers.map(() => []);
  for (const [u, v] of trial.network.edges) parents[v].push(u);
  return el("details", { id: "layers" }, el("summary", {}, "layers as a table"),
    table("layers in topological order", ["layer", "label", "units", "stride", "takes from"],
      trial.network.layers.map((layer) => [String(layer.index), layer.attributes ? `${layer.label} [${layer.attributes}]` : layer.label, layer.units ?? "–", layer.stride ?? "–", parents[layer.index].join(", ") || "–"])));
}

function whyPart(source, trial) {
  const parts = trial.why ? [el("p", {}, `${trial.why}.`)] : [];
  if (trial.searcher === "pool") parts.push(quiet("It is one of the networks that the study began with; nothing was believed of it yet."));
  else {
    const made = trial.parents.length
      ? ["Made from ", trial.parents.map((p, i) => [i ? " and " : "", trialLink(p)]), trial.changes.length ? " by these changes:" : "."]
      : [`Proposed by ${trial.searcher || "the searcher"}; it names no parent.`];
    parts.push(el("p", {}, made));
    if (trial.changes.length) parts.push(el("ul", {}, trial.changes.map((change) => el("li", {}, change))));
    const predicted = trial.predicted;
    if (predicted) {
      const came = !isNumber(trial.value) ? null
        : trial.value >= predicted.lower && trial.value <= predicted.upper ? " – inside the interval" : " – outside the interval";
      parts.push(facts([
        ["predicted", number(predicted.median, 5)], ["90 % interval", `${number(predicted.lower, 5)} to ${number(predicted.upper, 5)}`],
        ["result", isNumber(trial.value) ? `${number(trial.value, 5)}${came}` : null],
        ["belief (standardised)", `mean ${number(trial.mean, 3)}, sd ${number(trial.sd, 3)}`],
        [`utility${source.about.acquisition ? ` (${source.about.acquisition})` : ""}`, number(trial.utility, 4)],
        ["probability that it can be evaluated", isNumber(trial.feasible) ? number(trial.feasible, 3) : null],
        ["deciding took", duration(trial.deciding)], ["trials known then", plural(trial.proposed_after, "finished trial")],
      ]));
    }
  }
  parts.push(later(source.nearKnown(trial.number), source.near(trial.number), (near) => nearPart(source, trial, near)));
  return section("Why this network", ...parts);
}

function nearPart(source, trial, near) {
  const nodes = [];
  if (near.nearest && near.nearest.length) {
    nodes.push(el("h3", {}, "Nearest networks evaluated by then"), table("by OTMANN distance", ["trial", "d", "d̄", "value"],
      near.nearest.map((row) => [trialLink(row.trial), number(row.d), number(row.d_bar, 3), number(source.trials[row.trial] && source.trials[row.trial].value, 5)])));
  }
  if (near.diff) nodes.push(el("h3", {}, "Against its parent, ", trialLink(near.diff.parent)), diffPart(near.diff));
  if (near.message) nodes.push(quiet(near.message));
  return nodes;
}

function diffPart(diff) {
  return [
    diff.summary ? el("p", {}, diff.summary) : null,
    diff.drawing ? el("div", { class: "drawing", tabindex: 0, role: "region", "aria-label": "drawing of the differences" }, el("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(diff.drawing)}`, alt: `differences from trial ${diff.parent}: ${diff.summary}` })) : null,
    diff.lines && diff.lines.length ? el("details", { id: "diff" }, el("summary", {}, "the differences in words"), el("ul", {}, diff.lines.map((line) => el("li", {}, line)))) : null,
  ];
}

function messagePart(trial) {
  if (!trial.message) return null;
  return section(trial.cause ? `Failed: ${trial.cause}` : "Message", el("pre", { tabindex: 0 }, trial.message));
}

function curveChart(source, trial) {
  const validation = { kind: "line", data: trial.curve.map(([x, y]) => ({ x, y })) };
  const training = trainingCurve(trial);
  // A metric that was asked for is another quantity than the loss of the steps: it has an axis of its own.
  const isLoss = /^validation (log-loss|mse|loss)$/.test(source.about.metric || "") && source.about.direction === "minimise" && !isMetricAsked(source);
  const named = trial.curve.map(([x, y]) => ({ x, y, r: 2, tip: () => [`step ${x}`, `${source.about.metric || "value"} ${number(y, 5)}`] }));
  const dots = training.map((d) => ({ ...d, r: 2, class: "c1", tip: () => [`step ${d.x}`, `training loss ${number(d.y, 5)}`] }));
  const charts = [chart({
    title: "Reported while it ran",
    describe: plural(trial.n_points, "point"),
    x: { label: "step", whole: true },
    y: { label: valueName(source), log: "auto" },
    marks: [validation, ...(isLoss ? [{ kind: "line", data: training, class: "c1" }] : [])],
    points: [...named, ...(isLoss ? dots : [])],
  })];
  if (training.length && isLoss) charts.push(legend([["c0", source.about.metric], ["c1", "training loss, mean of the steps since the validation before (dropout on)"]]));
  if (training.length && !isLoss) charts.push(chart({ title: "Training loss", describe: "mean of the steps since the validation before", x: { label: "step", whole: true }, y: { label: "training loss", log: "auto" }, marks: [{ kind: "line", data: training, class: "c1" }], points: dots }));
  return charts;
}

function trainingCurve(trial) {
  const curve = trial.all_details.training_curve;
  return Array.isArray(curve) ? curve.filter((point) => Array.isArray(point) && isNumber(point[1])).map(([x, y]) => ({ x, y })) : [];
}

function isMetricAsked(source) {
  const context = source.about.settings && source.about.settings.context;
  return Boolean(context && context.metric);
}

function detailsPart(trial) {
  // Executors keep the end of what a failed process printed, and of its traceback; an objective may add a log of its own.
  const { log, traceback, training_curve: drawnAbove, ...details } = trial.all_details;
  const texts = [["Log, its end", log], ["Traceback", traceback]];
  if (details.process !== null && typeof details.process === "object") {
    const { output, ...usage } = details.process;
    texts.push(["What it printed, its end", output]);
    details.process = usage;
  }
  const parts = texts.filter(([, text]) => typeof text === "string" && text)
    .map(([title, text]) => section(title, el("pre", { tabindex: 0 }, text.slice(-8000))));
  if (Object.keys(details).length) parts.push(section("Resources and other details", facts(flat(details, ""))));
  parts.push(el("details", { id: "notes" }, el("summary", {}, "all notes of the searcher"), el("pre", { tabindex: 0 }, JSON.stringify(trial.notes, null, 1))));
  return parts;
}

// Nested data as pairs of a name and a text, inner names joined by dots.
function flat(value, name) {
  if (Array.isArray(value)) return [[name, value.map((entry) => (entry !== null && typeof entry === "object" ? JSON.stringify(entry) : isNumber(entry) ? number(entry, 6) : String(entry))).join(", ")]];
  if (value === null || typeof value !== "object") return [[name, isNumber(value) ? number(value, 6) : String(value)]];
  return Object.entries(value).flatMap(([inner, entry]) => flat(entry, name ? `${name}.${inner}` : inner));
}

// -- map, lineage, surrogate -----------------------------------------------------------------------------------------

async function mapPage(source) {
  return [section("Map of networks",
    quiet("Every point is a network; near each other where OTMANN says so. The line follows the best so far; a click opens a network."),
    later(source.figureKnown("map"), source.figure("map"), (map) => mapPart(source, map)))];
}

function mapPart(source, map) {
  if (!map.points || !map.points.length) return quiet(map.message || "nothing to show yet");
  const known = map.points.map((p) => p.value).filter(isNumber).sort((a, b) => a - b);
  const share = (value) => {
    // By rank, since a few very bad networks would leave one colour for all others.
    const below = known.findIndex((v) => v >= value);
    const place = known.length > 1 ? below / (known.length - 1) : 1;
    return source.about.direction === "minimise" ? 1 - place : place;
  };
  const at = new Map(map.points.map((p) => [p.trial, p]));
  const path = (map.path || []).filter((n) => at.has(n)).map((n) => at.get(n));
  return [
    chart({
      title: "Architecture map", describe: map.describe || "", height: 520, bare: true, x: {}, y: {},
      marks: [{ kind: "line", data: path.map((p) => ({ x: p.x, y: p.y })), class: "lit" }],
      points: map.points.map((p) => ({ x: p.x, y: p.y, trial: p.trial, r: path.includes(p) ? 6 : 4.4, class: isNumber(p.value) ? "" : source.trials[p.trial]?.state === "failed" ? "hollow bad" : "hollow faint", colour: isNumber(p.value) ? heat(share(p.value)) : undefined, tip: () => trialTip(source, p.trial) })),
    }),
    el("p", { class: "quiet" }, "worse", el("span", { class: "heat" }), "better (by rank); hollow: without a value, red where it failed"),
  ];
}

async function lineagePage(source) {
  const [lineage, ledger] = await Promise.all([source.series("lineage"), source.series("ledger")]);
  const at = new Map(lineage.nodes.map((node) => [node.trial, node]));
  const pairs = lineage.nodes.filter((node) => node.parent !== null && isNumber(node.value) && at.has(node.parent) && isNumber(at.get(node.parent).value));
  const edges = pairs.sort((a, b) => a.is_ancestor - b.is_ancestor).map((node) => ({
    x: node.parent, y: at.get(node.parent).value, x2: node.trial, y2: node.value, class: node.is_ancestor ? "lit" : null,
  }));
  return [
    section("Lineage",
      quiet("Each line leads from a network to one that was made from it; the winner's ancestors are lit."),
      chart({
        title: "Who was made of whom", x: { label: "trial", whole: true }, y: { label: valueName(source), log: "auto" }, height: 380,
        marks: [{ kind: "segment", data: edges, class: "faint" }],
        points: lineage.nodes.filter((node) => isNumber(node.value)).map((node) => ({ x: node.trial, y: node.value, trial: node.trial, class: node.is_ancestor ? "lit" : "c0", r: node.is_ancestor ? 5 : 3, tip: () => trialTip(source, node.trial) })),
        empty: lineage.message,
      })),
    el("div", { class: "columns uneven" },
      section("The winner's ancestry", lineage.ancestry.length
        ? el("ol", { class: "chain" }, lineage.ancestry.map((n) => at.get(n)).map((node) => el("li", {}, trialLink(node.trial), isNumber(node.value) ? `, ${number(node.value, 5)}` : "", node.changes.length ? `: ${node.changes.join("; ")}` : node.parent === null ? ": where it began" : "")))
        : quiet("No trial has a value yet.")),
      section("What each modifier brought", ledger.rows.length
        ? table("gains are over the parent, positive where better", ["modifier", "tries", "alone", "failed", "better", "records", "mean gain", "best gain", "ancestry"],
          ledger.rows.map((row) => [row.modifier, row.n_tries, row.n_alone, row.n_failed, row.n_improved, row.n_records, number(row.mean_gain, 3), number(row.best_gain, 3), row.in_ancestry]))
        : quiet(ledger.message))),
  ];
}

async function surrogatePage(source) {
  const [acquisition, timeSplit] = await Promise.all([source.series("acquisition"), source.series("time_split")]);
  return [
    section("Can the surrogate be trusted?", later(source.figureKnown("surrogate"), source.figure("surrogate"), (health) => healthPart(source, health))),
    section("What is believed of the params", later(source.figureKnown("params"), source.figure("params"), (beliefs) => paramsPart(source, beliefs))),
    el("div", { class: "columns" },
      section("What the networks promised", chart({
        title: `Utility when chosen${acquisition.acquisition ? ` (${acquisition.acquisition})` : ""}`,
        describe: "it falls as there is less left to gain",
        x: { label: "trial", whole: true }, y: { label: "utility" },
        marks: [{ kind: "line", data: acquisition.points.map((p) => ({ x: p.trial, y: p.utility })), class: "c0 thin" }],
        points: acquisition.points.map((p) => ({ x: p.trial, y: p.utility, trial: p.trial, class: p.is_record ? "lit" : "c0", tip: () => [...trialTip(source, p.trial), `utility ${number(p.utility)}`] })),
        empty: acquisition.message,
      })),
      section("Deciding and evaluating", chart({
        title: "Time, summed up",
        x: { label: "trial", whole: true }, y: { label: "seconds", log: "auto" },
        marks: [
          { kind: "line", class: "c0", data: timeSplit.rows.map((row, i) => ({ x: row.trial, y: timeSplit.cumulative_training[i] || NaN })) },
          { kind: "line", class: "c1", data: timeSplit.rows.map((row, i) => ({ x: row.trial, y: timeSplit.cumulative_deciding[i] || NaN })) },
        ],
        empty: timeSplit.message,
      }), legend([["c0", "evaluating"], ["c1", "choosing"]]), timeSumsPart({ ...timeSplit, n_trials: timeSplit.rows.length }))),
  ];
}

function healthPart(source, health) {
  if (!health.points || !health.points.length) return quiet(health.message || "nothing to show yet");
  const ends = health.points.flatMap((p) => [p.observed, p.median]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  // An interval may reach far beyond every value; the picture is about the values.
  const room = (high - low) * 0.6;
  const cut = (v) => Math.max(low - room, Math.min(high + room, v));
  return [
    facts([
      [`values inside their ${Math.round(100 * health.level)} % interval`, `${number(100 * health.coverage, 3)} %`],
      ["mean log density (baseline: −1.42)", number(health.log_density, 3)],
      ["rank correlation of predicted and observed", number(health.rank_correlation, 3)],
      ["predictions", health.points.length],
    ]),
    el("div", { class: "columns" },
      chart({
        title: "Predicted and observed", describe: "with the interval; on the dashed line the prediction was exact",
        x: { label: "predicted" }, y: { label: "observed" },
        marks: [
          { kind: "line", data: [{ x: low, y: low }, { x: high, y: high }], class: "faint dashed" },
          { kind: "segment", data: health.points.map((p) => ({ x: cut(p.lower), x2: cut(p.upper), y: p.observed, y2: p.observed })), class: "c0" },
        ],
        points: health.points.map((p) => ({ x: p.median, y: p.observed, trial: p.trial, class: p.inside ? "c0" : "lit", tip: () => [...trialTip(source, p.trial), `predicted ${number(p.median)}`] })),
      }),
      chart({
        title: "Coverage so far", describe: `dashed: ${Math.round(100 * health.level)} %, what it claims`,
        x: { label: "predictions", whole: true }, y: { label: "share inside", domain: [0, 1], tight: true },
        marks: [
          { kind: "line", data: [{ x: 1, y: health.level }, { x: health.points.length, y: health.level }], class: "faint dashed" },
          { kind: "line", data: [{ x: 1, y: NaN }, ...health.running_coverage.map((y, i) => ({ x: i + 1, y }))], class: "c0" },
        ],
        points: health.running_coverage.map((y, i) => ({ x: i + 1, y, r: 2, trial: health.points[i].trial, tip: () => [`after ${i + 1}`, `${number(100 * y, 3)} %`] })),
      }),
      chart({
        title: "Mean log density so far", describe: "higher is better; dashed: baseline without a model",
        x: { label: "predictions", whole: true }, y: { label: "log density" },
        marks: [
          { kind: "line", data: [{ x: 1, y: -1.42 }, { x: health.points.length, y: -1.42 }], class: "faint dashed" },
          { kind: "line", data: health.running_log_density.map((y, i) => ({ x: i + 1, y })), class: "c0" },
        ],
      })),
  ];
}

function paramsPart(source, beliefs) {
  if (!beliefs.params || !beliefs.params.length) return quiet(beliefs.message || "nothing to show yet");
  return [
    table("importance: correlation lost from one end of the range to the other, 0 to 1; 90 % of the posterior samples", ["param", "importance", "from", "to", `value in trial ${beliefs.best_trial}`],
      beliefs.params.map((p) => [p.name, number(p.importance, 2), number(p.importance_low, 2), number(p.importance_high, 2), p.at === null ? "inactive" : p.at])),
    el("div", { class: "columns" }, beliefs.params.filter((p) => p.points.length).map((p) => sliceChart(source, beliefs, p))),
  ];
}

// The value expected of the best candidate along one param; a choice is numbered by its places.
function sliceChart(source, beliefs, param) {
  const at = (point, i) => (param.is_choice ? i : point.value);
  const own = param.points.findIndex((point) => point.value === param.at);
  const x = param.is_choice ? own : param.at;
  return chart({
    title: `Value along ${param.name}`,
    describe: param.is_choice ? param.points.map((point, i) => `${i}: ${point.value}`).join(", ") : "with the interval of 90 % of evaluations",
    x: { label: param.name, log: param.is_log, whole: param.is_choice }, y: { label: valueName(source) },
    marks: param.is_choice
      ? [{ kind: "segment", class: "c0", data: param.points.map((point, i) => ({ x: i, x2: i, y: point.lower, y2: point.upper })) }]
      : [{ kind: "band", class: "c0", data: param.points.map((point) => ({ x: point.value, low: point.lower, high: point.upper })) },
        { kind: "line", class: "c0", data: param.points.map((point) => ({ x: point.value, y: point.median })) }],
    points: [
      ...param.points.map((point, i) => ({ x: at(point, i), y: point.median, r: 2.5, class: "c0", tip: () => [`${param.name} ${point.value}`, `expected ${number(point.median)}`, `90 % from ${number(point.lower)} to ${number(point.upper)}`] })),
      { x, y: beliefs.best, trial: beliefs.best_trial, class: "lit", tip: () => trialTip(source, beliefs.best_trial) },
    ],
  });
}

// -- compare, about --------------------------------------------------------------------------------------------------

async function comparePage(source, args) {
  const compared = await source.compare();
  const query = args.query;
  const axis = compared.axes[Number(query.axis) || 0] || compared.axes[0];
  const byTime = query.by === "time";
  const isEach = query.show === "each";
  const parts = [section("Compare studies", compared.studies.length < 2
    ? quiet("There is no other study here. ", el("code", {}, source.isLive ? "nasbot serve FOLDER" : "nasbot report STUDY --compare OTHER"), source.isLive ? " serves all studies of a folder, side by side." : " shows others beside it.") : null)];
  const series = axis && axis[isEach ? "studies" : "searchers"][byTime ? "seconds" : "trials"];
  if (compared.axes.length > 1) parts.push(quiet("Studies with different data, metrics or directions have axes of their own:"),
    choice("data and metric", "axis", compared.axes.map((each, i) => [String(i), axisWords(each)]), String(compared.axes.indexOf(axis)), args));
  if (series && series.groups.length) {
    const hidden = new Set((query.hide || "").split("\n").filter(Boolean));
    const toggle = (name) => {
      if (!hidden.delete(name)) hidden.add(name);
      go("compare", { ...query, hide: [...hidden].join("\n") || undefined });
    };
    const shown = series.groups.map((group, i) => [group, `c${i % PALETTE}`]).filter(([group]) => !hidden.has(group.name));
    parts.push(
      el("div", { class: "tools" },
        choice("curves", "show", [["mean", "mean by searcher"], ["each", "each study"]], isEach ? "each" : "mean", args),
        choice("horizontal axis", "by", [["trial", "by trial"], ["time", "by time"]], byTime ? "time" : "trial", args)),
      chart({
        title: isEach ? "Best so far" : "Best so far, mean and standard error", describe: axisWords(axis), height: 340,
        x: { label: byTime ? "time" : "finished trials", format: byTime ? duration : undefined }, y: { label: valueName(source, axis), log: "auto" },
        marks: shown.flatMap(([group, colour]) => [
          { kind: "band", class: colour, data: group.n_studies > 1 ? group.x.map((x, k) => ({ x, low: group.mean[k] - group.stderr[k], high: group.mean[k] + group.stderr[k] })) : [] },
          { kind: "step", class: colour, data: group.x.map((x, k) => ({ x, y: group.mean[k] })) },
        ]),
        empty: "no curve is chosen",
      }),
      el("ul", { class: "legend" }, series.groups.map((group, i) => el("li", { class: `c${i % PALETTE}` },
        el("button", { type: "button", id: `curve-${i}`, "aria-pressed": String(!hidden.has(group.name)), title: "show or hide", click: () => toggle(group.name) }, `${group.name}${group.n_studies > 1 ? ` (${group.n_studies} studies)` : ""}`)))));
  } else if (series) parts.push(quiet(series.message));
  parts.push(table("studies", ["study", "data", "metric", "searcher", "seed", "trials", "best", "state"], compared.studies.map((s) => [
    s.address ? el("a", { href: s.address }, s.name) : s.name, s.data || "own objective", s.metric, s.searcher, String(s.seed), begun(s), number(s.best, 6), s.state ? badge(s.state) : "–"])));
  return parts;
}

function axisWords(axis) {
  return `${axis.data || "own objective"}: ${axis.unit ? `${axis.metric} [${axis.unit}]` : axis.metric}`;
}

async function aboutPage(source) {
  const about = source.about;
  if (!about.commands) return [el("h2", {}, "About this study"), quiet("There is no study to be read yet.")];
  return [
    section("About this study", facts([
      ["study", about.name], ["file", about.file], ["searcher", about.searcher], ["seed", String(about.seed)], ["direction", about.direction], ["values are", valueName(source)[0]],
      ["networks", about.kind], ["trials from the pool", about.n_pool], [source.isLive ? "server started" : "report made", about.made],
    ])),
    section("Do it again", about.commands.map(([words, command]) => [el("p", {}, words), el("pre", { tabindex: 0 }, command)])),
    section("Versions", facts(Object.entries(about.versions))),
    section("Settings", quiet("Everything that decides what the study proposes, as it was stored when it began."), el("div", { class: "settings" }, settingsPart(about.settings))),
  ];
}

// Nested settings as rows, inner names joined by dots; fingerprints are shortened.
function settingRows(value, name) {
  if (Array.isArray(value)) return [[name, value.map((entry) => (typeof entry === "string" && entry.length > 24 ? `${entry.slice(0, 12)}…` : JSON.stringify(entry).replaceAll('"', ""))).join(", ") || "none"]];
  if (value === null || typeof value !== "object") return [[name, value === null ? "none" : String(value)]];
  return Object.entries(value).flatMap(([inner, entry]) => settingRows(entry, name ? `${name}.${inner}` : inner));
}

function settingsPart(settings) {
  return table("settings", ["name", "value"], settingRows(settings, ""));
}
