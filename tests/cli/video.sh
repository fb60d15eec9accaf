#!/bin/bash
# Clips: moving digits that mixt draws, trained on, evaluated, predicted. Usage: video.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >clips.yaml <<'YAML'
model: c3d
precision: fp32
threads: 2
net: {channels: [4, 8], hidden: [16], norm: batch}
data: {kind: moving, path: 16x16, frames: 4, limit: 256}
train: {epochs: 1, batch: 16, lr: 0.01}
YAML
for precision in fp32 bf16 fp16; do
    "$mixt" train clips.yaml precision=$precision out=$precision -q || fail "train in $precision"
done
"$mixt" train clips.yaml out=again -q || fail "train again"
cmp -s fp32/model.safetensors again/model.safetensors || fail "the same seed trains to other bits"

# ---- eval and predict agree ----

"$mixt" predict fp32 test --json >lines || fail "predict test"
wanted=$("$mixt" eval fp32 --split test --json | sed 's/.*"count":\([0-9]*\).*"accuracy":\([0-9.]*\).*/\1 \2/')
found=$(sed 's/{"class":\([0-9]*\),.*"label":\([0-9]*\),.*/\1 \2/' lines | awk '{ n++; good += $1 == $2 } END { printf "%d %.9g", n, good / n }')
[ "$(awk -v a="${wanted#* }" -v b="${found#* }" 'BEGIN { d = a - b; print (d < 1e-6 && d > -1e-6) }') ${found% *}" = "1 ${wanted% *}" ] ||
    fail "predict says $found, eval $wanted"
"$mixt" eval fp32 data.draw_seed=7 --split test --json | grep -q '"count":256' || fail "eval on clips of another seed"
"$mixt" predict fp32 test:0 | grep -Eq '[0-9] (left|right|up|down)' || fail "predict does not name a digit and its way"
"$mixt" plan clips.yaml --graph | grep -q 'conv3d.*3x3x3 stride 1x1 pad 1x1' || fail "plan --graph names no conv3d"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
