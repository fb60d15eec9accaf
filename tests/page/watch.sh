#!/bin/bash
# The live page in a real browser: it follows a run that trains, a resume that cuts rows back, and runs that begin later; it
# talks to its own server only. Usage: watch.sh MIXT [BROWSER]; needs Chromium and Python, else it skips.
. "$(dirname "$0")/../support/script.sh"
browse=$(realpath "$(dirname "$0")/browse.py")
browser=${2:-$(command -v chromium || command -v chromium-browser)}
[ -n "$browser" ] || skip "no Chromium"
need python3
cd "$work" || exit 1

rows() { seq "$1" "$2" | awk '{ printf "{\"step\":%d,\"epoch\":1,\"loss\":%g,\"grad_norm\":1,\"time\":%g}\n", $1, 1 / $1, $1 / 10 }'; }
layers() {
    echo '{"step":50,"names":{"layers":["a","b"],"activations":["fp16","fp16"],"gradients":["fp16","fp16"],"parameters":["a.w"]}}'
    printf '{"step":%d,"activations":{"margin":[9,2]},"gradients":{"margin":[8,null]},"parameters":{"zero":[0]}}\n' "$@"
}
mkdir -p runs/one
echo 'model: mlp' >runs/one/config.yaml
rows 1 100 >runs/one/metrics.jsonl
"$mixt" watch runs >address 2>err &
server=$!
for _ in $(seq 100); do [ -s address ] && break; sleep 0.05; done
address=$(cat address)

# rows, an event and another run that come while the page is open; then a resume takes rows back
(
    sleep 4
    rows 101 150 >>runs/one/metrics.jsonl
    echo '{"step":120,"time":12,"kind":"alert","severity":"warning","cause":"stall","layer":null,"evidence":{"text":"slow"}}' >>runs/one/events.jsonl
    layers 50 100 150 >runs/one/layers.jsonl
    mkdir runs/two && rows 1 7 >runs/two/metrics.jsonl
    sleep 4
    rows 1 60 >runs/one/cut && mv runs/one/cut runs/one/metrics.jsonl
) &
wait_for() { echo "await new Promise(done => { const look = () => $1 ? done('yes') : setTimeout(look, 100); setTimeout(() => done('no: ' + document.body.dataset.rows), 20000); look(); })"; }
ask() { echo "(async () => $1)()"; }
python3 "$browse" "$browser" "$address" --until 'document.body.dataset.rows === "100"' --picture page.png \
    'document.body.dataset.rows' "$(ask "$(wait_for 'document.body.dataset.rows === "157"')")" \
    'document.body.textContent.includes("slow")' 'state.charts[0].marks.length' 'state.heat.map.data.x.join()' \
    "$(ask "$(wait_for 'document.body.dataset.rows === "67"')")" 'state.runs[0].columns.loss.length' >answers
wait %2 2>/dev/null
[ "$(head -7 answers | tr '\n' ' ')" = '"100" "yes" true 1 "50,100,150" "yes" 60 ' ] || fail "the page says: $(cat answers)"
tail -1 answers | grep -o 'http[^"]*' | grep -v "^${address%%/\?*}/" && fail "asked somebody else"
[ -s page.png ] || fail "no picture"
kill -INT $server && wait $server || fail "the server's end: $?"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "the live page is well"
