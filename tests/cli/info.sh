#!/bin/bash
# mixt info: for people and as JSON, at every instruction-set level. Usage: info.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3

text=$("$mixt" info) || fail "mixt info: status $?"
for word in CPU cores ISA GPU fp32 tf32 fp16 bf16 fp8 int8 "in training"; do
    grep -q -- "$word" <<<"$text" || fail "mixt info does not say '$word'"
done
grep -q $'\033' <<<"$text" && fail "control sequences in output that is no terminal"

for level in scalar avx2 avx512; do
    MIXT_ISA=$level "$mixt" info | grep -Eq "^ISA +(scalar|avx2|avx512)," || fail "MIXT_ISA=$level is not honoured"
done
MIXT_ISA=scalar "$mixt" info | grep -Eq '^fp16 +emulated' || fail "fp16 without F16C is not emulated"
MIXT_ISA=scalar "$mixt" info | grep -Eq '^bf16 +widened' || fail "bf16 without units is not widened"
MIXT_ISA=avx-512 "$mixt" info 2>"$work/err"; [ $? = 2 ] && grep -q "MIXT_ISA: .*did you mean avx512?" "$work/err" || fail "MIXT_ISA=avx-512: $(cat "$work/err")"
for threads in two 2x -1 5000; do
    MIXT_THREADS=$threads "$mixt" info 2>"$work/err"; [ $? = 2 ] && grep -q 'MIXT_THREADS: expected an integer' "$work/err" || fail "MIXT_THREADS=$threads: $(cat "$work/err")"
done
for command in info 'plan configs/digits.yaml' 'bench mlp -p fp32'; do
    MIXT_DEVICE=gpu "$mixt" $command >"$work/out" 2>"$work/err"
    [ $? = 2 ] && grep -q "MIXT_DEVICE: expected auto, cpu, cuda or cuda:N, found 'gpu'" "$work/err" || fail "MIXT_DEVICE=gpu mixt $command: $(cat "$work/err")"
    [ -s "$work/out" ] && fail "MIXT_DEVICE=gpu mixt $command: wrote to standard output"
done
MIXT_LOG=plan,mem "$mixt" info 2>"$work/err"; [ $? = 2 ] && grep -q "MIXT_LOG: no category 'mem'.*error, plan, .*, all" "$work/err" || fail "MIXT_LOG=plan,mem: $(cat "$work/err")"
MIXT_LOG=plan,data "$mixt" info >/dev/null 2>&1 && MIXT_LOG=all "$mixt" info >/dev/null 2>&1 || fail "MIXT_LOG with its own words: status $?"
MIXT_LOG='' MIXT_DEVICE='' MIXT_ISA='' MIXT_THREADS='' "$mixt" info >/dev/null || fail "empty variables: status $?"
MIXT_THREADS=1 "$mixt" info | grep -q '1 thread in use' || fail "MIXT_THREADS=1 is not honoured"

json=$("$mixt" info --json) || fail "mixt info --json: status $?"
python3 - "$json" <<'PYTHON' || fail "mixt info --json is not as promised"
import json, sys
info = json.loads(sys.argv[1])
assert info["cpu"]["cores_usable"] >= 1 and info["cpu"]["threads"] >= 1
assert isinstance(info["cpu"]["flags"]["avx2"], bool)
assert [f["format"] for f in info["formats"]] == ["fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
assert all(f["support"] in ("native", "widened", "emulated") and f["training"] for f in info["formats"])
assert info["memory"]["total_bytes"] > 0
assert info["gpu_count"] == len(info["gpus"]) and all(g["name"] for g in info["gpus"])
assert all(isinstance(info[f + "_support"], bool) for f in ("fp16", "bf16", "tf32", "fp8"))
bf16 = next(f for f in info["formats"] if f["format"] == "bf16")
assert info["gpu"]["auto"] == "cuda" or info["bf16_support"] == (bf16["support"] == "native")
assert info["gpu"]["auto"] == "cuda" or not info["tf32_support"]
PYTHON

# Without a backend for the GPU: why, in one line.
MIXT_CUDA_LIBRARY=/none "$mixt" info | grep -Eq '^GPU +none: .' || fail "mixt info does not say why there is no GPU"
MIXT_CUDA_LIBRARY=/none "$mixt" info --json | tr -d ' \n' | grep -q '"gpu":{"usable":false,"reason":"[^"][^}]*"auto":"cpu"}' || fail "mixt info --json: no reason"

if [ -w /dev/full ]; then
    "$mixt" info >/dev/full 2>/dev/null
    [ $? = 1 ] || fail "a full disk under standard output is not status 1"
fi

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
