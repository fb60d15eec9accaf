#!/bin/bash
# mixt advise on a GPU: times are measured, what training then takes is near them, and the choice is no slower than plain FP32 or
# plain BF16. Usage: advise.sh MIXT [gpt2] [resnet50] [mlp]
. "$(dirname "$0")/../support/script.sh"
root=$PWD
shift
parts=" ${*:-gpt2 resnet50 mlp} "
cd "$work" || exit 1

# seconds CONFIG PRECISION SETTING...: of a sample, as the rows of a training have it; the median of ROUNDS (3) trainings, since two
# of the same format differ by more than 1% where an update takes less than a tenth of a millisecond
seconds() {
    local config=$1 precision=$2 round
    shift 2
    for round in $(seq "${ROUNDS:-3}"); do
        rm -rf trained
        "$mixt" train "$config" precision="$precision" "$@" train.epochs=0 train.steps=$steps train.validate_every=1000000 out=trained -q >/dev/null || fail "training in $precision"
        python3 - <<'PY'
import json, statistics
rows = [json.loads(line) for line in open("trained/metrics.jsonl")]
rates = [r["samples_s"] for r in rows if r.get("samples_s")][len(rows) // 2:]
print(1 / statistics.median(rates))
PY
    done | sort -g | sed -n "$(((${ROUNDS:-3} + 1) / 2))p"
}

# check NAME CONFIG SETTING...
check() {
    local name=$1 config=$2
    shift 2
    [[ $parts == *" $name "* ]] || return
    "$mixt" advise "$config" "$@" --json -q >out 2>err || { fail "$name: $(cat err)"; return; }
    local chosen plain
    chosen=$(python3 -c 'import json; print(json.load(open("out"))["choice"]["precision"])')
    plain=$(seconds "$config" bf16 "$@")
    python3 - "$([ "$chosen" = bf16 ] && echo "$plain" || seconds "$config" "$chosen" "$@")" "$(steps=$((steps / 4)) seconds "$config" fp32 "$@")" "$plain" \
        <<'PY' || fail "$name: $(cat out)"
import json, sys
o = json.load(open("out"))
c = o["choice"]
chosen = next(x for x in o["candidates"] if x["verdict"] == "chosen")
took, fp32, bf16 = (1e3 * float(x) * c["batch"] * c["accumulate"] for x in sys.argv[1:])
print("%s: predicted %.3f ms, took %.3f; fp32 %.3f, bf16 %.3f; decided by %s" % (chosen["name"], chosen["ms"], took, fp32, bf16, c["decided_by"]))
assert not o["assumed"] and chosen["source"] == "measured" and c["fits"]
assert abs(chosen["ms"] / took - 1) < 0.05, "not what training takes"
assert took < 1.01 * min(fp32, bf16), "slower than a plain format"
PY
}

text="data.kind=random data.path=tokens data.tokenizer=bytes data.vocab="
images="data.kind=random data.path=224x224x3 data.classes=1000 data.crop=0 data.resize=0 data.min_area=0 data.flip=false data.mean= data.std="
# shellcheck disable=SC2086 # settings are words
{
    steps=120 check gpt2 "$root/configs/gpt2-124m.yaml" $text data.classes=50257 train.accumulate=1
    steps=120 check resnet50 "$root/configs/resnet50.yaml" $images
    steps=2000 check mlp "$root/configs/mlp.yaml" data.kind=random data.path=784 data.classes=10
}
"$mixt" info --json | python3 -c '
import json, sys
o = json.load(sys.stdin)
assert o["gpu_count"] == len(o["gpus"]) >= 1 and o["gpus"][0]["name"] == o["gpu"]["name"]
assert o["fp16_support"]' || fail "mixt info --json"

[ $failures = 0 ] && echo "advise: all good"
exit $((failures > 0))
