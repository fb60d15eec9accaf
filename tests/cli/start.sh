#!/bin/bash
# What is told before a run trains: five lines of what will happen, and what cannot be meant. Usage: start.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
export MIXT_CUDA_LIBRARY=$work/none.so # the memory line names the device

cat >tiny.yaml <<'YAML'
model: mlp
precision: bf16
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 1, batch: 32}
YAML
sed 's/mlp/gpt/; s/hidden: .16./layers: 1, width: 16, heads: 2/; s/kind: digits, limit: 256/kind: text, path: words.txt, seq: 16/' tiny.yaml >gpt.yaml
yes 'the quick brown fox' | head -c 4000 >words.txt
# rows FILE PATTERN: 80 rows of four numbers and a target, which awk makes from the row's number i
rows() { awk "BEGIN { for (i = 1; i <= 80; i++) print 0.1 * i \",1.5,\" (i % 7) \",-\" i \",\" ($2) }" >"$1"; }
rows classes.csv 'i % 3'
rows values.csv '0.25 * i'
rows large.csv '30000 + 100 * i'
rows small.csv '300 + 5 * i'
# npy FILE SHAPE COUNT: an array of so many bytes, all the same
npy() {
    local header="{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }"
    { printf '\x93NUMPY\1\0\x76\0%-117s\n' "$header"; head -c "$3" /dev/zero | tr '\0' '\1'; } >"$1"
}
npy labels.npy '64,' 64
printf '\0' | dd of=labels.npy bs=1 seek=128 conv=notrunc 2>/dev/null # two classes
npy first.npy '64, 3, 16, 16' $((64 * 768))
npy last.npy '64, 16, 16, 3' $((64 * 768))

# told CONFIG SETTING...: trains; what is said before the first progress line is in ./said, all of it in ./err
told() {
    rm -rf run
    "$mixt" train "$@" out=run >out 2>err || { fail "train $*: status $?"; cat err; }
    sed '/^epoch /,$d' err >said
}
# has PATTERN WHAT: a line of ./said must fit; hasnt PATTERN WHAT: none may
has() { grep -qE -- "$1" said || { fail "$2: no '$1' in:"; cat said; }; }
hasnt() { grep -qE -- "$1" said && { fail "$2: '$1' is said:"; cat said; }; }

# ---- five lines, no more, aligned ----

# five WHAT LINE...: exactly these, as patterns
five() {
    local what=$1 number=0
    shift
    [ "$(wc -l <said)" = $# ] || { fail "$what: $(wc -l <said) lines"; cat said; }
    for line; do
        number=$((number + 1))
        sed -n ${number}p said | grep -qxE -- "$line" || fail "$what: line $number is '$(sed -n ${number}p said)', expected '$line'"
    done
}
told tiny.yaml
five digits 'data     digits: 256 samples to train on, 256 to validate on; 10 classes' \
    'input    28 x 28 x 1 \(height, width, channels\); normalised: mean 0\.[0-9]+, std 0\.[0-9]+' \
    'model    mlp, 12730 parameters; a classifier of 10 classes by cross-entropy' \
    'formats  bf16: 100% of matrix work in bf16, norms and loss in fp32; no loss scaling' \
    'memory   [0-9.]+ KiB for the step, [0-9.]+ KiB for validation, [0-9.]+ [KM]iB for the data; in all [0-9.]+ [KM]iB \(cpu\)'
told tiny.yaml data.kind=csv data.path=values.csv data.limit=0 train.batch=8 precision=fp16
five "a CSV of values" 'data     csv values.csv: 72 samples to train on, 8 to validate on; 1 value each' \
    "         target: mean .*, std .*: the loss is of \(target - mean\) / std, predictions and other figures are in the target's units" \
    'input    4 numbers; normalised: mean .*, std .*' \
    'model    mlp, 97 parameters; predicts values by mean squared error' \
    'formats  fp16: .*% of matrix work in fp16, norms and loss in fp32; loss scale 65536, dynamic' \
    'memory   [^,]* for the step, [^,]* for validation, [^,]* for the data; in all .* \(cpu\)'
told gpt.yaml data.val_fraction=0
five text 'data     text words.txt: [0-9]+ samples to train on, none to validate on' \
    'input    16 tokens, a vocabulary of 256' \
    'model    gpt, [0-9]+ parameters; predicts the next token by cross-entropy' \
    'formats  bf16: 100% of matrix work in bf16, norms and loss in fp32; no loss scaling' \
    'memory   [^,]* for the step, [^,]* for the data; in all .* \(cpu\)'
printf 'default: bf16\nrules: [{layer: "*.1", precision: fp32}]\n' >mixed.yaml
told tiny.yaml net.hidden=[16,16] precision=mixed.yaml train.loss_scale=128 train.freeze='*.0'
has '^formats  mixed.yaml: 96% of matrix work in bf16, 4% in fp32, norms and loss in fp32; loss scale 128$' "a policy file"
has '^model .* \([0-9]+ of them frozen\)' "frozen parameters"
told tiny.yaml data.kind=csv data.path=classes.csv data.limit=0 train.batch=8 data.test_fraction=0.25
has '^data .*: 52 samples to train on, 8 to validate on; 3 classes; 20 more to test on$' "a part to test on"
for flag in -q --json; do
    told tiny.yaml $flag
    [ -s err ] && { fail "$flag: something is said"; cat err; }
done

# ---- what cannot be meant, and what can ----

told tiny.yaml train.warmup=9
has '^mixt: warning: train.warmup=9 is longer than the run \(8 updates\)' "a warm-up longer than the run"
told tiny.yaml train.warmup=8
hasnt warning "a warm-up as long as the run"

told tiny.yaml train.steps=100
has 'warning: train.epochs=1 ends the run after update 8, before train.steps=100' "steps that epochs cut off"
told tiny.yaml train.steps=100 -q
has 'warning: train.epochs=1' "a warning with -q"
"$mixt" train tiny.yaml out=short train.checkpoint_every=4 -q || fail "a run with checkpoints"
"$mixt" train --resume short train.steps=100 >out 2>said || fail "a resumed run without an update left"
has 'warning: train.epochs=1 ends the run after update 8' "a resumed run whose steps epochs cut off"
told tiny.yaml train.steps=8
hasnt warning "steps and epochs that agree"
told tiny.yaml train.steps=10 train.epochs=0
hasnt warning "steps alone"

told tiny.yaml train.lr=0
has 'warning: train.lr=0: no weight will change' "no learning rate"

told tiny.yaml distill.weight=0.9 distill.temperature=2 -q
has '^mixt: warning: distill.weight=0.9 has no effect without distill.teacher$' "a teacher's share without a teacher"
hasnt temperature "a setting that is the usual one"
told tiny.yaml distill.temperature=4 distill.policy=bf16
has 'warning: distill.temperature=4 has no effect without distill.teacher' "a temperature without a teacher"
has 'warning: distill.policy=bf16 has no effect without distill.teacher' "a precision without a teacher"

printf 'model: pair\nnet: {channels: [4], layers: 1, width: 8}\ndata: {kind: pairs, samples: 8}\ntrain: {epochs: 0, steps: 2}\n' >pair.yaml
told pair.yaml train.batch=1
has 'warning: train.batch=1: the loss compares the pairs of a batch, and there is only one' "pairs one by one"
told pair.yaml train.batch=2
hasnt warning "pairs by two"

mkdir phrases
for i in $(seq 20); do echo "$i and $i make $((i + i))" | tee -a phrases/train.en >>phrases/train.de; done
"$mixt" tokenize phrases/train.en --train --size 260 --out few >/dev/null || fail "tokenize --train"
printf 'model: seq2seq\nnet: {layers: 1, width: 8, heads: 2}\ndata: {kind: parallel, path: phrases, source: en, target: de, vocab: few, seq: 64}\ntrain: {epochs: 0, steps: 2, batch: 2}\n' >phrases.yaml
told phrases.yaml data.vocab_size=260
hasnt warning "a vocabulary of the size that is asked for"
told phrases.yaml data.vocab_size=300 data.target=en
has 'warning: data.source and data.target are both en: there is nothing to translate' "a language into itself"
has 'warning: data.vocab_size=300 has no effect with data.vocab=.*few, which has 260 tokens' "a size beside a vocabulary"

csv="data.kind=csv data.limit=0 train.batch=8"
for odd in 1.5 -1 1001; do
    { head -40 classes.csv; echo "1,1,1,1,$odd"; tail -40 classes.csv; } >odd.csv
    told tiny.yaml $csv data.path=odd.csv
    has "^mixt: warning: odd.csv: line 41: target $odd is not a class, but all others are \(0 to 2\)" "a single odd label"
    has '^model .* predicts values' "a single odd label"
    told tiny.yaml $csv data.path=odd.csv data.task=values
    hasnt warning "values by data.task"
    [ $odd = 1001 ] && continue # a class, if an odd one: below
    "$mixt" train tiny.yaml $csv data.path=odd.csv data.task=classes out=none >out 2>said && fail "$odd is a class"
    has 'odd.csv: line 41: class ' "classes by data.task"
    [ -e none ] && fail "a refused run left its directory"
done
told tiny.yaml $csv data.path=values.csv
hasnt warning "a column of values"
told tiny.yaml $csv data.path=classes.csv
hasnt warning "a column of classes"
told tiny.yaml $csv data.path=odd.csv data.task=classes
has 'warning: odd.csv: only 4 of 1002 classes \(0 to 1001\) have a sample' "a label far from the others"
rows zeros.csv 0
told tiny.yaml $csv data.path=zeros.csv data.task=classes
has 'warning: zeros.csv: all samples are of one class: there is nothing to learn' "a single class"
rows ones.csv 1
told tiny.yaml $csv data.path=ones.csv data.task=classes
has 'warning: ones.csv: all samples are of class 1: there is nothing to learn' "a single label that is not 0"
rows from_1.csv '1 + i % 3'
told tiny.yaml $csv data.path=from_1.csv
has 'warning: from_1.csv: no sample is of class 0: classes count from 0, so there are 4 where 3 may be right' "labels from 1"
told tiny.yaml $csv data.path=classes.csv data.task=values
has '^model .* predicts values' "classes as values"

told tiny.yaml $csv data.path=large.csv data.normalise=unit
has 'warning: targets reach 3.8e\+04: the first loss will be about 1e\+09' "large targets"
told tiny.yaml $csv data.path=large.csv
hasnt warning "large targets with deviation 1"
told tiny.yaml $csv data.path=small.csv
hasnt warning "targets of some hundreds"
rows beyond.csv '1000 * i'
"$mixt" train tiny.yaml $csv data.path=beyond.csv precision=fp16 data.normalise=unit out=beyond >out 2>said # may end either way
has 'warning: targets reach 8e\+04, beyond what fp16 holds' "targets beyond FP16"

npy="data.kind=npy data.labels=labels.npy data.limit=0"
told tiny.yaml $npy data.path=first.npy
has 'warning: first.npy: samples of 3 x 16 x 16 are read as height 3, width 16 and 16 channels' "channels first"
told tiny.yaml $npy data.path=last.npy
hasnt warning "channels last"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
