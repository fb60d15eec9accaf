#!/bin/bash
# Teachers: a student learns from a run, a checkpoint or another program's folder, in that one's own precision; it goes on with
# the same bits, refuses another teacher, and is itself alone when it is evaluated, exported and predicts. Usage: distill.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/refused.sh"
cd "$work" || exit 1
export MIXT_CACHE=$work/cache

cat >teacher.yaml <<'YAML'
model: convnet
precision: bf16
threads: 2
net: {channels: [8, 16], norm: batch}
data: {kind: digits, limit: 512}
train: {epochs: 0, steps: 40, batch: 32, lr: 0.01}
YAML
cat >student.yaml <<'YAML'
model: mlp
precision: fp16
threads: 2
net: {hidden: [12], dropout: 0.1}
data: {kind: digits, limit: 256}
distill: {teacher: taught, weight: 0.7, temperature: 3}
train: {epochs: 0, steps: 24, batch: 16, accumulate: 2, lr: 0.01, log_every: 4, label_smoothing: 0.1}
YAML
cat >gpt.yaml <<'YAML'
model: gpt
precision: bf16
threads: 2
net: {layers: 2, width: 32, heads: 2, dropout: 0.1}
data: {kind: text, path: text.txt, seq: 32}
train: {epochs: 0, steps: 12, batch: 4, lr: 0.003}
YAML
for i in $(seq 600); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt

for i in $(seq 4000); do printf "\\x$(printf %02x $((i * 7 % 256)))\\0"; done >ids.bin

train teacher.yaml out=taught train.checkpoint_every=20 train.keep=9
train student.yaml out=whole train.checkpoint_every=8 train.keep=9

# ---- memory is as planned, and the teacher is in it ----

"$mixt" plan student.yaml >plan
"$mixt" plan student.yaml distill.teacher= >alone
grep -q 'a teacher' plan || fail "plan: says nothing of a teacher"
with=$(awk '/^state /{print $2}' plan) without=$(awk '/^state /{print $2}' alone)
[ "$with" -gt $((without + 2 * 16 * 8 * 9)) ] || fail "plan: state is $with bytes with a teacher, $without without"
"$mixt" train student.yaml out=watched train.steps=2 >out 2>err || { fail "train: status $?"; cat err; }
grep -q 'step: \(.*\) planned, \1 allocated' out || { fail "train: memory is not as planned"; cat out; }
grep -q 'by cross-entropy and from taught$' err || { fail "train: does not say what it learns from"; cat err; }
"$mixt" plan student.yaml --graph >graph
grep -q 'teacher.conv1 .*conv2d:bf16' graph || fail "plan: the teacher does not compute in its own format"
grep -q ' b loss .*kl_step' graph || fail "plan: the loss is not fused"
"$mixt" plan student.yaml --graph distill.policy=fp32 | grep -q 'teacher.conv1 .*conv2d:fp32' || fail "plan: distill.policy counts for nothing"

# ---- it goes on with the same bits, wherever the teacher lies, and with no other teacher ----

cp -r whole cut
rm -r cut/model.safetensors cut/checkpoints/step-000000{16,24}
train --resume cut
cmp -s whole/model.safetensors cut/model.safetensors || fail "resume: the weights differ"
cp -r whole elsewhere
cp -r taught moved
rm -r elsewhere/model.safetensors elsewhere/checkpoints/step-000000{16,24}
train --resume elsewhere distill.teacher=moved
cmp -s whole/model.safetensors elsewhere/model.safetensors || fail "resume with a teacher that was moved: the weights differ"
train teacher.yaml out=other seed=2 train.steps=2
cp -r whole stranger
"$mixt" train --resume stranger distill.teacher=other train.steps=30 2>err && fail "resume: took another teacher"
grep -q 'made with other settings (then -> now): teacher: [0-9a-f]* -> [0-9a-f]*$' err || { fail "resume with another teacher: says"; cat err; }

# ---- alone: the teacher is gone, and nobody asks for it ----

mv taught away
"$mixt" eval whole --json >eval.json 2>err || { fail "eval: status $?"; cat err; }
"$mixt" export whole >out 2>err || { fail "export: status $?"; cat err; }
grep -q '4 tensors' out || { fail "export: not the student alone"; cat out; }
mv away taught

# ---- of a checkpoint, of another program's folder ----

train student.yaml out=early distill.teacher=taught/checkpoints/step-00000020 train.steps=2
train gpt.yaml out=writer
"$mixt" export writer --out hugging >/dev/null 2>&1 || fail "export of a gpt"
train gpt.yaml out=pupil net.width=16 distill.teacher=writer train.steps=3
train gpt.yaml out=heir net.width=16 distill.teacher=hugging distill.policy=bf16 train.steps=3
cmp -s pupil/model.safetensors heir/model.safetensors || fail "a teacher's weights in another program's names teach something else"

# ---- tokens of another vocabulary, also of one of the same size ----

for i in $(seq 600); do echo "quick brown foxes $i jump over $((i * 7 % 13)) lazy dogs, zooming, vexed"; done >foxes.txt
"$mixt" tokenize text.txt --train --size 300 --out squares >/dev/null || fail "tokenize --train"
"$mixt" tokenize foxes.txt --train --size 300 --out foxes >/dev/null || fail "tokenize --train"
train gpt.yaml out=squarer data.vocab=squares train.steps=2
"$mixt" export squarer --out squarer-hf >/dev/null 2>&1 || fail "export of a gpt with a vocabulary"
train gpt.yaml out=same-words data.vocab=squares distill.teacher=squarer train.steps=2
token="other tokens: token 256 is '[^']*' to the teacher, '[^']*' in the data: data.vocab="
for teacher in squarer squarer-hf; do
    refused "distill.teacher=$teacher: other tokens: token 256 is '" gpt.yaml data.vocab=foxes distill.teacher=$teacher
    grep -q "$token$teacher.* reads it as the teacher does\$" err || { fail "$teacher: does not say how to read as it does"; cat err; }
    refused "distill.teacher=$teacher: other tokens: the teacher's 300 (gpt2), the data's 256 (bytes)" gpt.yaml distill.teacher=$teacher
done
for name in squares foxes; do "$mixt" tokenize text.txt --vocab $name --out $name.tokens >/dev/null || fail "tokenize"; done
train gpt.yaml out=of-file data.kind=tokens data.path=squares.tokens distill.teacher=squarer train.steps=2
refused "foxes.tokens was made with another tokenizer than the teacher's" gpt.yaml data.kind=tokens data.path=foxes.tokens distill.teacher=squarer
refused "other tokens: token 256 is '" gpt.yaml data.kind=tokens data.path=foxes.tokens data.vocab=foxes distill.teacher=squarer
train gpt.yaml out=roomy net.vocab=400 train.steps=2
refused "distill.teacher=roomy: has 400 tokens, the student 256: set net.vocab=400" gpt.yaml distill.teacher=roomy

cat >words.yaml <<'YAML'
model: bert_classify
precision: fp32
threads: 2
net: {layers: 1, width: 16, heads: 2}
data: {kind: labelled, path: films.tsv, seq: 16}
train: {epochs: 0, steps: 2, batch: 4, lr: 0.003}
YAML
printf 'text\tlabel\n' | tee films.tsv >meals.tsv
for i in $(seq 40); do
    printf 'the plot is clever\tgood\nthe cast was dull\tbad\n' >>films.tsv
    printf 'the soup is tasty\tgood\nthe fish was cold\tbad\n' >>meals.tsv
done
train words.yaml out=critic
train words.yaml out=reader distill.teacher=critic
refused "distill.teacher=critic: other tokens: token " words.yaml distill.teacher=critic data.path=meals.tsv
train words.yaml out=guest distill.teacher=critic data.path=meals.tsv data.vocab=critic/vocab

translators
train pairs.yaml out=adder
train pairs.yaml out=adds distill.teacher=adder
refused "distill.teacher=adder: other tokens: token " pairs.yaml distill.teacher=adder data.path=dogs
grep -q ": data.vocab=adder.* reads it as the teacher does\$" err || { fail "a translator: does not say how to read as its teacher does"; cat err; }
train pairs.yaml out=jumps distill.teacher=adder data.path=dogs data.vocab=adder/vocab

# ---- what does not fit ----

refused "distill.teacher: nowhere: no such folder" student.yaml distill.teacher=nowhere
refused "distill.teacher: .: holds no config.yaml" student.yaml distill.teacher=.
refused "distill.teacher=taught: inputs of another shape: the teacher's (28, 28, 1), the data's (20, 20, 1)" student.yaml data.crop=20
refused "other tokens: the teacher's 256, the data's 300" gpt.yaml distill.teacher=writer data.kind=tokens data.path=ids.bin net.vocab=300
refused "texts are longer than its context: the teacher's (32), the data's (64)" gpt.yaml distill.teacher=writer data.seq=64
refused "distill.teacher=taught: other targets: the teacher's classes, the data's tokens" gpt.yaml distill.teacher=taught
refused "distill.weight: 1.5 is out of range" student.yaml distill.weight=1.5
refused "distill.temperature: 0 is out of range" student.yaml distill.temperature=0
refused "precision 'fp7' is unknown" student.yaml distill.policy=fp7
rm taught/model.safetensors
refused "taught: has no final weights" student.yaml

[ $failures -eq 0 ] && echo "teachers: all well"
exit $((failures > 0))
