#!/bin/bash
# Recordings through the command: trained, evaluated, predicted; both shapes of the model; spoken digits where they are.
# Usage: speech.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
digits=$(realpath "${MIXT_TEST_DATA:-../shared/data}" 2>/dev/null)/fsdd
cd "$work" || exit 1

small="device=cpu threads=2 net.channels=[8,8] data.mels=16 data.hop=20 net.dropout=0 data.shift=0 data.noise=0 data.time_mask=0 data.mel_mask=0 train.warmup=0"

# Words that mixt speaks: a small net tells most of them after a minute of sound.
"$mixt" train "$root/configs/speech.yaml" $small data.samples=320 train.epochs=6 train.batch=8 train.lr=0.01 precision=fp32 out=words -q || fail "train"
"$mixt" eval words --split test --json >found || fail "eval"
grep -o '"accuracy":[0-9.]*' found | awk -F: '{ exit !($2 > 0.5) }' || fail "words are not learned: $(cat found)"
grep -q '"hop": *20' words/inputs.json || fail "inputs.json does not say how sound becomes features"

# LSTM layers behind the convolutions, in both low formats.
for precision in fp16 bf16; do
    "$mixt" train "$root/configs/speech.yaml" $small net.layers=1 net.width=16 data.samples=32 train.steps=2 train.batch=16 precision=$precision out=lstm-$precision -q ||
        fail "LSTM layers in $precision"
done
"$mixt" plan "$root/configs/speech.yaml" $small net.layers=2 | grep -q parameters || fail "plan"

# Spoken digits: what is held out is what the glob says; a file is predicted as the set's sample is.
if [ -d "$digits" ]; then
    "$mixt" train "$root/configs/speech.yaml" $small data.path="$digits" data.test_files='*_[0-4].wav' train.steps=4 out=digits -q || fail "train on spoken digits"
    file=$(cd "$digits" && ls *_[0-4].wav | LC_ALL=C sort | head -1)
    "$mixt" predict digits "$digits/$file" test:0 --json | sed 's/,"probability.*//; s/.*"class"/"class"/' | uniq | wc -l | grep -qx 1 ||
        fail "a file is predicted otherwise than as a sample"
    "$mixt" predict digits "$digits/$file" --json | grep -q '"name":"[0-9]"' || fail "predict names no digit: $("$mixt" predict digits "$digits/$file" --json)"
else
    echo "skipped: no fsdd in ${MIXT_TEST_DATA:-../shared/data}"
fi
exit $((failures > 0))
