#!/bin/bash
# Decisions that are made at once (layers that are raised together) are all taken, wherever between them the run is killed:
# at every other write from the first of them on, and it ends with the bits of a run that was not. Usage: auto_kills.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
cat >net.yaml <<'END'
model: mlp
precision: bf16
threads: 1
data: {kind: digits, limit: 64}
net: {hidden: [8, 8]}
train: {epochs: 0, steps: 8, batch: 16, lr: 0.05, validate_every: 0}
END
row() { printf '{"step":4,"kind":"decision","severity":"warning","cause":"precision","layer":"%s","from":"bf16","to":"fp32","action":"precision","evidence":{"text":"three at once","back":null,"key":null}}\n' "$1"; }
all="fc.0 fc.1 fc.2 "
for layer in $all; do row "$layer"; done >three.jsonl
train() { "$mixt" train "$@" -q 2>err; }
decided() { [ ! -e "$1/events.jsonl" ] || grep '"kind":"decision"' "$1/events.jsonl" | sed 's/.*"layer":"\([^"]*\)".*/\1/' | tr '\n' ' '; }
killed() { # a run that ends at write $1; fails where it has fewer
    rm -rf killed
    { signalled KILL@write:"$1" train net.yaml auto.replay=three.jsonl out=killed; } 2>/dev/null && return 1
    layers=$(decided killed)
}
train net.yaml out=plain || fail "plain: $(cat err)"
train net.yaml auto.replay=three.jsonl out=whole || fail "whole: $(cat err)"
[ "$(decided whole)" = "$all" ] || fail "the decisions: $(cat whole/events.jsonl)"
cmp -s whole/model.safetensors plain/model.safetensors && fail "the decisions change no bit"
n=16
while killed $n && [ -z "$layers" ]; do n=$((n + 16)); done
n=$((n - 16)) between=0 kills=0
while killed $n && [ $kills -lt 100 ]; do # every other write: what lies between two decisions takes more than two
    kills=$((kills + 1)) n=$((n + 2))
    [ -n "$layers" ] || continue
    [ "$layers" = "$all" ] || between=$((between + 1))
    train --resume killed || fail "write $n: $(cat err)"
    cmp -s killed/model.safetensors whole/model.safetensors || fail "killed behind decisions for $layers: other bits; all it took: $(decided killed)"
    [ "$(decided killed)" = "$all" ] || fail "killed behind decisions for $layers: all it took: $(decided killed)"
done
echo "$kills kills, $between between two decisions"
[ $between -ge 4 ] || fail "hardly a kill came between two decisions"
[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
