#!/bin/bash
# The largest batch of each configuration below, calculated, then really trained on the GPU at that limit: it must not run out, and
# take to the byte what was planned; one sample more must exceed the limit. Usage: largest_batch.sh MIXT; CASES (a pattern) narrows it.
# A memory of "free" is all that the GPU has left.
. "$(dirname "$0")/../support/script.sh"
need python3
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
unset MIXT_DEVICE MIXT_REPLAY MIXT_FUSION

for i in $(seq 60000); do echo "the quick brown fox jumps over the lazy dog $i times"; done >words.txt
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nquick\nbrown\nfox\njumps\nover\nlazy\ndog\ntimes\n' >vocab.txt
printf 'model: mlp\n' >any.yaml
text="data.kind=text data.path=words.txt"
masked="$text data.tokenizer=wordpiece data.vocab=. data.mask=0.15"
digits="data.kind=random data.shape=28x28x1 data.classes=10 data.samples=400000"
small="data.kind=random data.shape=32x32x3 data.classes=10 data.samples=200000"
pictures="data.kind=random data.shape=224x224x3 data.classes=1000 data.samples=16384"
table="
mlp-small      | 600M | model=mlp net.hidden=1024,1024 $digits precision=bf16
mlp-wide       | 2G   | model=mlp net.hidden=8192,8192 $digits precision=fp16
mlp-fp32       | 1.5G | model=mlp net.hidden=4096,4096,4096 $digits precision=fp32
convnet-bf16   | 1G   | model=convnet net.channels=32,64 $digits precision=bf16
convnet-fp16   | 3G   | model=convnet net.channels=64,128 $digits precision=fp16
convnet-fp32   | 700M | model=convnet net.channels=16,32 $digits precision=fp32 train.accumulate=2
resnet20-bf16  | 1G   | model=resnet net.depth=20 $small precision=bf16
resnet20-tf32  | 2G   | model=resnet net.depth=20 $small precision=tf32
resnet50-bf16  | 12G  | model=resnet net.depth=50 $pictures precision=bf16
resnet50-fp16  | 6G   | model=resnet net.depth=50 $pictures precision=fp16 train.eval_batch=64
resnet50-free  | free | model=resnet net.depth=50 $pictures precision=bf16
vgg11-bf16     | 4G   | model=vgg net.depth=11 $small precision=bf16
vgg16-fp16     | 8G   | model=vgg net.depth=16 net.hidden=512 $pictures precision=fp16
gpt-small      | 1G   | model=gpt net.layers=4 net.width=256 net.heads=4 $text data.seq=64 precision=bf16
gpt-fp32       | 3G   | model=gpt net.layers=6 net.width=384 net.heads=6 $text data.seq=128 precision=fp32
gpt-fp16       | 5G   | model=gpt net.layers=12 net.width=768 net.heads=12 $text data.seq=128 precision=fp16
gpt2-bf16      | 9G   | model=gpt net.layers=12 net.width=768 net.heads=12 net.vocab=50257 $text data.seq=512 precision=bf16
gpt2-24G       | 24G  | model=gpt net.layers=12 net.width=768 net.heads=12 net.vocab=50257 $text data.seq=256 precision=bf16
gpt2-split     | 6G   | model=gpt net.layers=12 net.width=768 net.heads=12 $text data.seq=256 precision=bf16 train.split=4
gpt2-free      | free | model=gpt net.layers=12 net.width=768 net.heads=12 net.vocab=50257 $text data.seq=512 precision=bf16
bert-bf16      | 2G   | model=bert net.layers=6 net.width=256 net.heads=4 $masked data.seq=64 precision=bf16
bert_mlm-fp16  | 3G   | model=bert_mlm net.layers=6 net.width=384 net.heads=6 $masked data.seq=64 precision=fp16
lstm-bf16      | 1G   | model=lstm net.layers=2 net.width=256 $text data.seq=64 precision=bf16
lstm-fp32      | 800M | model=lstm net.layers=2 net.width=192 $text data.seq=32 precision=fp32
"

trained=0
while IFS='|' read -r name memory settings; do
    name=${name// /} memory=${memory// /}
    # shellcheck disable=SC2254 # a pattern it is
    case $name in '') continue ;; ${CASES:-*}) ;; *) continue ;; esac
    limit="--memory $memory"
    [ "$memory" = free ] && limit=""
    settings="$settings device=cuda train.steps=3 train.epochs=0 train.validate_every=2 data.val_fraction=0.02 train.checkpoint_minutes=0"
    start=$(date +%s.%N)
    # shellcheck disable=SC2086 # words
    "$mixt" plan any.yaml $settings $limit --largest-batch --json >largest.json 2>err || { fail "$name: status $?"; tail -2 err; continue; }
    seconds=$(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f", $1 - $2 }')
    read -r batch planned next bytes < <(python3 -c 'import json; l = json.load(open("largest.json")); print(l["batch"], l["memory"], l["next"] or 0, l["limit"])')
    within="train.memory=$bytes train.memory_may=[]"
    case $settings in *data.kind=random*) within="$within data.samples=$((4 * batch + 8))" ;; esac # fewer to validate on
    rm -rf run
    # shellcheck disable=SC2086
    "$mixt" train any.yaml $settings $within train.batch="$batch" out=run --json >train.json 2>err ||
        { fail "$name: a batch of $batch does not train: status $?"; tail -2 err; continue; }
    trained=$((trained + 1))
    python3 - "$planned" "$bytes" <<'PY' || fail "$name: what was taken is not what was planned"
import json, sys
planned, limit = map(int, sys.argv[1:])
t = json.load(open("train.json"))
m = t["run_memory"]
assert m["device_planned"] == m["device_allocated"] == planned <= limit, (m, planned, limit)
assert t["memory_planned"] == t["memory_allocated"], t
PY
    if [ "$next" != 0 ]; then
        step=$(echo "$settings" | grep -o 'train.split=[0-9]*' | grep -o '[0-9]*$')
        [ "$next" -gt "$bytes" ] || fail "$name: one more takes $next of $bytes bytes"
        # shellcheck disable=SC2086
        "$mixt" plan any.yaml $settings $within train.batch=$((batch + ${step:-1})) >/dev/null 2>err && fail "$name: a larger batch fits too"
        grep -q "($next bytes)" err || { fail "$name: a larger batch does not take $next bytes"; tail -2 err; }
    fi
    printf '%-14s %5s: a batch of %6d takes %12d bytes of %12d, one more %12d; found in %s s, trained\n' "$name" "$memory" "$batch" "$planned" "$bytes" "$next" "$seconds"
done <<<"$table"

[ $trained -ge 20 ] || [ -n "${CASES:-}" ] || fail "only $trained configurations were trained: 20 at least"
[ $failures = 0 ] || echo "$failures checks failed"
exit $((failures > 0))
