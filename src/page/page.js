/* The page of runs: tables and charts over what the library put into it, or, where it is served, over what comes in. */
"use strict";

const COLORS = ["#0969da", "#cf222e", "#1a7f37", "#8250df", "#bf8700", "#0a7ea4", "#bc4c00", "#a02f6f", "#57606a",
                "#6e7781"];
const FORMATS = {fp32: "#57606a", tf32: "#8c959f", bf16: "#0969da", fp16: "#bc4c00", fp8_e4m3: "#8250df",
                 fp8_e5m2: "#a02f6f"};
const formats = prefix => Object.keys(FORMATS).map(name => prefix + name);
/* What is drawn together, and what has an axis of its own; names that are not here follow. */
const TOGETHER = [["loss", "val_loss"], ["accuracy", "val_accuracy"], ["grad_norm"], ["scale"], ["samples_s"],
                  ["memory"], ["lr"], ["skipped"], formats("share_values_"), formats("share_bytes_")];
const TITLES = {loss: "loss (thin: training, thick: validation)", accuracy: "accuracy (thin: training, thick: validation)",
                grad_norm: "gradient norm", scale: "loss scale", samples_s: "samples/s", memory: "memory",
                lr: "learning rate", skipped: "skipped updates", checkpoint_stall: "seconds waited for checkpoints",
                energy: "energy in joules"};
const SHARED = /^share_(values|bytes)_/;
const SHARES = {share_values_: "share of each format, by values", share_bytes_: "share of each format, by bytes"};

function titleOf(name) {
    const share = Object.keys(SHARES).find(prefix => name.startsWith(prefix));
    return share ? SHARES[share] : TITLES[name] ?? name;
}

/** Which color a format has. */
function addKey(chart, format) {
    const key = make("i", " ■ " + format);
    key.style.color = FORMATS[format];
    chart.caption.append(key);
}

/** Formats of a single run are told apart by their color, runs by theirs. */
function colorOf(run, name, alone) {
    const format = name.replace(SHARED, "");
    return alone && format !== name && FORMATS[format] ? FORMATS[format] : run.color;
}
const NOT_DRAWN = new Set(["step", "time", "epoch"]);
/* Of these a row that has none was not finite; of all others it was just not there. */
const ALWAYS_THERE = new Set(["loss", "grad_norm"]);
/* Marks of what was done and found out; alerts are told apart by their severity. */
const KINDS = {decision: "#8250df", diagnosis: "#0a7ea4"};
const state = {runs: [], charts: [], heat: null, x: "step", y: "linear", smooth: 0, range: null, sides: false};

/* ---- reading ---- */

function decode(text, type) {
    const letters = atob(text), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++)
        bytes[i] = letters.charCodeAt(i);
    return new type(bytes.buffer);
}

/** Where a run's time or steps are, columns are numbers of eight bytes; all others of four. */
function columnType(name) {
    return NOT_DRAWN.has(name) ? Float64Array : Float32Array;
}

function addRuns(list) {
    for (const run of list) {
        Object.assign(run, {folder: run.name, columns: {}, layers: [], shown: true, read: [0, 0, 0], rows: 0});
        run.color = COLORS[sideOf(run) ?? state.runs.length % COLORS.length];
        state.runs.push(run);
    }
    shortenNames();
}

/** Of a comparison: 0 for runs of A, 1 for those of B, which have one color each; undefined elsewhere. */
function sideOf(run) {
    const side = state.sides ? /-([ab])$/.exec(run.folder) : null;
    return side ? "ab".indexOf(side[1]) : undefined;
}

function readRuns() {
    addRuns(JSON.parse(document.getElementById("data").textContent));
    for (const element of document.querySelectorAll("script[data-run]")) {
        const name = element.dataset.column;
        state.runs[+element.dataset.run].columns[name] = decode(element.textContent.trim(), columnType(name));
        element.remove(); // it is large, and no longer needed
    }
    for (const element of document.querySelectorAll("script[data-layers]")) {
        state.runs[+element.dataset.layers].layers = JSON.parse(element.textContent);
        element.remove();
    }
}

/** Folders that all runs lie in say nothing. */
function shortenNames() {
    const parts = state.runs.map(run => run.folder.split("/"));
    let same = 0;
    while (parts.length && parts.every(p => p.length > same + 1 && p[same] === parts[0][same]))
        same++;
    state.runs.forEach((run, i) => {
        run.name = parts[i].slice(same).join("/");
    });
}

/* ---- small helpers ---- */

function make(tag, text, cls) {
    const element = document.createElement(tag);
    if (text !== undefined)
        element.textContent = text;
    if (cls)
        element.className = cls;
    return element;
}

function table(parent, title, head, rows) {
    const box = make("div", undefined, "table"), t = make("table"), line = make("tr");
    parent.append(make("h2", title), box);
    box.append(t);
    t.append(line);
    head.forEach((cell, i) => {
        const number = rows.length && (typeof rows[0][i] === "number" || rows[0][i].className === "number");
        line.append(make("th", cell, number ? "number" : undefined));
    });
    for (const row of rows) {
        const tr = make("tr");
        t.append(tr);
        for (const cell of row)
            tr.append(cell instanceof Node ? cell : typeof cell === "number" ? make("td", show(cell), "number")
                                                                             : make("td", cell));
    }
}

function show(value) {
    return value - value !== 0 ? "–" : Chart.text(value);
}

function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    return value - value !== 0 ? "–" : +value.toPrecision(4) + " " + units[unit];
}

function finite(column) {
    return column ? column.filter(v => v - v === 0) : [];
}

function last(column) {
    for (let i = (column?.length ?? 0) - 1; i >= 0; i--)
        if (column[i] - column[i] === 0)
            return column[i];
    return NaN;
}

function mean(values) {
    let sum = 0;
    for (const v of values)
        sum += v;
    return values.length ? sum / values.length : NaN;
}

function least(column) {
    let found = NaN;
    for (const v of column ?? [])
        if (!(v >= found))
            found = v - v === 0 ? v : found;
    return found;
}

/** The standard error of a mean. */
function errorOfMean(values) {
    const middle = mean(values);
    let squares = 0;
    for (const v of values)
        squares += (v - middle) ** 2;
    return Math.sqrt(squares / (values.length - 1) / values.length);
}

/** The last tenth of the values against the tenth before it; a change within their scatter is none. */
function trend(column) {
    const values = finite(column), part = Math.floor(values.length / 10);
    if (part < 3)
        return "–";
    const now = values.slice(-part), before = values.slice(-2 * part, -part);
    const change = (mean(now) - mean(before)) / Math.abs(mean(before));
    const scatter = Math.hypot(errorOfMean(now), errorOfMean(before)) / Math.abs(mean(before));
    if (!(Math.abs(change) >= 0.005 && Math.abs(change) > 2 * scatter))
        return "→ steady";
    return (change > 0 ? "↑ +" : "↓ ") + (100 * change).toFixed(1) + "%";
}

/* ---- tables ---- */

function swatch(run) {
    const cell = make("td"), label = make("label"), box = make("input"), color = make("span", undefined, "swatch");
    box.type = "checkbox";
    box.checked = run.shown;
    box.addEventListener("change", () => {
        run.shown = box.checked;
        drawCharts();
    });
    color.style.background = run.color;
    label.append(box, " ", color, run.name);
    cell.append(label);
    return cell;
}

function showRuns() {
    const language = state.runs.some(run => run.language && run.columns.val_loss);
    const rows = state.runs.map(run => {
        const c = run.columns, alerts = run.events.filter(e => e.severity !== "info").length;
        return [swatch(run), run.model, run.precision, last(c.step), last(c.loss), least(c.val_loss),
                100 * last(c.val_accuracy ?? c.accuracy), last(c.samples_s),
                make("td", bytes(last(c.memory)), "number"), alerts, run.state,
                ...language ? [Math.exp(least(c.val_loss))] : []];
    });
    const section = document.getElementById("runs");
    section.replaceChildren();
    table(section, "Runs", ["run", "model", "precision", "steps", "loss", "best validation", "accuracy %", "samples/s",
                            "memory", "alerts", "state", ...language ? ["best perplexity"] : []], rows);
}

/** What a reader wants to know first: did it work? */
function showVerdicts() {
    const section = document.getElementById("verdicts");
    section.replaceChildren();
    if (document.getElementById("lead-data"))
        return; // the page has a verdict of its own
    for (const run of state.runs.slice(0, 12)) {
        const name = state.runs.length > 1 ? run.name + ": " : "";
        const kept = run.predictions?.step, best = kept < last(run.columns.step);
        if (run.verdict)
            section.append(make("p", name + run.state + "; " + run.verdict, "verdict " + run.mood),
                           make("p", run.model + " in " + run.precision + (run.data ? ", trained on " + run.data : "") +
                                     (best ? `; the weights are the best ones, of step ${kept}` : "")));
    }
}

/** The settings that differ from their defaults; of several runs those that differ between them. */
function showSettings() {
    const section = document.getElementById("settings"), runs = state.runs.slice(0, 8);
    section.replaceChildren();
    const maps = runs.map(run => new Map(run.settings ?? []));
    const keys = [...new Set(maps.flatMap(map => [...map.keys()]))].filter(
        key => runs.length === 1 || key !== "out" && maps.some(map => map.get(key) !== maps[0].get(key)));
    if (keys.length)
        table(section, runs.length === 1 ? "Settings other than the defaults" : "Settings that differ between the runs",
              ["setting", ...runs.map(run => run.name)],
              keys.map(key => [key, ...maps.map(map => make("td", map.get(key) ?? "default", "text"))]));
}

function showProblems() {
    const section = document.getElementById("problems");
    section.replaceChildren();
    for (const run of state.runs)
        for (const problem of run.problems)
            section.append(make("p", run.name + ": " + problem, "problem"));
}

function showAlerts() {
    const all = [], counts = new Map();
    for (const run of state.runs)
        for (const event of run.events) {
            const key = event.kind + "\t" + event.cause + "\t" + event.severity;
            counts.set(key, (counts.get(key) ?? 0) + 1);
            all.push([run, event]);
        }
    const section = document.getElementById("alerts");
    section.replaceChildren();
    if (!all.length)
        return;
    table(section, "What happened, by cause", ["kind", "cause", "severity", "times"],
          [...counts].map(([key, count]) => [...key.split("\t"), count]));
    all.sort((a, b) => (a[1].time ?? 0) - (b[1].time ?? 0));
    const rows = all.slice(-50).reverse().map(([run, e]) => [run.name, e.step, make("td", e.severity, e.severity),
        e.kind, e.cause, e.layer ?? "", make("td", e.text ?? "", "text")]);
    table(section, "The last alerts and decisions", ["run", "step", "severity", "kind", "cause", "layer", ""], rows);
}

/** One remedy a cause, for what was worth a warning. */
function showAdvice() {
    const section = document.getElementById("advice"), rows = [];
    const remedies = JSON.parse(document.getElementById("remedies").textContent);
    for (const run of state.runs)
        for (const cause of new Set(run.events.filter(e => e.severity !== "info").map(e => e.cause)))
            rows.push([run.name, cause, make("td", remedies[cause] ?? "", "text")]);
    section.replaceChildren();
    if (rows.length)
        table(section, "What to do", ["run", "cause", ""], rows);
}

function unitOrDash(name, value) {
    return value - value !== 0 ? "–" : withUnit(name, value);
}

function showFigures() {
    const rows = [];
    for (const run of state.runs)
        for (const [name, column] of Object.entries(run.columns))
            if (!NOT_DRAWN.has(name))
                rows.push([run.name, name, make("td", unitOrDash(name, last(column)), "number"),
                           make("td", unitOrDash(name, mean(finite(column))), "number"), trend(column)]);
    const section = document.getElementById("figures");
    section.replaceChildren();
    table(section, "Figures", ["run", "metric", "now", "mean", "trend"], rows.slice(0, 400));
}

/* ---- charts ---- */

function groups() {
    const known = new Set(TOGETHER.flat()), names = new Set();
    for (const run of state.runs)
        Object.keys(run.columns).forEach(name => names.add(name));
    const rest = [...names].filter(name => !known.has(name) && !NOT_DRAWN.has(name)).map(name => [name]);
    return [...TOGETHER, ...rest].map(group => group.filter(name => names.has(name) && moves(name)))
                                 .filter(group => group.length);
}

/** What hardly changes is a line of text, not a chart. */
function moves(name) {
    return state.runs.some(run => {
        const values = run.columns[name] ?? [], least = name === "checkpoint_stall" ? 1 : 0; // a second
        let low = Infinity, high = -Infinity;
        for (const v of values) {
            if (v - v !== 0)
                continue;
            low = v < low ? v : low;
            high = v > high ? v : high;
            if (high >= least && high - low > 0.001 * Math.max(high, -low))
                return true; // seldom far from the beginning
        }
        return name === "loss" && values.length > 0;
    });
}

/** A figure in its unit, as on the axes. */
function withUnit(name, value) {
    return name === "memory" ? bytes(value) : SHARED.test(name) ? (100 * value).toFixed(1) + "%" : Chart.text(value);
}

/** What stayed as it was, and what the marks in charts mean. */
function showFlat() {
    const section = document.getElementById("flat"), words = [];
    section.replaceChildren();
    for (const run of state.runs.slice(0, 4)) {
        const names = Object.keys(run.columns).filter(
            name => !NOT_DRAWN.has(name) && name !== "checkpoint_stall" && !moves(name));
        const texts = names.filter(name => last(run.columns[name]) - last(run.columns[name]) === 0)
                           .map(name => (SHARED.test(name) ? name.replace(SHARED, "share of $1 in ")
                                                           : titleOf(name).replace(/ \(.*/, "")) + " " +
                                        withUnit(name, last(run.columns[name])));
        if (texts.length)
            words.push((state.runs.length > 1 ? run.name + ": " : "") + "the same throughout: " + texts.join(", "));
    }
    for (const text of words)
        section.append(make("p", text));
    const marks = state.runs.flatMap(marksOf), legend = make("p");
    for (const [color, name] of [["#cf222e", "critical alert"], ["#bf8700", "warning"], [KINDS.decision, "decision"],
                                 [KINDS.diagnosis, "diagnosis"]])
        if (marks.some(mark => mark.color === color)) {
            const key = make("i", "▼ " + name);
            key.style.color = color;
            legend.append(key);
        }
    if (legend.childNodes.length)
        section.append(legend);
}

function zoom(from, to) {
    state.range = from === null ? null : [from, to];
    for (const chart of state.charts)
        chart.view(from, to);
    state.heat?.map.view(from, to);
}

/** What happened within some pixels of a place. */
function marksNear(chart, at) {
    const near = chart.marks.filter(mark => Math.abs(chart.px(mark.x) - chart.px(at)) < 6);
    return [...new Set(near.map(mark => mark.text))].slice(0, 2);
}

function hover(chart, at) {
    const words = [];
    for (const s of at === null ? [] : chart.series) {
        let i = Chart.find(s.x, at);
        if (i > 0 && (i === s.x.length || at - s.x[i - 1] < s.x[i] - at))
            i--;
        if (i < s.x.length && words.length < 4 && s.y[i] - s.y[i] === 0)
            words.push((words.length ? "" : state.x + " " + Chart.text(s.x[i]) + ": ") + s.name + " " +
                       +s.y[i].toPrecision(6));
    }
    tellAt(chart, [...at === null ? [] : marksNear(chart, at), ...words]);
}

function tellAt(chart, words) {
    const note = chart.caption.querySelector("span") ?? chart.caption.appendChild(make("span"));
    note.textContent = words.length ? "  " + words.join(", ") : "";
}

function makeCharts() {
    const section = document.getElementById("charts");
    section.replaceChildren();
    state.charts = groups().map(group => {
        const chart = new Chart(section, {title: titleOf(group[0]), onZoom: zoom, onHover: hover,
                                          text: value => withUnit(group[0], value)});
        chart.group = group;
        for (const name of group.filter(name => SHARED.test(name)))
            addKey(chart, name.replace(SHARED, ""));
        return chart;
    });
    drawCharts();
}

function marksOf(run) {
    return run.events.filter(e => e.severity !== "info" || e.kind !== "alert").map(e => ({
        x: state.x === "step" ? e.step : e.time, layer: e.layer,
        text: [e.kind, e.cause, e.layer, e.text].filter(word => word).join(" · "),
        color: KINDS[e.kind] ?? (e.severity === "critical" ? "#cf222e" : "#bf8700")}));
}

function drawCharts() {
    const shown = state.runs.filter(run => run.shown && run.columns[state.x]);
    for (const chart of state.charts) {
        const series = [];
        chart.options.log = state.y === "log";
        chart.options.below = state.x === "step" ? "step" : "seconds";
        chart.options.smooth = state.smooth;
        for (const run of shown)
            for (const name of chart.group)
                if (run.columns[name])
                    series.push({name: shown.length > 1 || chart.group.length > 1 ? run.name + " " + name : name,
                                 color: colorOf(run, name, shown.length === 1), x: run.columns[state.x],
                                 y: run.columns[name],
                                 thin: chart.group.length > 1 && !/^(val|share)_/.test(name),
                                 sparse: !ALWAYS_THERE.has(name)});
        chart.range = state.range;
        chart.set(series, shown.flatMap(marksOf));
    }
    makeHeat();
    drawHeat();
    showFlat();
}

/* ---- layers × time ---- */

const TENSORS = {activations: "outputs of layers", gradients: "gradients of those outputs",
                 parameters: "gradients of parameters"};

/** The newest names decide which rows the map has: a change of policy may bring others. */
function heatData(run, tensor, measure) {
    const known = run.layers.filter(row => row.names), x = [], rows = [], values = [];
    const named = tensor === "parameters" ? "parameters" : "layers";
    const last = known.length ? known[known.length - 1].names : {};
    const names = Array.isArray(last[named]) ? last[named].map(String) : [];
    let here = [];
    for (const row of run.layers) {
        if (row.names) {
            const now = (row.names[named] ?? []).map(String);
            here = names.map(name => now.indexOf(name));
            continue;
        }
        const column = row[tensor]?.[measure], at = state.x === "step" ? row.step : timeOf(run, row.step);
        if (!Array.isArray(column) || !(at - at === 0))
            continue;
        x.push(at);
        rows.push(row);
        values.push(here.map(i => typeof column[i] === "number" ? column[i] : NaN));
    }
    return {names, x, values, rows, formats: Array.isArray(last[tensor]) ? last[tensor] : []};
}

/** Rows of layers have no time: that of the metrics' row is taken. */
function timeOf(run, step) {
    const c = run.columns;
    return c.step && c.time && c.step.length ? c.time[Math.min(c.step.length - 1, Chart.find(c.step, step))] : NaN;
}

function hoverHeat(map, at, y) {
    const data = map.data, words = [], row = map.rowAt(y);
    let i = at === null ? -1 : Chart.find(data.x, at);
    i = i > 0 && (i === data.x.length || data.x[i] > at) ? i - 1 : i;
    if (i >= 0 && i < data.x.length && row >= 0 && row < data.names.length) {
        const value = data.values[i][row];
        words.push(data.names[row] + (data.formats[row] ? " (" + data.formats[row] + ")" : ""),
                   "step " + data.rows[i].step,
                   value - value === 0 ? map.measure.text(value) : "nothing to show, or all are 0");
    }
    tellAt(map, [...at === null ? [] : marksNear(map, at), ...words]);
}

function select(parent, label, options, changed) {
    const box = make("label", label + " "), list = make("select");
    for (const [value, text] of options) {
        const option = make("option", text);
        option.value = value;
        list.append(option);
    }
    list.addEventListener("change", changed);
    box.append(list);
    parent.append(box);
    return list;
}

/** The map of the runs that have layers; again where there are more of them. */
function makeHeat() {
    const section = document.getElementById("layers"), known = state.runs.filter(run => run.layers.length);
    const key = known.map(run => run.folder).join();
    if (key === (state.heat?.key ?? ""))
        return;
    section.replaceChildren();
    const controls = make("p"), heat = {key};
    section.append(make("h2", "Layers over time"), controls);
    heat.run = select(controls, "run", known.map(run => [state.runs.indexOf(run), run.name]), drawHeat);
    heat.tensor = select(controls, "of", Object.entries(TENSORS), drawHeat);
    heat.measure = select(controls, "show", Object.entries(HEAT_MEASURES).map(([name, m]) => [name, m.title]), drawHeat);
    heat.map = new Heat(section, {onZoom: zoom, onHover: hoverHeat});
    state.heat = heat;
}

function drawHeat() {
    const heat = state.heat;
    if (!heat)
        return;
    const parameters = heat.tensor.value === "parameters";
    for (const option of heat.measure.options)
        option.disabled = parameters && (option.value === "margin" || option.value === "flushed");
    if (heat.measure.selectedOptions[0].disabled)
        heat.measure.value = "zero";
    const run = state.runs[+heat.run.value], measure = HEAT_MEASURES[heat.measure.value];
    const data = heatData(run, heat.tensor.value, heat.measure.value);
    heat.map.caption.textContent = run.name + ": " + measure.title + ", " + TENSORS[heat.tensor.value] +
                                   (data.x.length ? "" : " – no rows of these");
    heat.map.range = state.range;
    heat.map.set(data, measure, marksOf(run));
}

/* ---- a page that is served: rows as they come ---- */

function ask(path, query) {
    const token = new URLSearchParams(location.search).get("token");
    return fetch(path + "?" + new URLSearchParams({...query, token}));
}

/** Room for one more row in every column, old rows of a new column not there. */
function appendRow(run, row) {
    for (const name of Object.keys(row))
        if ((typeof row[name] === "number" || row[name] === null) && !run.store[name])
            run.store[name] = new (columnType(name))(1024).fill(NaN);
    for (const [name, column] of Object.entries(run.store)) {
        if (run.rows === column.length) {
            const larger = new (columnType(name))(2 * column.length).fill(NaN);
            larger.set(column);
            run.store[name] = larger;
        }
        run.store[name][run.rows] = row[name] ?? NaN;
    }
    run.rows++;
}

function wholeRows(text) {
    const rows = [];
    for (const line of text.split("\n"))
        try {
            if (line)
                rows.push(JSON.parse(line));
        } catch {
            // damaged: left out, as everywhere
        }
    return rows.filter(row => row && typeof row.step === "number");
}

/** Brings a run up to the sizes of its files; one that was cut back, by a resume, begins anew. */
async function follow(index, sizes) {
    const run = state.runs[index];
    if (sizes.some((size, which) => size < run.read[which]))
        Object.assign(run, {read: [0, 0, 0], rows: 0, columns: {}, store: {}, events: [], layers: []});
    run.store ??= {};
    const before = run.read.join();
    for (const [which, path] of [[0, "/metrics"], [1, "/events"], [2, "/layers"]])
        while (run.read[which] < sizes[which]) {
            const answer = await ask(path, {run: index, from: run.read[which]});
            const data = answer.ok ? await answer.arrayBuffer() : new ArrayBuffer(0);
            if (!data.byteLength)
                break; // its last row is being written
            run.read[which] += data.byteLength;
            const rows = wholeRows(new TextDecoder().decode(data));
            if (which === 0)
                rows.forEach(row => appendRow(run, row));
            else if (which === 1)
                rows.forEach(row => run.events.push({...row, text: row.evidence?.text}));
            else
                rows.forEach(row => run.layers.push(row));
        }
    for (const [name, column] of Object.entries(run.store))
        run.columns[name] = column.subarray(0, run.rows);
    return before !== run.read.join();
}

async function hearSizes(sizes) {
    const known = state.runs.length;
    const list = await (await ask("/runs", {})).json();
    list.slice(0, known).forEach((run, i) => {
        Object.assign(state.runs[i], {state: run.state, verdict: run.verdict, mood: run.mood,
                                      predictions: run.predictions});
    });
    addRuns(list.slice(known));
    let news = known !== state.runs.length;
    for (let i = 0; i < Math.min(sizes.length, state.runs.length); i++)
        news = await follow(i, sizes[i]) || news;
    const charts = groups().flat().join();
    if (charts !== state.drawn)
        makeCharts();
    else if (news)
        drawCharts();
    state.drawn = charts;
    showTitle();
    showTables();
}

function listenLive() {
    const token = new URLSearchParams(location.search).get("token"), live = document.getElementById("live");
    const source = new EventSource("/messages?" + new URLSearchParams({token}));
    let busy = false, waiting = null;
    source.onmessage = async event => {
        waiting = JSON.parse(event.data);
        live.textContent = "live";
        while (!busy && waiting) { // what comes in between is in the newest
            const sizes = waiting;
            waiting = null;
            busy = true;
            await hearSizes(sizes).catch(error => {
                live.textContent = String(error);
            });
            busy = false;
        }
        document.body.dataset.rows = state.runs.reduce((sum, run) => sum + run.rows, 0);
    };
    source.onerror = () => {
        live.textContent = "mixt watch has ended: what is shown no longer changes";
    };
}

/** @param {string} given where the page is of more than runs */
function showTitle(given) {
    const names = state.runs.map(run => run.name);
    const title = given ?? (names.length === 1 ? names[0] : names.length + " runs");
    document.getElementById("title").textContent = title;
    document.title = "mixt: " + title;
}

function showTables() {
    showVerdicts();
    showProblems();
    showRuns();
    showPredictions();
    showAdvice();
    showAlerts();
    showFigures();
    showSettings();
}

function start() {
    state.sides = JSON.parse(document.getElementById("lead-data")?.textContent ?? "{}").sides === true;
    readRuns();
    showTitle(showLead());
    document.getElementById("x").addEventListener("change", event => {
        state.x = event.target.value;
        state.range = null;
        drawCharts();
    });
    document.getElementById("y").addEventListener("change", event => {
        state.y = event.target.value;
        drawCharts();
    });
    document.getElementById("smooth").addEventListener("change", event => {
        state.smooth = +event.target.value;
        drawCharts();
    });
    document.getElementById("reset").addEventListener("click", () => zoom(null, null));
    let waiting = 0;
    window.addEventListener("resize", () => {
        clearTimeout(waiting);
        waiting = setTimeout(drawCharts, 60);
    });
    showTables();
    makeCharts();
    if (document.getElementById("data").dataset.live)
        listenLive();
    document.body.dataset.ready = String(Math.round(performance.now())); // for those who wait for it
}

start();
