"use strict";
// The data, the recommended model and the traits of networks, on the overview.

// What people ask about a trial beside its value: accuracy or R2 of the validation rows.
function scores(trial) {
  const of = (name) => (trial.details || {})[`metrics.valid_${name}`];
  return [["accuracy", of("accuracy")], ["R²", of("r2")]].filter(([, value]) => isNumber(value)).map(([name, value]) => [`${name} (validation)`, number(value, 4)]);
}

function summaryPart(source) {
  const { data, model } = source.about;
  if (!data && !model) return null;
  return el("div", { class: "columns" },
    data ? section("Data", dataFacts(source, data)) : null,
    model && Array.isArray(model.importance) ? section("Recommended model", modelResults(source, model)) : null);
}

// What it goes by and where it errs, as the search left it beside the study.
function modelPart(source) {
  const model = source.about.model;
  if (!model || !Array.isArray(model.importance)) return null;
  return el("div", { class: "columns" },
    section("Errors of the recommended model", modelErrors(model)),
    model.importance.length ? section("Columns that matter", importancePart(model)) : null);
}

const FORMS = { number: "numbers", category: "categories", date: "dates" };

function dataFacts(source, data) {
  const rows = Object.entries(data.rows || {});
  const total = rows.reduce((sum, [, n]) => sum + n, 0);
  const forms = Object.entries(data.forms || {}).map(([form, n]) => `${FORMS[form] || form} ${n}`).join(", ");
  const folds = source.about.settings && source.about.settings.context && source.about.settings.context.folds;
  const classes = data.n_classes ? `${data.n_classes} classes: ${data.classes.join(", ")}${data.n_classes > data.classes.length ? ", …" : ""}` : "";
  return [
    facts([
      ["data", data.name], ["rows", total ? plural(total, "row") : null], ["target", data.target.join(", ")], ["task", data.task],
      ["inputs", data.n_columns ? `${plural(data.n_columns, "column")} (${forms})` : data.shape.length ? `images of ${data.shape.join(" × ")}` : null],
      ["judged by", folds > 1 ? `${folds}-fold cross-validation` : "the validation rows"],
      ["chosen by", valueName(source)[0]],
    ]),
    total ? splitBar(rows, total) : null,
    classes ? quiet(classes) : null,
    data.columns && data.columns.length ? el("details", { id: "columns" }, el("summary", {}, "columns"), quiet(`${data.columns.join(", ")}${data.n_columns > data.columns.length ? `, and ${data.n_columns - data.columns.length} more` : ""}`)) : null,
  ];
}

// How the rows were divided.
function splitBar(rows, total) {
  const bar = el("div", { class: "split", role: "img", "aria-label": rows.map(([name, n]) => `${n} ${name} rows`).join(", ") }, rows.map(([, n], i) => {
    const part = el("span", { class: `c${[0, 1, 2][i] ?? 7}` });
    part.style.flexGrow = n / total;
    return part;
  }));
  return [bar, legend(rows.map(([name, n], i) => [`c${[0, 1, 2][i] ?? 7}`, `${n.toLocaleString("en-GB")} ${name} (${Math.round((100 * n) / total)} %)`]))];
}

const SCORE_NAMES = { "test_r2": "R² (test)", "test_accuracy": "accuracy (test)", "test_balanced-accuracy": "balanced accuracy (test)", "test_rmse": "rmse (test)" };

function modelResults(source, model) {
  const members = source.about.members || [];
  const results = model.results || {};
  const known = [["trees", results.trees], ["baseline", results.baseline], ["best network", results.single], ["ensemble", members.length > 1 ? results.ensemble : null]].filter(([, result]) => result);
  const extra = Object.keys(SCORE_NAMES).filter((key) => known.some(([, result]) => isNumber(result[key])));
  return [
    members.length ? el("p", {}, members.length > 1 ? "The average of " : "The network of ", members.map(([n, weight], i) => [i ? ", " : "", trialLink(n), members.length > 1 ? ` (${number(weight, 2)})` : ""]), ".") : null,
    known.length ? table(`${model.metric} of models`, ["model", "validation", "test", ...extra.map((key) => SCORE_NAMES[key])],
      known.map(([name, result]) => [name, number(result.validation, 5), number(result.test, 5), ...extra.map((key) => number(result[key], 4))])) : null,
    results.gain ? quiet(`Better than the baseline by ${number(results.gain.value, 3)} ± ${number(results.gain.noise, 2)} on test rows.`) : null,
    el("div", { class: "tools" },
      source.isLive && members.length ? el("a", { class: "button", id: "model-file", href: "api/model.safetensors", download: "" }, "Download the model") : null,
      members.length ? el("button", { type: "button", id: "network-file", click: async () => download(`${fileWords(source.about.name || "study")}-network.json`, "application/json", JSON.stringify(networkFile((await source.whole(members[0][0])).network), null, 1)) }, "Download its network (JSON)") : null),
    quiet("The model file is for ", el("code", {}, "nasbot.load_model"), " and ", el("code", {}, "nasbot predict"), "; ", el("code", {}, "nasbot export"), " writes it, and code or ONNX, in the shell."),
  ];
}

// A network as Architecture.load reads it.
function networkFile(network) {
  const version = network.layers.some((layer) => layer.own) ? 2 : 1;  // 2: options of layers
  return { version, kind: network.kind, layers: network.layers.map(({ label, units, stride, own }) => ({ label, units, stride, ...own })), edges: network.edges };
}

function modelErrors(model) {
  const parts = [quiet(`Measured on ${plural(model.n_rows, `${model.rows} row`)}; calibration is off by ${number(model.calibration_error, 3)} on average.`)];
  if (model.confusion.length) parts.push(confusionPart(model));
  const residuals = Object.entries(model.residuals);
  if (residuals.length) parts.push(residualsChart(model, residuals));
  if (model.calibration.length) parts.push(calibrationChart(model));
  return parts;
}

function confusionPart(model) {
  const most = model.confusion.map((row) => Math.max(1, row.reduce((a, b) => a + b, 0)));
  const cell = (n, i, j) => {
    const node = el("td", { class: "num" }, String(n));
    const share = n / most[i];
    if (n) node.style.background = i === j ? `rgb(40 120 80 / ${0.1 + 0.35 * share})` : `rgb(200 60 40 / ${0.12 + 0.4 * share})`;
    return node;
  };
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "confusion matrix" }, el("table", { class: "confusion" },
    el("caption", { class: "quiet" }, "confusion: rows of each class (down), predicted as (across)"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "class"), model.classes.map((name) => el("th", { scope: "col", class: "num" }, name)))),
    el("tbody", {}, model.confusion.map((row, i) => el("tr", {}, el("th", { scope: "row" }, model.classes[i]), row.map((n, j) => cell(n, i, j)))))));
}

function residualsChart(model, residuals) {
  return chart({
    title: "Residuals", describe: "truth − prediction: 90 % and half of the rows, and the median", height: 70 + 34 * residuals.length,
    lanes: residuals.map(([name]) => (name.length > 8 ? `${name.slice(0, 7)}…` : name)),
    x: { label: ["truth − prediction, unit of the target", "truth − prediction"] }, y: {},
    marks: [
      { kind: "bar", thick: 6, class: "c7", data: residuals.map(([, levels], i) => ({ x: levels[0], x2: levels[4], y: i })) },
      { kind: "bar", thick: 18, class: "c0", data: residuals.map(([, levels], i) => ({ x: levels[1], x2: levels[3], y: i })) },
    ],
    points: residuals.map(([name, levels], i) => ({ x: levels[2], y: i, r: 5, class: "lit", tip: () => [name, ...model.levels.map((level, k) => `${Math.round(100 * level)} %: ${number(levels[k], 4)}`)] })),
  });
}

function calibrationChart(model) {
  const isClass = model.confusion.length > 0 || model.classes.length > 0;
  const ends = model.calibration.flatMap(([said, truth]) => [said, truth]);
  const [low, high] = isClass ? [0, 1] : [Math.min(...ends), Math.max(...ends)];
  return chart({
    title: "Calibration", describe: isClass ? "how sure it is, and how often it is right" : "rows in ten groups by what is predicted",
    x: { label: isClass ? "probability of the predicted class" : "mean prediction" }, y: { label: isClass ? "share that is right" : "mean truth" },
    marks: [{ kind: "line", data: [{ x: low, y: low }, { x: high, y: high }], class: "faint dashed" }, { kind: "line", data: model.calibration.map(([x, y]) => ({ x, y })), class: "c0 thin" }],
    points: model.calibration.map(([x, y, n]) => ({ x, y, r: 2.5 + 5 * Math.sqrt(n / Math.max(1, model.n_rows)), tip: () => [`predicted ${number(x, 4)}`, `true ${number(y, 4)}`, plural(n, "row")] })),
  });
}

function bars(rows, words) {
  const most = Math.max(...rows.map(([, value]) => value), 1e-12);
  return el("table", { class: "bars" }, el("caption", { class: "quiet" }, words), el("tbody", {}, rows.map(([name, value, label]) => {
    const bar = el("span", { class: "bar-of c0" });
    bar.style.width = `${Math.max(0, (100 * value) / most)}%`;
    return el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "num" }, label), el("td", { class: "wide" }, bar));
  })));
}

function importancePart(model) {
  const shown = model.importance.slice(0, 15);
  return [bars(shown.map((row) => [row.column, row.worse, number(row.worse, 3)]), `${model.metric} of ${model.rows} rows becomes worse by this when the column is shuffled`),
    model.importance.length > shown.length ? quiet(`and ${model.importance.length - shown.length} more`) : null];
}

// -- traits ----------------------------------------------------------------------------------------------------------

function traitsPart(source, found) {
  if (!found.lines.length) return null;
  const weighed = found.traits.filter((trait) => isNumber(trait.weight));
  return el("div", { class: "columns" },
    section("What goes with good values", weighed.length
      ? bars(weighed.map((trait) => [trait.name, trait.weight, `${Math.round(100 * trait.weight)} %`]), "share of the values' order that each explains alone; what went together in this search, not what causes what")
      : quiet("Too few trials, or all alike.")),
    section("Networks and their traits", parallelChart(source, found)));
}

// One line a network through its traits and its value; the best are lit.
function parallelChart(source, found) {
  const traits = found.traits.filter((trait) => trait.weight !== null).slice(0, 6);
  if (!traits.length) return quiet("Too few trials, or all alike.");
  const columns = [...traits.map((trait) => [trait, found.traits.indexOf(trait)]), [{ name: source.about.metric || "value", is_choice: false }, -1]];
  const cell = (line, i) => (i < 0 ? line.value : line.cells[i]);
  const places = columns.map(([trait, i]) => {
    const cells = found.lines.map((line) => cell(line, i)).filter((c) => c !== null);
    if (trait.is_choice) {
      const words = [...new Set(cells.map(String))].sort();
      return { at: (c) => (words.indexOf(String(c)) + 0.5) / words.length, ends: null, words };
    }
    const [low, high] = [Math.min(...cells), Math.max(...cells)];
    const isLog = low > 0 && high / low > 30;
    const turned = isLog ? Math.log : (v) => v;
    return { at: (c) => (high > low ? (turned(c) - turned(low)) / (turned(high) - turned(low)) : 0.5), ends: [low, high] };
  });
  const lines = found.lines.slice().reverse(); // the best last, on top
  const best = new Set(found.lines.slice(0, Math.max(1, Math.round(found.lines.length / 10))).map((line) => line.trial));
  const data = (line) => columns.map(([, i], k) => ({ x: k, y: cell(line, i) === null ? NaN : places[k].at(cell(line, i)) }));
  const [low, high] = [(k) => places[k].ends ? number(places[k].ends[0], 3) : places[k].words[0], (k) => places[k].ends ? number(places[k].ends[1], 3) : places[k].words[places[k].words.length - 1]];
  return el("div", {}, chart({
    title: "Parallel coordinates", describe: `${found.lines.length} of ${plural(found.n_all, "network")}; lit: the best tenth`, height: 320, fixed: true,
    columns: columns.map(([trait], k) => ({ name: trait.name, low: low(k), high: high(k) })),
    x: { label: "", domain: [0, columns.length - 1], tight: true, names: true }, y: { domain: [0, 1], tight: true },
    marks: lines.map((line) => ({ kind: "line", class: best.has(line.trial) ? "lit many" : "c0 many faded", data: data(line) })),
    points: lines.map((line) => ({ x: columns.length - 1, y: places[columns.length - 1].at(line.value), r: 0, trial: line.trial, tip: () => [...trialTip(source, line.trial), ...traits.map((trait) => `${trait.name} ${shownCell(line.cells[found.traits.indexOf(trait)])}`)] })),
  }));
}
