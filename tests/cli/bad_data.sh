#!/bin/bash
# What a user can get wrong about data: files that are missing, cut off, damaged, of another kind or hostile. Each case
# ends with the right status and a message that names it, and changes no file.
# Usage: bad_data.sh MIXT
. "$(dirname "$0")/../support/bad_input.sh"

echo 'too short' >short.txt
idx cut 1000 100
idx fewer 6400 99
cp -r good magic && printf '\1' | dd of=magic/train-images-idx3-ubyte conv=notrunc status=none
cp -r good labels && printf '\372' | dd of=labels/train-labels-idx1-ubyte bs=1 seek=50 conv=notrunc status=none
printf 'model: pair\nthreads: 1\ntrain: {epochs: 1, batch: 32}\n' >pair.yaml
mkdir untabbed undrawn && echo 'a.ppm a thing' >untabbed/captions.tsv && printf 'a.ppm\ta thing\n' >undrawn/captions.tsv
mkdir gz hollow && gzip -c good/train-images-idx3-ubyte | head -c 60 >gz/train-images-idx3-ubyte.gz
gzip -c good/train-labels-idx1-ubyte >gz/train-labels-idx1-ubyte.gz
: >hollow/train-images-idx3-ubyte
csv nan.csv 'nan,1,2,3,1'
csv narrow.csv '1,2,3,1'
csv word.csv '1,2,three,4,1'
csv huge.csv '1e39,1,2,3,1'
{ echo '1.5,oops,0,4,1'; sed 1d good.csv; } >first.csv
csv fraction.csv '1,1,2,3,1.5'
mkdir unseen && cp good.csv unseen/train.csv && head -1 good.csv >unseen/val.csv
for i in $(seq 20); do echo "$i.5,1,cat"; echo "$i.5,2,dog"; done >words.csv
sed '7s/cat/3/' words.csv >mixed.csv
sed '7s/1,cat/,cat/' words.csv >hole.csv
head -c 3000 /dev/urandom >noise.csv
head -c 3000 /dev/urandom >noise.bin
printf 'PK\3\4' | cat - noise.bin >archive.npz
printf 'h\0e\0l\0l\0o\0' >wide.txt
mkdir testonly && { printf '\0\0\10\3'; be32 100; be32 8; be32 8; bytes 6400; } >testonly/t10k-images-idx3-ubyte
npy cut.npy 400 '\0\0\200\77'
npy nan.npy 1024 '\0\0\300\177'
mkdir alone && cp good.npy alone/
array complex.npy '<c8' '64, 4' 2048
array shorts.npy '<i2' '64, 8, 8' 8192
array fewer.npy '|u1' '60,' 60
array first.npy '|u1' '64, 3, 16, 16' $((64 * 768))
# Bombs: more than a header promises, or than any data packs to.
mkdir bomb cifarbomb
{ printf '\0\0\10\3'; be32 100; be32 8; be32 8; bytes 20000000 '\0'; } | gzip -c >bomb/train-images-idx3-ubyte.gz
{ printf '\0\0\10\1'; be32 100; bytes 100 '\1'; } >bomb/train-labels-idx1-ubyte
bytes 20000000 '\0' | gzip -c >cifarbomb/data_batch_1.bin.gz
yes 1,2,3,1 | head -c 20000000 | gzip -c >bomb.csv.gz
{ printf '\0\0\10\3'; be32 2000000000; be32 8; be32 8; bytes 3000; } >many-images-idx3-ubyte
csv quote.csv '1,1,2,"3,1'
# wav FILE FORMAT CHANNELS RATE BITS PROMISED BYTES: samples of which the header promises PROMISED bytes
le() { local i; for i in $(seq "$2"); do printf "\\x$(printf %02x $(($1 >> (8 * (i - 1)) & 255)))"; done; }
wav() {
    { printf 'RIFF'; le $((36 + $6)) 4; printf 'WAVEfmt '; le 16 4; le "$2" 2; le "$3" 2; le "$4" 4; le $(($4 * $3 * $5 / 8)) 4
        le $(($3 * $5 / 8)) 2; le "$5" 2; printf data; le "$6" 4; bytes "$7"; } >"$1"
}
for set in wav wavcut wavlaw wavnan wavflac wavname; do
    mkdir $set
    for word in no yes; do for i in 1 2 3 4; do wav $set/${word}_$i.wav 1 1 8000 16 2000 2000; done; done
done
wav wavcut/yes_3.wav 1 1 8000 16 2000 1000
wav wavlaw/no_2.wav 7 1 8000 8 2000 2000
wav wavnan/no_2.wav 3 1 8000 32 2000 2000
for i in 1 2 3 4; do printf '\0\0\300\177' | dd of=wavnan/yes_$i.wav bs=1 seek=44 conv=notrunc status=none; printf '\3' | dd of=wavnan/yes_$i.wav bs=1 seek=20 conv=notrunc status=none
    printf '\4\0\40' | dd of=wavnan/yes_$i.wav bs=1 seek=32 conv=notrunc status=none; done
mv wavflac/no_1.wav wavflac/no_1.flac
mv wavname/yes_1.wav wavname/yes.wav
printf 'model: mf\nprecision: fp32\nthreads: 1\ndata: {kind: ratings, path: stars.dat}\ntrain: {epochs: 1, batch: 2}\n' >mf.yaml
printf 'model: bert_classify\nprecision: fp32\nthreads: 1\nnet: {layers: 1, width: 8, heads: 2}\ndata: {kind: labelled, path: said.tsv}\ntrain: {epochs: 1, batch: 2}\n' >texts.yaml
printf 'sentence\tlabel\nso good\t1\nso bad\t0\ngood\t1\nbad\t0\nfine\t1\n' >said.tsv
{ cat said.tsv; printf 'cut o'; } >saidcut.tsv
sed 's/so bad.0/so bad\tNaN/' said.tsv >saidnan.tsv
sed 's/^good//' said.tsv >saidempty.tsv
head -1 said.tsv >saidnone.tsv
printf 'text,label\nfine,1\n"never closed,0\n' >saidquote.csv
printf '1::a::5::10\n2::b::4::20\n1::b::3::30\n2::a::1::40\n' >stars.dat
{ cat stars.dat; printf '3::c'; } >starscut.dat
printf 'a::A (1999)::x|y\nb::B (2001)' >filmscut.dat
printf 'a::x\nb::x\na::y\n' >filmstwice.dat
printf 'c::x\nd::x\n' >filmsother.dat
sed 's/::4::/::nan::/' stars.dat >starsnan.dat
sed 's/::20$//' stars.dat >starstime.dat
printf '\n' >starsnone.dat
printf '1::a::5::10::more\n' >starsmore.dat
printf 'model: seq2seq\nprecision: fp32\nthreads: 1\nnet: {layers: 1, width: 16, heads: 2}\ndata: {kind: parallel, path: phrases, source: en, target: de, vocab: phrases/words, seq: 8}\ntrain: {epochs: 1, batch: 2}\n' >phrases.yaml
mkdir phrases phrasesshort phrasesone phraseszero
printf 'a b\nc\nd\n' | tee phrases/train.en phrases/train.de phrasesshort/train.en phrasesone/train.en phraseszero/train.de >/dev/null
printf 'a b\n' >phrasesshort/train.de
printf 'a\0b\nc\nd\n' >phraseszero/train.en
printf 'a\tb\nc\n' >phrases.tsv
"$mixt" tokenize phrases/train.en --train --size 258 --out phrases/words >/dev/null || fail "a vocabulary to begin with"
yes 'Ein Hund läuft über die grüne Wiese.' | head -c 5001 >umlauts.txt
"$mixt" tokenize words.txt --out words.tokens >/dev/null || fail "tokens to begin with"
printf 'model: speech\nprecision: fp32\nthreads: 1\nnet: {channels: [4]}\ndata: {kind: audio, path: wav}\ntrain: {epochs: 1, batch: 2}\n' >speech.yaml
sed 's/kind: audio/kind: audio, task: text/' speech.yaml >spoken.yaml
printf 'no_1\tno\nno_2 no\n' >lines.tsv
printf 'no_1\tno\nno_2\t\377\n' >lines8.tsv
printf 'no\tn o\nno_1\tno\nyes_1\tyes\n' >linesfew.tsv
printf 'no\tno\nyes\ty\nno\tnot\n' >linestwice.tsv
printf 'no_1 NO\nno_2\n' >cut.trans.txt
# clip FOLDER COUNT: pictures of 16 x 16
clip() { local i; mkdir -p "$1" && for i in $(seq "$2"); do { printf 'P5 16 16 255\n'; bytes 256; } >"$1/$i.pgm"; done; }
for set in clips clipempty clipfew clipsize cliploose; do for i in 1 2 3; do clip $set/left/$i 4; clip $set/right/$i 4; done; done
rm clipempty/left/2/*
rm clipfew/left/2/4.pgm
{ printf 'P5 16 17 255\n'; bytes 272; } >clipsize/left/2/3.pgm
cp cliploose/right/1/1.pgm cliploose/right
printf 'model: c3d\nprecision: fp32\nthreads: 1\nnet: {channels: [2], hidden: [4]}\ndata: {kind: video, path: clips, frames: 4, crop: 16}\ntrain: {epochs: 1, batch: 2}\n' >clips.yaml
# png FILE HEADER: a picture of no pixels whose header has these 13 bytes and a checksum that fits
png() { { printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'; printf "$2"; printf '\0\0\0\0IEND\xae\x42\x60\x82'; } >"$1"; }
png laced.png '\0\0\0\x08\0\0\0\x08\x08\x02\0\0\1\x3c\x6a\x19\x4a'
png vast.png '\0\0\xea\x60\0\0\xea\x60\x08\x02\0\0\0\x0f\xb0\xe2\x15'
head -c 20 laced.png >cut.png
carried_run
writing_run

refused <<'CASES'
smoothing of values         | train tiny.yaml out=x data.kind=csv data.path=fraction.csv train.label_smoothing=0.1 train.batch=8 | 1 | label_smoothing is for classification, but the targets of
mean without deviation      | train tiny.yaml out=x data.mean=0.5                 | 1 | data: mean and std go together: set both, for all channels or
masks for pictures          | train tiny.yaml out=x data.mask=0.2                 | 1 | 'mask' is not for digits
crops of a text             | train gpt.yaml out=x data.crop=8                    | 1 | 'crop' is not for text
tokens of pictures          | train tiny.yaml out=x data.seq=8                    | 1 | 'seq' is not for digits
a shape of texts            | train gpt.yaml out=x data.shape=8x8                 | 1 | 'shape' is not for text
classes of a text           | train gpt.yaml out=x data.classes=8                 | 1 | 'classes' is not for text
numbers of a text           | train gpt.yaml out=x data.normalise=none            | 1 | 'normalise' is not for text
half a second less silence  | train speech.yaml out=x data.tail=-0.5              | 1 | tail -0.5, expected 0 to 60, or -1 for none
rows for a conv net         | train tiny.yaml out=x model=convnet net.hidden=[] data.kind=csv data.path=good.csv | 1 | needs images
sequence above the text     | train gpt.yaml out=x data.seq=100000                | 1 | fewer than one sample
text too short              | train gpt.yaml out=x data.path=short.txt            | 1 | short.txt: the train part has
number among words          | train tiny.yaml out=x data.kind=csv data.path=mixed.csv | 1 | mixed.csv: line 7, column 3: '3' is a number, but the classes before are words: use numbers
missing cell                | train tiny.yaml out=x data.kind=csv data.path=hole.csv data.missing=error | 1 | hole.csv: line 7, column 2: '' is missing
missing cells, what to do   | train tiny.yaml out=x data.kind=csv data.path=hole.csv data.missing=median | 2 | data.missing: expected one of error, mean, zero, drop, fill, found 'median'
missing cells of pictures   | train tiny.yaml out=x data.missing=mean            | 1 | 'missing' is not for digits
noise as a text             | train gpt.yaml out=x data.kind=auto data.path=noise.bin | 1 | noise.bin: offset
archive as a text           | train gpt.yaml out=x data.path=archive.npz          | 1 | archive.npz: is not a text file but a ZIP or NPZ archive
damaged archive             | train tiny.yaml out=x data.kind=auto data.path=archive.npz | 1 | archive.npz: has no list of members at its end
UTF-16 as a text            | train gpt.yaml out=x data.path=wide.txt             | 1 | wide.txt: offset 1: a zero byte: it is not a text file; name its kind with data.kind,
IDX of the test part alone  | train tiny.yaml out=x data.kind=idx data.path=testonly | 1 | holds only a test part (testonly/t10k-images-idx3-ubyte)
data without a path         | train tiny.yaml out=x data.kind=idx                 | 1 | set data.path=… to its file or folder
data missing                | train tiny.yaml out=x data.kind=csv data.path=none.csv | 1 | none.csv: No such file
sentences missing           | train phrases.yaml out=x data.path=nowhere           | 1 | nowhere: No such file
text as tokens              | train gpt.yaml out=x data.kind=tokens data.path=words.txt net.vocab=30000 | 1 | words.txt: is a text, not tokens: use data.kind=text, or 'mixt tokenize'
German text as tokens       | train gpt.yaml out=x data.kind=tokens data.path=umlauts.txt net.vocab=30000 | 1 | umlauts.txt: is a text, not tokens
tokens of other words       | train gpt.yaml out=x data.kind=tokens data.path=words.tokens data.vocab=phrases/words | 1 | words.tokens: was made with another vocabulary or tokenizer than the given one, phrases/words
data of no kind             | train tiny.yaml out=x data.kind=auto data.path=foo:bar | 1 | no kind 'foo'
data is a device            | train tiny.yaml out=x data.kind=csv data.path=/dev/zero | 1 | is not a regular file
ratings cut off              | train mf.yaml out=x data.path=starscut.dat            | 1 | starscut.dat: line 5 has 2 fields: expected user, item, rating and perhaps time
ratings with NaN             | train mf.yaml out=x data.path=starsnan.dat            | 1 | starsnan.dat: line 2: rating 'nan': expected a finite number
ratings with a field more    | train mf.yaml out=x data.path=starsmore.dat           | 1 | starsmore.dat: line 1 has 5 fields
no ratings                   | train mf.yaml out=x data.path=starsnone.dat           | 1 | starsnone.dat: holds no ratings
ratings without a time       | train mf.yaml out=x data.path=starstime.dat data.split_by=time | 1 | starstime.dat: rating 2 has no time: data.split_by=time needs one
features cut off             | train mf.yaml out=x data.items=filmscut.dat            | 1 | filmscut.dat: line 2 has 2 fields, those before 3
an item with features twice  | train mf.yaml out=x data.items=filmstwice.dat          | 1 | filmstwice.dat: line 3: item a has a line already
features of other items      | train mf.yaml out=x data.items=filmsother.dat          | 1 | filmsother.dat: none of its 2 lines names a rated item
features that are not there  | train mf.yaml out=x data.users=nobody.dat              | 1 | nobody.dat: No such file
the age of digits            | train tiny.yaml out=x data.kind=digits data.path= data.split_by=time | 1 | 'split_by' is not for digits
features of digits           | train tiny.yaml out=x data.kind=digits data.path= data.items=filmscut.dat | 1 | 'items' is not for digits
ratings for a classifier     | train mf.yaml out=x model=mlp                         | 1 | model mlp needs images or rows of numbers, the data has ratings
texts cut off                | train texts.yaml out=x data.path=saidcut.tsv          | 1 | saidcut.tsv: line 7 has 1 field, those before 2
texts without a label        | train texts.yaml out=x data.path=saidnan.tsv          | 1 | saidnan.tsv: line 3, column 2: 'NaN': the label is missing
a label without a text       | train texts.yaml out=x data.path=saidempty.tsv        | 1 | saidempty.tsv: line 4, column 1: no text
no texts                     | train texts.yaml out=x data.path=saidnone.tsv         | 1 | saidnone.tsv: only a header line, no texts
texts with a quote too few   | train texts.yaml out=x data.path=saidquote.csv        | 1 | saidquote.csv: line 3, column 1: the quote that opens the field is never closed
no such column of texts      | train texts.yaml out=x data.text=words                | 1 | said.tsv: no column 'words' for the text (data.text)
no such column of labels     | train texts.yaml out=x data.labels=9                  | 1 | said.tsv: no column '9' for the label (data.labels)
texts of fewer classes       | train texts.yaml out=x data.classes=1                 | 1 | has 2 classes, not 1
a vocabulary of no words     | train texts.yaml out=x data.vocab_size=8              | 1 | vocab_size 8, expected 16 (special tokens and a few words)
texts for a language model   | train texts.yaml out=x model=gpt                      | 1 | model gpt needs tokens, the data has labelled texts
plain text for classes       | train texts.yaml out=x data.kind=text data.path=words.txt | 1 | model bert_classify needs labelled texts
another pooling              | train texts.yaml out=x net.pool=max                   | 2 | net.pool: expected one of auto, first, mean, found 'max'
a column for plain text      | train gpt.yaml out=x data.text=1                      | 1 | 'text' is not for text
pictures for ratings         | train mf.yaml out=x data.kind=digits data.path=       | 1 | model mf needs ratings of items by users, the data has
pairs of unequal length      | train phrases.yaml out=x data.path=phrasesshort           | 1 | phrasesshort/train.en has 3 lines, phrasesshort/train.de 1: each line must be the translation of the other
pairs in one language        | train phrases.yaml out=x data.path=phrasesone             | 1 | its train part has a file for .en but none for .de
pairs that are no text       | train phrases.yaml out=x data.path=phraseszero            | 1 | phraseszero/train.en: offset 1: a zero byte: it is not a text file; name its kind with data.kind,
pairs without a language     | train phrases.yaml out=x data.source=                   | 1 | the languages are not known: set data.source and data.target
pairs of a third language    | train phrases.yaml out=x data.target=fr                 | 1 | its train part has a file for .en but none for .fr
pairs without a tab          | train phrases.yaml out=x data.path=phrases.tsv data.source= data.target= | 1 | phrases.tsv: line 2 has no field 2: expected both languages with a tab between
pairs of no column           | train phrases.yaml out=x data.path=phrases.tsv            | 1 | data.source=en: of a file with both languages it is a column, 1 to 64
pairs that are too long      | train phrases.yaml out=x data.seq=1                     | 1 | no pair of sentences is left of 3: all are empty or over data.seq=1 tokens
pairs by bytes               | train phrases.yaml out=x data.vocab= data.tokenizer=bytes | 1 | parallel text needs a vocabulary of byte pairs
pairs of a tiny vocabulary   | train phrases.yaml out=x data.vocab= data.vocab_size=99 | 1 | data: vocab_size 99, expected 257
pairs for a classifier       | train phrases.yaml out=x model=mlp net.layers=0 net.width=0 net.heads=0 | 1 | model mlp needs images or rows of numbers, the data has sentences and their translations
pictures for a translator    | train phrases.yaml out=x data.kind=digits data.path= data.source= data.target= data.vocab= | 1 | model seq2seq needs sentences and their translations, the data has
languages of pictures        | train tiny.yaml out=x data.source=en                  | 1 | 'source' is not for digits
learn without a folder       | tokenize phrases/train.en --train                       | 2 | --train needs --out DIR, the folder of the new vocabulary
learn and decode             | tokenize phrases/train.en --train --out w --decode      | 2 | --train learns a vocabulary
learn too few tokens         | tokenize phrases/train.en --train --out w --size 256    | 2 | 256
learn from no text           | tokenize phraseszero/train.en --train --out w           | 1 | phraseszero/train.en: offset 1: a zero byte: it is not a text file; name its kind with data.kind,
a size of nothing learned    | tokenize phrases/train.en --size 300                    | 2 | --size 300 needs --train
two files of tokens          | tokenize phrases/train.en phrases/train.de                | 2 | phrases/train.de: one FILE at a time
WAV that is cut off          | train speech.yaml out=x data.path=wavcut              | 1 | wavcut/yes_3.wav: is cut off: its header says 2000 bytes of samples, but it has 1000
WAV of another coding       | train speech.yaml out=x data.path=wavlaw            | 1 | wavlaw/no_2.wav: samples are mu-law of 8 bits
WAV with NaN                | train speech.yaml out=x data.path=wavnan            | 1 | wavnan/yes_1.wav: sample 0 is nan, which is not a sample of sound
sound that is not read      | train speech.yaml out=x data.path=wavflac           | 1 | wavflac/no_1.flac: cannot be read: convert it to WAV
text without a tab          | train spoken.yaml out=x data.labels=lines.tsv       | 1 | lines.tsv:2: expected the name of a recording, a tab, and its text
text that is no UTF-8       | train spoken.yaml out=x data.labels=lines8.tsv      | 1 | lines8.tsv:2: is not UTF-8 text
all recordings held out     | train speech.yaml out=x data.val_files=*.wav         | 1 | wav: all 8 recordings match val_files='*.wav'; none is left to train on
recording without a text    | train spoken.yaml out=x data.labels=linesfew.tsv    | 1 | wav/yes_2.wav: has no line in linesfew.tsv, nor has its class 'yes'
two texts for one           | train spoken.yaml out=x data.labels=linestwice.tsv  | 1 | linestwice.tsv:3: 'no' has another text in line 1
LibriSpeech text cut off    | train spoken.yaml out=x data.labels=cut.trans.txt   | 1 | cut.trans.txt:2: expected the name of a recording, a space
no such texts               | train spoken.yaml out=x data.labels=none.tsv        | 1 | none.tsv: No such file
texts for words drawn       | train spoken.yaml out=x data.path= data.labels=lines.tsv | 1 | need recordings
recording past a sample     | train spoken.yaml out=x data.seconds=0.05           | 1 | no_1.wav: lasts 0.12 seconds, but samples are 0.05 long
texts for pictures' models  | train spoken.yaml out=x model=mlp net.channels=[]   | 1 | model mlp needs images or rows of numbers, the data has recordings and the text in them
texts of pictures           | train tiny.yaml out=x data.task=text                | 1 | targets are classes, not text
fewer frames than letters   | train spoken.yaml data.tail=-1 out=x net.channels=4,4,4          | 1 | no recording has enough outputs for its letters: the first, wav/no_1.wav, needs 2 and has 1, one every 8 frames
hidden layers and channels  | train spoken.yaml out=x net.hidden=4                | 1 | takes either hidden layers or channels of convolutions: leave
smoothing of letters        | train spoken.yaml out=x train.label_smoothing=0.1   | 1 | train.label_smoothing is for classification, but the targets of wav are texts
classes of letters          | train spoken.yaml out=x data.classes=5              | 1 | 'classes' is not for targets that are texts
beam out of range           | predict run wav/no_1.wav --beams 1001                 | 2 | --beams
WAV of no class             | train speech.yaml out=x data.path=wavname           | 1 | wavname/yes.wav: unknown class: expected CLASS_….wav, or one folder for each
folder without WAV          | train speech.yaml out=x data.path=folder            | 1 | folder: holds no WAV files
no such recordings          | train speech.yaml out=x data.path=nowhere           | 1 | audio:nowhere: no such folder
test part of no file        | train speech.yaml out=x data.test_files=x*          | 1 | no recording matches test_files='x*'; the first is no_1.wav
part of words drawn         | train speech.yaml out=x data.path= data.val_files=x* | 1 | audio: val_files, test_files and labels need recordings: set
too many mel bands          | train speech.yaml out=x data.mels=300               | 1 | covers no line of the spectrum, which has
mask of all bands           | train speech.yaml out=x data.mel_mask=40            | 1 | data.mel_mask=40 hides all of the 40 bands
mask of all frames          | train speech.yaml out=x data.time_mask=100000       | 1 | data.time_mask=100000 hides all of the
rate out of range           | train speech.yaml out=x data.rate=900000            | 2 | data.rate: 900000 is out of range
frames for pictures         | train tiny.yaml out=x data.mels=40                  | 1 | 'mels' is not for digits
words too short to pool     | train speech.yaml out=x net.channels=4,4,4,4,4,4    | 1 | to nothing
clip without pictures       | train clips.yaml out=x data.path=clipempty          | 1 | clipempty/left/2: a clip without frames (
clip of too few pictures    | train clips.yaml out=x data.path=clipfew            | 1 | clipfew/left/2: a clip of 3 frames, but a sample has 4
clip of two sizes           | train clips.yaml out=x data.path=clipsize           | 1 | clipsize/left/2/3.pgm: 17 x 16 pixels, but the clip's first frame has 16 x 16
picture beside clips        | train clips.yaml out=x data.path=cliploose          | 1 | cliploose/right/1.pgm: an image beside clips: a clip is a folder of images
no such clips               | train clips.yaml out=x data.path=nowhere            | 1 | video:nowhere: no such folder
clips of no frame           | train clips.yaml out=x data.frames=-1               | 2 | data.frames: -1 is out of range
clips for pictures          | train tiny.yaml out=x data.frames=4                 | 1 | 'frames' is not for digits
stages past a clip's end    | train clips.yaml out=x net.channels=[2,2,2,2]       | 1 | 4 stages reduce clips of 4 frames of 16 x 16 to nothing; at most 3 channels fit
clip that does not move     | train clips.yaml out=x data.kind=moving data.path=16x16 data.crop=0 data.frames=1 | 1 | does not move
predict of a recording      | predict run wav/no_1.wav                            | 1 | is a recording, but the model was trained on samples
predict of a cut recording  | predict run wavcut/yes_3.wav                        | 1 | is a recording, but the model was trained on samples
folder without data         | train tiny.yaml out=x data.kind=idx data.path=folder | 1 | holds no train-images-idx3-ubyte
folder of nothing           | train data.path=folder out=x                        | 1 | of pictures: a folder for each class
IDX cut off                 | train tiny.yaml out=x data.kind=idx data.path=cut   | 1 | the file is cut off
IDX with another magic      | train tiny.yaml out=x data.kind=idx data.path=magic | 1 | offset 0: magic 01 00 08 03 is not IDX
IDX of no bytes             | train tiny.yaml out=x data.kind=idx data.path=hollow | 1 | the file is empty
IDX with a label too few    | train tiny.yaml out=x data.kind=idx data.path=fewer | 1 | 99 labels, but
IDX label out of range      | train tiny.yaml out=x data.kind=idx data.path=labels net.classes=10 | 1 | classes 10, but the data has 251
gzip cut off                | train tiny.yaml out=x data.kind=idx data.path=gz    | 1 | gzip data damaged or cut off
CSV with NaN                | train tiny.yaml out=x data.kind=csv data.path=nan.csv data.missing=error | 1 | nan.csv: line 32, column 1: 'nan' is missing
CSV beyond FP32             | train tiny.yaml out=x data.kind=csv data.path=huge.csv | 1 | huge.csv: line 32, column 1: '1e39' is not finite
CSV with a word             | train tiny.yaml out=x data.kind=csv data.path=word.csv data.missing=error | 1 | word.csv: line 32, column 3: 'three' is not a number
CSV with a bad first row     | train tiny.yaml out=x data.kind=csv data.path=first.csv data.missing=error | 1 | first.csv: line 1, column 2: 'oops' is not a number
CSV with a short row        | train tiny.yaml out=x data.kind=csv data.path=narrow.csv | 1 | narrow.csv: line 32: 4 columns, expected 5
CSV of noise                | train tiny.yaml out=x data.kind=csv data.path=noise.csv | 1 | noise.csv: line
CSV without that column     | train tiny.yaml out=x data.kind=csv data.path=good.csv data.labels=none | 1 | no column 'none'
NPY cut off                 | train tiny.yaml out=x data.kind=npy data.path=cut.npy data.labels=labels.npy | 1 | cut.npy: shape [64, 4] of fp32 needs 1024 bytes
NPY with NaN                | train tiny.yaml out=x data.kind=npy data.path=nan.npy data.labels=labels.npy | 1 | nan is not finite
NPY without labels          | train tiny.yaml out=x data.kind=npy data.path=alone/good.npy | 1 | name their file with data.labels=FILE
no such NPY                 | train tiny.yaml out=x data.kind=npy data.path=words.txt data.labels=labels.npy | 1 | not a .npy file
a class that is none        | train tiny.yaml out=x data.kind=csv data.path=fraction.csv data.task=classes | 1 | fraction.csv: line 32: class 1.5 is not a whole number
digits as values            | train tiny.yaml out=x data.task=values              | 1 | targets are classes, not values
text as classes             | train gpt.yaml out=x data.task=classes              | 1 | targets are tokens, not classes
no such task                | train tiny.yaml out=x data.task=words               | 2 | data.task
validation of no lines      | train tiny.yaml out=x data.kind=csv data.path=unseen train.batch=8 | 1 | unseen/val.csv: only a header line, no data
patience without validation | train tiny.yaml out=x data.kind=csv data.path=good.csv data.val_fraction=0 train.batch=8 train.early_stop=2 | 1 | set data.val_fraction
captions without a tab       | train pair.yaml out=x data.kind=pairs data.path=untabbed | 1 | untabbed/captions.tsv:1: expected an image's file, a tab and its caption
captions of no picture       | train pair.yaml out=x data.kind=pairs data.path=undrawn | 1 | undrawn/captions.tsv:1: undrawn/a.ppm: no such file
pictures without captions    | train pair.yaml out=x                              | 1 | model pair needs images with captions, the data has (28, 28, 1) images
CSV with an open quote      | train tiny.yaml out=x data.kind=csv data.path=quote.csv data.missing=error | 1 | quote.csv: line 32, column 4:
NPY of complex numbers      | train tiny.yaml out=x data.kind=npy data.path=complex.npy data.labels=labels.npy | 1 | complex.npy: type '<c8' is not one that mixt reads
NPY with a label too few    | train tiny.yaml out=x data.kind=npy data.path=good.npy data.labels=fewer.npy | 1 | fewer.npy: 60 labels, but good.npy holds 64 samples
gzip bomb as IDX            | train tiny.yaml out=x data.kind=idx data.path=bomb  | 1 | bomb/train-images-idx3-ubyte.gz: at least 6417 bytes, but its header
gzip bomb as CSV            | train tiny.yaml out=x data.kind=csv data.path=bomb.csv.gz | 1 | bomb.csv.gz: unpacks to more than 200 times its size
gzip bomb as CIFAR          | train tiny.yaml out=x data.kind=cifar data.path=cifarbomb | 1 | cifarbomb/data_batch_1.bin.gz: unpacks to more than 200 times its size
IDX that promises too much  | predict run many-images-idx3-ubyte                  | 1 | asks for 128000000016: the file is cut off
no part left to train on    | train tiny.yaml out=x data.kind=csv data.path=good.csv data.val_fraction=0.999 train.batch=8 | 1 | samples none is left for training after
share of more than all      | train tiny.yaml out=x data.val_fraction=1.5         | 2 | data.val_fraction: 1.5 is out of range
predict without the data    | predict carried train:0                             | 1 | away.csv: say where it is now with data.path=NEW
eval of damaged facts       | predict facts good.npy                              | 1 | facts/inputs.json:2:0:
predict of another shape    | predict run good.npy                                | 1 | good.npy: samples of shape [4], but the model was trained on [28, 28, 1]
predict of short integers   | predict run shorts.npy                              | 1 | shorts.npy: integers, but the model was trained on bytes: save them as
predict of a text           | predict run words.txt                               | 1 | words.txt: offset 0: not an image: expected PPM, PGM (P6, P5), PNG or JPEG
predict of nothing          | predict run none.png                                | 1 | none.png: No such file
predict of a folder         | predict run folder                                  | 1 | folder: is a directory, expected an image, a WAV file, a .npy or .npz array or IDX images
predict past the end        | predict run test:999999                             | 1 | test:999999: sample 999999, but there are 256
predict of an archive       | predict run archive.npz                             | 1 | archive.npz: has no list of members at its end
predict with a writer       | predict writer words.txt                            | 1 | writer: is a language model: use 'mixt generate writer'
interlaced PNG              | predict run laced.png                               | 1 | laced.png: PNG: is interlaced; save it without interlacing
PNG of too many pixels      | predict run vast.png                                | 1 | vast.png: PNG: 60000 x 60000 pixels: none, or too many
PNG cut off                 | predict run cut.png                                 | 1 | cut.png: offset 8: PNG: the file is cut off
CASES

finish
