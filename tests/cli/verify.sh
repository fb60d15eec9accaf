#!/bin/bash
# mixt verify: safe and worth it with their statuses, the checklist, its plot, a clean stop. Usage: verify.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >tiny.yaml <<'YAML'
model: mlp
precision: bf16
threads: 1
net: {hidden: [64]}
data: {kind: digits, limit: 512}
train: {epochs: 0, steps: 40, batch: 32, lr: 0.003}
YAML
# What a busy machine or a CPU without BF16 units cannot give is not asked for: the verdict depends on the rest.
easy="verify.speedup=0 verify.memory=-900 verify.lost=50 verify.output=1"

# verify STATUS ARGUMENT...: out and err are kept
verify() {
    local wanted=$1
    shift
    "$mixt" verify "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "verify $*: status $got, expected $wanted"; cat out err; }
}
# field NAME KEY: of a line in out
field() { sed -n "s/^{\"name\":\"$1\",.*\"$2\":\([^,}]*\).*/\1/p" out; }

# shellcheck disable=SC2086 # settings are words
verify 4 tiny.yaml $easy --seeds 2 --json -q --plot curves.svg
[ -s err ] && fail "-q wrote to standard error: $(cat err)"
[ "$(wc -l <out)" = 9 ] || fail "3 verdicts and 6 lines expected: $(cat out)"
for name in speedup memory_saved accuracy_lost not_finite output_difference; do
    [ "$(field $name pass)" = true ] || fail "$name: pass is '$(field $name pass)'"
    case $(field $name value) in -[0-9]* | [0-9]*) ;; *) fail "$name: value '$(field $name value)'" ;; esac
done
[ "$(field not_finite value)" = 0.0 ] || fail "not_finite is $(field not_finite value)"
[ "$(field tensor_cores value)$(field tensor_cores pass)" = nullnull ] || fail "Tensor Cores measured without a GPU: $(cat out)"
[ "$(field output_difference threshold)" = 1.0 ] || fail "verify.output did not reach the checklist"
[ -n "$(field accuracy_lost low)" ] && [ -n "$(field accuracy_lost high)" ] || fail "no interval over two seeds"
grep -q '<svg' curves.svg && [ "$(grep -c '<polyline' curves.svg)" = 2 ] && [ "$(grep -c '<polygon' curves.svg)" = 2 ] ||
    fail "the plot lacks a curve or a band"
[ "$(ls)" = "$(printf 'curves.svg\nerr\nout\ntiny.yaml')" ] || fail "left behind: $(ls)"

# A plot that cannot be written: said before anything is trained, and at the end an old one stays.
for plot in none/curves.svg . ''; do
    # shellcheck disable=SC2086
    verify 1 tiny.yaml $easy --seeds 1 --plot "$plot"
    [ -s out ] && fail "--plot '$plot': trained before it failed"
done
before=$(cksum <curves.svg)
# shellcheck disable=SC2086
MIXT_FAIL_WRITE=1 verify 1 tiny.yaml $easy --seeds 1 -q --plot curves.svg --overwrite
[ "$(cksum <curves.svg)" = "$before" ] && grep -q 'No space left' err || fail "a full disk: $(cat err), $(wc -c <curves.svg) bytes"
ls | grep -q tmp && fail "left behind: $(ls)"


# Nor does a file that is there go away unasked; the configuration stays even then.
# shellcheck disable=SC2086
verify 1 tiny.yaml $easy --seeds 1 --plot curves.svg
grep -q 'curves.svg: exists already: .*--overwrite' err && [ ! -s out ] && [ "$(wc -l <err)" = 1 ] || fail "an old plot: $(cat out err)"
# shellcheck disable=SC2086
verify 1 tiny.yaml $easy --seeds 1 --plot ./tiny.yaml --overwrite
grep -q 'is the configuration itself' err && [ ! -s out ] || fail "the configuration as plot: $(cat out err)"
[ "$(cksum <curves.svg)" = "$before" ] && grep -q '^model: mlp' tiny.yaml || fail "an existing file was replaced"
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy --seeds 1 --steps 10 -q --plot curves.svg --overwrite
[ "$(cksum <curves.svg)" = "$before" ] && fail "--overwrite kept the old plot"

# A policy whose name XML would take for markup.
printf 'default: bf16\n' >'a&b<c.yaml'
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy precision='a&b<c.yaml' --seeds 1 -q --plot name.svg
grep -qF '>a&amp;b&lt;c.yaml</text>' name.svg || fail "the name in the plot: $(grep -F 'c.yaml' name.svg)"

# The same policy on both sides: no difference, to the bit. A rule for every layer makes strict FP32 under another name.
printf 'default: fp32\nrules:\n  - layer: "*"\n    precision: fp32\n' >same.yaml
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy precision=same.yaml --seeds 2 --json -q
[ "$(field accuracy_lost value) $(field output_difference value)" = "0.0 0.0" ] || fail "FP32 differs from itself: $(cat out)"

# Each threshold of the checklist can fail, and decides where that is asked for.
for setting in verify.speedup=1000 verify.memory=99 verify.lost=-100 verify.output=0; do
    # shellcheck disable=SC2086
    verify 3 tiny.yaml $easy $setting --seeds 1 --steps 5 -q --require
    [ "$(grep -c ' fail ' out)" = 1 ] || fail "$setting: $(cat out)"
done
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy verify.speedup=1000 --seeds 1 --steps 5 -q
grep -q '^safe: undecided; ' out || fail "an unmet checklist decided: $(cat out)"

# Two questions, each with its verdict: what a CPU cannot make faster is safe all the same.
# shellcheck disable=SC2086
verify 0 tiny.yaml $easy verify.speedup=1000 -q
grep -q '^safe: yes; .*, margin 50\(%\| points\); 6 pairs of 40 updates each; failures in fewer than 39% of runs are not ruled out$' out || fail "safe over 6 seeds: $(cat out)"
grep -q '^faster: ' out && grep -q '^smaller: ' out && grep -q '^bf16 against fp32: safe; .*worth it here' out || fail "worth it: $(cat out)"
# shellcheck disable=SC2086
verify 0 tiny.yaml $easy --json -q
judged() { sed -n "s/^{\"judgement\":{\"claim\":\"$1\",.*\"$2\":\([^,}]*\).*/\1/p" out; }
[ "$(judged safe verdict) $(judged safe evidence) $(judged safe pairs) $(judged safe updates) $(judged safe needs)" = \
    '"yes" "paired over seeds" 6 40 0' ] || fail "safe as JSON: $(cat out)"
[ "$(judged smaller evidence)" = '"measured once"' ] || fail "smaller as JSON: $(cat out)"
# An overflow that no loss scaler catches is seen; one that it catches is only told.
# shellcheck disable=SC2086
verify 3 tiny.yaml $easy train.inject_overflow=3 --seeds 1 --steps 6 --json -q
[ "$(field not_finite pass)" = false ] && grep -q '"text":"safe: no; numbers that are not finite' out || fail "an infinite gradient was not seen: $(cat out)"
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy precision=fp16 train.inject_overflow=3 --seeds 1 --steps 6 --json -q
grep -q 'skipped, all by the loss scaler' out || fail "a skipped update is not told: $(cat out)"

# Weights to begin with: both sides have them, and they are spoken of once.
"$mixt" train tiny.yaml precision=fp32 out=trained -q 2>err || { fail "training the weights to begin with"; cat err; }
loss=$("$mixt" eval trained --json | sed 's/.*"loss":\([0-9.]*\).*/\1/')
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy init=trained train.lr=0 precision=same.yaml --seeds 2 --steps 1
[ "$(grep -c "^seed 1, .*: loss $(printf %.4f "$loss")," err)" = 2 ] || fail "verify began elsewhere than at loss $loss: $(cat err)"
[ "$(grep -c '^init: ' err)" = 1 ] || fail "the weights to begin with: $(cat err)"
rm -r trained

# Text: the loss counts.
for _ in $(seq 200); do echo 'a line of text to learn by heart'; done >text.txt
printf 'model: gpt\nthreads: 1\nnet: {layers: 1, width: 16, heads: 2}\ndata: {kind: text, path: text.txt, seq: 16}\n' >gpt.yaml
# shellcheck disable=SC2086
verify 4 gpt.yaml $easy train.batch=8 --seeds 2 --steps 20 --json -q
[ "$(field loss_lost pass)" = true ] || fail "no loss lost line: $(cat out)"

# ---- targets and cost: told, not judged ----

# shellcheck disable=SC2086
verify 4 tiny.yaml $easy --seeds 2 --json -q --target 50% --cost 3600/h --out kept.json
[ "$(wc -l <out)" = 15 ] || fail "4 verdicts, 6 lines and 5 figures expected: $(cat out)"
awk -v a="$(field seconds fp32)" -v b="$(field cost fp32)" 'BEGIN { d = a / b - 1; exit !(a > 0 && d < 1e-6 && d > -1e-6) }' || fail "at 1 a second cost is time: $(cat out)"
[ "$(field reached fp32) $(field reached mixed)" = "1.0 1.0" ] || fail "half of the digits are learned in 40 updates: $(cat out)"
awk -v n="$(field steps_to_target mixed)" 'BEGIN { exit !(n > 2 && n < 40) }' || fail "updates to the target: $(cat out)"
# That training is none other than mixt train's: looking at what rounding does has left no trace in the weights.
"$mixt" train tiny.yaml out=direct -q
direct=$(sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' direct/metrics.jsonl | tail -1)
kept=$(tr -d ' \n' <kept.json | sed 's/.*{"side":"mixed","seed":1,[^{]*"loss":\([0-9.]*\),.*/\1/')
[ -n "$kept" ] && [ "$kept" = "$direct" ] || fail "verify's loss is $kept, that of the same training $direct"
rm -r direct
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy --seeds 1 --steps 10 -q --target 1e-9
grep -q '^target: loss of training 1e-9$' out && grep -q '^updates to target  *-  *-' out && grep -q '^share of seeds that reached it  *0  *0' out || fail "out of reach: $(cat out)"
# shellcheck disable=SC2086
verify 0 tiny.yaml $easy --seeds 6 --steps 10 -q
grep -q "^target: for each seed the higher of the two final losses" out && grep -q '^updates to target  *[0-9]' out && grep -q '^share of seeds that reached it  *1  *1' out && ! grep -q '^cost' out || fail "without a target: $(cat out)"
grep -q '^safe: yes; ' out || fail "six seeds allow a verdict: $(cat out)"

# ---- what the format allows ----

# shellcheck disable=SC2086
verify 4 tiny.yaml $easy verify.output=1e-6 --seeds 1 --steps 3 -q
grep -q "rounding the weights to bf16's 8 bits, all arithmetic in FP32, so that less than 1e-06 is not possible" out || fail "below the format: $(cat out)"
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy precision=fp16 --seeds 1 --steps 3 -q
grep -q "the format allows [0-9.e-]*: that much comes from rounding the weights to fp16's 11 bits, all arithmetic in FP32\$" out || fail "FP16: $(cat out)"
# shellcheck disable=SC2086
verify 4 tiny.yaml $easy precision=same.yaml --seeds 1 --steps 3 -q
grep -q 'the format allows' out && fail "nothing is rounded in FP32: $(cat out)"

# ---- what cannot be, and a clean stop ----
verify 1 tiny.yaml precision=fp32 -q
grep -q 'precision=bf16' err || fail "fp32 against itself: $(cat err)"
verify 1 nowhere.yaml
verify 2 tiny.yaml --seeds 0
verify 2 tiny.yaml verify.speedup=fast
"$mixt" verify tiny.yaml --steps 100000000 >out 2>err &
pid=$!
await catches $pid INT
kill -INT $pid
wait $pid
[ $? = 1 ] && grep -q 'no verdict' err && [ ! -s out ] || fail "Ctrl-C: $(cat out err)"

[ $failures = 0 ] && echo "verify: all good"
exit $((failures > 0))
