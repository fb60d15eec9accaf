#!/bin/bash
# mixt generate: text by seed, whole characters, JSON, and runs that cannot. Usage: generate.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

for _ in $(seq 300); do printf 'the cat naps. ärger über öl\n'; done >text.txt
cat >gpt.yaml <<'YAML'
model: gpt
threads: 1
net: {layers: 2, width: 32, heads: 2}
data: {kind: text, path: text.txt, seq: 32}
train: {epochs: 0, steps: 150, batch: 16, lr: 0.01, schedule: cosine, warmup: 10}
YAML
sed 's/model: gpt/model: lstm/; s/layers: 2, width: 32, heads: 2/layers: 1, width: 48/' gpt.yaml >lstm.yaml
for model in gpt lstm; do
    "$mixt" train $model.yaml out=$model -q || fail "train $model"
done
mv text.txt gone # the data is not needed any more

for model in gpt lstm; do
    "$mixt" generate $model -n 100 --seed 3 >a 2>err || { fail "generate $model"; cat err; }
    "$mixt" generate $model -n 100 --seed 3 >b 2>/dev/null
    "$mixt" generate $model -n 100 --seed 4 -t 2 >c 2>/dev/null
    cmp -s a b || fail "$model: the same seed gave another text"
    cmp -s a c && fail "$model: another seed gave the same text"
    grep -q 'tokens/s' err || fail "$model: no figures on standard error"
    for n in 1 2 3 19 20 21 22 23; do # ends in the middle of a character now and then
        "$mixt" generate $model -n $n -q --prompt 'the cat naps. ' -t 0 2>err | iconv -f UTF-8 -t UTF-8 >/dev/null ||
            fail "$model: $n tokens are not UTF-8"
        [ -s err ] && fail "$model: -q wrote $(cat err)"
    done
    "$mixt" generate $model -n 40 -t 5 --seed 9 -q | iconv -f UTF-8 -t UTF-8 >/dev/null || fail "$model: wild text is not UTF-8"
    "$mixt" generate $model -n 50 -t 0 -q >a
    "$mixt" generate $model -n 50 -k 1 --seed 5 -q >b
    "$mixt" generate $model -n 50 --top-p 0.000001 --seed 6 -q >c
    cmp -s a b && cmp -s a c || fail "$model: greedy, top-k 1 and top-p 0.000001 differ"
done
"$mixt" generate gpt -n 60 -t 0 -q --prompt 'the cat' | grep -q 'the cat naps. ärger über öl' || fail "gpt has not learnt its one line"

# ---- several texts, JSON ----
"$mixt" generate gpt -n 10 --count 3 --json >out.jsonl || fail "generate --json"
[ "$(wc -l <out.jsonl)" = 3 ] || fail "3 texts are $(wc -l <out.jsonl) lines"
grep -vq '^{"run":"gpt","sample":[123],"seed":[123],"prompt":"","text":".*","prompt_ids":\[10\],"ids":\[[0-9,]*\],"tokens":10,"seconds":[0-9.e-]*,"interrupted":false}$' out.jsonl &&
    fail "not as documented: $(cat out.jsonl)"
"$mixt" generate gpt -n 10 --seed 2 --json | cut -d, -f5 >one
sed -n 2p out.jsonl | cut -d, -f5 | cmp -s - one || fail "text 2 of seed 1 is not the text of seed 2"
# ---- token ids: of bytes, the bytes themselves ----
"$mixt" generate gpt -n 12 -t 0 -q --prompt 'the' --json | sed 's/.*"prompt_ids":\[116,104,101\],"ids":\[\([0-9,]*\)\].*/\1/' >a
"$mixt" generate gpt -n 12 -t 0 -q --prompt-ids 116,104,101 --ids >b || fail "generate --prompt-ids"
cmp -s a b || fail "ids of a text are $(cat a), those of its prompt's ids $(cat b)"
"$mixt" generate gpt -n 0 -q >a && [ "$(cat a)" = "" ] || fail "0 tokens"
"$mixt" generate gpt -n 4 -q --prompt "$(head -c 100 gone)" >/dev/null || fail "a prompt longer than the context"

# ---- Ctrl-C ends the text, with status 0 ----
"$mixt" generate gpt -n 100000000 >long 2>err &
pid=$!
await [ -s long ]
kill -INT $pid
wait $pid || fail "Ctrl-C: status $?"
grep -q 'tokens/s' err || fail "Ctrl-C: no figures"

# ---- every byte arrives, byte 0 too ----
"$mixt" generate gpt -n 3000 -t 1000 -q >bytes
"$mixt" generate gpt -n 3000 -t 1000 --json | grep -o '\\u0000' | wc -l >zeros
[ "$(cat zeros)" -gt 0 ] && [ "$(tr -dc '\0' <bytes | wc -c)" = "$(cat zeros)" ] ||
    fail "$(cat zeros) bytes of 0 are $(tr -dc '\0' <bytes | wc -c)"

# ---- nothing steers a terminal, also behind a byte that is no UTF-8 ----
if command -v script >/dev/null; then
    for seed in 1 2 3 4; do TERM=xterm script -qec "'$mixt' generate gpt -n 4000 -t 1000 -q --seed $seed" /dev/null </dev/null; done |
        LC_ALL=C tr -d '\r\n\t' | LC_ALL=C grep -aqP '[\x00-\x1f\x7f]|\xc2[\x80-\x9f]' && fail "control characters reach the terminal"
else
    echo "skipped: the check of a terminal needs script"
fi

# ---- room for more tokens than the tokenizer has: those without text are never drawn ----
for model in gpt lstm; do
    "$mixt" train $model.yaml data.path=gone net.vocab=300 train.steps=1 out=roomy-$model -q || fail "train with room"
    "$mixt" generate roomy-$model -n 400 -t 1000 -q >/dev/null 2>err || fail "$model with room: $(cat err)"
done

# ---- what cannot be ----
refuse() { # STATUS WORDS ARGUMENT...
    local status=$1 words=$2
    shift 2
    "$mixt" generate "$@" >out 2>err
    local got=$?
    [ $got = "$status" ] || fail "generate $*: status $got, expected $status"
    grep -q "$words" err || fail "generate $*: says $(cat err)"
}
refuse 1 'no such folder' nowhere
refuse 2 'top-p' gpt --top-p 1.5
refuse 2 'temperature' gpt -t -1
for _ in $(seq 2000); do printf '\1\2\3\4'; done >raw.bin # as tokens of 16 bits: 513, 1027
"$mixt" train gpt.yaml data.kind=tokens data.path=raw.bin net.vocab=2048 train.steps=1 out=raw -q || fail "train on raw tokens"
refuse 1 'raw: has no tokenizer: use token ids (--prompt-ids, --ids), or,.* data.vocab in its config.yaml' raw
"$mixt" generate raw --prompt-ids 513,1027 --ids -n 4 -t 0 -q >out || fail "ids of a run on raw tokens"
tr ',' '\n' <out | awk '{ n++; if ($1 >= 2048) exit 1 } END { exit n != 4 }' || fail "ids of a run on raw tokens: $(cat out)"
"$mixt" train gpt.yaml data.path=gone model=bert out=bert train.steps=1 2>said
grep -q 'warning: bert sees all tokens .* data.mask' said || fail "BERT trains on the next token without a word"
refuse 1 "bert: bert is a masked language model: .*'mixt eval bert' .*'mixt export bert' .*init=bert'" bert
"$mixt" predict bert val:0 >out 2>err
[ $? = 1 ] && grep -q 'bert is a masked language model' err || fail "predict of a masked language model says $(cat err)"
for command in 'eval bert' 'export bert' 'train gpt.yaml data.path=gone model=bert out=on init=bert train.steps=1'; do
    # shellcheck disable=SC2086
    "$mixt" $command >out 2>err || fail "what a masked language model is for: $command: $(cat err)"
done
printf 'model: mlp\nnet: {hidden: [8]}\ndata: {limit: 128}\ntrain: {steps: 1}\n' >mlp.yaml
"$mixt" train mlp.yaml out=mlp -q
refuse 1 'only language models' mlp
cp -r gpt cut
head -c 1000 gpt/model.safetensors >cut/model.safetensors
refuse 1 'cut/model.safetensors' cut
rm cut/model.safetensors
refuse 1 'cut: has no final weights' cut
rm -r cut/checkpoints
refuse 1 'cut/model.safetensors' cut
sed -i 's/width: 32/width: 64/' cut/config.yaml
cp gpt/model.safetensors cut
refuse 1 "tensor 'wte.weight'" cut

[ $failures = 0 ] && echo "generate: all good"
exit $((failures > 0))
