#!/bin/bash
# mixt report and mixt watch: a page that needs nothing else, also of runs that are damaged, hostile or still going on. Usage: report.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >mlp.yaml <<'YAML'
model: mlp
threads: 1
net: {hidden: [8]}
data: {kind: random, shape: 12, classes: 3, samples: 320}
train: {epochs: 2, batch: 16}
YAML
"$mixt" train mlp.yaml out=runs/one -q || fail "a run to show"
"$mixt" train mlp.yaml out=runs/two -q watch.grad_norm_max=1e-6 || fail "a run with alerts"

# all of it is there: names, configuration, every column, alerts and what to do about them
"$mixt" report runs/one runs/two --out both.html || fail "report"
for part in '"name":"runs/one"' '"name":"runs/two"' '"model":"mlp"' '"state":"finished"' 'data-run="0" data-column="loss"' \
    'data-run="1" data-column="grad_norm"' 'data-column="step"' '"cause":"gradient_anomaly"' 'train.clip limits large norms; norms that stay small mean a dead' \
    '</html>'; do
    grep -qF -- "$part" both.html || fail "no $part in the page"
done
# steps come back exactly: eight bytes each, in base64
steps=$(sed -n 's/.*data-run="0" data-column="step">\([^<]*\)<.*/\1/p' both.html | base64 -d | od -An -tf8 -v | xargs)
[ "$steps" = "$(seq 1 "$(wc -l <runs/one/metrics.jsonl)" | xargs)" ] || fail "steps in the page: $steps"

# nothing is fetched from anywhere
grep -qE '(src|href)=|https?://|@import|url\(' both.html && fail "the page refers to something outside it"
grep -qF "default-src 'none'" both.html || fail "the page may fetch"

# never over a file, unless asked
before=$(cksum <both.html)
grep -q '"confusion": \[' runs/one/predictions.json && grep -q '"confusion":\[\[' both.html || fail "no confusion matrix"
cp -r runs/one guessed && echo '{"confusion":' >guessed/predictions.json
"$mixt" report guessed --out guessed.html && ! grep -q '"confusion":' guessed.html || fail "damaged predictions"
awk 'BEGIN { print "a,y"; for (i = 0; i < 60; i++) print i "," 0.5 * i + 0.25 }' >line.csv
"$mixt" train data.path=line.csv out=line train.epochs=2 -q || fail "a run of values"
grep -q '"r2":' line/predictions.json && [ "$(tr -d ' \n' <line/predictions.json | grep -o '\[[-0-9.e]*,[-0-9.e]*\]' | wc -l)" = 12 ] || { fail "predictions of values"; cat line/predictions.json; }
"$mixt" report line --out line.html && grep -q 'to predict\|"values":\[\[' line.html || fail "a page without predictions of values"
"$mixt" train data.path=line.csv out=short train.epochs=1 train.memory=100M -q && [ ! -e short/predictions.json ] || fail "predictions where memory is limited"
"$mixt" report runs/one --out both.html 2>err && fail "overwrote a page"
grep -q both.html err || fail "does not name the file: $(cat err)"
[ "$before" = "$(cksum <both.html)" ] || fail "a refused report changed the file"
"$mixt" report runs/one --out both.html --overwrite || fail "--overwrite"

# damaged and missing files are said, not fatal
cp -r runs/one broken
echo '{"step": 3, "lo' >>broken/metrics.jsonl
echo '[1]' >>broken/metrics.jsonl
printf '%s\n' 'nonsense' '{"step":1}' '{"step":2,"kind":"alert","cause":"stall","severity":"warning","evidence":{"text":"slow"}}' '{"half' >broken/events.jsonl
"$mixt" report broken --out broken.html || fail "a damaged run"
grep -q 'rows of its metrics are left out' broken.html || fail "damaged metrics are not said"
grep -q '3 rows of its events are left out, the first in line 1' broken.html || fail "damaged events are not said"
grep -qF '"text":"slow"' broken.html || fail "a whole event is lost"
rm broken/config.yaml broken/events.jsonl
"$mixt" report broken --out bare.html || fail "a run without config and events"
grep -q 'configuration cannot be read' bare.html || fail "a missing configuration is not said"
cp -r runs/one begun && rm begun/metrics.jsonl
"$mixt" report begun --out begun.html && grep -q 'no figures' begun.html || fail "a run without metrics"

# what a file says is data, never part of the page
mkdir -p '</script><b>x' && cp runs/one/* '</script><b>x' 2>/dev/null
echo '{"step":1,"loss":1,"</script><script>alert(1)":5}' >'</script><b>x/metrics.jsonl'
echo '{"step":1,"time":1,"kind":"alert","severity":"</script>","cause":"<img>"}' >'</script><b>x/events.jsonl'
"$mixt" report '</script><b>x' --out hostile.html || fail "a hostile run"
[ "$(grep -o '</script>' hostile.html | wc -l)" = "$(grep -o '<script' hostile.html | wc -l)" ] || fail "a run broke out of its script"
grep -q 'alert(1)\|<img>\|<b>x' hostile.html && fail "a hostile name stands in the page"

# wrong use
bad() { # status, message, arguments
    local status=$1 message=$2
    shift 2
    "$mixt" report "$@" 2>err
    [ $? = "$status" ] || fail "report $*: not status $status"
    grep -q -- "$message" err || fail "report $*: $(cat err)"
}
bad 1 'nowhere: no such folder' nowhere --out a.html
bad 1 'no run directory\|expected a run directory' "$work" --out a.html
bad 2 'out' runs/one
bad 2 'RUN' --out a.html
bad 1 'none/a.html' runs/one --out none/a.html
[ ! -e a.html ] || fail "a failed report left a file"

# the same page, served (tests/unit/test_page_server.c asks it questions)
"$mixt" watch nowhere 2>err && fail "watched nothing"
grep -q 'nowhere: no such folder' err || fail "watch nowhere: $(cat err)"
"$mixt" watch runs --port 70000 2>err
[ $? = 2 ] && grep -q port err || fail "watch --port 70000: $(cat err)"
"$mixt" watch runs/one runs/two >address 2>err &
watcher=$!
answered() { [ -s address ] || [ -s err ]; }
await answered
if grep -q 'built without libmicrohttpd' err; then
    echo "skipped: built without libmicrohttpd"
else
    grep -qE '^http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{32}$' address || fail "watch printed: $(cat address err)"
    port=$(sed 's,.*:\([0-9]*\)/.*,\1,' address)
    exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /runs?%s HTTP/1.0\r\nHost: 127.0.0.1:%s\r\n\r\n' "$(sed 's/.*?//' address)" "$port" >&3
    timeout 10 cat <&3 >runs.json
    exec 3>&-
    grep -q '"runs/one"' runs.json && grep -q '"runs/two"' runs.json || fail "watch shows other runs: $(head -c 600 runs.json)"
    kill -INT $watcher
    wait $watcher || fail "the end of watch: status $?"
fi

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
