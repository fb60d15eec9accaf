/* What a run predicts on its validation part: which classes are taken for which, or targets beside predictions. */
"use strict";

/** A cell as dark as its share of its row: green where the prediction is right, red where it is not. */
function confusionCell(count, share, right) {
    const cell = make("td", count ? String(count) : "·", "number count");
    if (count)
        cell.style.background = (right ? "rgba(26, 127, 55, " : "rgba(207, 34, 46, ") + (0.08 + 0.5 * share).toFixed(2) + ")";
    return cell;
}

function showConfusion(section, found) {
    const head = ["true \\ predicted", ...found.classes, "right"];
    table(section, "Confusion matrix (rows: true, columns: predicted)", head, found.confusion.map((row, i) => {
        const all = row.reduce((sum, count) => sum + count, 0);
        return [make("td", found.classes[i], "name"),
                ...row.map((count, j) => confusionCell(count, all ? count / all : 0, i === j)),
                make("td", all ? (100 * row[i] / all).toFixed(1) + "%" : "–", "number")];
    }));
}

/** An element of a picture: attributes are numbers and words of ours. */
function shape(picture, name, attributes, words) {
    const made = document.createElementNS(document.getElementById("drawing").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes))
        made.setAttribute(key, value);
    if (words)
        made.textContent = words;
    picture.append(made);
    return made;
}

/** Targets along x, predictions along y: good ones lie on the diagonal. */
function showScatter(section, pairs) {
    const SIDE = 320, LEFT = 70, BELOW = 40, TOP = 5, all = pairs.flat();
    const low = all.reduce((a, b) => Math.min(a, b)), high = all.reduce((a, b) => Math.max(a, b));
    const at = value => high > low ? SIDE * (value - low) / (high - low) : SIDE / 2;
    const picture = shape(section, "svg", {width: LEFT + SIDE + 20, height: SIDE + BELOW + TOP, class: "scatter", role: "img"});
    const text = (x, y, anchor, words) => shape(picture, "text", {x, y, "text-anchor": anchor}, words);
    shape(picture, "rect", {x: LEFT, y: TOP, width: SIDE, height: SIDE, class: "frame"});
    shape(picture, "line", {x1: LEFT, y1: SIDE + TOP, x2: LEFT + SIDE, y2: TOP, class: "diagonal"});
    for (const [target, prediction] of pairs)
        shape(picture, "circle", {cx: (LEFT + at(target)).toFixed(1), cy: (SIDE + TOP - at(prediction)).toFixed(1), r: 3});
    text(LEFT, SIDE + 20, "start", Chart.text(low));
    text(LEFT + SIDE, SIDE + 20, "end", Chart.text(high));
    text(LEFT + SIDE / 2, SIDE + 36, "middle", "target");
    text(LEFT - 6, SIDE + TOP, "end", Chart.text(low));
    text(LEFT - 6, 14, "end", Chart.text(high));
    text(LEFT - 6, SIDE / 2, "end", "predicted");
}

function showValues(section, pairs) {
    section.append(make("h2", "Targets and predictions (on the diagonal: exact)"));
    const box = make("div", undefined, "beside"), list = make("div");
    section.append(box);
    showScatter(box, pairs);
    box.append(list);
    table(list, "Examples", ["target", "predicted", "error"],
          pairs.slice(0, 10).map(([target, prediction]) => [target, prediction, prediction - target]));
}

/** A line of figures, then what there is of pairs. Files may be damaged: what is not as expected is not shown. */
function showPredictions() {
    const section = document.getElementById("predictions");
    section.replaceChildren();
    for (const run of state.runs.slice(0, 4)) {
        const found = run.predictions, list = value => Array.isArray(value) && value.length > 0;
        if (!found)
            continue;
        const words = [["accuracy", 100], ["f1", 100], ["mae", 0], ["rmse", 0], ["r2", 0]].filter(
            ([name]) => typeof found[name] === "number").map(([name, percent]) => (name === "accuracy" ? name : name.toUpperCase()) + " " +
            (percent ? (percent * found[name]).toFixed(2) + "%" : Chart.text(found[name])));
        section.append(make("h2", (state.runs.length > 1 ? run.name + ": p" : "P") + "redictions on the validation part"),
                       make("p", `${words.join(", ")} over ${found.samples} samples, with the weights of step ${found.step}`));
        if (list(found.confusion) && list(found.classes) && found.confusion.every(row => list(row)))
            showConfusion(section, found);
        else if (list(found.mistakes))
            table(section, "Most frequent mistakes", ["true", "predicted", "samples"], found.mistakes);
        else if (list(found.values) && found.values.every(pair => list(pair) && pair.every(Number.isFinite)))
            showValues(section, found.values);
    }
}
