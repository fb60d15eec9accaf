#!/bin/bash
# mixt bench: the fields and defaults that scripts compare with other systems. Usage: bench.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
number() { grep -o "\"$1\": *[-+.0-9e]*" <<<"$line" | sed 's/.*: *//'; }
positive() { [ -n "$1" ] && awk -v n="$1" 'BEGIN { exit !(n + 0 > 0) }'; }

# measure ARGUMENT...: one JSON line in $line, with every field
measure() {
    line=$("$mixt" bench "$@" --threads 1 --steps 1 --json) || fail "bench $*: status $?"
    [ "$(wc -l <<<"$line")" = 1 ] || fail "bench $*: not one line"
    for field in ms items_s tflops threads peak_gib batch; do
        positive "$(number $field)" || fail "bench $*: $field is '$(number $field)'"
    done
    for field in loss seq spread; do
        [ -n "$(number $field)" ] || fail "bench $*: no $field"
    done
    grep -q "\"model\": *\"$1\"" <<<"$line" || fail "bench $*: another model"
    [ "$(number threads)" = 1 ] || fail "bench $*: $(number threads) threads"
}

for precision in fp32 tf32 fp16 bf16; do
    measure mlp --precision $precision --batch 8
    grep -q "\"precision\": *\"$precision\"" <<<"$line" || fail "bench mlp $precision: another precision"
    [ "$(number batch) $(number seq)" = '8 0' ] || fail "bench mlp $precision: batch $(number batch), seq $(number seq)"
done
measure gpt --precision fp32 --batch 1 --seq 16
[ "$(number batch) $(number seq)" = '1 16' ] || fail "bench gpt: batch $(number batch), seq $(number seq)"
measure convnet --precision bf16 --batch 4
measure lstm --precision bf16 --batch 1 --seq 4
measure gru --precision fp16 --batch 1 --seq 4
measure rnn --precision fp32 --batch 1 --seq 4
measure mlp --precision fp32
[ "$(number batch)" = 128 ] || fail "bench mlp: batch $(number batch) by default, expected 128"

# Every model of the library's list can be asked for.
count=0
for name in $(sed -n 's/^ *\.name = "\(.*\)",$/\1/p' "$(dirname "$0")/../../src/models/bench.c"); do
    "$mixt" bench "$name" --precision fp32 --batch -1 2>&1 | grep -q -- '--batch' || fail "bench $name: not known"
    count=$((count + 1))
done
[ $count -ge 11 ] || fail "only $count models of bench found"

# Within less memory. (Losses are not compared: steps that warm up are counted by time.)
measure gpt --precision fp32 --batch 2 --seq 64
peak=$(number peak_gib)
measure gpt --precision fp32 --batch 2 --seq 64 --memory 177M
awk -v a="$(number peak_gib)" -v b="$peak" 'BEGIN { exit !(a < b && a <= 177 / 1024) }' || fail "bench --memory takes $(number peak_gib) GiB, without $peak"
positive "$(number recomputed)" && positive "$(number recompute_ms)" || fail "bench --memory does not say what is computed again"
"$mixt" bench mlp --precision fp32 --memory 1M 2>"$work/few" && fail "bench --memory 1M: status 0"
"$mixt" bench mlp --precision fp32 --memory 9X 2>"$work/unit"
[ $? = 2 ] && grep -q "'9X'" "$work/unit" || fail "bench --memory 9X: $(cat "$work/unit")"
grep -q 'without its activations' "$work/few" || fail "bench --memory 1M: $(cat "$work/few")"
measure mlp --precision fp32

# items/s and ms describe the same step.
awk -v ms="$(number ms)" -v rate="$(number items_s)" 'BEGIN { r = ms * rate / 128e3; exit !(r > 0.999 && r < 1.001) }' ||
    fail "$(number items_s) items/s do not fit $(number ms) ms"
"$mixt" bench mlp --precision fp32 --batch 8 --steps 1 --threads 1 | grep -q 'mlp fp32, batch 8, 1 threads: .* ms per step' || fail "bench for people"
"$mixt" bench mlp --precision fp32 --batch 8 --steps 1 --threads 1 --profile | grep -Eq 'fc.0 +matmul' || fail "bench --profile names no layer"
profile=$("$mixt" bench gpt --precision bf16 --batch 1 --seq 16 --steps 1 --threads 1 --device cpu --profile --json) || fail "bench --profile --json: status $?"
for word in products attention norms pointwise loss optimizer optimizer_step layer_norm_grad; do
    grep -q "\"$word\"" <<<"$profile" || fail "bench --profile --json has no $word"
done
grep -q '"device": *"cpu"' <<<"$profile" || fail "bench --json does not name the device"
python3 - "$profile" <<'PYTHON' || fail "bench --profile --json does not add up"
import json, sys
profile = json.loads(sys.argv[1])["profile"]
ops, work = profile["ops"], profile["work"]
assert abs(sum(o["seconds"] for o in ops) - profile["seconds"]) < 1e-6 * profile["seconds"]
assert abs(sum(w["share"] for w in work.values()) - 1) < 1e-4
assert sum(w["ops"] for w in work.values()) == len(ops)
assert all(o["bytes"] > 0 for o in ops if o["op"] != "step_control") and all(o["seconds"] >= 0 for o in ops)
lookup = [o for o in ops if o["op"] == "embedding" and o["layer"] == "wte"][0]  # 16 of 256 rows, not the table
assert lookup["bytes"] == 16 * (2 * 384 * 2 + 4), lookup
product = [o for o in ops if o["op"] == "matmul" and not o["backward"]][0]
assert product["flops"] > 0 and product["dtype"] == "bf16"
PYTHON
python3 -c 'import json, sys; json.loads(sys.argv[1])' "$line" || fail "bench --json is no JSON"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
