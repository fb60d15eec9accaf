#!/bin/bash
# mixt compare: the three verdicts with their exit status, what is printed and kept, going on after kill -9, adding pairs, and what is
# refused. Nothing depends on time. Usage: compare.sh MIXT [KILLS]; tests/slow asks for 30. MIXT_KILL_SEED draws other places.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-3}
seed=${MIXT_KILL_SEED:-20261116}
cd "$work" || exit 1

cat >a.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 0, steps: 30, batch: 32, lr: 0.01}
YAML
sed 's/fp32/bf16/' a.yaml >b.yaml
sed 's/lr: 0.01/lr: 0.001/' b.yaml >slow.yaml

# compare STATUS ARGUMENT...: out and err are kept
compare() {
    local wanted=$1
    shift
    "$mixt" compare "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "compare $*: status $got, expected $wanted"; cat out err; }
}
# field KEY: of the object in out, before its sides
field() { sed 's/,"a":{.*//' out | sed -n "s/.*[{,]\"$1\":\(\"[^\"]*\"\|\[[^]]*\]\|[^,}]*\).*/\1/p"; }

# ---- verdicts ----

compare 0 a.yaml b.yaml --margin 20% --name same --json
[ -s err ] && fail "--json wrote to standard error: $(cat err)"
[ "$(wc -l <out)" = 1 ] || fail "one object expected: $(cat out)"
for key in verdict advice metric difference interval margin pairs pairs_needed p effect time_to_equal_loss speed memory; do
    case $(field $key) in '' | null) fail "no $key in $(cat out)" ;; esac
done
grep -q '"a":{"config":"a.yaml","final":[0-9.]*,.*"b":{"config":"b.yaml","final":[0-9.]*,' out || fail "sides: $(cat out)"
[ "$(field verdict) $(field metric) $(field margin) $(field pairs)" = '"non-inferior" "loss" 0.2 6' ] || fail "the result: $(cat out)"
grep -q '"changes":\[{"key":"precision","a":"fp32","b":"bf16","policy":true}\]' out || fail "changes: $(cat out)"
grep -q '<svg' runs/compare-same/curves.svg && [ "$(grep -c '<polygon' runs/compare-same/curves.svg)" = 2 ] || fail "no bands in the picture"
grep -q innerHTML runs/compare-same/report.html && fail "the report makes elements of text, of a picture say"
grep -q 'img-src data:' runs/compare-same/report.html || fail "the report shows no pictures"
grep -q 'id="lead-data">{"verdict":"non-inferior","mood":"good"' runs/compare-same/report.html && grep -q 'pair-0006-b' runs/compare-same/report.html || fail "the report lacks the verdict or the last run"
[ "$(ls -d runs/compare-same/pair-* | wc -l)" = 12 ] || fail "12 runs expected: $(ls runs/compare-same)"
# Pairs share seed, weights and order: the first losses of both are as good as the same, those of two pairs are not.
first() { head -1 "runs/compare-same/pair-000$1/metrics.jsonl" | sed 's/.*"loss":\([0-9.]*\).*/\1/'; }
awk -v a="$(first 1-a)" -v b="$(first 1-b)" -v c="$(first 2-a)" 'BEGIN { d = a > b ? a - b : b - a; e = a > c ? a - c : c - a; exit !(d < 0.02 && e > d) }' ||
    fail "first losses: $(first 1-a) $(first 1-b) $(first 2-a)"
# The same again: nothing is trained, the same comes out; in words too.
cp out before && rows=$(wc -l <runs/compare-same/compare.jsonl)
compare 0 a.yaml b.yaml --margin 20% --name same --json
cmp -s out before && [ "$(wc -l <runs/compare-same/compare.jsonl)" = "$rows" ] || fail "a second call: $(diff before out)"
compare 0 a.yaml b.yaml --margin 20% --name same --cost 2.50/h
grep -q "^non-inferior: B's loss is .* than A's (95% interval: .*), and may be 20% worse; failures in fewer than 39% of runs are not ruled out$" out || fail "the verdict in words: $(cat out)"
grep -q "^B comes to equal loss in [0-9.]*% of A's time ([0-9.]* to [0-9.]*%)$" out && grep -q '^time to equal loss ' out && grep -q '^cost of the run ' out && grep -q 'pairs are needed for a power of 90% at the margin' err ||
    fail "in words: $(cat out err)"

grep -q '^safe: yes; loss .* margin 20%; 6 pairs of 30 updates each; failures in fewer than 39% of runs are not ruled out$' out && [ "$(grep -c '^\(faster\|smaller\|cheaper\): ' out)" = 3 ] || fail "judgements in words: $(cat out)"
grep -q '"judgements":\[{"claim":"safe","verdict":"yes","statistic":"loss","unit":"share",.*{"claim":"faster",.*{"claim":"smaller",.*{"claim":"cheaper",' before || fail "judgements: $(cat before)"

compare 3 a.yaml slow.yaml --json
[ "$(field verdict) $(field advice)" = '"inferior" "keep A"' ] && [ -d runs/compare-a-slow ] || fail "a B that learns slowly: $(cat out)"
grep -q '"key":"train.lr","a":"0.01","b":"0.001","policy":false' out || fail "the other difference: $(cat out)"
compare 3 a.yaml slow.yaml
grep -q 'differ in more than the policy: train.lr is 0.01 in A and 0.001 in B' out || fail "the other difference in words: $(cat out)"

compare 0 a.yaml a.yaml --metric accuracy --name equal --json
[ "$(field difference) $(field interval)" = '0.0 [0.0,0.0]' ] && grep -q 'same to the bit' out || fail "A against itself: $(cat out)"
[ "$(field metric) $(field relative)" = '"accuracy" false' ] || fail "accuracy: $(cat out)"

# Too small a margin: the pilot says so, nothing is concluded, and that is no look: those who ask for more have all to spend.
compare 4 a.yaml b.yaml --margin 0.01% --name close --json
[ "$(field verdict) $(field pairs)" = '"undecided" 6' ] && [ "$(field pairs_needed)" -gt 64 ] && grep -q 'needed by the pilot' out && [ "$(field looks)" = 0 ] && ! grep -q '"look"' runs/compare-close/compare.jsonl ||
    fail "too small a margin: $(cat out)"
compare 4 a.yaml b.yaml --margin 0.01% --name close --seeds 8 --json
[ "$(field pairs) $(field looks)" = '8 1' ] && awk -v c="$(field confidence)" 'BEGIN { exit !(c > 0.9499 && c < 0.9501) }' || fail "more pairs: $(cat out)"
compare 4 a.yaml b.yaml --margin 0.01% --name close --seeds 9 --json
[ "$(field pairs) $(field looks)" = '9 2' ] && awk -v c="$(field confidence)" 'BEGIN { exit !(c > 0.9501) }' || fail "a second look: $(cat out)"
[ "$(ls -d runs/compare-close/pair-* | wc -l)" = 18 ] || fail "18 runs expected"
compare 4 a.yaml b.yaml --margin 0.01% --name close --json # as many as were asked for before
[ "$(field pairs) $(field looks)" = '9 2' ] || fail "afterwards: $(cat out)"

# Failures that must be excluded: so many pairs are made, and fewer are refused.
compare 1 a.yaml b.yaml --margin 20% --name rare --failures 10% --seeds 8
grep -q '8 pairs: to exclude failures in 10% of runs takes 29' err && [ ! -e runs/compare-rare ] || fail "too few for --failures: $(cat err)"
compare 0 a.yaml b.yaml --margin 20% --name rare --failures 30% --json
[ "$(field pairs) $(field pairs_needed)" = '9 9' ] && awk -v u="$(field unseen)" 'BEGIN { exit !(u > 0.28 && u < 0.3) }' || fail "--failures: $(cat out)"
compare 2 a.yaml b.yaml --failures 0
compare 1 a.yaml b.yaml --name rare --failures 0.01%
grep -q 'expected a share of runs of at least 0.003, for which' err || fail "--failures 0.01%: $(cat err)"

# ---- killed, stopped ----

now=(a.yaml b.yaml --margin 20% --name killed --json)
hits=0
for _ in $(seq "$kills"); do # a kill may come after the end where many came before
    below 900
    signalled KILL@write:$((drawn + 1)) "$mixt" compare "${now[@]}" >out 2>err
    status=$?
    [ $status = 137 ] || [ $status = 0 ] || fail "KILL@write:$((drawn + 1)): status $status: $(cat err)"
    [ $status = 137 ] && hits=$((hits + 1))
done
[ $hits -gt 0 ] || fail "none of $kills kills hit it"
compare 0 "${now[@]}"
same() { sed 's/"advice":"[^"]*",//; s/"time_to_equal_loss".*//; s/"folder".*//' "$1"; }
[ "$(same out)" = "$(same before)" ] || fail "killed on the way: $(same out), not $(same before)"
# Rows that are lost, and one cut short: those runs are made again.
grep -v '"pair":6' runs/compare-killed/compare.jsonl | grep -v '"look"' >kept && printf '{"pair":6,"si' >>kept && cp kept runs/compare-killed/compare.jsonl
compare 0 "${now[@]}"
[ "$(same out)" = "$(same before)" ] || fail "rows lost: $(same out), not $(same before)"
compare 4 a.yaml b.yaml --margin 20% --name short --budget 0.001s --json
grep -q 'at the end of the budget after 0 pairs; the same command continues' err && grep -q 'too few' out || fail "the budget's end: $(cat out err)"
env --default-signal=INT "$mixt" compare a.yaml b.yaml train.steps=100000000 --name stopped --json >out 2>err &
process=$!
await [ -s runs/compare-stopped/pair-0001-a/metrics.jsonl ]
kill -INT $process
wait $process
[ $? = 130 ] && grep -q 'stopped by a signal' err || fail "Ctrl-C: $(cat out err)"
rm -r runs/compare-stopped

# ---- a full disk: it says so, nothing is lost, and the same command goes on ----

for write in 1 3 9 30; do
    MIXT_FAIL_WRITE=$write "$mixt" compare a.yaml b.yaml --margin 20% --name full --json >out 2>err
    status=$?
    [ $status = 0 ] || { [ $status = 1 ] && grep -q 'No space left' err; } || fail "write $write fails: status $status: $(cat out err)"
    [ $write = 1 ] && [ -e runs/compare-full ] && fail "nothing was begun, and yet: $(ls runs/compare-full)"
done
compare 0 a.yaml b.yaml --margin 20% --name full --json
[ "$(same out)" = "$(same before)" ] || fail "after a full disk: $(same out), not $(same before)"

# ---- nothing can be concluded ----

compare 4 a.yaml b.yaml train.lr=0 --name still --json
grep -q 'A has hardly trained: its loss fell by' out || fail "runs that learn nothing: $(cat out)"
sed 's/lr: 0.01/lr: 1e30/' b.yaml >wild.yaml
compare 4 wild.yaml b.yaml --name wild --json
grep -q 'no conclusion is possible where A does not train; lower train.lr,' out || fail "an A that diverges: $(cat out)"
# A validation that leaves FP16: training goes on as if nothing were, its last loss is no number.
mkdir table
{ echo 'a,b,class'; for i in $(seq 60); do echo "0.$i,$((i % 7)),$((i % 3))"; done; } >table/train.csv
{ cat table/train.csv; echo '4e7,4e7,1'; } >table/val.csv
sed 's/kind: digits, limit: 256/kind: csv, path: table/' a.yaml >table.yaml
sed 's/fp32/fp16/' table.yaml >table16.yaml
compare 3 table.yaml table16.yaml --json
grep -q 'B diverged in 6 of 6 pairs, A in 0' out && grep -q '"differences":\[null,null,null,null,null,null\]' out || fail "a B whose validation is no number: $(cat out)"

# ---- finished runs ----

compare 4 runs/compare-same/pair-0001-a runs/compare-same/pair-0001-b --json
[ "$(field verdict) $(field pairs) $(field pairs_needed)" = '"undecided" 1 6' ] && grep -q 'one run of each does not show' out || fail "two runs: $(cat out)"
compare 4 runs/compare-same/pair-0001-a runs/compare-same/pair-0002-b
grep -q 'with different seeds' out && grep -q '^loss at the end ' out || fail "two runs in words: $(cat out)"

"$mixt" train b.yaml net.hidden=4 out=other -q || fail "a run of another model"
compare 1 runs/compare-same/pair-0001-a other
grep -q 'net.hidden is \[16\] in A and \[4\] in B: only runs of the same model' err || fail "runs of two models: $(cat err)"
cp -r runs/compare-same/pair-0001-b hurt && printf 'no row\n{"st' >hurt/metrics.jsonl
compare 1 runs/compare-same/pair-0001-a hurt
grep -q 'hurt/metrics.jsonl has no complete row yet; line 1' err && [ ! -s out ] || fail "a run without rows: $(cat out err)"
echo 'model: [' >hurt/config.yaml
compare 1 runs/compare-same/pair-0001-a hurt
grep -q 'hurt/config.yaml:1' err || fail "a run whose configuration cannot be read: $(cat err)"
cp -r runs/compare-same/pair-0001-b void && sed -i 's/"loss":[0-9.e-]*/"loss":null/; s/"val_loss":[^,}]*/"val_loss":null/' void/metrics.jsonl
compare 4 runs/compare-same/pair-0001-a void --json
[ "$(field verdict) $(field difference)" = '"undecided" null' ] && grep -q '"b":{[^}]*"diverged":1' out || fail "a run without a finite loss: $(cat out)"

# ---- data that changes under the same name: said, and nothing is lost ----

sed 's/kind: digits, limit: 256/kind: csv, path: changing.csv/' a.yaml >csv.yaml
sed 's/fp32/bf16/' csv.yaml >csv16.yaml
cp table/train.csv changing.csv
"$mixt" train csv.yaml out=run-before -q && compare 4 csv.yaml csv16.yaml --name data --margin 40% --json
tail -40 table/train.csv >changing.csv
"$mixt" train csv16.yaml out=run-after -q
compare 1 run-before run-after
grep -q 'run-before and run-after used different data (train part: 54 samples, checksum [0-9a-f]*; 36 samples, ' err && [ ! -s out ] || fail "runs on two sets of data: $(cat out err)"
rows=$(cksum <runs/compare-data/compare.jsonl)
compare 1 csv.yaml csv16.yaml --name data --margin 40% --seeds 7
grep -q 'pair-0001-a and runs/compare-data/pair-0007-a used different data (' err && [ "$(cksum <runs/compare-data/compare.jsonl)" = "$rows" ] && [ ! -e runs/compare-data/pair-0007-a ] ||
    fail "data that changed on the way: $(cat err; ls runs/compare-data)"
cp table/train.csv changing.csv
compare 4 csv.yaml csv16.yaml --name data --margin 40% --seeds 7 --json
[ "$(field pairs)" = 7 ] || fail "with the data back: $(cat out)"

# ---- another experiment of that name ----

sum=$(cat runs/compare-same/*.* | cksum)
compare 1 a.yaml b.yaml --margin 10% --name same
grep -q 'margin is 0.1, was 0.2' err || fail "another margin: $(cat err)"
compare 1 a.yaml b.yaml --margin 20% train.steps=31 --name same
grep -q 'train.steps of A is 31, was 30' err || fail "another configuration: $(cat err)"
[ "$(cat runs/compare-same/*.* | cksum)" = "$sum" ] || fail "a refused comparison has changed something"

[ $failures = 0 ] && echo "compare: all good"
exit $((failures > 0))
