#!/bin/bash
# A student that learns from a teacher of four times its size, beside the same student alone, on tiny Shakespeare: pairs of seeds judged by
# 'mixt compare'. Passes when the student alone is worse by more than the margin (verdict 'inferior'), which says that the teacher's
# help is significant.
# Usage: distill.sh MIXT [PAIRS [MARGIN]], as in DEVICE=cuda distill.sh build/mixt 6 1%
# DEVICE: auto, cpu or cuda. TEACHER, STUDENT: more settings of each, as in STUDENT='train.steps=2000'. Data: MIXT_TEST_DATA, or
# ../shared/data. Under four minutes on an H200 that has other work too; days on two cores.
#
# The temperature (1) and the weight (0.9) were chosen with other seeds than those that are compared here (101 and on).
. "$(dirname "$0")/../support/script.sh"
pairs=${2:-6} margin=${3:-1%}
data=$(realpath "${MIXT_TEST_DATA:-../shared/data}")/tinyshakespeare/input.txt
device=${DEVICE:-auto}
[ -r "$data" ] || skip "no $data"
cd "$work" || exit 1

common="model: gpt
precision: bf16
device: $device
data: {kind: text, path: $data, tokenizer: bytes, seq: 256}"
train="batch: 64, lr: 0.001, beta2: 0.99, weight_decay: 0.1, clip: 1.0, schedule: cosine, min_lr: 0.0001, warmup: 100"
cat >teacher.yaml <<YAML
$common
seed: 100
net: {layers: 6, width: 384, heads: 6, dropout: 0.2}
train: {epochs: 0, steps: 3000, $train, validate_every: 500}
YAML
cat >alone.yaml <<YAML
$common
seed: 101
net: {layers: 6, width: 192, heads: 6, dropout: 0.2}
train: {epochs: 0, steps: 1200, $train, validate_every: 300}
YAML
{ cat alone.yaml && echo "distill: {teacher: $PWD/teacher, weight: 0.9, temperature: 1}"; } >taught.yaml

field() { sed 's/,"a":{.*//' out | sed -n "s/.*[{,]\"$1\":\(\"[^\"]*\"\|\[[^]]*\]\|[^,}]*\).*/\1/p"; }

# shellcheck disable=SC2086 # settings are words
"$mixt" train teacher.yaml out=teacher -q ${TEACHER:-} || { echo "the teacher was not trained"; exit 1; }
# shellcheck disable=SC2086
for net in teacher:"${TEACHER:-}" alone:"${STUDENT:-}"; do
    echo "${net%%:*}: $("$mixt" plan "${net%%:*}.yaml" ${net#*:} | grep -m1 -i 'parameters')"
done
echo "teacher: validation $("$mixt" eval teacher --split val --json | grep -o '"loss": *[0-9.]*')"
# shellcheck disable=SC2086
"$mixt" compare taught.yaml alone.yaml --seeds "$pairs" --margin "$margin" --name distill --json ${STUDENT:-} >out 2>err
status=$?
echo "alone against taught: $(field verdict), difference $(field difference) $(field interval), $(field pairs) pairs, margin $margin"
[ $status = 3 ] || { cat err; fail "the student alone is not worse: status $status"; }
exit $((failures > 0))
