#!/bin/bash
# Policies whose backward pass has another format than the forward pass train, and close to FP32. Usage: formats_discrete.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

yes 'the quick brown fox' | head -c 20000 >words.txt
printf 'model: mlp\n' >any.yaml
common='threads=2 train.steps=8 train.batch=16'
mlp="model=mlp net.hidden=64,32 data.limit=256"
convnet="model=convnet net.channels=8,16 data.limit=256"
gpt="model=gpt net.layers=2 net.width=32 net.heads=2 data.kind=text data.path=words.txt data.seq=32"

last_loss() { grep -o '"loss":[^,}]*' "$1/metrics.jsonl" | tail -1 | cut -d: -f2; }

for model in mlp convnet gpt; do
    "$mixt" train any.yaml $common ${!model} precision=fp32 out=$model-fp32 >/dev/null 2>err || { fail "train $model"; cat err; }
    expected=$(last_loss $model-fp32)
    for pair in bf16:fp32 fp32:bf16 fp16:bf16 bf16:tf32 fp32:fp16; do
        out=$model-${pair/:/-}
        printf 'default: {forward: %s, backward: %s}\n' ${pair/:/ } >policy.yaml
        "$mixt" train any.yaml $common ${!model} precision=policy.yaml out=$out >/dev/null 2>err || { fail "train $model with $pair"; cat err; }
        got=$(last_loss $out)
        # Eight steps amplify roundings of 2^-8 little; a wrong cast or a gradient lost shows in the first digits.
        awk -v a="$got" -v b="$expected" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= 0.02 * b) }' ||
            fail "$model with $pair: loss $got, in FP32 $expected"
    done
done

# An FP16 pass of either direction has its loss scaled; others have not.
for pair in fp32:fp16 fp16:bf16 bf16:fp32; do
    scale=$(grep -o '"scale":[^,}]*' mlp-${pair/:/-}/metrics.jsonl | tail -1 | cut -d: -f2)
    case $pair in
    *fp16*) awk -v s="$scale" 'BEGIN { exit !(s > 1) }' || fail "$pair: a loss scale of '$scale'" ;;
    *) awk -v s="$scale" 'BEGIN { exit !(s == "" || s == 1) }' || fail "$pair: a loss scale of '$scale'" ;;
    esac
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
