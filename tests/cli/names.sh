#!/bin/bash
# What rows of weights stand for: a run that begins with another's, or learns from it, takes no row of another class, token or
# letter for its own. Usage: names.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/refused.sh"
cd "$work" || exit 1
export MIXT_CACHE=$work/cache

anew="nothing was loaded (init_new_head=fc gives that layer new random weights)"

# ---- classes of texts, also of a folder of another program ----

cat >words.yaml <<'YAML'
model: bert_classify
precision: fp32
device: cpu
threads: 1
net: {layers: 1, width: 16, heads: 2}
data: {kind: labelled, path: films.tsv, seq: 16}
train: {epochs: 0, steps: 2, batch: 4, lr: 0.003, checkpoint_every: 1}
YAML
printf 'text\tlabel\n' | tee films.tsv other.tsv turned.tsv >meals.tsv
for i in $(seq 20); do
    printf 'the plot is clever\tgood\nthe cast was dull\tbad\n' >>films.tsv
    printf 'the plot is clever\tgood\nthe cast was dull\tterrible\n' >>other.tsv
    printf 'the soup is tasty\tgood\nthe fish was cold\tbad\n' >>meals.tsv
done
train words.yaml out=critic
train words.yaml out=again init=critic
mkdir checkpoints && cp -r critic checkpoints/nested # a run below a folder of that name
for init in critic critic/model.safetensors critic/checkpoints/step-00000001 "$PWD/checkpoints/nested/checkpoints/step-00000001"; do
    refused "tensor 'fc.weight' is of other classes: class 0 is 'bad' there, 'good' in the data; $anew" words.yaml init=$init data.path=other.tsv
done
train words.yaml out=fresh init=critic data.path=other.tsv init_new_head=fc
train words.yaml out=skipped init=critic data.path=other.tsv init_skip=fc.*
"$mixt" export critic --out hf >/dev/null 2>&1 || fail "export"
rm hf/inputs.json # as others write it
train words.yaml out=further init=hf
refused "is of other classes: class 0 is 'bad' there, 'good' in the data; $anew" words.yaml init=hf data.path=other.tsv
# The same classes in another order are the same classes: swapped in name and in row, the folder is what it was.
cp -r hf swapped
sed -i 's/"bad"/"x"/; s/"good"/"bad"/; s/"x"/"good"/' swapped/config.json
still="train.lr=0 train.min_lr=0 train.weight_decay=0 train.steps=1 train.checkpoint_every=0"
train words.yaml out=straight init=hf $still
train words.yaml out=crossed init=swapped $still
accuracy() { "$mixt" eval $1 --split all --json 2>/dev/null | sed 's/.*"confusion":\[\[\([0-9]*\),\([0-9]*\)\],\[\([0-9]*\),\([0-9]*\)\]\].*/\1 \2 \3 \4/'; }
[ "$(accuracy straight | awk '{ print $2, $1, $4, $3 }')" = "$(accuracy crossed)" ] || fail "classes by name: $(accuracy straight), swapped $(accuracy crossed)"

# ---- tokens: vocabularies that were learned, or named ----

refused "tensor 'wte.weight' is of other tokens: token [0-9]* is '.*' there, '.*' in the data; nothing was loaded (data.vocab=critic/vocab reads the data with the tokens of the file; init_new_head=wte" words.yaml init=critic/checkpoints/step-00000001 data.path=meals.tsv
train words.yaml out=guest init=critic data.path=meals.tsv data.vocab=critic/vocab
train words.yaml out=bare init=critic data.path=meals.tsv init_new_head=wte

cat >gpt.yaml <<'YAML'
model: gpt
precision: fp32
device: cpu
threads: 1
net: {layers: 1, width: 16, heads: 2}
data: {kind: text, path: text.txt, seq: 16}
train: {epochs: 0, steps: 2, batch: 4, lr: 0.003}
YAML
for i in $(seq 200); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
for i in $(seq 200); do echo "quick brown foxes $i jump over $((i * 7 % 13)) lazy dogs, zooming, vexed"; done >foxes.txt
for name in text foxes; do "$mixt" tokenize $name.txt --train --size 300 --out $name >/dev/null || fail "tokenize --train"; done
train gpt.yaml out=squares data.vocab=text
refused "squares/model.safetensors: tensor 'wte.weight' is of other tokens: token 256 is '.*' there, '.*' in the data; nothing was loaded (data.vocab=squares/vocab reads" gpt.yaml init=squares data.vocab=foxes
train gpt.yaml out=more init=squares data.vocab=text
train gpt.yaml out=table init=squares data.vocab=foxes init_new_head=wte
sed 's/model: gpt/model: lstm/; s/, heads: 2//' gpt.yaml >lstm.yaml
train lstm.yaml out=lstm data.vocab=text
refused "tensor 'emb.weight' is of other tokens: " lstm.yaml init=lstm data.vocab=foxes
refused "tensor 'out.weight' is of other tokens: " lstm.yaml init=lstm data.vocab=foxes init_new_head=emb
train lstm.yaml out=lstm-anew init=lstm data.vocab=foxes init_new_head=emb,out
"$mixt" export squares --out squares-hf >/dev/null 2>&1 || fail "export of a gpt"
refused "other tokens: token 256 .*(data.vocab=squares-hf reads" gpt.yaml init=squares-hf data.vocab=foxes
"$mixt" tokenize text.txt --vocab foxes --out foxes.tokens >/dev/null || fail "tokenize"
refused "is of other tokens: foxes.tokens was made with another tokenizer than the file's" gpt.yaml init=squares data.kind=tokens data.path=foxes.tokens net.vocab=300

translators
train pairs.yaml out=adder
train pairs.yaml out=adds init=adder
refused "tensor 'wte.weight' is of other tokens: .*(data.vocab=adder/vocab reads" pairs.yaml init=adder data.path=dogs
train pairs.yaml out=jumps init=adder data.path=dogs data.vocab=adder/vocab

# ---- classes of pictures ----

cat >look.yaml <<'YAML'
model: mlp
precision: fp32
device: cpu
threads: 1
net: {hidden: [4]}
data: {kind: images, path: pets, crop: 4, val_fraction: 0}
train: {epochs: 0, steps: 2, batch: 2, lr: 0.01}
YAML
for name in pets/cat pets/dog water/dog water/fish; do
    mkdir -p $name
    for i in 1 2 3; do printf 'P5 4 4 255 abcdefgh%04d%04d' $i $((i * i)) >$name/$i.pgm; done
done
train look.yaml out=looker
refused "tensor 'fc.1.*' is of other classes: class 0 is 'cat' there, 'dog' in the data" look.yaml init=looker data.path=water
train look.yaml out=swimmer init=looker init_new_head=fc.1 data.path=water

# ---- what a teacher scores ----

train look.yaml out=taught distill.teacher=looker
refused "distill.teacher=looker: other classes: the teacher's class 0 is 'cat', the data's class 0 is 'dog'" look.yaml distill.teacher=looker data.path=water
train words.yaml out=taught-words distill.teacher=hf
refused "distill.teacher=hf: other classes: the teacher's class 0 is 'bad', the data's class 0 is 'good'" words.yaml distill.teacher=hf data.path=other.tsv data.vocab=hf

[ $failures -eq 0 ] && echo "names: all well"
exit $((failures > 0))
