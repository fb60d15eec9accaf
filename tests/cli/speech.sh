#!/bin/bash
# Recordings through the command: trained, evaluated, predicted; every shape of the model; what is said in them; spoken digits
# where they are.
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

# A model hears as it was trained: what is asked for otherwise is refused, also where it teaches.
for key in mels=20 rate=16000 hop=10 tail=1; do
    "$mixt" eval words data.$key 2>err && fail "eval: data.$key counted for nothing"
    grep -q "${key%=*} ${key#*=}, but the data it must match (audio) has [-0-9]*: leave it out" err || fail "eval data.$key: $(cat err)"
done
"$mixt" eval words data.mels=16 data.rate=8000 --json >/dev/null || fail "eval with the run's own settings"
"$mixt" train "$root/configs/speech.yaml" $small data.samples=32 train.steps=2 distill.teacher=words data.mels=20 out=never -q 2>err && fail "a student with other bands than its teacher's"
grep -q 'distill.teacher=words was trained on other data: .*mels 20, .* has 16' err && [ ! -e never ] || fail "other bands than the teacher's: $(cat err)"

# LSTM layers behind the convolutions, in both low formats.
for precision in fp16 bf16; do
    "$mixt" train "$root/configs/speech.yaml" $small net.layers=1 net.width=16 data.samples=32 train.steps=2 train.batch=16 precision=$precision out=lstm-$precision -q ||
        fail "LSTM layers in $precision"
done
"$mixt" plan "$root/configs/speech.yaml" $small net.layers=2 | grep -q parameters || fail "plan"

# What is said, by convolutions and by hidden layers; in the low formats too.
small_text="$small data.task=text net.layers=1 net.width=16 data.samples=32 train.steps=2"
for precision in fp32 fp16 bf16; do
    "$mixt" train "$root/configs/speech-ctc.yaml" $small_text precision=$precision out=ctc-$precision -q || fail "CTC in $precision"
done
"$mixt" train "$root/configs/speech-ctc.yaml" $small_text net.channels=[] net.hidden=16,8 net.layers=0 out=ctc-hidden -q || fail "CTC behind hidden layers"
"$mixt" train "$root/configs/speech.yaml" $small net.channels=[] net.hidden=16 data.samples=32 train.steps=2 out=hidden -q || fail "words by hidden layers"

# Tones that spell words, learned by heart: figures of eval are those of a count over what predict says.
mkdir -p tones
tone() { # FILE BYTES…: a recording of 4000 samples of 8 bits; each 1000 of them are some bytes over and over
    { printf 'RIFF\xc4\x0f\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x8\0data\xa0\x0f\0\0'; for bytes in "${@:2}"; do yes "$bytes" | tr -d '\n' | head -c 1000; done; } >"$1"
}
a=zzAA b=zzzzAAAA
tone tones/1.wav $a $b _ $a; tone tones/2.wav $b _ $a $b; tone tones/3.wav $b $a $b $a; tone tones/4.wav $a _ $b $a
printf '1.wav\tab a\n2\tb ab\n3.wav\tbaba\n4\ta ba\n' >tones/transcripts.tsv
"$mixt" train "$root/configs/speech-ctc.yaml" $small data.task=auto data.path=tones data.hop=10 data.tail=-1 data.val_fraction=0 net.channels=8 net.layers=1 net.width=16 \
    train.batch=4 train.steps=150 train.epochs=0 train.lr=0.01 precision=fp32 out=tones-run -q || fail "train on texts"
for beam in 1 4; do
    "$mixt" predict tones-run train --json --beams $beam >said || fail "predict of texts, beam $beam"
    "$mixt" eval tones-run --split train --json --beams $beam >found || fail "eval of texts, beam $beam"
    sed 's/.*"text":"\([^"]*\)","target":"\([^"]*\)".*/\1|\2/' said | awk -F'|' '
        function least(x, y) { return x < y ? x : y }
        function distance(a, n, b, m,   i, k, d) {
            for (k = 0; k <= m; k++) d[0, k] = k
            for (i = 1; i <= n; i++) {
                d[i, 0] = i
                for (k = 1; k <= m; k++) d[i, k] = least(d[i - 1, k - 1] + (a[i] != b[k]), 1 + least(d[i - 1, k], d[i, k - 1]))
            }
            return d[n, m]
        }
        { letters += length($2); errors += distance(A, split($1, A, ""), B, split($2, B, "")); n = split($1, C, " "); m = split($2, D, " "); words += m; wrong += distance(C, n, D, m) }
        END { printf "\"letters\":%d,\"letter_errors\":%d,\"words\":%d,\"word_errors\":%d\n", letters, errors, words, wrong }' >counted
    grep -qF "$(cat counted)" found || fail "beam $beam: $(cat counted) counted, $(cat found) found"
    grep -q '"words":7,' counted || fail "not all texts are predicted: $(cat said)"
done
grep -q '"character_error_rate":0\.[0-4]' found || fail "tones are not learned: $(cat found)"
"$mixt" predict tones-run tones/3.wav | grep -q '^tones/3.wav' || fail "predict of a file"
"$mixt" predict tones-run train --report >out 2>err && fail "a report on texts"
grep -q -- "--report: tones-run is a speech model: use 'mixt eval' for error rates" err || fail "a report on texts: $(cat err)"
echo words >words.txt
"$mixt" predict tones-run words.txt >out 2>err && fail "a text was heard"
grep -q 'words.txt: is not a WAV file, but the model was trained on recordings: features of shape' err || fail "a text that is no recording: $(cat err)"
"$mixt" predict tones-run tones/3.wav --json | grep -q '"text":"' || fail "predict of a file as JSON"
"$mixt" eval tones-run --split train | grep -q 'character error rate [0-9.]*%, word error rate' || fail "eval says no rates"
grep -q '"target": *"text"' tones-run/inputs.json || fail "inputs.json does not say that targets are texts"

# Lines of no recording are told, once; not those for the recordings of another part.
cp -r tones less
printf '8.wav\tab\n2b\tb\n' >>less/transcripts.tsv
texts="data.task=auto data.hop=10 data.tail=-1 data.val_fraction=0 net.channels=8 net.layers=0 train.batch=2 train.steps=2 train.epochs=0"
"$mixt" train "$root/configs/speech-ctc.yaml" $small $texts data.path=less out=less-run -q 2>err || fail "lines of no recording: $(cat err)"
[ "$(grep -c "2 of 6 lines of transcripts name a recording that does not exist; the first is less/transcripts.tsv:5: '8.wav'$" err)" = 1 ] || fail "lines of no recording are not told once: $(cat err)"
mkdir -p apart/train apart/val
cp tones/[123].wav apart/train; cp tones/4.wav apart/val; cp tones/transcripts.tsv apart
"$mixt" train "$root/configs/speech-ctc.yaml" $small $texts data.path=apart out=apart-run -q 2>err || fail "parts with one file of texts: $(cat err)"
grep -q 'name no recording' err && fail "lines of another part are told: $(cat err)"

# One text that no recording could hold is told of by its name, and left out; where none has room there is nothing to learn.
cp -r tones long
sed -i "s/^3.wav\t.*/3.wav\t$(printf 'ab%.0s' $(seq 400))/" long/transcripts.tsv
"$mixt" train "$root/configs/speech-ctc.yaml" $small $texts data.path=long out=long-run 2>err || fail "one text without room: $(cat err)"
grep -q 'warning: 1 of 4 recordings have more letters .* the first is long/3.wav, which needs 800 and has 25: ' err || fail "one text without room: $(cat err)"
"$mixt" train "$root/configs/speech-ctc.yaml" $small $texts data.path=long data.hop=250 out=never 2>err && fail "texts without room are trained on"
grep -q 'no recording has enough outputs for its letters: the first, long/1.wav, needs 4 and has' err && [ ! -e never ] || fail "texts without room: $(cat err)"

# Spoken digits: what is held out is what the glob says; a file is predicted as the set's sample is.
if [ -d "$digits" ]; then
    "$mixt" train "$root/configs/speech.yaml" $small data.path="$digits" data.test_files='*_[0-4].wav' train.steps=4 out=digits -q || fail "train on spoken digits"
    file=$(cd "$digits" && ls *_[0-4].wav | LC_ALL=C sort | head -1)
    "$mixt" predict digits "$digits/$file" test:0 --json | sed 's/,"probability.*//; s/.*"class"/"class"/' | uniq | wc -l | grep -qx 1 ||
        fail "a file is predicted otherwise than as a sample"
    "$mixt" train "$root/configs/speech-ctc.yaml" $small data.path="$digits" data.labels="$root/configs/spoken-digits.tsv" data.test_files='*_[0-4].wav' train.steps=2 out=spelled -q || fail "train on spelled digits"
    "$mixt" predict spelled test:0 --json | grep -q '"target":"zero"' || fail "digits are not spelled: $("$mixt" predict spelled test:0 --json)"
    "$mixt" train "$root/configs/speech-ctc.yaml" $small data.path="$digits" data.labels="$root/configs/spoken-digits.tsv" data.tail=-1 net.channels=[4,4,4] train.steps=1 train.epochs=0 out=too_short 2>&1 |
        grep -q 'recordings have more letters than the model has outputs for them, one every 8 frames' || fail "nothing is told of texts without room"
    "$mixt" predict digits "$digits/$file" --json | grep -q '"name":"[0-9]"' || fail "predict names no digit: $("$mixt" predict digits "$digits/$file" --json)"
else
    echo "skipped: no fsdd in ${MIXT_TEST_DATA:-../shared/data}"
fi
exit $((failures > 0))
