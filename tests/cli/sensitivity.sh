#!/bin/bash
# mixt sensitivity: rows for scripts, the heat map on the screen and as a picture, a run's checkpoints. Usage: sensitivity.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >tiny.yaml <<'YAML'
model: mlp
precision: bf16
threads: 1
net: {hidden: [24, 16]}
data: {kind: digits, limit: 128}
train: {epochs: 0, steps: 6, batch: 32, lr: 0.003, checkpoint_every: 3, keep: 3}
YAML

# sensitivity STATUS ARGUMENT...: out and err are kept
sensitivity() {
    local wanted=$1
    shift
    "$mixt" sensitivity "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "sensitivity $*: status $got, expected $wanted"; cat out err; }
}

sensitivity 0 tiny.yaml --json --trials 2 --out map.svg
[ -s err ] && fail "--json wrote to standard error: $(cat err)"
[ "$(wc -l <out)" = 12 ] || fail "3 layers, 2 formats, 2 modes: 12 lines expected: $(cat out)"
for key in layer format mode loss_change snr_db grad_cosine grad_norm_error update_error overflow underflow accuracy_score \
    stability_score score spread recommend take judgement; do
    [ "$(grep -c "\"$key\":" out)" = 12 ] || fail "$key is not in every line"
done
[ "$(grep -c '"mode":"lowered"' out)" = 6 ] && [ "$(grep -c '"mode":"kept"' out)" = 6 ] || fail "modes: $(cat out)"
[ "$(sed -n 's/.*"mode":"lowered".*"score":\([0-9.]*\).*/\1/p' out)" = "$(sed -n 's/.*"mode":"lowered".*"score":\([0-9.]*\).*/\1/p' out | sort -g)" ] ||
    fail "lowered layers are not ranked, the worst first"
grep -q '<svg' map.svg && grep -q 'fc.2' map.svg && [ "$(grep -c '<polygon' map.svg)" = 12 ] || fail "the heat map lacks cells"
cp out first
# The picture, the text and JSON say the same of each layer: here all of them bear all formats.
grep -q '"take":"any","measured":[a-z]*,"judgement":{"claim":"safe","verdict":"yes",.*"evidence":"\(predicted\|measured once\)"' out || fail "judgements: $(cat out)"
sensitivity 0 tiny.yaml --trials 2
for layer in fc.0 fc.1 fc.2; do
    take=$(sed -n "s/.*\"layer\":\"$layer\".*\"take\":\"\([^\"]*\)\".*/\1/p" first | sort -u)
    [ "$take" = any ] && grep -q "^$layer .* $take *$" out || fail "$layer: '$take' in JSON, else in $(cat out)"
done
[ "$(grep -c '>any<' map.svg)" = 3 ] || fail "the picture does not say that layers take any"
grep -q '^all low  *every layer in bf16: score .*safe: yes; loss .*margin 0.5%; measured once' out || fail "all layers: $(cat out)"
sensitivity 0 tiny.yaml --json --trials 2
cmp -s out first || fail "a second time other figures"
sensitivity 0 tiny.yaml --json --trials 2 --confirm 0
cp out none
sensitivity 0 tiny.yaml --json --trials 2 --confirm -1 # as C says none
cmp -s out none && ! cmp -s out first || fail "--confirm -1 is not none"

# for people: nothing wider than the screen, no colours in a file
sensitivity 0 tiny.yaml --formats bf16 --trials 1 -q
[ -s err ] && fail "-q wrote to standard error: $(cat err)"
grep -q '^layer' out && grep -q '^fc.0 ' out && grep -q '^worst ' out || fail "no map: $(cat out)"
grep -q $'\033' out && fail "colours in a file"

# a picture that is there stays, and is asked for before the work
before=$(cksum <map.svg)
sensitivity 1 tiny.yaml --out map.svg
grep -q 'exists already' err && [ "$(cksum <map.svg)" = "$before" ] && [ ! -s out ] || fail "an old picture: $(cat err)"
sensitivity 0 tiny.yaml --formats bf16 --trials 1 -q --out map.svg --overwrite
[ "$(cksum <map.svg)" != "$before" ] || fail "--overwrite did nothing"

# a run: its start and its checkpoints, the best one (step 4) among them
"$mixt" train tiny.yaml out=run -q || fail "no run to look at"
find run -type f | sort | xargs cksum >run.before
sensitivity 0 run --formats bf16 --trials 1 -q
grep -q 'at 4 points of training' out || fail "checkpoints: $(tail -n 2 out)"
find run -type f | sort | xargs cksum | cmp -s - run.before || fail "the run was changed"

"$mixt" sensitivity tiny.yaml --trials 1000 >out 2>err &
pid=$!
until grep -q step err 2>/dev/null || ! kill -0 $pid 2>/dev/null; do :; done
kill -INT $pid
wait $pid
[ $? = 1 ] && grep -q 'stopped before all layers were measured' err && [ ! -s out ] || fail "a stop: $(cat out err)"

[ $failures = 0 ] && echo "sensitivity: all good"
exit $((failures > 0))
