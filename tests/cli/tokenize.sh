#!/bin/bash
# mixt tokenize and training on tokens: there, back, refused; and the same tokens as other programs where those are
# installed (python3 or $MIXT_PEER_PYTHON with tiktoken, transformers). Usage: tokenize.sh MIXT
. "$(dirname "$0")/../support/script.sh"
vocab=$PWD/tests/data/tokens configs=$PWD/configs peers=$PWD/tests/peers
data=$(realpath "${MIXT_TEST_DATA:-../shared/data}" 2>/dev/null)
export MIXT_CACHE=$work/cache
cd "$work" || exit 1

# refused STATUS WORDS ARGUMENT...
refused() {
    local expected=$1 words=$2
    shift 2
    "$mixt" "$@" >/dev/null 2>err
    local status=$?
    [ $status = "$expected" ] || fail "$*: status $status, expected $expected"
    grep -qF -- "$words" err || { fail "$*: no '$words' in:"; cat err; }
}

# ---- there and back ----

for i in {1..300}; do printf 'The mill %d stood where two rivers met.\nNext: \xe5\xa4\xa9 \xf0\x9f\x98\x80\n' $i; done >t.txt
"$mixt" tokenize t.txt --vocab "$vocab" -t gpt2 --out t.tokens >out || fail "to a file: status $?"
grep -q 't.tokens: [0-9]* tokens' out || fail "says: $(cat out)"
"$mixt" tokenize t.tokens --vocab "$vocab" -t gpt2 --decode | cmp - t.txt || fail "the text does not come back"
"$mixt" tokenize t.tokens --vocab "$vocab" -t gpt2 --decode --out back.txt && cmp back.txt t.txt || fail "nor into a file"
[ "$(MIXT_THREADS=1 "$mixt" tokenize t.txt --vocab "$vocab" --json | cksum)" = \
    "$(MIXT_THREADS=2 "$mixt" tokenize t.txt --vocab "$vocab" --json | cksum)" ] || fail "threads show"
printf 'ab\n' >ab.txt
[ "$("$mixt" tokenize ab.txt | tr '\n\t' ' =')" = '97=a 98=b 10=\n ' ] || fail "bytes: $("$mixt" tokenize ab.txt)"
"$mixt" tokenize ab.txt --json | grep -q '"tokenizer":"bytes","vocabulary":256,"count":3,"tokens":\[97,98,10\]' || fail "JSON"

# What killed processes left: in the way where they had the number of this one, removed where they are long gone.
touch -d '1 hour ago' k.tokens.tmp-999999999-1 k.tokens.tmp-$$-1 k.tokens.tmp-999999999-x
touch k.tokens.tmp-999999999-2
bash -c 'touch k.tokens.tmp-$$-1; exec "$@"' bash "$mixt" tokenize ab.txt --out k.tokens >out 2>err || fail "after a kill: $(cat err)"
[ -s k.tokens ] && [ ! -e k.tokens.tmp-999999999-1 ] || fail "after a kill: $(echo k.tokens*)"
[ -e k.tokens.tmp-999999999-2 ] && [ -e k.tokens.tmp-999999999-x ] && [ -e k.tokens.tmp-$$-1 ] ||
    fail "a file of another was removed: $(echo k.tokens*)"

before=$(cksum <t.tokens)
refused 1 't.tokens: exists already: choose another name, or replace it with --overwrite' tokenize ab.txt --out t.tokens
refused 1 'replace it with --overwrite' tokenize t.tokens --vocab "$vocab" -t gpt2 --decode --out t.txt
[ "$(cksum <t.tokens)" = "$before" ] || fail "an existing file was changed"
(ulimit -f 1; refused 1 'full.txt: the text cannot be written: File too large' tokenize t.tokens --vocab "$vocab" -t gpt2 --decode --out full.txt; exit $failures) ||
    failures=$((failures + 1))
[ "$(echo full*)" = 'full*' ] || fail "a text without room was left: $(echo full*)"
ln -s t.txt same.txt
refused 1 't.txt: is the input file itself: choose another name' tokenize t.txt --out ./t.txt --overwrite
refused 1 'same.txt: is the input file itself: choose another name' tokenize t.txt --out same.txt --overwrite
refused 1 't.tokens: is the input file itself: choose another name' tokenize t.tokens --vocab "$vocab" -t gpt2 --decode --out t.tokens --overwrite
[ "$(cksum <t.tokens)" = "$before" ] && cmp -s t.txt back.txt && [ -L same.txt ] || fail "a source was replaced"
mkfifo pipe && ln -s pipe link
refused 1 'pipe: is not a regular file' tokenize ab.txt --out pipe --overwrite
refused 1 'link: is not a regular file' tokenize ab.txt --out link --overwrite
[ -p pipe ] && [ -L link ] || fail "a pipe or the link to it was replaced"
refused 1 'made with another vocabulary' tokenize t.tokens --vocab "$vocab" -t wordpiece --decode
refused 1 'none.txt' tokenize none.txt
refused 1 'no vocabulary here' tokenize ab.txt --vocab .
refused 1 'needs the folder of its vocabulary' tokenize ab.txt -t gpt2
refused 2 'did you mean gpt2?' tokenize ab.txt -t gpt
refused 2 'give either --json or --decode' tokenize t.tokens --vocab "$vocab" -t gpt2 --decode --json
head -c 600 t.tokens >cut.tokens
refused 1 'cut off?' tokenize cut.tokens --vocab "$vocab" -t gpt2 --decode

# ---- training ----

# losses RUN: of all steps
losses() { sed -n 's/.*"loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"; }
small=(precision=fp32 net.layers=1 net.width=16 net.heads=2 data.seq=16 train.steps=3 train.batch=4 train.accumulate=1 train.validate_every=0)
"$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab" out=a -q || fail "gpt2 on text: status $?"
"$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab" out=b -q || fail "from the cache: status $?"
"$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.kind=tokens data.path=t.tokens out=c -q || fail "tokens: status $?"
[ -n "$(losses a)" ] && [ "$(losses a)" = "$(losses b)" ] && [ "$(losses a)" = "$(losses c)" ] || fail "text, cache and token file train apart"
(cd / && "$mixt" eval "$work/a" >/dev/null) || fail "eval from another folder: status $?"
"$mixt" train "$configs/bert-base-mlm.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab" out=d -q || fail "masked: status $?"
for config in shakespeare-gpt lstm-chars; do
    sizes=(net.layers=1 net.width=16 data.seq=16 train.steps=2 train.batch=4 train.validate_every=0)
    [ $config = lstm-chars ] || sizes+=(net.heads=2)
    "$mixt" train "$configs/$config.yaml" "${sizes[@]}" data.path=t.txt out=$config -q || fail "$config: status $?"
done
[ -n "$("$mixt" generate a -p 'The mill' -n 5 -q)" ] || fail "generate on tokens: status $?"

# Without a path mixt writes a text itself: configurations train as they stand, and such runs are resumed, evaluated and
# continued from any folder.
for config in rnn gru lstm lstm-chars gpt gpt-small llama; do
    sizes=(threads=2 net.layers=1 net.width=16 data.seq=16 data.limit=64 train.batch=4 train.validate_every=0 train.warmup=1)
    case $config in gpt*) sizes+=(net.heads=2) ;; llama) sizes+=(net.heads=2 net.kv_heads=1) ;; esac
    "$mixt" train "$configs/$config.yaml" "${sizes[@]}" train.steps=2 out=own-$config -q 2>err || fail "$config as it stands: $(cat err)"
    "$mixt" train "$configs/$config.yaml" "${sizes[@]}" train.steps=2 train.checkpoint_every=1 train.keep=9 out=cut-$config -q || fail "$config: status $?"
    "$mixt" train --resume cut-$config/checkpoints/step-00000001 out=on-$config -q 2>err || fail "$config resumed: $(cat err)"
    cmp own-$config/model.safetensors on-$config/model.safetensors || fail "$config: other weights once resumed"
    (cd / && "$mixt" eval "$work/own-$config" >"$work/out" 2>"$work/err" && "$mixt" generate "$work/own-$config" -n 3 -q >"$work/text") || fail "$config from another folder: $(cat err)"
    [ -s err ] && fail "$config: the drawn text is not known again: $(cat err)"
done
"$mixt" eval own-gru data.val_fraction=0.3 2>err >out && grep -q 'text: is not the data that own-gru was trained on' err || fail "another share: $(cat err)"
(cd "$vocab/.." && "$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.path= data.vocab=tokens out="$work/own" -q) || fail "a drawn text by a vocabulary: status $?"
(cd / && "$mixt" eval "$work/own" >/dev/null 2>"$work/err") && [ ! -s err ] || fail "its vocabulary, from another folder: $(cat err)"
"$mixt" export own-llama --out hf >/dev/null || fail "export: status $?"
refused 1 'hf: does not name its data: set data.path=… to a text' eval hf

# What a killed run left in the cache goes with the next use of what it was making.
kept=$(echo cache/tokens/*.tokens)
for entry in $kept; do touch -d '1 hour ago' "$entry.tmp-999999999-1"; touch "$entry.tmp-999999999-2"; done
"$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab" out=tidy -q || fail "a cache with left-overs: status $?"
[ "$(ls cache/tokens/*-1 | wc -l)" = $(($(wc -w <<<"$kept") - 1)) ] && [ "$(ls cache/tokens/*-2 | wc -l)" = "$(wc -w <<<"$kept")" ] ||
    fail "left in the cache: $(ls cache/tokens)"

# No cache folder: the tokens stay in memory, which is said once; nothing is written beside the text, nothing there is read.
on_text=("$configs/gpt2-124m.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab")
echo 'notes of my own' >t.txt.gpt2.tokens
before=$(ls -I memory -I out -I err)
MIXT_CACHE=/proc/none "$mixt" train "${on_text[@]}" out=memory >out 2>err && [ "$(losses a)" = "$(losses memory)" ] || fail "tokens in memory: status $?"
[ "$(cat out err | tr -s ' \n' ' ' | grep -o 'no cache folder is writable: the text is tokenised again in each run' | wc -l)" = 1 ] || fail "no cache folder: $(cat out err)"
[ "$(ls -I memory -I out -I err)" = "$before" ] || fail "without a cache folder were written: $(ls)"
[ "$(cat t.txt.gpt2.tokens)" = 'notes of my own' ] || fail "a file beside the text was replaced"
rm t.txt.gpt2.tokens

tail -c +129 t.tokens >train.bin
refused 1 'of a model, vocab' train "$configs/gpt2-124m.yaml" "${small[@]}" data.kind=tokens data.path=train.bin data.vocab="" out=e
"$mixt" train "$configs/gpt2-124m.yaml" "${small[@]}" data.kind=tokens data.path=train.bin data.vocab="" net.vocab=512 out=e -q || fail "raw tokens: status $?"
refused 1 '[MASK]' train "$configs/gpt2-124m.yaml" "${small[@]}" data.path=t.txt data.vocab="$vocab" data.mask=0.15 out=f

# ---- other programs ----

python=${MIXT_PEER_PYTHON:-python3}
if [ ! -d "${data:-/none}/gpt2_bpe" ]; then
    echo "skipped: no gpt2_bpe in ${MIXT_TEST_DATA:-../shared/data}"
else
    "$python" "$peers/compare_tokens.py" "$mixt" "$data" >peer 2>&1
    status=$?
    [ $status = 77 ] && echo "skipped: $python has no tiktoken"
    [ $status = 0 ] || [ $status = 77 ] || { fail "tokens differ from other programs':"; cat peer; }
fi

[ $failures = 0 ] && echo ok
[ $failures = 0 ]
