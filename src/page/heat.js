/* A map of layers × time on a canvas: a row of cells for each layer, a column for each update that was looked into. Where
 * several fall into one column of pixels, the worst of them is drawn, so that one bad update is seen from any distance.
 *
 *   const heat = new Heat(element, {onZoom, onHover});
 *   heat.set({names, x: [...], values: [[...] by column]}, HEAT_MEASURES.margin, marks);
 *   heat.view(from, to);      // null: everything
 */
"use strict";

/* Colors from one end to the other; what is bad is at the first end. */
const BAD_TO_GOOD = ["#a50026", "#e34a33", "#fdae61", "#fee08b", "#b8dfa8", "#5aae8a", "#2b7a8c"];
const LITTLE_TO_MUCH = ["#f7f4e9", "#d9e3c4", "#9fcdb3", "#5aa9a8", "#33729c", "#31407f", "#2a1151"];
/* What can be shown of a tensor: how it is read aloud, which of two is worse, and the range of its colors. */
const HEAT_MEASURES = {
    margin: {title: "margin to overflow, in powers of two", worst: Math.min, colors: BAD_TO_GOOD, from: 0, to: 16,
             text: v => v.toFixed(1)},
    zero: {title: "share of zeros", worst: Math.max, colors: LITTLE_TO_MUCH, from: 0, to: 1, text: percent},
    flushed: {title: "share flushed to zero", worst: Math.max, colors: [...BAD_TO_GOOD].reverse(), from: 0, to: 0.5,
              text: percent},
    nonfinite: {title: "share of NaN and Inf", worst: Math.max, colors: [...BAD_TO_GOOD].reverse(), from: 0, to: 0.01,
                text: percent},
    amax: {title: "largest magnitude", worst: Math.max, colors: LITTLE_TO_MUCH, log: true, text: v => v.toPrecision(4)},
    rms: {title: "root of the mean square", worst: Math.max, colors: LITTLE_TO_MUCH, log: true,
          text: v => v.toPrecision(4)},
};

function percent(value) {
    return +(100 * value).toPrecision(3) + "%";
}

/** A chart with cells instead of lines: zooming and the mouse are the chart's. */
class Heat extends Chart {
    constructor(parent, options) {
        super(parent, {title: "", ...options});
        this.data = {names: [], x: [], values: []};
        this.measure = HEAT_MEASURES.margin;
    }

    set(data, measure, marks) {
        this.data = data;
        this.measure = measure;
        this.marks = marks;
        this.draw();
    }

    /** The row at a height of the canvas; there may be no such row. */
    rowAt(y) {
        return Math.floor((y - this.plot.top) / this.cell);
    }

    /* ---- where things are ---- */

    /** A cell reaches from its update to the next one. */
    bounds() {
        const x = this.data.x;
        if (this.range)
            return this.range;
        if (!x.length)
            return [0, 1];
        return [x[0], x[x.length - 1] + this.width(x.length - 1)];
    }

    width(column) {
        const x = this.data.x;
        return x.length < 2 ? 1 : column + 1 < x.length ? x[column + 1] - x[column] : x[x.length - 1] - x[x.length - 2];
    }

    /** The range of the colors: fixed, or that of the numbers. */
    limits() {
        const m = this.measure;
        if (!m.log)
            return [m.from, m.to];
        let low = Infinity, high = -Infinity;
        for (const column of this.data.values)
            for (const v of column)
                if (v > 0 && v < Infinity) {
                    low = Math.min(low, v);
                    high = Math.max(high, v);
                }
        return low > high ? [0, 1] : [Math.log10(low), Math.log10(low === high ? 10 * high : high)];
    }

    color(value) {
        const v = this.measure.log ? Math.log10(value) : value, [low, high] = this.shown;
        const share = Math.min(1, Math.max(0, (v - low) / (high - low))), colors = this.measure.colors;
        const at = share * (colors.length - 1), i = Math.min(colors.length - 2, Math.floor(at));
        const part = (from, to) => Math.round(from + (to - from) * (at - i));
        const rgb = c => [1, 3, 5].map(k => parseInt(c.slice(k, k + 2), 16));
        const a = rgb(colors[i]), b = rgb(colors[i + 1]);
        return `rgb(${part(a[0], b[0])} ${part(a[1], b[1])} ${part(a[2], b[2])})`;
    }

    /* ---- drawing ---- */

    draw() {
        const rows = this.data.names.length, width = this.element.clientWidth, ratio = window.devicePixelRatio || 1;
        if (!width)
            return;
        this.cell = Math.max(4, Math.min(18, Math.floor(640 / Math.max(1, rows))));
        const c = this.canvas.getContext("2d"), style = getComputedStyle(this.element);
        c.font = "11px system-ui, sans-serif";
        const left = 12 + Math.min(260, Math.max(40, ...this.data.names.map(name => c.measureText(name).width)));
        const height = rows * this.cell, top = 34, bottom = 26;
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round((height + top + bottom) * ratio);
        this.canvas.style.height = height + top + bottom + "px";
        c.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.plot = {left, top, width: Math.max(10, width - left - 12), height};
        [this.from, this.to] = this.bounds();
        this.shown = this.limits();
        this.ink = style.getPropertyValue("--ink").trim() || "#333";
        this.faint = style.getPropertyValue("--faint").trim() || "#ddd";
        this.drawLegend(c);
        this.drawCells(c);
        this.drawMarks(c);
        this.drawAxes(c);
    }

    /** Cells of the columns of pixels that they fall into; a wide one takes several. */
    drawCells(c) {
        const p = this.plot, x = this.data.x;
        c.fillStyle = this.faint;
        c.fillRect(p.left, p.top, p.width, p.height);
        for (let i = 0; i < x.length;) {
            const from = Math.max(p.left, Math.floor(this.px(x[i])));
            let end = i + 1;
            while (end < x.length && Math.floor(this.px(x[end])) <= from)
                end++; // these share the column
            const to = Math.min(p.left + p.width, Math.max(from + 1, Math.floor(this.px(x[end - 1] + this.width(end - 1)))));
            if (to > p.left && from < p.left + p.width)
                this.drawColumn(c, from, to, i, end);
            i = end;
        }
    }

    drawColumn(c, from, to, first, end) {
        const p = this.plot, gap = this.cell > 6 ? 1 : 0;
        for (let row = 0; row < this.data.names.length; row++) {
            let value = NaN;
            for (let k = first; k < end; k++) {
                const v = this.data.values[k][row];
                if (v - v === 0)
                    value = value - value === 0 ? this.measure.worst(value, v) : v;
            }
            if (value - value !== 0 || (this.measure.log && value <= 0))
                continue;
            c.fillStyle = this.color(value);
            c.fillRect(from, p.top + row * this.cell, to - from, this.cell - gap);
        }
    }

    drawMarks(c) {
        for (const mark of this.marks) {
            const x = this.px(mark.x), row = this.data.names.indexOf(mark.layer);
            if (!(x >= this.plot.left && x <= this.plot.left + this.plot.width))
                continue;
            c.fillStyle = c.strokeStyle = mark.color;
            c.beginPath();
            c.moveTo(x - 5, this.plot.top - 8);
            c.lineTo(x + 5, this.plot.top - 8);
            c.lineTo(x, this.plot.top);
            c.fill();
            if (row >= 0)
                c.strokeRect(x - 3, this.plot.top + row * this.cell + 0.5, 6, this.cell - 1);
        }
    }

    drawLegend(c) {
        const width = 160, left = this.plot.left, top = 4, [low, high] = this.shown, m = this.measure;
        for (let i = 0; i < width; i++) {
            const v = low + (high - low) * i / (width - 1);
            c.fillStyle = this.color(m.log ? Math.pow(10, v) : v);
            c.fillRect(left + 40 + i, top, 1, 10);
        }
        const word = v => m.log ? Chart.text(+Math.pow(10, v).toPrecision(3)) : m.text(v);
        c.fillStyle = this.ink;
        c.textBaseline = "middle";
        c.textAlign = "right";
        c.fillText(word(low), left + 34, top + 5);
        c.textAlign = "left";
        c.fillText(word(high) + (m.log || m.to === 1 ? "" : " or more"), left + 46 + width, top + 5);
    }

    drawAxes(c) {
        const p = this.plot, every = Math.max(1, Math.ceil(12 / this.cell));
        c.fillStyle = this.ink;
        c.textAlign = "right";
        c.textBaseline = "middle";
        for (let row = 0; row < this.data.names.length; row += every) {
            let name = this.data.names[row];
            while (name.length > 4 && c.measureText(name).width > p.left - 10)
                name = "…" + name.slice(2);
            c.fillText(name, p.left - 6, p.top + (row + 0.5) * this.cell);
        }
        c.textAlign = "center";
        c.textBaseline = "top";
        for (const t of Chart.round(this.from, this.to, Math.max(2, Math.floor(p.width / 90))))
            c.fillText(Chart.text(t), this.px(t), p.top + p.height + 8);
    }
}
