#!/bin/bash
# Clips: moving digits that mixt draws, and folders of frames, trained on, evaluated, predicted. Usage: video.sh MIXT
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
"$mixt" plan clips.yaml --graph | grep -q 'conv3d.*3x3x3 stride 1x1x1 pad 1x1x1' || fail "plan --graph names no conv3d"

# ---- folders of clips ----

# frames FOLDER COUNT STEP: pictures of 20 x 16 whose bright column moves by STEP
frames() {
    local i
    mkdir -p "$1"
    for i in $(seq 0 $(($2 - 1))); do
        { printf 'P5\n20 16\n255\n'
            awk -v at=$((10 + $3 * i)) 'BEGIN { for (y = 0; y < 16; y++) for (x = 0; x < 20; x++) printf "%s", (x == at ? "z" : " ") }'; } >"$1/$((100 + i)).pgm"
    done
}
for part in train val; do
    for i in $(seq 8); do
        frames clips/$part/left/$i $((4 + i % 3)) -1
        frames clips/$part/right/$i $((4 + i % 3)) 1
    done
done
videos="data.kind=video data.path=clips data.frames=4 data.crop=16 data.limit=0 train.epochs=30 train.batch=4 train.lr=0.02 net.norm=none"
# shellcheck disable=SC2086 # settings are words
"$mixt" train clips.yaml $videos out=video -q || fail "train on folders of clips"
"$mixt" eval video --json | grep -q '"accuracy":1[,.}]' || { fail "clips of two ways are not told apart:"; "$mixt" eval video; }
"$mixt" predict video clips/val/left/3 clips/val/right/5 >out || fail "predict of folders"
grep -q 'left/3 *left' out && grep -q 'right/5 *right' out || { fail "folders of frames are taken for another class:"; cat out; }
"$mixt" plan clips.yaml data.kind=auto data.path=clips data.crop=16 data.limit=0 >/dev/null || fail "folders of clips are not known by their looks"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
