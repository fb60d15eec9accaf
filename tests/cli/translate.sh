#!/bin/bash
# Translation through the command: a vocabulary learned, a translator that learns a few sentences by heart, translated from files
# and the standard input, BLEU, stopped and resumed. Usage: [DEVICE=cuda] translate.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
cd "$work" || exit 1
export MIXT_CACHE=$work/cache

figure() { grep -o "\"$1\":-\?[0-9.]*" "$2" | head -1 | cut -d: -f2; }

mkdir pairs
cat >pairs/train.en <<'END'
A dog runs over the green grass.
Two men play football in the park.
A woman reads a book on the train.
The children swim in the cold sea.
A man in a red coat sells fruit.
END
cat >pairs/train.de <<'END'
Ein Hund rennt über das grüne Gras.
Zwei Männer spielen Fußball im Park.
Eine Frau liest ein Buch im Zug.
Die Kinder schwimmen im kalten Meer.
Ein Mann in einem roten Mantel verkauft Obst.
END
for language in en de; do gzip -k pairs/train.$language && mv pairs/train.$language.gz pairs/val.$language.gz; done

# A vocabulary: the same twice, and it cuts text and gives it back.
"$mixt" tokenize pairs/train.en pairs/val.de.gz --train --size 300 --out words >text || fail "learn a vocabulary"
grep -q "^words: a vocabulary of 300 tokens$" text || fail "$(cat text)"
"$mixt" tokenize pairs/train.en pairs/val.de.gz --train --size 300 --out again --json >text || fail "learn it again"
grep -q '"files":\["pairs/train.en","pairs/val.de.gz"\],"out":"again","vocabulary":300' text || fail "$(cat text)"
cmp words/vocab.bpe again/vocab.bpe && cmp words/encoder.json again/encoder.json || fail "two vocabularies of one text"
"$mixt" tokenize pairs/train.de --vocab words --out tokens >text && "$mixt" tokenize tokens --vocab words --decode | cmp - pairs/train.de || fail "text to tokens and back"

# Learned by heart: every sentence comes out as it was given, with one beam and with five, BLEU is 100.
small="device=${DEVICE:-cpu} threads=2 data.path=pairs data.source=en data.target=de net.layers=1 net.width=64 net.heads=2 net.dropout=0 data.seq=32"
small="$small train.batch=5 train.epochs=0 train.lr=0.003 train.warmup=10 train.label_smoothing=0 train.weight_decay=0"
MIXT_LOG=data "$mixt" plan "$root/configs/seq2seq.yaml" $small data.vocab=words data.kind=auto train.steps=1 2>&1 | grep -q "'pairs' looks like parallel" || fail "kind by the folder"
"$mixt" plan "$root/configs/seq2seq.yaml" $small data.vocab=words data.kind=auto train.steps=1 data.source= >text 2>&1 && fail "no source language"
grep -q "parallel:pairs: the languages are not known: set data.source and data.target" text || fail "no source language: $(cat text)"
mkdir longer_names && for language in en de; do cp pairs/train.$language longer_names/train_one.${language}g; done
MIXT_LOG=data "$mixt" plan "$root/configs/seq2seq.yaml" $small data.vocab=words data.kind=auto train.steps=1 data.path=longer_names data.source=eng data.target=deg 2>&1 | grep -q "'longer_names' looks like parallel" || fail "kind by languages that are named"
for precision in fp32 bf16; do
    "$mixt" train "$root/configs/seq2seq.yaml" $small data.vocab=words precision=$precision train.steps=120 out=$precision -q >text 2>&1 || fail "train in $precision: $(cat text)"
    for beams in 1 5; do
        "$mixt" predict $precision pairs/train.en --beams $beams >said || fail "translate in $precision with $beams beams"
        cmp said pairs/train.de || fail "$precision, $beams beams: $(cat said)"
    done
    "$mixt" eval $precision --json >eval.json || fail "eval in $precision"
    figure bleu eval.json | awk '{ exit !($1 > 99.9) }' || fail "$precision: $(cat eval.json)"
done
"$mixt" eval fp32 --beams 1 --length-penalty 0.6 | grep -q ", BLEU 100.00 of 5 sentences over" || fail "eval: $("$mixt" eval fp32)"

# Lines keep their order and number, empty ones too; the standard input; JSON.
{ head -1 pairs/train.en; echo; sed -n 3p pairs/train.en; } | "$mixt" predict fp32 - >said || fail "the standard input"
{ head -1 pairs/train.de; echo; sed -n 3p pairs/train.de; } | cmp - said || fail "lines: $(cat said)"
head -1 pairs/train.en | "$mixt" predict fp32 - --json >text || fail "JSON"
grep -q '{"input":"-","line":1,"source":"A dog runs over the green grass.","translation":"Ein Hund rennt über das grüne Gras.","score":-0' text || fail "$(cat text)"
for i in $(seq 60); do printf 'green '; done >long
"$mixt" predict fp32 long >said 2>error && grep -q "1 of 1 sentences or translations are longer than the model's context.*: line 1$" error || fail "a long sentence: $(cat error)"
{ head -2 pairs/train.en; cat long; echo; head -1 pairs/train.en; cat long; } >longer
"$mixt" predict fp32 longer >said 2>error && grep -q "longer: 2 of 5 sentences .*: line 3 is the first" error || fail "two long sentences: $(cat error)"

# Options of other models.
for command in 'eval fp32' 'predict fp32 pairs/train.en'; do
    "$mixt" $command --beams 65 >said 2>error && fail "$command: 65 beams"
    grep -q -- '--beams 65: fp32 translates with at most 64 beams' error || fail "$command, 65 beams: $(cat error)"
done
for option in '--top 3' --report; do
    "$mixt" predict fp32 pairs/train.en $option >said 2>error && fail "$option of a translator"
    grep -q -- "^mixt: ${option% *}: fp32 " error && [ ! -s said ] || fail "$option of a translator: $(cat error)"
done

# A sentence itself; parts of the data are for eval, which is said.
"$mixt" predict fp32 "text:$(sed -n 2p pairs/train.en)" >said && sed -n 2p pairs/train.de | cmp - said || fail "text:WORDS: $(cat said)"
for input in val val:0-1 test:7; do
    "$mixt" predict fp32 $input 2>error && fail "$input was translated"
    grep -q "^mixt: $input: use 'mixt eval' for the run's own data; expected a file of .* or text:WORDS" error || fail "$input: $(cat error)"
done
"$mixt" predict fp32 none.en 2>error && fail "a file that is not there was translated"
grep -q 'none.en: No such file or directory; expected a file of sentences, one per line, - or text:WORDS' error || fail "no file: $(cat error)"

# Without a vocabulary one is learned and kept with the run: the data may be gone.
mv pairs kept && mkdir pairs && cp kept/train.* pairs
"$mixt" train "$root/configs/seq2seq.yaml" $small data.vocab_size=280 data.val_fraction=0.2 train.batch=2 train.checkpoint_every=4 train.schedule=constant train.steps=8 out=whole >text 2>&1 || fail "train: $(cat text)"
grep -q '; translates by cross-entropy' text || fail "what is said of the model: $(cat text)"
[ -f whole/vocab/encoder.json ] && [ -f whole/vocab/vocab.bpe ] || fail "the run has no vocabulary"
rm -rf cache
"$mixt" train "$root/configs/seq2seq.yaml" $small data.vocab_size=280 data.val_fraction=0.2 train.batch=2 train.checkpoint_every=4 train.schedule=constant train.steps=4 out=half -q >text 2>&1 &&
    "$mixt" train --resume half train.steps=8 -q >text 2>&1 || fail "resume: $(cat text)"
cmp whole/model.safetensors half/model.safetensors || fail "a resumed run is another"
mv pairs gone && rm -rf cache
"$mixt" predict whole kept/train.en >said || fail "translate without the data"
[ "$(wc -l <said)" = 5 ] || fail "not 5 lines: $(cat said)"
# Pairs that are left out of a part are told of where it is evaluated.
mv kept pairs
{ cat pairs/train.en long; echo; } >pairs/test.en
{ cat pairs/train.de long; echo; } >pairs/test.de
"$mixt" eval fp32 --split test >said 2>error || fail "a test part: $(cat error)"
grep -q '^mixt: warning: .* 1 of 6 pairs of the test part are left out: empty, or over data.seq=32 tokens; data.seq=[0-9]* keeps 99% of them$' error || fail "a long pair: $(cat error)"
grep -q ', BLEU 100.00 of 5 sentences over' said || fail "a test part: $(cat said)"
exit $((failures > 0))
