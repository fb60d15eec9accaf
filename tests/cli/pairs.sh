#!/bin/bash
# Pictures with captions: drawn ones are trained, evaluated, resumed and predicted; a folder is read; what is wrong is named.
# Usage: pairs.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
cd "$work" || exit 1
small="net.channels=8,16 net.width=16 data.samples=256 train.batch=32 train.lr=0.005 train.warmup=0 train.schedule=constant threads=2"

# ---- drawn ----

"$mixt" train "$root/configs/pair.yaml" $small train.epochs=0 train.steps=16 train.checkpoint_every=8 train.keep=9 out=run >out 2>err || { fail "train: status $?"; cat err; }
grep -q 'step: \(.*\) planned, \1 allocated' out || { fail "train: memory is not as planned"; cat out; }
grep -q '; matches images and captions' err || { fail "train: does not say what it does"; cat err; }
cp -r run cut
rm -r cut/model.safetensors cut/checkpoints/step-00000016
"$mixt" train --resume cut -q 2>err || { fail "resume: status $?"; cat err; }
cmp -s run/model.safetensors cut/model.safetensors || fail "resume: the weights differ"
"$mixt" eval run >out 2>err || { fail "eval: status $?"; cat err; }
grep -q 'recall at 1 and 5: image to caption .*% of .*, caption to image .*% of 256' out || { fail "eval: says"; cat out; }
"$mixt" eval run --json 2>err | grep -q '"pictures":256,"captions":[0-9]*,"captions_recall_1":0[.0-9]*,"captions_recall_5"' || fail "eval --json: no recall"
"$mixt" predict run val:0-2 --top 2 >out 2>err || { fail "predict: status $?"; cat err; }
[ "$(grep -c '^val:[0-2]  a [ls]' out)" = 3 ] || { fail "predict: says"; cat out; }
"$mixt" predict run val:1 --json | grep -q '"input":"val:1","label":"a .*","captions":\[{"caption":"a ' || fail "predict --json"
"$mixt" predict run val:0-2 --report >out 2>err && fail "predict: a report on captions"
grep -q -- "--report: run is a model of images with captions: use 'mixt eval' for recall" err || { fail "predict --report: says"; cat err; }
"$mixt" predict run "$root/README.md" >out 2>err && fail "predict: took a file"
"$mixt" train "$root/configs/pair.yaml" $small train.steps=8 precision=fp16 train.accumulate=2 out=half -q 2>err || { fail "fp16: status $?"; cat err; }

# ---- a folder ----

mkdir folder
for i in $(seq 12); do
    { printf 'P6 20 24 255\n'; head -c 1440 /dev/zero | tr '\0' "\\$(printf %03o $((i * 20)))"; } >folder/$i.ppm
    printf '%s.ppm\tpicture number %s\n' "$i" "$i"
done >folder/captions.tsv
"$mixt" train "$root/configs/pair.yaml" $small data.samples=0 data.path=folder data.crop=16 train.batch=5 train.steps=3 out=own -q 2>err || { fail "folder: status $?"; cat err; }
"$mixt" eval own --split train >out 2>err || { fail "folder, eval: status $?"; cat err; }
grep -q '% of 11$\|% of 11 over' out || { fail "folder, eval: says"; cat out; }
MIXT_LOG=data "$mixt" plan "$root/configs/pair.yaml" $small data.samples=0 data.kind=auto data.path=folder data.crop=16 train.batch=5 2>err >out || { fail "kind by the folder: status $?"; cat err; }
grep -q "'folder' looks like pairs" err || { fail "kind by the folder: says"; cat err; }
mkdir -p whole && cp -r folder whole/train
MIXT_LOG=data "$mixt" plan "$root/configs/pair.yaml" $small data.samples=0 data.kind=auto data.path=whole data.crop=16 train.batch=5 2>&1 | grep -q "'whole' looks like pairs" || fail "kind by the folder of a part"
cp -r folder marked
{ printf '\xef\xbb\xbf'; cat folder/captions.tsv; } >marked/captions.tsv
"$mixt" train "$root/configs/pair.yaml" $small data.samples=0 data.path=marked data.crop=16 train.batch=5 train.steps=3 out=marked-run -q 2>err || { fail "a byte order mark: status $?"; cat err; }

# refused TEXT ARGUMENT...: fails, says so, and makes nothing
refused() {
    local text=$1
    shift
    "$mixt" train "$root/configs/pair.yaml" $small "$@" out=none -q 2>err && fail "train $*: was not refused"
    grep -qF -- "$text" err || { fail "train $*: does not say '$text'"; cat err; }
    [ -e none ] && fail "train $*: left a folder"
}
refused "nowhere/captions.tsv" data.path=nowhere
refused "model pair needs images with captions, the data has (28, 28, 1) images" data.kind=digits
refused "model pair: 2 layers reduce images of 2 x 2 to nothing" data.path=folder data.crop=2 train.batch=5
refused "leave data.mean and data.std out" data.mean=0.5,0.5,0.5 data.std=1,1,1
"$mixt" train "$root/configs/digits.yaml" data.kind=pairs out=none -q 2>err && fail "a convnet took pictures with captions"
grep -q 'the data has images with captions' err || { fail "convnet: says"; cat err; }
truncate -s 700 folder/7.ppm
"$mixt" train "$root/configs/pair.yaml" $small data.samples=0 data.path=folder data.crop=16 train.batch=11 train.steps=2 out=none -q 2>err && fail "a picture that is cut short was taken"
grep -q 'folder/7.ppm' err || { fail "a picture that is cut short: says"; cat err; }

[ $failures -eq 0 ] && echo "pairs: all well"
exit $((failures > 0))
