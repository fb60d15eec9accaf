#!/bin/bash
# mixt adopt, killed again and again at random moments of all of its stages and gone on with each time, ends as one that nobody disturbed:
# the same decisions and reasons, figures, weights, pairs of the proof, policy and configuration. The goal is memory, so that nothing
# depends on time. Usage: adopt_kills.sh MIXT [KILLS [MODEL...]], as in adopt_kills.sh build/mixt 10 mnist digits gpt. MIXT_KILL_SEED draws
# other moments. Data of MNIST: MIXT_TEST_DATA, or ../shared/data.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-10}
models=${*:3}
seed=${MIXT_KILL_SEED:-20261116}
data=$(realpath -m "${MIXT_TEST_DATA:-../shared/data}")
cd "$work" || exit 1

cat >digits.yaml <<YAML
model: mlp
threads: 1
net: {hidden: [32, 32]}
data: {kind: digits, limit: 1024}
train: {epochs: 0, steps: 60, batch: 256, lr: 0.01, checkpoint_every: 10}
YAML
cat >mnist.yaml <<YAML
model: convnet
threads: 1
net: {channels: [4, 8], dropout: 0.1}
data: {kind: idx, path: $data/mnist, limit: 2000}
train: {epochs: 0, steps: 60, batch: 64, lr: 0.003, checkpoint_every: 15}
YAML
for i in $(seq 3000); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >gpt.yaml <<YAML
model: gpt
threads: 1
net: {layers: 1, width: 32, heads: 2, dropout: 0.1}
data: {kind: text, path: text.txt, seq: 32}
train: {epochs: 0, steps: 60, batch: 16, lr: 0.005, checkpoint_every: 15}
YAML

now() { date +%s%3N; }
# end NAME: all that must be the same, as text; names of the road and what was timed are taken out
end() {
    local road=runs/adopt-$1
    "$mixt" adopt "$model.yaml" --name "$1" --history | sed -n 's/^[^ ]*  version/version/; /^version\|^  because/p'
    sed 's/"time":"[^"]*"//; s/"step_seconds":[^,]*,//; s/,"details":.*//; s/[0-9.]* ms//g; /"figure":"search"/s/"note":.*//' "$road/history.jsonl"
    sed 's/"time":[^,}]*//; s/"\(step_seconds\|samples_s\|seconds\|energy\|equal_seconds\)":[^,}]*,\?//g; s/"checkpoint_stall":[^,}]*//' runs/compare-adopt-"$1"-*/compare.jsonl
    cksum <"$road/baseline/model.safetensors"
    cksum <"$road/mixed/model.safetensors"
    grep -v '^ ' "$road/versions/5-policy.yaml" # without the evidence, which has times
    cat "$road/adopted.yaml"
}
same() { end "$1" | sed "s/adopt-$1/adopt-NAME/g"; }

for model in ${models:-digits gpt mnist}; do
    [ "$model" != mnist ] || [ -d "$data/mnist" ] || { echo "skipped: no mnist in $data"; continue; }
    before=$failures
    road=("$model.yaml" --margin 20% --for memory --steps 8 --seeds 6 -q)
    start=$(now)
    "$mixt" adopt "${road[@]}" --name whole >out 2>err
    status=$?
    took=$(($(now) - start))
    [ $status = 0 ] || { fail "$model: nobody disturbed it, and yet its status is $status"; cat out err; continue; }
    died=0 stages=""
    while [ $died -lt "$kills" ]; do
        "$mixt" adopt "${road[@]}" --name killed >out 2>err &
        process=$!
        below $((2 * took / (kills + 2) + 1)) # so that the road is not over before the last kill
        sleep "$(printf '%d.%03d' $((drawn / 1000)) $((drawn % 1000)))"
        kill -9 $process 2>/dev/null || { wait $process; echo "$model: over after $died kills"; break; }
        wait $process 2>/dev/null
        died=$((died + 1))
        stages="$stages $(grep -c '"version"' runs/adopt-killed/history.jsonl 2>/dev/null || true)"
    done
    "$mixt" adopt "${road[@]}" --name killed >out 2>err || { fail "$model: the last call ended with status $?"; cat out err; continue; }
    same whole >whole.end
    same killed >killed.end
    diff whole.end killed.end >differences || { fail "$model: another end"; head -20 differences; }
    [ $died -ge "$kills" ] || fail "$model: only $died kills"
    echo "$model: $died kills of a road of $took ms, after stages$stages: $([ $failures = "$before" ] && echo the same end || echo FAILED)"
    rm -rf runs
done
[ $failures = 0 ] && echo "adopt, killed: all good"
exit $((failures > 0))
