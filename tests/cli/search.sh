#!/bin/bash
# mixt search: what it prints and writes, Ctrl-C and going on, kill -9 at places that are drawn, refusals. Costs are bytes, so that
# nothing depends on time. Usage: search.sh MIXT [KILLS]; tests/slow asks for 50. MIXT_KILL_SEED draws others.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-4}
cd "$work" || exit 1

cat >conv.yaml <<'YAML'
model: convnet
threads: 1
net: {channels: [4, 4], norm: batch}
data: {kind: digits, limit: 512}
train: {epochs: 0, steps: 400, batch: 32, lr: 0.01}
YAML
options=(--for memory --lose 20% --trials 2)

# search STATUS ARGUMENT...: out and err are kept
search() {
    local wanted=$1
    shift
    "$mixt" search "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "search $*: status $got, expected $wanted"; cat out err; }
}
# valid WHEN: the file is a policy that the model takes
valid() { "$mixt" plan conv.yaml precision=policy.yaml >plan 2>&1 || fail "$1: no valid policy: $(cat plan policy.yaml)"; }
field() { sed -n "s/.*[{,]\"$1\":\([^,}]*\).*/\1/p" out; }
seed=${MIXT_KILL_SEED:-20261117}

# ---- what comes out ----

search 0 conv.yaml "${options[@]}" --steps 4 --out found.yaml --json
[ -s err ] && fail "--json wrote to standard error: $(cat err)"
[ "$(wc -l <out)" = 1 ] && [ "$(sed 's/,.*//' out)" = '{"policy":"found.yaml"' ] || fail "one object expected: $(cat out)"
for key in ms memory line judgements refused front; do grep -q "\"$key\":" out || fail "no $key in $(cat out)"; done
grep -q '"complete":true' out || fail "not at its end: $(cat out)"
grep -q '"judgements":\[{"claim":"safe","verdict":"yes","statistic":"loss","unit":"share",.*"evidence":"paired over seeds","pairs":[0-9]*,.*"updates":4,.*{"claim":"smaller","verdict":"yes"' out || fail "the judgements: $(cat out)"
[ "$(sed 's/.*"fp32_memory":\([0-9]*\).*/\1/' out)" -gt "$(sed 's/.*"memory":\([0-9]*\),"line".*"fp32_ms".*/\1/' out)" ] || fail "not cheaper than fp32: $(cat out)"
grep -q '^made_by: "mixt search"' found.yaml && grep -q '^  fresh:' found.yaml && grep -q '^    verdict: "yes"' found.yaml || fail "no evidence: $(cat found.yaml)"
grep -q '<svg' found.yaml.search/front.svg || fail "no picture of the front"
grep -q '"chosen": true' found.yaml.search/front.json || fail "front.json: $(cat found.yaml.search/front.json)"
"$mixt" train conv.yaml precision=found.yaml train.steps=2 out=run -q || fail "the policy cannot be trained with"
# The same again: nothing is measured, the same comes out.
cp out before && rows=$(wc -l <found.yaml.search/candidates.jsonl)
search 0 conv.yaml "${options[@]}" --steps 4 --out found.yaml --json
cmp -s out before && [ "$(wc -l <found.yaml.search/candidates.jsonl)" = "$rows" ] || fail "a second call: $(diff before out)"
search 0 conv.yaml "${options[@]}" --steps 4 --out found.yaml
grep -q '^chosen ' out && grep -q '^safe: yes; loss .*, margin 20%; [0-9]* pairs of 4 updates each' out || fail "the table: $(cat out)"
# A tolerance that so few pairs cannot tell apart from nothing: not refused, offered as undecided, with what would decide.
search 0 conv.yaml --for memory --lose 0.001% --trials 2 --steps 20 --pairs 6 --formats bf16 --out open.yaml
grep -q '^found .*bf16, the best one not shown to lose' out && grep -q '^safe: undecided; .* more pairs would \(decide\|be needed\)\|^safe: undecided; .*, and no realistic number of pairs would decide' out && grep -q '^to decide ' out || fail "undecided: $(cat out)"
grep -q '^default: bf16' open.yaml && grep -q 'verdict: undecided' open.yaml || fail "the policy that is offered: $(cat open.yaml)"
# Milliseconds, measured: whatever they are, a policy is found.
search 0 conv.yaml --for time --lose 20% --trials 2 --steps 2 --budget 60s --out fast.yaml --json
[ "$(field ms)" != null ] && [ "$(field fp32_ms)" != null ] || fail "times: $(cat out)"

# ---- stopping ----

search 0 conv.yaml "${options[@]}" --steps 400 --out short.yaml --budget 0.3s --json
grep -q 'stopped at the end of the budget, short.yaml holds the best so far' err || fail "the budget's end: $(cat err)"
# A shell's background jobs ignore SIGINT, and mixt leaves ignored what was.
env --default-signal=INT "$mixt" search conv.yaml "${options[@]}" --steps 400 --out policy.yaml --json >out 2>err &
process=$!
await [ -s policy.yaml ]
kill -INT $process
wait $process
status=$?
[ $status = 130 ] && grep -q 'stopped by a signal.*; the same command continues' err || fail "Ctrl-C: status $status: $(cat err)"
valid "Ctrl-C"
# Another search there is refused with what differs; nothing changes.
sum=$(cat policy.yaml policy.yaml.search/* | cksum)
search 1 conv.yaml "${options[@]}" --steps 300 --out policy.yaml
grep -q 'steps is 300, was 400' err || fail "other options: $(cat err)"
search 1 conv.yaml "${options[@]}" --steps 400 train.lr=0.1 --out policy.yaml
grep -q 'train.lr is 0.1, was 0.01' err || fail "another configuration: $(cat err)"
[ "$(cat policy.yaml policy.yaml.search/* | cksum)" = "$sum" ] || fail "a refused search has changed something"

# ---- kill -9 ----

killed=(search conv.yaml "${options[@]}" --steps 12 --out policy.yaml)
"$mixt" search conv.yaml "${options[@]}" --steps 12 --out undisturbed.yaml -q || fail "the search that is not killed"
"$mixt" "${killed[@]}" --fresh -q || fail "the search to be killed"
begun=0
for kill in $(seq "$kills"); do
    fresh=()
    [ $((kill % 2)) = 1 ] && fresh=(--fresh) # else it goes on where it was killed
    below 16 # writes that a fresh search certainly makes
    signalled KILL@write:$((drawn + 1)) "$mixt" "${killed[@]}" "${fresh[@]}" -q 2>/dev/null
    [ $? = 137 ] && begun=$((begun + 1))
    valid "kill $kill"
done
[ $begun -ge $((kills / 4)) ] || fail "only $begun of $kills kills hit a search under way"
"$mixt" "${killed[@]}" -q || fail "going on at the end"
rules() { sed '/^evidence/,$d' "$1"; }
[ "$(rules policy.yaml)" = "$(rules undisturbed.yaml)" ] || fail "another policy than without kills: $(diff policy.yaml undisturbed.yaml)"
losses() { sed -n '/^  search:/,$p' "$1"; }
[ "$(losses policy.yaml)" = "$(losses undisturbed.yaml)" ] || fail "other figures than without kills: $(diff policy.yaml undisturbed.yaml)"


[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
