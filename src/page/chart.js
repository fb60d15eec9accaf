/* A line chart on a canvas that hides nothing: where several points fall into one column of pixels, the column is drawn
 * from the least to the greatest of them, so that a spike of one step is seen from any distance. Values that are not
 * finite are ticks at the top edge. Zooming in ends at the single points.
 *
 *   const chart = new Chart(element, {title, log, text, below, smooth, onZoom, onHover});
 *   chart.set([{name, color, x: Float64Array, y: Float32Array, thin}], [{x, color, text}]);
 *   chart.view(from, to);      // null: everything
 */
"use strict";

class Chart {
    constructor(parent, options) {
        this.options = options;
        this.series = [];
        this.marks = [];
        this.range = null;
        this.margin = {left: 72, right: 12, top: 10, bottom: 36};
        this.element = document.createElement("figure");
        this.caption = document.createElement("figcaption");
        this.caption.textContent = options.title;
        this.canvas = document.createElement("canvas");
        this.element.append(this.caption, this.canvas);
        parent.append(this.element);
        this.listen();
    }

    /** Points of a series must be in ascending order of x. */
    set(series, marks) {
        this.series = series;
        this.marks = marks;
        this.draw();
    }

    view(from, to) {
        this.range = from === null ? null : [from, to];
        this.draw();
    }

    /* ---- where things are ---- */

    bounds() {
        if (this.range)
            return this.range;
        let low = Infinity, high = -Infinity;
        for (const s of this.series)
            if (s.x.length) {
                low = Math.min(low, s.x[0]);
                high = Math.max(high, s.x[s.x.length - 1]);
            }
        if (low > high)
            return [0, 1];
        return low === high ? [low - 0.5, high + 0.5] : [low, high];
    }

    /** The first index whose x is not below a value. */
    static find(x, value) {
        let low = 0, high = x.length;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (x[middle] < value)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    /** Indices of a series that matter for a view: one more to each side, for the lines that leave it. */
    static part(s, from, to) {
        return [Math.max(0, Chart.find(s.x, from) - 1), Math.min(s.x.length, Chart.find(s.x, to) + 1)];
    }

    heights(from, to) {
        let low = Infinity, high = -Infinity, positive = Infinity;
        for (const s of this.series) {
            const [first, end] = Chart.part(s, from, to), y = s.y;
            for (let i = first; i < end; i++) {
                const v = y[i];
                if (v - v !== 0) // NaN and infinities
                    continue;
                if (v < low)
                    low = v;
                if (v > high)
                    high = v;
                if (v > 0 && v < positive)
                    positive = v;
            }
        }
        if (this.options.log && positive < Infinity) {
            const a = Math.log10(positive), b = Math.log10(high), room = Math.max(0.02, 0.05 * (b - a));
            return {log: true, low: a - room, high: b + room};
        }
        if (low > high)
            return {log: false, low: 0, high: 1};
        const room = high > low ? 0.05 * (high - low) : Math.abs(high) * 0.05 || 1;
        return {log: false, low: low - room, high: high + room};
    }

    /* ---- drawing ---- */

    draw() {
        const width = this.element.clientWidth, height = 220, ratio = window.devicePixelRatio || 1;
        if (!width)
            return;
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(height * ratio);
        this.canvas.style.height = height + "px";
        const m = this.margin, c = this.canvas.getContext("2d"), style = getComputedStyle(this.element);
        c.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.plot = {left: m.left, top: m.top, width: Math.max(10, width - m.left - m.right),
                     height: height - m.top - m.bottom};
        [this.from, this.to] = this.bounds();
        this.y = this.heights(this.from, this.to);
        this.ink = style.getPropertyValue("--ink").trim() || "#333";
        this.faint = style.getPropertyValue("--faint").trim() || "#ddd";
        this.drawAxes(c);
        c.save();
        c.beginPath();
        c.rect(this.plot.left, this.plot.top, this.plot.width, this.plot.height);
        c.clip();
        for (const mark of this.marks)
            this.drawMark(c, mark);
        for (const s of this.series)
            this.drawSeries(c, s, this.options.smooth > 0 && s.x.length > 20);
        for (const s of this.options.smooth > 0 ? this.series : [])
            if (s.x.length > 20)
                this.drawSeries(c, Chart.smoothed(s, this.options.smooth), false);
        c.restore();
    }

    px(x) {
        return this.plot.left + (x - this.from) / (this.to - this.from) * this.plot.width;
    }

    py(value) {
        const v = this.y.log ? Math.log10(value) : value;
        return this.plot.top + (this.y.high - v) / (this.y.high - this.y.low) * this.plot.height;
    }

    drawMark(c, mark) {
        const x = this.px(mark.x);
        c.strokeStyle = c.fillStyle = mark.color;
        c.globalAlpha = 0.35;
        c.beginPath();
        c.moveTo(x, this.plot.top);
        c.lineTo(x, this.plot.top + this.plot.height);
        c.stroke();
        c.globalAlpha = 1;
        c.beginPath();
        c.moveTo(x - 5, this.plot.top);
        c.lineTo(x + 5, this.plot.top);
        c.lineTo(x, this.plot.top + 8);
        c.fill();
    }

    /** The mean of a share of the points around each, of finite ones. What is drawn faintly below it hides no spike. */
    static smoothed(s, share) {
        const half = Math.max(1, Math.round(share * s.x.length / 2)), y = new Float64Array(s.y.length);
        let sum = 0, count = 0;
        const add = (i, sign) => {
            if (i >= 0 && i < s.y.length && s.y[i] - s.y[i] === 0) {
                sum += sign * s.y[i];
                count += sign;
            }
        };
        for (let i = 0; i < half; i++)
            add(i, 1);
        for (let i = 0; i < y.length; i++) {
            add(i + half, 1);
            add(i - half - 1, -1);
            y[i] = count && s.y[i] - s.y[i] === 0 ? sum / count : NaN;
        }
        return {...s, y, thin: false, sparse: true};
    }

    drawSeries(c, s, faint) {
        const [first, end] = Chart.part(s, this.from, this.to);
        c.strokeStyle = c.fillStyle = s.color;
        c.lineWidth = s.thin ? 1 : 1.5;
        c.globalAlpha = faint ? 0.25 : s.thin ? 0.7 : 1;
        c.beginPath();
        if (end - first > 3 * this.plot.width)
            this.columns(c, s, first, end);
        else
            this.points(c, s, first, end);
        c.stroke();
        c.globalAlpha = 1;
        if (end - first === 1)
            c.fillRect(this.px(s.x[first]) - 2, this.py(s.y[first]) - 2, 4, 4);
    }

    /** A tick at the upper edge: here is a value that no line can show. */
    tick(c, x) {
        c.fillRect(x - 1, this.plot.top, 3, 7);
    }

    points(c, s, first, end) {
        let open = false;
        for (let i = first; i < end; i++) {
            const v = s.y[i], x = this.px(s.x[i]);
            if (v - v !== 0 || (this.y.log && v <= 0)) {
                if (v - v !== 0 && !s.sparse)
                    this.tick(c, x);
                open = open && s.sparse; // a validation is not there at every row: its line goes on
                continue;
            }
            if (open)
                c.lineTo(x, this.py(v));
            else
                c.moveTo(x, this.py(v));
            if (!open && (i + 1 === end || s.y[i + 1] - s.y[i + 1] !== 0))
                c.rect(x - 1, this.py(v) - 1, 2, 2);
            open = true;
        }
    }

    columns(c, s, first, end) {
        const left = this.plot.left, scale = this.plot.width / (this.to - this.from), log = this.y.log;
        let column = -1, low = Infinity, high = -Infinity, open = false, bad = false;
        const flush = () => {
            if (bad)
                this.tick(c, left + column);
            if (high < low)
                return;
            const top = this.py(high), bottom = Math.max(this.py(low), top + 1);
            if (open)
                c.lineTo(left + column + 0.5, bottom);
            else
                c.moveTo(left + column + 0.5, bottom);
            c.lineTo(left + column + 0.5, top);
            open = true;
        };
        for (let i = first; i < end; i++) {
            const at = Math.floor((s.x[i] - this.from) * scale), v = s.y[i];
            if (at !== column) {
                flush();
                column = at;
                low = Infinity;
                high = -Infinity;
                bad = false;
            }
            if (v - v !== 0)
                bad = !s.sparse;
            else if (!log || v > 0) {
                if (v < low)
                    low = v;
                if (v > high)
                    high = v;
            }
        }
        flush();
    }

    /* ---- axes ---- */

    static round(low, high, count) {
        const raw = (high - low) / count, power = Math.pow(10, Math.floor(Math.log10(raw))), part = raw / power;
        const step = (part < 1.5 ? 1 : part < 3.5 ? 2 : part < 7.5 ? 5 : 10) * power, ticks = [];
        for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + step * 1e-9 && ticks.length < 50; t += step)
            ticks.push(Math.abs(t) < step * 1e-9 ? 0 : t);
        return ticks;
    }

    static text(value) {
        const size = Math.abs(value);
        if (size >= 1e9)
            return +(value / 1e9).toPrecision(4) + "G";
        if (size >= 1e6)
            return +(value / 1e6).toPrecision(4) + "M";
        if (size >= 1e4)
            return +(value / 1e3).toPrecision(4) + "k";
        return size && size < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(5));
    }

    drawAxes(c) {
        const p = this.plot, y = this.y;
        c.font = "11px system-ui, sans-serif";
        c.lineWidth = 1;
        c.strokeStyle = this.faint;
        c.fillStyle = this.ink;
        c.textAlign = "right";
        c.textBaseline = "middle";
        const decades = y.log && y.high - y.low > 1.5;
        let ticks = decades ? Chart.round(y.low, y.high, 4).filter(Number.isInteger).map(e => Math.pow(10, e))
                  : y.log ? Chart.round(Math.pow(10, y.low), Math.pow(10, y.high), 4).filter(v => v > 0)
                          : Chart.round(y.low, y.high, 4);
        for (const t of ticks) {
            const at = Math.round(this.py(t)) + 0.5;
            if (!(at >= p.top && at <= p.top + p.height))
                continue;
            c.beginPath();
            c.moveTo(p.left, at);
            c.lineTo(p.left + p.width, at);
            c.stroke();
            c.fillText(this.options.text?.(t) ?? Chart.text(t), p.left - 6, at);
        }
        c.textAlign = "center";
        c.textBaseline = "top";
        for (const t of Chart.round(this.from, this.to, Math.max(2, Math.floor(p.width / 90))))
            c.fillText(Chart.text(t), this.px(t), p.top + p.height + 8);
        c.textAlign = "right";
        c.fillText(this.options.below ?? "", p.left + p.width, p.top + p.height + 20);
        c.strokeRect(p.left + 0.5, p.top + 0.5, p.width - 1, p.height - 1);
    }

    /* ---- the mouse ---- */

    listen() {
        let start = null;
        const at = event => {
            const box = this.canvas.getBoundingClientRect();
            const share = (event.clientX - box.left - this.plot.left) / this.plot.width;
            return this.from + Math.min(1, Math.max(0, share)) * (this.to - this.from);
        };
        this.canvas.addEventListener("pointerdown", event => {
            start = {x: at(event), pixel: event.clientX};
            this.canvas.setPointerCapture(event.pointerId);
        });
        this.canvas.addEventListener("pointermove", event => {
            if (start && Math.abs(event.clientX - start.pixel) > 3)
                this.shade(start.x, at(event));
            else
                this.options.onHover?.(this, at(event), event.clientY - this.canvas.getBoundingClientRect().top);
        });
        this.canvas.addEventListener("pointerup", event => {
            const from = start, to = at(event);
            start = null;
            if (from && Math.abs(event.clientX - from.pixel) > 3)
                this.options.onZoom?.(Math.min(from.x, to), Math.max(from.x, to));
        });
        this.canvas.addEventListener("dblclick", () => this.options.onZoom?.(null, null));
        this.canvas.addEventListener("pointerleave", () => this.options.onHover?.(this, null));
    }

    shade(from, to) {
        this.draw();
        const c = this.canvas.getContext("2d");
        c.fillStyle = this.ink;
        c.globalAlpha = 0.12;
        c.fillRect(this.px(from), this.plot.top, this.px(to) - this.px(from), this.plot.height);
        c.globalAlpha = 1;
    }
}
