#!/bin/bash
# The page of runs in a real browser: a spike of one update is seen from the largest distance, zooming ends at single updates,
# large pages open in time, and no request leaves the page. Usage: report.sh MIXT [BROWSER]; needs Chromium, else it skips.
. "$(dirname "$0")/../support/script.sh"
browser=${2:-$(command -v chromium || command -v chromium-browser)}
[ -n "$browser" ] || skip "no Chromium"
cd "$work" || exit 1

runs() { # folder, number of runs, rows, run with a spike, step of it
    for r in $(seq -w 1 "$2"); do
        mkdir -p "$1/$r"
        echo 'model: mlp' >"$1/$r/config.yaml"
        awk -v rows="$3" -v spike="$([ "$((10#$r))" = "$4" ] && echo "$5")" -v seed="$r" 'BEGIN {
            srand(seed)
            for (s = 1; s <= rows; s++) {
                l = 2 / (1 + s / 500) + 0.05 * rand()
                if (s == spike) l = 9
                printf "{\"step\":%d,\"epoch\":1,\"loss\":%.6f,\"accuracy\":%.4f,\"lr\":0.001,\"scale\":%d,", s, l, 1 - l / 3, 65536 * (1 + int(s / 2000))
                printf "\"skipped\":%d,\"grad_norm\":%.5f,\"samples_s\":%.1f,\"memory\":%d,\"time\":%.3f,\"energy\":%.1f}\n", s == 7, 3 * l, 5000 + 100 * rand(), 1000000 + s, s / 100, 3 * s
            }
        }' >"$1/$r/metrics.jsonl"
    done
}

# opens a page with a script of ours behind its own, which leaves its answer in the title
look() { # page, script
    head -n -2 "$1" >looked.html # without its last two tags
    echo "<script>try { $2 } catch (e) { document.title = 'failed: ' + e; }</script></body></html>" >>looked.html
    "$browser" --headless --no-sandbox --disable-gpu --window-size=1200,900 --user-data-dir="$work/profile" \
        --dump-dom "file://$work/looked.html" 2>/dev/null >dom.html
    sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' dom.html | head -1
}

# ---- one spike among a hundred thousand updates ----

runs long 1 100000 1 61234
"$mixt" report long/1 --out long.html || fail "a long run"
spike='const c = state.charts[0]; const g = c.canvas.getContext("2d"); const r = window.devicePixelRatio || 1;
const x = Math.round(c.px(61234) * r), y = Math.round(c.py(9) * r); let seen = 0, above = 0;
const p = g.getImageData(x - 3, 0, 7, c.canvas.height).data;
const blue = i => p[i + 3] > 0 && p[i + 2] > p[i] + 60;
for (let row = 0; row < c.canvas.height; row++) for (let k = 0; k < 7; k++)
if (blue(4 * (7 * row + k))) { if (row < y + 30 * r) seen++; if (row < y - 3 * r) above++; }'
title=$(look long.html "$spike document.title = seen > 15 && above === 0 ? 'seen' : 'seen ' + seen + ' above ' + above;")
[ "$title" = seen ] || fail "the spike at full zoom-out: $title"
title=$(look long.html "state.runs[0].columns.loss[61233] = 0.1; drawCharts(); $spike document.title = 'c' + seen;")
[ "$title" = c0 ] || fail "the pixel test cannot tell: $title"
title=$(look long.html "zoom(61230, 61238); const c = state.charts[0]; const [a, b] = Chart.part(c.series[0], c.from, c.to); document.title = b - a;")
[ "$title" = 10 ] || fail "zoomed in there are $title points, not 9 and the one before"

# ---- one bad update of one layer among five thousand looks ----

mkdir -p layers/1 && cp long/1/config.yaml layers/1 && head -1000 long/1/metrics.jsonl >layers/1/metrics.jsonl
awk 'BEGIN {
    print "{\"step\":100,\"names\":{\"layers\":[\"a\",\"b\",\"c\"],\"activations\":[\"fp16\",\"fp16\",\"fp16\"],\"gradients\":[null,null,null],\"parameters\":[\"a.w\"]}}"
    for (s = 100; s <= 500000; s += 100)
        printf "{\"step\":%d,\"activations\":{\"margin\":[12,%s,12],\"zero\":[0,0,0]},\"gradients\":{},\"parameters\":{\"zero\":[0]}}\n", s, s == 123400 ? "0.2" : "12"
}' >layers/1/layers.jsonl
printf '%s\n' '{"step":200000,"time":5,"kind":"decision","severity":"info","cause":"overflow","layer":"b","evidence":{"text":"b goes on in bf16"}}' >layers/1/events.jsonl
"$mixt" report layers/1 --out layers.html || fail "layers"
red='const h = state.heat.map, g = h.canvas.getContext("2d"), r = window.devicePixelRatio || 1; const rows = [0, 0, 0];
for (let row = 0; row < 3; row++) { const p = g.getImageData(h.plot.left * r, (h.plot.top + (row + 0.5) * h.cell) * r, h.plot.width * r, 1).data;
for (let i = 0; i < p.length; i += 4) if (p[i] > 120 && p[i + 1] < 60) rows[row]++; }'
title=$(look layers.html "$red document.title = rows[1] > 0 && rows[0] + rows[2] === 0 ? 'seen' : rows.join();")
[ "$title" = seen ] || fail "one bad update of a layer: $title"
title=$(look layers.html "hover(state.charts[0], state.charts[0].to); zoom(199000, 201000); hover(state.charts[0], 200000); document.title = state.charts[0].caption.textContent;")
case $title in *"b goes on in bf16"*) ;; *) fail "a decision under the mouse: $title" ;; esac
title=$(look layers.html 'state.heat.tensor.value = "gradients"; drawHeat(); document.title = state.heat.map.caption.textContent;')
case $title in *"no rows of these"*) ;; *) fail "columns that are not there: $title" ;; esac

# ---- many runs, and a million updates ----

runs many 100 10000 37 4321
"$mixt" report many/* --out many.html || fail "many runs"
title=$(look many.html 'const load = performance.now(); zoom(2000, 3000); document.title = document.body.dataset.ready + " " + Math.round(performance.now() - load);')
echo "100 runs x 10 metrics x 10000 updates: ready after ${title% *} ms, a zoom takes ${title#* } ms"
[ "${title% *}" -le "${MIXT_PAGE_MS:-3000}" ] || fail "100 runs were ready after ${title% *} ms"
runs million 1 1000000 1 500000
"$mixt" report million/1 --out million.html || fail "a million updates"
title=$(look million.html 'document.title = document.body.dataset.ready + " " + state.runs[0].columns.loss.length;')
echo "a million updates: ready after ${title% *} ms"
[ "${title#* }" = 1000000 ] || fail "a million updates: $title"

# ---- a comparison: what was concluded stands above its runs ----

printf 'model: mlp\nthreads: 1\nprecision: fp32\nnet: {hidden: [16]}\ndata: {kind: digits, limit: 256}\ntrain: {epochs: 0, steps: 30, batch: 32, lr: 0.01}\n' >a.yaml
sed 's/fp32/bf16/' a.yaml >b.yaml
"$mixt" compare a.yaml b.yaml --margin 20% -q >/dev/null || fail "a comparison"
lead='const lead = document.getElementById("lead"), q = s => lead.querySelectorAll(s).length;'
title=$(look runs/compare-a-b/report.html "$lead document.title = [lead.querySelector('.verdict').textContent, q('tr') > 10, q('img'), q('svg'), state.runs.length];")
[ "$title" = non-inferior,true,1,0,12 ] || fail "the page of a comparison: $title"

# ---- an adoption: what was decided, the proof and how to go back stand above the runs of its stages ----

"$mixt" adopt a.yaml --margin 20% --for memory --steps 8 --seeds 6 -q verify.speedup=0 verify.memory=-900 verify.lost=1000 verify.output=10 train.batch=128 >/dev/null ||
    fail "an adoption"
title=$(look runs/adopt-a/report.html "$lead document.title = [lead.querySelector('.verdict').textContent, q('h2') > 7, q('tr') > 30, q('img'), q('.command'), state.runs.length];")
[ "$title" = 'adopted: bf16,true,true,1,2,2' ] || fail "the page of an adoption: $title"

# ---- a picture is no part of the page: its script does not run ----

evil="'<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"document.title = 1\"><script>document.title = 2<\\/script></svg>'"
title=$(look long.html "document.title = 'calm'; showPart(document.getElementById('lead'), {picture: $evil});")
[ "$title" = calm ] || fail "script of a picture: $title"

# ---- nothing is asked for over any network ----

title=$(look long.html 'fetch("https://example.org/").then(() => document.title = "left", () => 0); document.title = performance.getEntriesByType("resource").length;')
[ "$title" = 0 ] || fail "the page made requests: $title"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "the page is well"
