#!/bin/bash
# Conversations through the command: what mixt data tells of them, trained and evaluated, packed and not, and what is
# refused. Usage: conversations.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
cd "$work" || exit 1

# figure NAME FILE: a number of a JSON object
figure() { grep -o "\"$1\":-\?[0-9.]*" "$2" | head -1 | cut -d: -f2; }

mkdir model bare
cp "$root"/tests/data/tokens/{encoder.json,vocab.bpe} model
cp "$root/tests/data/chat/thinks.jinja" model/chat_template.jinja
echo '{"eos_token": "<|endoftext|>"}' >model/tokenizer_config.json
chat() { echo "{\"messages\": [{\"role\": \"user\", \"content\": \"$1\"}, {\"role\": \"assistant\", \"content\": \"$2\"}]}"; }
for i in $(seq 40); do chat "the $i" "$(printf 'of %.0s' $(seq $((i % 9 + 1))))"; done >rows.jsonl

# What it tells: for people, marked where there are no colours, and for scripts.
"$mixt" data rows.jsonl --model model --show 2 >out 2>err || fail "mixt data: $(cat err)"
[ "$(head -2 out)" = "--- line 1: $(sed -n 's/^--- line 1: \([0-9]*\) .*/\1/p' out) tokens, 11 trained ---
<|user|>the 1<|eot|><|assistant|><think></think>[[of of <|end|>]]" ] || fail "shown: $(cat out)"
grep -q '^--- line 2: ' out && ! grep -q '^--- line 3: ' out || fail "--show 2: $(cat out)"
for line in 'form  *messages' 'template  *model/chat_template.jinja' 'samples  *40 of 40 rows' 'tokens .* trained (.*%)' 'lengths .* median' 'cut  *0 rows'; do
    grep -q "^$line" out || fail "no line '$line': $(cat out)"
done
grep -q 'an empty block of thoughts before 40 answers' out || fail "thoughts: $(cat out)"
"$mixt" data rows.jsonl --model model --json >all.json || fail "--json"
grep -Eq '^\{"samples":40,"tokens":[0-9]+,"trained_tokens":[0-9]+,"cut":0,"form":"messages","template":"model/chat_template.jinja"' all.json || fail "--json: $(cat all.json)"
"$mixt" data rows.jsonl --model model --json --seq 55 >cut.json 2>/dev/null || fail "--seq"
[ "$(figure cut cut.json)" -gt 0 ] && [ "$(figure tokens cut.json)" -le $((40 * 56)) ] || fail "--seq 55: $(cat cut.json)"
"$mixt" data rows.jsonl --model model --json --loss-on all >every.json || fail "--loss-on"
[ "$(figure trained_tokens every.json)" = $(($(figure tokens every.json) - 40)) ] || fail "--loss-on all: $(cat every.json)"
"$mixt" data rows.jsonl --model model --json --template "$root/tests/data/chat/thinks.jinja" | grep -q '"template":"[^"]*thinks.jinja"' || fail "--template"

# Trained, and evaluated without the folder of the model.
cat >run.yaml <<END
model: llama
net: {layers: 1, width: 32, heads: 2}
data: {path: rows.jsonl, vocab: model, seq: 128, val_fraction: 0.2}
train: {batch: 2, steps: 4, lr: 0.01}
precision: fp32
device: cpu
threads: 2
END
"$mixt" train run.yaml out=packed >text 2>&1 || fail "train: $(cat text)"
grep -q 'samples share [0-9]* rows of 128 tokens' text || fail "packing is not told: $(cat text)"
cp -r packed/vocab vocab && [ -e vocab/chat_template.jinja ] && [ -e vocab/tokenizer_config.json ] || fail "the run has no template of its own"
"$mixt" eval packed --split val --json >a.json || fail "eval, packed"
"$mixt" eval packed --split val --json data.pack=false >b.json 2>/dev/null || fail "eval, each row for itself"
awk -v a="$(figure loss a.json)" -v b="$(figure loss b.json)" 'BEGIN { d = a - b; exit !(a > 0 && (d < 0 ? -d : d) <= 1e-6 * a) }' ||
    fail "packed $(figure loss a.json), each for itself $(figure loss b.json)"
mv model moved && "$mixt" eval packed --split val --json >c.json 2>err || fail "without the model's folder: $(cat err)"
[ "$(figure loss a.json)" = "$(figure loss c.json)" ] || fail "another loss without the model's folder"
mv moved model
"$mixt" train run.yaml out=lstm model=lstm net.heads=0 >text 2>&1 || fail "a model that cannot pack, by default: $(cat text)"
"$mixt" train run.yaml out=refused model=lstm net.heads=0 data.pack=true >text 2>&1 && fail "a model that cannot pack, told to"
grep -q 'cannot keep texts apart that share a row' text && [ ! -e refused ] || fail "lstm: $(cat text)"
"$mixt" generate packed --prompt '<|user|>the 3<|eot|>' --tokens 4 >out 2>text || fail "generate: $(cat text)"
"$mixt" train run.yaml out=own model=gpt data.pack=false >text 2>&1 || fail "gpt, unpacked: $(cat text)"

# The loss of an update is the mean over its trained tokens, and so are its gradients: rows at once, one by one, by ranks.
for way in 'whole 4 1 0' 'passes 1 4 0' 'ranks 4 1 2'; do
    read -r name batch passes ranks <<<"$way"
    for pack in true false; do
        "$mixt" train run.yaml out=$name-$pack train.batch=$batch train.accumulate=$passes dist.ranks=$ranks data.pack=$pack data.seq=96 -q >text 2>&1 || fail "$way: $(cat text)"
        [ $name = whole ] && continue
        paste <(grep -o '"loss":[0-9.]*' whole-$pack/metrics.jsonl) <(grep -o '"loss":[0-9.]*' $name-$pack/metrics.jsonl) | tr -d '"los:' |
            awk '{ d = $1 - $2; if (!($1 > 0) || (d < 0 ? -d : d) > 2e-6 * $1) bad = 1 } END { exit bad || NR < 4 }' ||
            fail "$name, data.pack=$pack: $(paste whole-$pack/metrics.jsonl $name-$pack/metrics.jsonl | head -2)"
    done
done

# Refused, with the line; nothing is written.
refused() {
    "$mixt" train run.yaml out=never data.path="$1" >text 2>&1 && fail "$1 is taken"
    grep -Eq "$2" text || fail "$1: expected '$2': $(cat text)"
    "$mixt" data "$1" --model model --json >out 2>text && fail "mixt data takes $1"
    grep -Eq "$2" text && [ ! -s out ] || fail "mixt data $1: $(cat text out)"
    [ ! -e never ] || fail "$1: a run was written"
}
{ chat a b; echo '{"messages": [{"role": "user", "content": "a"}]}'; } >bad.jsonl
refused bad.jsonl 'bad.jsonl: line 2: no message of the assistant'
{ chat a b; echo '{"prompt": "a", "completion": "b"}'; } >bad.jsonl
refused bad.jsonl 'bad.jsonl: line 2: is of the form prompt_completion, but line 1 of messages'
{ chat a b; chat a b | head -c 30; } >bad.jsonl
refused bad.jsonl 'bad.jsonl: line 2: not JSON'
{ chat a b; echo '{"messages": [{"role": "user", "content": "a"}, {"role": "tool", "content": "1"}, {"role": "assistant", "content": "b"}]}'; } >bad.jsonl
refused bad.jsonl 'bad.jsonl: line 2: a tool answers, and there are no tools'
printf '{"text": "a\0b"}\n' >bad.jsonl
refused bad.jsonl 'bad.jsonl: offset 11: a zero byte'
head -c 20000 /dev/zero | tr '\0' '[' >bad.jsonl
refused bad.jsonl 'bad.jsonl: line 1: '
{ printf '{"text": "'; head -c 3000000 /dev/zero | tr '\0' 'a'; printf '"}\n'; } >huge.jsonl
"$mixt" data huge.jsonl --model model --json >out 2>text && [ "$(figure cut out)" = 1 ] || fail "a huge row: $(cat text out)"
"$mixt" data rows.jsonl --model bare --json >out 2>text && fail "a folder without tokenizer is taken"
grep -q 'bare: no vocabulary here' text || fail "without tokenizer: $(cat text)"
"$mixt" data rows.jsonl >/dev/null 2>text && fail "mixt data without --model"
grep -q -- '--model' text || fail "without --model: $(cat text)"
exit $((failures > 0))
