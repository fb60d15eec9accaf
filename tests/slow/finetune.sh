#!/bin/bash
# The whole job: a small Llama trained on Shakespeare and on the questions of GSM8K as plain text, exported, then fine-tuned on its
# answers: adapters of rank 16 against all weights, losses over the held-out part side by side; a conversation with what comes out, and
# GGUF. Adapters must come within 3% of all weights; what a base in 4 bits loses against BF16 is told with its interval, over 6 pairs.
# Some 20 minutes of one core. Usage: finetune.sh MIXT [UPDATES [TUNING [EXAMPLES [COMPARED]]]]
# Data: MIXT_TEST_DATA, or ../shared/data.
. "$(dirname "$0")/../support/script.sh"
need python3
updates=${2:-1600} tuning=${3:-400} examples=${4:-0} compared=${5:-80}
data=$(realpath -m "${MIXT_TEST_DATA:-../shared/data}")
[ -s "$data/chat/gsm8k_train.jsonl" ] && [ -d "$data/tinyshakespeare" ] || skip "no $data/chat/gsm8k_train.jsonl, or no tinyshakespeare beside it"
cd "$work" || exit 1

python3 - "$data" "$examples" <<'PY'
import glob, json, os, sys
rows = [json.loads(line) for line in open(f'{sys.argv[1]}/chat/gsm8k_train.jsonl')]
half = len(rows) // 2
plays = max(glob.glob(f'{sys.argv[1]}/tinyshakespeare/*'), key=os.path.getsize)
with open('text.txt', 'w') as out:  # what the model may know before: plays, and other questions with their answers
    out.write(open(plays).read()[:500000])
    for row in rows[:half]:
        print(row['prompt'], row['completion'], sep='\n', file=out)
tuned = rows[half:half + int(sys.argv[2])] if int(sys.argv[2]) else rows[half:]
with open('gsm8k.jsonl', 'w') as out:
    for row in tuned:
        print(json.dumps(row), file=out)
PY
cat >base.yaml <<YAML
model: llama
precision: fp32
net: {layers: 4, width: 128, heads: 4, kv_heads: 2, tied: true}
data: {kind: text, path: text.txt, seq: 512}
train: {epochs: 0, steps: $updates, batch: 8, lr: 0.003, schedule: cosine, warmup: $((updates / 20)), clip: 1.0, beta2: 0.95}
YAML
"$mixt" train base.yaml out=base -q || fail "the base"
"$mixt" export base --out folder >/dev/null || fail "export"
# tune NAME OPTION...: prints the loss over what was held out
tune() {
    local name=$1
    shift
    "$mixt" finetune folder gsm8k.jsonl --out "$name" --base fp32 --json "$@" train.epochs=0 train.steps="$tuning" data.seq=512 train.batch=8 >"$name.json" 2>err ||
        { fail "finetune $*"; cat err; }
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["eval_loss"])' "$name.json"
}
lora=$(tune lora train.lr=0.003)
full=$(tune full --full train.lr=0.001)
frozen=$("$mixt" eval folder data.kind=chat data.path=gsm8k.jsonl --split all --json 2>/dev/null |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["loss"])' 2>/dev/null || echo "not known")
python3 - "$lora" "$full" "$frozen" <<'PY' || fail "adapters are further than 3% from all weights"
import json, sys
lora, full = float(sys.argv[1]), float(sys.argv[2])
a, b = (json.load(open(f'{n}.json')) for n in ('lora', 'full'))
print(f'loss over the held-out part: before {sys.argv[3]}, LoRA r16 {lora:.4f} ({a["trainable"]} numbers), all weights {full:.4f} ({b["trainable"]}): {100 * (lora / full - 1):+.2f}%')
sys.exit(lora > 1.03 * full)
PY
cat >bf16.yaml <<YAML
init: folder
precision: bf16
data: {kind: chat, path: gsm8k.jsonl, vocab: folder, seq: 512, val_fraction: 0.05}
lora: {rank: 16}
train: {epochs: 0, steps: $compared, batch: 8, lr: 0.003, schedule: cosine, warmup: 3, weight_decay: 0, clip: 1.0}
YAML
sed 's/^train: {/train: {frozen: nf4, /' bf16.yaml >nf4.yaml
"$mixt" compare bf16.yaml nf4.yaml --seeds 6 --margin 2% --json -q >compare.json 2>err # its verdict is told, not asked for
python3 - <<'PY' || fail "no interval: $(cat err)"
import json
c = json.load(open('compare.json'))
low, high = c['interval']
print(f'NF4 against BF16 below adapters: loss {100 * c["difference"]:+.2f}% ({100 * low:+.2f}% to {100 * high:+.2f}%), {c["pairs"]} pairs')
PY
for run in lora full; do
    "$mixt" export $run --gguf --type f16 >/dev/null || fail "export $run --gguf"
done
[ $failures = 0 ] || exit 1
