#!/bin/bash
# What a user can get wrong: each case ends with the right status and a message that names it, and changes no file.
# Usage: bad_input.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cases=0
tokens=$(realpath "$(dirname "$0")/../data/tokens")
mkdir "$work/in" && cd "$work/in" || exit 1
export MIXT_CUDA_LIBRARY=$work/none.so # on no machine is there a GPU's backend

# ---- what the cases read ----

be32() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
bytes() { head -c "$1" /dev/zero | tr '\0' "${2:-A}"; }
# idx FOLDER IMAGES LABELS: 8 x 8 images of which the headers promise 100
idx() {
    mkdir "$1"
    { printf '\0\0\10\3'; be32 100; be32 8; be32 8; bytes "$2"; } >"$1/train-images-idx3-ubyte"
    { printf '\0\0\10\1'; be32 "$3"; bytes "$3" '\1'; } >"$1/train-labels-idx1-ubyte"
}
# npy FILE BYTES ELEMENT: 64 rows of 4 FP32 numbers, all the same
npy() {
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (64, 4), }"
    { printf '\x93NUMPY\1\0\x76\0%-117s\n' "$header"; for _ in $(seq $(($2 / 4))); do printf "$3"; done; } >"$1"
}
# csv FILE LINE: 60 rows of four numbers and a class, one of them replaced
csv() {
    echo 'a,b,c,d,class' >"$1"
    for i in $(seq 30); do echo "0.$i,1.5,-2,$i,$((i % 3))"; done >>"$1"
    [ -z "$2" ] || echo "$2" >>"$1"
    for i in $(seq 30); do echo "1.$i,0.5,-1,$i,$((i % 3))"; done >>"$1"
}
cat >tiny.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 1, batch: 32}
YAML
sed 's/mlp/gpt/; s/hidden: .16./layers: 1, width: 16, heads: 2/; s/kind: digits, limit: 256/kind: text, path: words.txt, seq: 16/' tiny.yaml >gpt.yaml
sed 's/limit: 256/limit: 128/' tiny.yaml >fewer.yaml
yes 'the quick brown fox' | head -c 4000 >words.txt
echo 'too short' >short.txt
idx good 6400 100
idx cut 1000 100
idx fewer 6400 99
cp -r good magic && printf '\1' | dd of=magic/train-images-idx3-ubyte conv=notrunc status=none
cp -r good labels && printf '\372' | dd of=labels/train-labels-idx1-ubyte bs=1 seek=50 conv=notrunc status=none
printf 'model: pair\nthreads: 1\ntrain: {epochs: 1, batch: 32}\n' >pair.yaml
mkdir untabbed undrawn && echo 'a.ppm a thing' >untabbed/captions.tsv && printf 'a.ppm\ta thing\n' >undrawn/captions.tsv
mkdir gz hollow && gzip -c good/train-images-idx3-ubyte | head -c 60 >gz/train-images-idx3-ubyte.gz
gzip -c good/train-labels-idx1-ubyte >gz/train-labels-idx1-ubyte.gz
: >hollow/train-images-idx3-ubyte
csv good.csv ''
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
npy good.npy 1024 '\0\0\200\77'
npy cut.npy 400 '\0\0\200\77'
npy nan.npy 1024 '\0\0\300\177'
{ printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }"; bytes 256 '\0'; } >labels.npy
# array FILE TYPE SHAPE BYTES: an array of bytes 0
array() { { printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"; bytes "$4" '\0'; } >"$1"; }
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
csv beyond.csv '1,1,2,3,1e30'
# wav FILE FORMAT CHANNELS RATE BITS PROMISED BYTES: samples of which the header promises PROMISED bytes
le() { local i; for i in $(seq "$2"); do printf "\\x$(printf %02x $(($1 >> (8 * (i - 1)) & 255)))"; done; }
wav() {
    { printf 'RIFF'; le $((36 + $6)) 4; printf 'WAVEfmt '; le 16 4; le "$2" 2; le "$3" 2; le "$4" 4; le $(($4 * $3 * $5 / 8)) 4
        le $(($3 * $5 / 8)) 2; le "$5" 2; printf data; le "$6" 4; bytes "$7"; } >"$1"
}
for set in wav wavcut wavlaw wavnan wavrate wavflac wavname; do
    mkdir $set
    for word in no yes; do for i in 1 2 3 4; do wav $set/${word}_$i.wav 1 1 8000 16 2000 2000; done; done
done
wav wavcut/yes_3.wav 1 1 8000 16 2000 1000
wav wavlaw/no_2.wav 7 1 8000 8 2000 2000
wav wavnan/no_2.wav 3 1 8000 32 2000 2000
for i in 1 2 3 4; do printf '\0\0\300\177' | dd of=wavnan/yes_$i.wav bs=1 seek=44 conv=notrunc status=none; printf '\3' | dd of=wavnan/yes_$i.wav bs=1 seek=20 conv=notrunc status=none
    printf '\4\0\40' | dd of=wavnan/yes_$i.wav bs=1 seek=32 conv=notrunc status=none; done
wav wavrate/yes_4.wav 1 1 16000 16 2000 2000
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
printf 'model: mlp\ntrain: {lr: [1}\n' >syntax.yaml
printf 'model: mlp\n\ttrain: 1\n' >tab.yaml
printf 'model: mlp\nmodel: gpt\n' >twice.yaml
printf 'train:\n  learning_rate: 0.1\n' >key.yaml
printf 'train:\n  batch: many\n' >type.yaml
printf '\0\1\2' >binary.yaml
mkdir pairs && cp "$tokens"/{encoder.json,vocab.bpe} pairs
: >empty.yaml
printf 'default: bf16\nrules:\n  - layer: "fc.0\n' >policy_syntax.yaml
printf 'default: fp8\n' >policy_format.yaml
printf 'default: bf16\nrulez: []\n' >policy_key.yaml
printf 'default: bf16\nkeep: tf32\n' >policy_keep.yaml
printf 'default: bf16\ndefault: fp16\n' >policy_twice.yaml
printf 'rules: []\n' >policy_default.yaml
printf 'default: bf16\nphases:\n  - name: a\n    until: 5\n' >phases_last.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 5}\n  - {name: b, until: 3}\n  - name: c\n' >phases_order.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 5}\n  - {name: b, until: 10%%}\n  - name: c\n' >phases_share.yaml
printf 'default: bf16\nphases:\n  - name: a\n    formats: fp32\n' >phases_key.yaml
printf 'default: bf16\nphases:\n  - {name: a, until: 3}\n  - name: b\n' >phases.yaml
printf 'default: bf16\nrules:\n  - layer: "fcc.*"\n    precision: fp32\n' >policy_nowhere.yaml
"$mixt" train tiny.yaml out=run -q || fail "the run that the cases damage: status $?"
cp good.csv away.csv
"$mixt" train tiny.yaml out=carried data.kind=csv data.path=away.csv train.batch=8 -q && rm away.csv || fail "a run whose data goes: status $?"
cp -r carried facts && echo '{' >facts/inputs.json
"$mixt" train gpt.yaml out=writer train.steps=1 -q || fail "a run that writes: status $?"
mkdir folder
for case in noweights cutweights shortweights noise badconfig othersize notensor folderweights; do cp -r run $case; done
rm noweights/model.safetensors
truncate -s 2000 cutweights/model.safetensors
truncate -s 5 shortweights/model.safetensors
cp noise.csv noise/model.safetensors
echo 'net: [' >badconfig/config.yaml
sed -i 's/hidden: .*/hidden: [17]/' othersize/config.yaml
sed -i 's/hidden: .*/hidden: [16, 10]/' notensor/config.yaml
rm folderweights/model.safetensors && mkdir folderweights/model.safetensors

# ---- the cases: name | command after "mixt" | status | words on standard error ----

table=$(cat <<'CASES'
no such key                 | train tiny.yaml out=x train.learning=1              | 2 | unknown key 'train.learning'
key in the wrong section    | train tiny.yaml out=x lr=1                          | 2 | did you mean train.lr?
word for a number           | train tiny.yaml out=x train.lr=fast                 | 2 | train.lr: expected a number at least 0, found 'fast'
fraction for an integer     | train tiny.yaml out=x train.batch=1.5               | 2 | train.batch: expected an integer
number out of range         | train tiny.yaml out=x train.lr=-1                   | 2 | train.lr: -1 is out of range
number beyond FP32          | train tiny.yaml out=x train.lr=1e300                | 2 | train.lr: 1e300 is too large
number below FP32           | train tiny.yaml out=x train.eps=1e-300              | 2 | train.eps: 1e-300 is too small
factor beyond FP32          | train tiny.yaml out=x train.lr_groups=fc.*=1e300    | 1 | lr_groups: '1e300' of 'fc.*' is too large
decay beyond FP32           | train tiny.yaml out=x train.decay_groups=fc.*=1e39  | 1 | decay_groups: '1e39' of 'fc.*' is too large
decay of what has none       | train tiny.yaml out=x train.decay_groups=*.bias=0.1   | 1 | decay_groups: '*.bias' matches no parameter with weight decay
new head of no layer        | train tiny.yaml out=x init=run init_new_head=zz     | 1 | init_new_head: 'zz' matches no parameter of this model
no amount of memory         | train tiny.yaml out=x train.memory=12X              | 2 | train.memory: expected an amount of memory as in 900M or 12G, found '12X'
memory below 0              | train tiny.yaml out=x train.memory=-1G              | 2 | train.memory: expected an amount of memory
no way to fit               | train tiny.yaml out=x train.memory_may=splt         | 2 | train.memory_may: expected a list of recompute, split, keep, found 'splt' (did you mean split?)
too little memory           | train tiny.yaml out=x train.memory=10K              | 1 | no plan of this run is within 10.0 KiB
fault of no kind            | train tiny.yaml out=x faults=nan_dta@3                | 1 | faults: 'nan_dta@3': no kind 'nan_dta' (did you mean nan_data?)
fault without a step        | train tiny.yaml out=x faults=nan_data               | 1 | faults: 'nan_data': write kind@step
fault at no step            | train tiny.yaml out=x faults=lr@-3                  | 1 | faults: 'lr@-3': the update '-3' is no number of at least 1
fault that never comes      | train tiny.yaml out=x faults=lr@900                 | 1 | faults: 'lr@900': update 900 never comes, the run makes 8
fault without a layer       | train tiny.yaml out=x faults=overflow@3             | 1 | faults: 'overflow@3': name the layer
fault of another layer      | train tiny.yaml out=x faults=overflow@3:fc.7        | 1 | faults: overflow@3: the model has no layer 'fc.7' (did you mean fc.0?)
fault of no layer           | train tiny.yaml out=x faults=memory@3:fc.0          | 1 | memory is not of a layer
fault in fused layers       | train tiny.yaml out=x faults=flip_activation@3:fc.1 | 1 | layer 'fc.1' is computed together with another one
NaN among tokens            | train gpt.yaml out=x faults=nan_data@3              | 1 | faults: nan_data@3: the inputs are int32, which cannot be NaN
split that does not divide  | train tiny.yaml out=x train.split=7                 | 1 | split 7: must divide the batch
plan for no memory          | plan tiny.yaml --memory lots                        | 2 | --memory: train.memory: expected an amount of memory
links of one process        | plan tiny.yaml --machine h100                       | 1 | --machine says what ranks send to each other takes: it needs --ranks
links of no machine         | plan tiny.yaml --ranks 2 --machine nosuch           | 1 | nosuch
plan for no ranks           | plan tiny.yaml --ranks 0                            | 2 | --ranks: 0 is out of range: must be from 1
batch for too little memory | plan tiny.yaml --largest-batch --memory 10K         | 1 | not even a batch of 1 fits
unknown choice              | train tiny.yaml out=x train.optimizer=adan          | 2 | did you mean adam?
batch of none               | train tiny.yaml out=x train.batch=0                 | 2 | train.batch: 0 is out of range
too many threads            | train tiny.yaml out=x threads=5000                  | 2 | threads: 5000 is out of range
seed beyond 64 bits         | train tiny.yaml out=x seed=99999999999999999999     | 2 | does not fit 64 bits
loss scale of 0             | train tiny.yaml out=x train.loss_scale=0            | 2 | train.loss_scale: 0 is out of range
names of weights, no weights | train tiny.yaml out=x init_skip=fc                   | 1 | init names no weights
loss scale out of range     | train tiny.yaml out=x train.loss_scale=1e-30        | 1 | loss_scale '1e-30': a fixed scale must be from 2^-24
scale below its floor       | train tiny.yaml out=x train.scale_init=0.5          | 1 | must not be less than train.scale_floor
nothing to train            | train tiny.yaml out=x train.epochs=0                | 1 | one of them must say when to stop
not a setting               | train tiny.yaml out=x tarin.lr                      | 2 | settings are of the form key=value
no configuration            | train                                               | 2 | missing argument CONFIG
configuration missing       | train none.yaml                                     | 1 | none.yaml: cannot be opened
configuration is a folder   | train folder                                        | 1 | folder: cannot be read: Is a directory
configuration is empty      | train empty.yaml                                    | 1 | empty.yaml:1:1: the file has no settings
configuration is binary     | train binary.yaml                                   | 1 | not a text file
configuration is no YAML    | train syntax.yaml                                   | 1 | syntax.yaml:2:
configuration has a tab     | train tab.yaml                                      | 1 | YAML is indented with spaces
key twice in a file         | train twice.yaml                                    | 1 | model is given twice
unknown key in a file       | train key.yaml                                      | 1 | key.yaml:2:3: unknown key
wrong type in a file        | train type.yaml                                     | 1 | type.yaml:2:10: train.batch: expected an integer
unknown model               | train tiny.yaml out=x model=gtp                     | 1 | did you mean gpt?
size the model has not      | train tiny.yaml out=x net.heads=2                   | 1 | model mlp
heads of a GRU              | train gpt.yaml out=x model=gru                      | 1 | model gru
GRU over digits             | train tiny.yaml out=x model=gru net.hidden=[]       | 1 | model gru needs tokens, the data has (28, 28, 1) images
heads that do not divide    | train gpt.yaml out=x net.heads=3                    | 1 | net.heads must divide net.width
images too small to pool    | train tiny.yaml out=x model=convnet net.hidden=[] net.channels=4,4,4,4,4,4 | 1 | halve images of 28 x 28 to nothing
no such depth               | train tiny.yaml out=x model=resnet net.hidden=[] net.depth=19 | 1 | no depth 19
warm-up of onecycle         | train tiny.yaml out=x train.schedule=onecycle train.warmup=5 | 1 | rises by itself
smoothing of values         | train tiny.yaml out=x data.kind=csv data.path=fraction.csv train.label_smoothing=0.1 train.batch=8 | 1 | is for classes
mean without deviation      | train tiny.yaml out=x data.mean=0.5                 | 1 | go together: mean with std
masks for pictures          | train tiny.yaml out=x data.mask=0.2                 | 1 | 'mask' means nothing to digits
crops of a text             | train gpt.yaml out=x data.crop=8                    | 1 | 'crop' means nothing to text
fewer classes than labels   | train tiny.yaml out=x net.classes=3                 | 1 | classes 3, but the data has 10
rows for a conv net         | train tiny.yaml out=x model=convnet net.hidden=[] data.kind=csv data.path=good.csv | 1 | needs images
batch above the samples     | train tiny.yaml out=x train.batch=1024              | 1 | is more than the 256 training samples
accumulation above them     | train tiny.yaml out=x train.accumulate=100          | 1 | is more than the 256 training samples
sequence above the text     | train gpt.yaml out=x data.seq=100000                | 1 | fewer than one sample
text too short              | train gpt.yaml out=x data.path=short.txt            | 1 | short.txt: the train part has
number among words          | train tiny.yaml out=x data.kind=csv data.path=mixed.csv | 1 | mixed.csv: line 7, column 3: '3' is a number, the classes before are words
missing cell                | train tiny.yaml out=x data.kind=csv data.path=hole.csv | 1 | hole.csv: line 7, column 2: '' is missing
missing cells, what to do   | train tiny.yaml out=x data.kind=csv data.path=hole.csv data.missing=median | 2 | data.missing: expected one of error, mean, zero, drop, found 'median'
missing cells of pictures   | train tiny.yaml out=x data.missing=mean            | 1 | 'missing' means nothing to digits
noise as a text             | train gpt.yaml out=x data.kind=auto data.path=noise.bin | 1 | noise.bin: offset
archive as a text           | train gpt.yaml out=x data.path=archive.npz          | 1 | archive.npz: is no text but a ZIP or NPZ archive
damaged archive             | train tiny.yaml out=x data.kind=auto data.path=archive.npz | 1 | archive.npz: has no list of members at its end
UTF-16 as a text            | train gpt.yaml out=x data.path=wide.txt             | 1 | wide.txt: offset 1: a zero byte: it is no text
IDX of the test part alone  | train tiny.yaml out=x data.kind=idx data.path=testonly | 1 | holds only a test part (testonly/t10k-images-idx3-ubyte)
precision unknown           | train tiny.yaml out=x precision=fp8                 | 1 | precision 'fp8' is neither fp32, tf32, fp16, bf16
policy is a folder          | train tiny.yaml out=x precision=folder              | 1 | precision 'folder' is no policy file
policy is no YAML           | train tiny.yaml out=x precision=policy_syntax.yaml  | 1 | policy_syntax.yaml:4:1: not YAML
phases without a last one   | train tiny.yaml out=x precision=phases_last.yaml    | 1 | phases_last.yaml:3:5: the last phase, 'a', has an until
phases that go back         | train tiny.yaml out=x precision=phases_order.yaml   | 1 | phases_order.yaml:4:5: phase 'b' ends at 3, not after 'a'
phases that go back by share | train tiny.yaml out=x precision=phases_share.yaml  | 1 | phases_share.yaml:4: phase 'b' (until 10%) ends at update 1 of 8, not after 'a'
a phase with another key    | train tiny.yaml out=x precision=phases_key.yaml     | 1 | phases_key.yaml:4:5: unknown key of a phase
no such phase               | plan tiny.yaml precision=phases.yaml --phase c      | 1 | --phase 'c': no phase has such a name
no phases                   | plan tiny.yaml --phase c                            | 1 | --phase 'c': the policy has no phases
policy of another format    | train tiny.yaml out=x precision=policy_format.yaml  | 1 | policy_format.yaml:1:10: a precision must be
policy with a keep of tf32  | train tiny.yaml out=x precision=policy_keep.yaml    | 1 | policy_keep.yaml:2:7: keep must be fp32, fp16, bf16 or fp8_e4m3
policy with another key     | train tiny.yaml out=x precision=policy_key.yaml     | 1 | unknown key of a policy
policy with a key twice     | train tiny.yaml out=x precision=policy_twice.yaml   | 1 | policy_twice.yaml:2:1: this key is given twice
policy without default      | train tiny.yaml out=x precision=policy_default.yaml | 1 | the policy has no default
policy rule for no layer    | train tiny.yaml out=x precision=policy_nowhere.yaml | 1 | matches nothing in this model
no GPU backend              | train tiny.yaml out=x device=cuda                   | 1 | device 'cuda': the CUDA backend is not here:
no such device              | train tiny.yaml out=x device=tpu                    | 2 | device: expected one of auto, cpu, cuda, found 'tpu'
data without a path         | train tiny.yaml out=x data.kind=idx                 | 1 | say where it is with data.path
data missing                | train tiny.yaml out=x data.kind=csv data.path=none.csv | 1 | none.csv: No such file
data of no kind             | train tiny.yaml out=x data.kind=auto data.path=foo:bar | 1 | no kind 'foo'
data is a device            | train tiny.yaml out=x data.kind=csv data.path=/dev/zero | 1 | is not a regular file
ratings cut off              | train mf.yaml out=x data.path=starscut.dat            | 1 | starscut.dat: line 5 has 2 fields: expected user, item, rating and perhaps time
ratings with NaN             | train mf.yaml out=x data.path=starsnan.dat            | 1 | starsnan.dat: line 2: rating 'nan': expected a finite number
ratings with a field more    | train mf.yaml out=x data.path=starsmore.dat           | 1 | starsmore.dat: line 1 has 5 fields
no ratings                   | train mf.yaml out=x data.path=starsnone.dat           | 1 | starsnone.dat: holds no ratings
ratings without a time       | train mf.yaml out=x data.path=starstime.dat data.split_by=time | 1 | starstime.dat: rating 2 has no time: data.split_by=time needs one
ratings for a classifier     | train mf.yaml out=x model=mlp                         | 1 | model mlp needs images or rows of numbers, the data has ratings
texts cut off                | train texts.yaml out=x data.path=saidcut.tsv          | 1 | saidcut.tsv: line 7 has 1 field, those before 2
texts without a label        | train texts.yaml out=x data.path=saidnan.tsv          | 1 | saidnan.tsv: line 3, column 2: 'NaN': the label is missing
a label without a text       | train texts.yaml out=x data.path=saidempty.tsv        | 1 | saidempty.tsv: line 4, column 1: no text
no texts                     | train texts.yaml out=x data.path=saidnone.tsv         | 1 | saidnone.tsv: only a header line, no texts
texts with a quote too few   | train texts.yaml out=x data.path=saidquote.csv        | 1 | saidquote.csv: line 3, column 1: the quote that opens the field is never closed
no such column of texts      | train texts.yaml out=x data.text=words                | 1 | said.tsv: no column 'words' for the text (data.text)
no such column of labels     | train texts.yaml out=x data.labels=9                  | 1 | said.tsv: no column '9' for the label (data.labels)
texts for a language model   | train texts.yaml out=x model=gpt                      | 1 | model gpt needs tokens, the data has labelled texts
plain text for classes       | train texts.yaml out=x data.kind=text data.path=words.txt | 1 | model bert_classify needs labelled texts
another pooling              | train texts.yaml out=x net.pool=max                   | 2 | net.pool: expected one of auto, first, mean, found 'max'
a column for plain text      | train gpt.yaml out=x data.text=1                      | 1 | 'text' means nothing to text
pictures for ratings         | train mf.yaml out=x data.kind=digits data.path=       | 1 | model mf needs ratings of items by users, the data has
pairs of unequal length      | train phrases.yaml out=x data.path=phrasesshort           | 1 | phrasesshort/train.en has 3 lines, phrasesshort/train.de 1: line by line they must say the same
pairs in one language        | train phrases.yaml out=x data.path=phrasesone             | 1 | its train part has a file for .en but none for .de
pairs that are no text       | train phrases.yaml out=x data.path=phraseszero            | 1 | phraseszero/train.en: offset 1: a zero byte: it is no text
pairs without a language     | train phrases.yaml out=x data.source=                   | 1 | from which language to which? Set data.source and data.target
pairs of a third language    | train phrases.yaml out=x data.target=fr                 | 1 | its train part has a file for .en but none for .fr
pairs without a tab          | train phrases.yaml out=x data.path=phrases.tsv data.source= data.target= | 1 | phrases.tsv: line 2 has no field 2: expected both languages with a tab between
pairs of no column           | train phrases.yaml out=x data.path=phrases.tsv            | 1 | data.source=en: of a file with both languages it is a column, 1 to 64
pairs that are too long      | train phrases.yaml out=x data.seq=1                     | 1 | no pair of sentences is left of 3: all are empty or over 1 tokens
pairs by bytes               | train phrases.yaml out=x data.vocab= data.tokenizer=bytes | 1 | parallel text needs a vocabulary of byte pairs
pairs of a tiny vocabulary   | train phrases.yaml out=x data.vocab= data.vocab_size=99 | 1 | data: vocab_size 99, expected 257
pairs for a classifier       | train phrases.yaml out=x model=mlp net.layers=0 net.width=0 net.heads=0 | 1 | model mlp needs images or rows of numbers, the data has sentences and their translations
pictures for a translator    | train phrases.yaml out=x data.kind=digits data.path= data.source= data.target= data.vocab= | 1 | model seq2seq needs sentences and their translations, the data has
languages of pictures        | train tiny.yaml out=x data.source=en                  | 1 | 'source' means nothing to digits
length of no translation      | eval run --length-penalty 2                           | 1 | --length-penalty: run is no translator
learn without a folder       | tokenize phrases/train.en --train                       | 2 | --train: name the folder of the new vocabulary by --out DIR
learn and decode             | tokenize phrases/train.en --train --out w --decode      | 2 | --train learns a vocabulary
learn too few tokens         | tokenize phrases/train.en --train --out w --size 256    | 2 | 256
learn from no text           | tokenize phraseszero/train.en --train --out w           | 1 | phraseszero/train.en: offset 1: a zero byte: it is no text
a size of nothing learned    | tokenize phrases/train.en --size 300                    | 2 | --size 300: only with --train
two files of tokens          | tokenize phrases/train.en phrases/train.de                | 2 | phrases/train.de: one FILE at a time
WAV that is cut off          | train speech.yaml out=x data.path=wavcut              | 1 | wavcut/yes_3.wav: is cut off: 2000 bytes of samples are promised, 1000 are there
WAV of another coding       | train speech.yaml out=x data.path=wavlaw            | 1 | wavlaw/no_2.wav: samples are mu-law of 8 bits
WAV with NaN                | train speech.yaml out=x data.path=wavnan            | 1 | wavnan/yes_1.wav: sample 0 is nan, which is no sound
WAV of another rate         | train speech.yaml out=x data.path=wavrate           | 1 | wavrate/yes_4.wav: 16000 samples a second, but others have 8000; set data.rate
sound that is not read      | train speech.yaml out=x data.path=wavflac           | 1 | wavflac/no_1.flac: cannot be read: convert it to WAV
text without a tab          | train spoken.yaml out=x data.labels=lines.tsv       | 1 | lines.tsv:2: expected the name of a recording, a tab, and what is said
text that is no UTF-8       | train spoken.yaml out=x data.labels=lines8.tsv      | 1 | lines8.tsv:2: is no text in UTF-8
recording without a text    | train spoken.yaml out=x data.labels=linesfew.tsv    | 1 | wav/yes_2.wav: has no line in linesfew.tsv, nor has its class 'yes'
two texts for one           | train spoken.yaml out=x data.labels=linestwice.tsv  | 1 | linestwice.tsv:3: 'no' has a text already, in line 1
LibriSpeech text cut off    | train spoken.yaml out=x data.labels=cut.trans.txt   | 1 | cut.trans.txt:2: expected the name of a recording, a space
no such texts               | train spoken.yaml out=x data.labels=none.tsv        | 1 | none.tsv: No such file
texts for words drawn       | train spoken.yaml out=x data.path= data.labels=lines.tsv | 1 | need recordings
recording past a sample     | train spoken.yaml out=x data.seconds=0.05           | 1 | no_1.wav: lasts 0.12 seconds, but samples are 0.05 long
texts for pictures' models  | train spoken.yaml out=x model=mlp net.channels=[]   | 1 | model mlp needs images or rows of numbers, the data has recordings and what is said in them
texts of pictures           | train tiny.yaml out=x data.task=text                | 1 | targets are classes and cannot be read as text
fewer frames than letters   | train spoken.yaml out=x net.channels=4,4,4          | 1 | 1 of 13 frames are left, but the longest text has 3 letters
hidden layers and channels  | train spoken.yaml out=x net.hidden=4                | 1 | has either hidden layers or channels
smoothing of letters        | train spoken.yaml out=x train.label_smoothing=0.1   | 1 | train.label_smoothing is for classes, but the targets of wav are texts
classes of letters          | train spoken.yaml out=x data.classes=5              | 1 | 'classes' means nothing where targets are texts
beam of no texts            | eval run --beams 4                                   | 1 | --beams: run gives no texts of recordings
beam out of range           | predict run wav/no_1.wav --beams 1001                 | 2 | --beams
WAV of no class             | train speech.yaml out=x data.path=wavname           | 1 | wavname/yes.wav: of which class?
folder without WAV          | train speech.yaml out=x data.path=folder            | 1 | folder: holds no WAV files
no such recordings          | train speech.yaml out=x data.path=nowhere           | 1 | audio:nowhere: no such folder
test part of no file        | train speech.yaml out=x data.test_files=x*          | 1 | no recording is called as test_files says: 'x*'; the first is no_1.wav
part of words drawn         | train speech.yaml out=x data.path= data.val_files=x* | 1 | val_files and test_files need recordings
too many mel bands          | train speech.yaml out=x data.mels=300               | 1 | holds no line of the spectrum
mask of everything          | train speech.yaml out=x data.mel_mask=40            | 1 | mel_mask 40 hides all
rate out of range           | train speech.yaml out=x data.rate=900000            | 2 | data.rate: 900000 is out of range
frames for pictures         | train tiny.yaml out=x data.mels=40                  | 1 | 'mels' means nothing to digits
pictures for words          | train tiny.yaml out=x model=speech net.hidden=[]    | 1 | needs frames of features
words too short to pool     | train speech.yaml out=x net.channels=4,4,4,4,4,4    | 1 | to nothing
clip without pictures       | train clips.yaml out=x data.path=clipempty          | 1 | clipempty/left/2: a clip without pictures
clip of too few pictures    | train clips.yaml out=x data.path=clipfew            | 1 | clipfew/left/2: a clip of 3 pictures, but a sample has 4 frames
clip of two sizes           | train clips.yaml out=x data.path=clipsize           | 1 | clipsize/left/2/3.pgm: 17 x 16 pixels, but the clip's first frame has 16 x 16
picture beside clips        | train clips.yaml out=x data.path=cliploose          | 1 | cliploose/right/1.pgm: a picture beside clips
no such clips               | train clips.yaml out=x data.path=nowhere            | 1 | video:nowhere: no such folder
clips of no frame           | train clips.yaml out=x data.frames=-1               | 2 | data.frames: -1 is out of range
clips for pictures          | train tiny.yaml out=x data.frames=4                 | 1 | 'frames' means nothing to digits
pictures for clips          | train tiny.yaml out=x model=c3d net.channels=[2]    | 1 | model c3d needs clips
stages past a clip's end    | train clips.yaml out=x net.channels=[2,2,2,2]       | 1 | 4 stages halve clips of 4 frames of 16 x 16 to nothing; at most 3 channels fit
clip that does not move     | train clips.yaml out=x data.kind=moving data.path=16x16 data.crop=0 data.frames=1 | 1 | does not move
predict of a recording      | predict run wav/no_1.wav                            | 1 | is a recording, but the model was trained on samples
predict of a cut recording  | predict run wavcut/yes_3.wav                        | 1 | is a recording, but the model was trained on samples
folder without data         | train tiny.yaml out=x data.kind=idx data.path=folder | 1 | holds no train-images-idx3-ubyte
IDX cut off                 | train tiny.yaml out=x data.kind=idx data.path=cut   | 1 | the file is cut off
IDX with another magic      | train tiny.yaml out=x data.kind=idx data.path=magic | 1 | offset 0: magic 01 00 08 03 is not IDX
IDX of no bytes             | train tiny.yaml out=x data.kind=idx data.path=hollow | 1 | the file is empty
IDX with a label too few    | train tiny.yaml out=x data.kind=idx data.path=fewer | 1 | 99 labels, but
IDX label out of range      | train tiny.yaml out=x data.kind=idx data.path=labels net.classes=10 | 1 | classes 10, but the data has 251
gzip cut off                | train tiny.yaml out=x data.kind=idx data.path=gz    | 1 | gzip data damaged or cut off
CSV with NaN                | train tiny.yaml out=x data.kind=csv data.path=nan.csv | 1 | nan.csv: line 32, column 1: 'nan' is not finite
CSV beyond FP32             | train tiny.yaml out=x data.kind=csv data.path=huge.csv | 1 | huge.csv: line 32, column 1: '1e39' is not finite
CSV with a word             | train tiny.yaml out=x data.kind=csv data.path=word.csv | 1 | word.csv: line 32, column 3: 'three' is not a number
CSV with a bad first row     | train tiny.yaml out=x data.kind=csv data.path=first.csv | 1 | first.csv: line 1, column 2: 'oops' is not a number
CSV with a short row        | train tiny.yaml out=x data.kind=csv data.path=narrow.csv | 1 | narrow.csv: line 32: 4 columns, expected 5
CSV of noise                | train tiny.yaml out=x data.kind=csv data.path=noise.csv | 1 | noise.csv: line
CSV without that column     | train tiny.yaml out=x data.kind=csv data.path=good.csv data.labels=none | 1 | no column 'none'
NPY cut off                 | train tiny.yaml out=x data.kind=npy data.path=cut.npy data.labels=labels.npy | 1 | cut.npy: shape [64, 4] of fp32 needs 1024 bytes
NPY with NaN                | train tiny.yaml out=x data.kind=npy data.path=nan.npy data.labels=labels.npy | 1 | nan is not finite
NPY without labels          | train tiny.yaml out=x data.kind=npy data.path=good.npy | 1 | must name the .npy file of its labels
no such NPY                 | train tiny.yaml out=x data.kind=npy data.path=words.txt data.labels=labels.npy | 1 | not a .npy file
run directory exists        | train tiny.yaml out=run                             | 1 | run directory run exists already
run directory is a file     | train tiny.yaml out=tiny.yaml                       | 1 | run directory tiny.yaml exists already
run directory in a file     | train tiny.yaml out=tiny.yaml/x                     | 1 | cannot make run directory tiny.yaml/x
run directory not allowed   | train tiny.yaml out=/proc/x                         | 1 | cannot make run directory /proc/x
run directory here          | train tiny.yaml out=.                               | 1 | run directory . exists already
model above the memory      | train tiny.yaml out=x net.hidden=1048576,1048576    | 1 | training needs 16
batch above the memory      | bench mlp --precision fp32 --batch 16777216         | 1 | training needs 24
batch that would fit        | bench mlp --precision fp32 --batch 16777216         | 1 | GiB free: a batch of about
a class that is none        | train tiny.yaml out=x data.kind=csv data.path=fraction.csv data.task=classes | 1 | fraction.csv: line 32: class 1.5 is not a whole number
digits as values            | train tiny.yaml out=x data.task=values              | 1 | targets are classes and cannot be read as values
text as classes             | train gpt.yaml out=x data.task=classes              | 1 | targets are tokens and cannot be read as classes
no such task                | train tiny.yaml out=x data.task=words               | 2 | data.task
validation of no lines      | train tiny.yaml out=x data.kind=csv data.path=unseen train.batch=8 | 1 | unseen/val.csv: only a header line, no data
patience without validation | train tiny.yaml out=x data.kind=csv data.path=good.csv data.val_fraction=0 train.batch=8 train.early_stop=2 | 1 | set data.val_fraction
model that would not        | train tiny.yaml out=x net.hidden=1048576,1048576    | 1 | GiB free: use a smaller model
positions above the model   | bench gpt --precision fp32 --batch 1 --seq 2000     | 1 | the model has only 1024 positions
benchmark unknown           | bench mpl --precision fp32                          | 2 | did you mean mlp?
benchmark without precision | bench mlp                                           | 2 | missing option --precision
benchmark of no GPU         | bench mlp --precision fp32 --device cuda            | 1 | device 'cuda': the CUDA backend is not here:
benchmark of no device      | bench mlp --precision fp32 --device gpu             | 2 | --device: expected one of auto, cpu, cuda
plan for no GPU             | plan tiny.yaml --device cuda                        | 1 | device 'cuda': the CUDA backend is not here:
plan for no device          | plan tiny.yaml --device cdua                        | 2 | did you mean cuda?
eval on no GPU              | eval run --device cuda                              | 1 | device 'cuda': the CUDA backend is not here:
eval on no device           | eval run --device 0                                 | 2 | --device: expected one of auto, cpu, cuda
plan of nothing             | plan none.yaml                                      | 1 | none.yaml: cannot be opened
eval of nothing             | eval none                                           | 1 | none: no such folder: expected a run directory
eval of a file              | eval tiny.yaml                                      | 1 | tiny.yaml: no such folder
eval of another folder      | eval folder                                         | 1 | folder: holds no config.yaml
eval with bad configuration | eval badconfig                                      | 1 | badconfig/config.yaml:1:
eval without weights        | eval noweights                                      | 1 | noweights: has no final weights
eval of cut weights         | eval cutweights                                     | 1 | are not within the
eval of five bytes          | eval shortweights                                   | 1 | too short
eval of noise               | eval noise                                          | 1 | not a safetensors file
eval of another shape       | eval othersize                                      | 1 | tensor 'fc.0.weight' is fp32 [16, 784], the model needs a float tensor (17, 784)
eval without a tensor       | eval notensor                                       | 1 | tensor 'fc.2.weight' is missing
eval with a folder          | eval folderweights                                  | 1 | is not a regular file
eval of no such part        | eval run --split tset                               | 2 | did you mean test?
convert to an existing file | convert good.npy labels.npy --dtype fp16            | 1 | labels.npy: exists already: choose another name, or give --overwrite
convert of nothing          | convert none.npy x.npy --dtype fp16                 | 1 | none.npy: cannot be opened
convert of a cut file       | convert cut.npy x.npy --dtype fp16                  | 1 | but the file has 400 there
convert into no folder      | convert good.npy none/x.npy --dtype fp16            | 1 | none/x.npy: cannot be created
convert to no format        | convert good.npy x.npy --dtype fp17                 | 2 | did you mean fp16?
convert to bf16 in NPY      | convert good.npy x.npy --dtype bf16                 | 1 | .npy has no format for bf16
sequence of a perceptron    | bench mlp -p fp32 -t 5                              | 2 | --seq 5: mlp has no sequence
seed of what is not drawn   | convert good.npy x.npy -d fp16 --seed 5             | 2 | --seed 5: rounding to nearest draws nothing
vocabulary of bytes         | tokenize words.txt -v folder -t bytes               | 2 | --vocab folder: bytes are tokens without a vocabulary
verify past the last seed   | verify tiny.yaml precision=bf16 --seeds 2 seed=9223372036854775807 | 2 | seed: 9223372036854775807 leaves no room for the 2 seeds
verify with no weights      | verify tiny.yaml precision=bf16 init=none --steps 2   | 1 | none: cannot be opened
search without a tolerance  | search tiny.yaml --lose much --write p.yaml           | 2 | --lose 'much': a share of the loss
search with 0 tolerance     | search tiny.yaml --lose 0% --write p.yaml             | 2 | --lose '0%'
search with all tolerance   | search tiny.yaml --lose 101% --write p.yaml           | 2 | --lose '101%'
search without an end       | search tiny.yaml --budget 10d --write p.yaml          | 2 | --budget '10d': a time above 0
search for something        | search tiny.yaml --for speed --write p.yaml           | 2 | time, memory
search to nowhere           | search tiny.yaml                                      | 2 | --write
search to an empty name     | search tiny.yaml --write=                             | 2 | --write needs the name of a file
search into the config      | search tiny.yaml --write tiny.yaml                    | 2 | is the configuration itself
search over a data file     | search tiny.yaml --write good.csv                     | 1 | good.csv: exists already and no search made it
search into no folder       | search tiny.yaml --write none/p.yaml                  | 1 | none/p.yaml
search over a folder        | search tiny.yaml --write good                         | 1 | good: is a directory
search in no format         | search tiny.yaml --formats fp17 --write p.yaml        | 1 | formats: 'fp17' is none
search of one trial         | search tiny.yaml --trials 1 --write p.yaml            | 2 | --trials
search of no file           | search none.yaml --write p.yaml                       | 1 | none.yaml: cannot be opened
search with no weights      | search tiny.yaml init=none --write p.yaml             | 1 | none: cannot be opened
adopt with nothing          | adopt                                                 | 2 | CONFIG
adopt with no file          | adopt none.yaml                                       | 1 | none.yaml: cannot be opened
adopt to a place            | adopt tiny.yaml --to heaven                           | 2 | baseline, formats, mixed, tuned, validated
adopt backwards             | adopt tiny.yaml --from tuned --to mixed               | 2 | the second stage comes before the first
adopt from the middle       | adopt tiny.yaml --from tuned                          | 1 | begin with baseline
adopt without a margin      | adopt tiny.yaml --margin 0                            | 2 | --margin '0': a share above 0
adopt without an end        | adopt tiny.yaml --budget 10d                          | 2 | --budget '10d': a time above 0
adopt by one seed           | adopt tiny.yaml --seeds 1                             | 2 | --seeds
adopt under a path          | adopt tiny.yaml --name ../x                           | 2 | --name '../x': letters, digits
adopt back and forth        | adopt tiny.yaml --undo --to mixed                     | 2 | --undo trains nothing
adopt back with history     | adopt tiny.yaml --undo --history                      | 2 | one at a time
adopt back from nothing     | adopt tiny.yaml --undo                                | 1 | nothing was begun under the name tiny
adopt without history       | adopt tiny.yaml --history                             | 1 | nothing was begun under the name tiny
adopt without the data      | adopt tiny.yaml data.kind=csv data.path=none.csv      | 1 | none.csv
compare with nothing        | compare tiny.yaml                                     | 2 | B
compare with no file        | compare tiny.yaml none.yaml                           | 1 | none.yaml: cannot be opened
compare by one seed         | compare tiny.yaml tiny.yaml --seeds 1                 | 2 | --seeds
compare without a margin    | compare tiny.yaml tiny.yaml --margin 0                | 2 | --margin '0': a share above 0
compare within words        | compare tiny.yaml tiny.yaml --margin little           | 2 | --margin 'little'
compare by another metric   | compare tiny.yaml tiny.yaml --metric f1               | 2 | loss, accuracy, train_loss, best_loss
compare without an end      | compare tiny.yaml tiny.yaml --budget 10d              | 2 | --budget '10d': a time above 0
compare for a free machine  | compare tiny.yaml tiny.yaml --cost 0/h                | 2 | --cost '0/h'
compare under a path        | compare tiny.yaml tiny.yaml --name ../x               | 2 | --name '../x': letters, digits
compare under no name       | compare tiny.yaml tiny.yaml --name=                   | 2 | --name ''
compare other models        | compare tiny.yaml gpt.yaml                            | 1 | model is mlp in A and gpt in B: only runs of the same model
compare other data          | compare tiny.yaml fewer.yaml                          | 1 | data.limit is 256 in A and 128 in B
compare past the last seed  | compare tiny.yaml tiny.yaml seed=9223372036854775807  | 1 | leaves no room for seeds of pairs
compare without the data    | compare tiny.yaml tiny.yaml data.kind=csv data.path=none.csv | 1 | none.csv
compare a run with a file   | compare tiny.yaml good                                | 2 | good is a folder and tiny.yaml is not
compare what are no runs    | compare good good                                     | 1 | good: holds no config.yaml
compare runs with seeds     | compare good good --seeds 9                           | 2 | finished runs are only read
table of nothing            | table                                                 | 2 | SOURCE
table of no file            | table none                                            | 1 | none: cannot be opened
table of a named no file    | table X=none                                          | 1 | none: cannot be opened
table of a configuration    | table tiny.yaml                                       | 1 | tiny.yaml: is no result of mixt verify --out FILE
table of what is no run     | table good                                            | 1 | good: holds no config.yaml
table in no format          | table good --format html                              | 2 | text, markdown, csv, latex
table in two ways           | table good --json --format csv                        | 2 | --json prints on its own
table into no folder        | table carried --out none/t.tex                        | 1 | none/t.tex
table over a file           | table carried --out tiny.yaml                         | 1 | tiny.yaml
table over nothing          | table good --overwrite                                | 2 | --overwrite is for --out
verify to no target         | verify tiny.yaml precision=bf16 --target soon         | 2 | --target 'soon': expected a loss, as in 0.35, or an accuracy
verify past all accuracy    | verify tiny.yaml precision=bf16 --target 101%         | 2 | --target '101%'
verify to a loss of 0       | verify tiny.yaml precision=bf16 --target 0            | 2 | --target '0'
verify for a free machine   | verify tiny.yaml precision=bf16 --cost 0/h            | 2 | --cost '0/h'
verify into the config      | verify tiny.yaml precision=bf16 --out tiny.yaml       | 1 | is the configuration itself: choose another file for --out
verify into one file twice  | verify tiny.yaml precision=bf16 --out v --plot v      | 1 | is named by --plot and by --out
sensitivity of no file      | sensitivity none.yaml                               | 1 | none.yaml: cannot be opened
sensitivity in no format    | sensitivity tiny.yaml --formats fp17                | 1 | cannot be trained in 'fp17'
sensitivity in FP8          | sensitivity tiny.yaml --formats bf16,fp8_e4m3       | 1 | cannot be trained in 'fp8_e4m3': policies name fp16, bf16 and tf32
sensitivity without trials  | sensitivity tiny.yaml --trials 0                    | 2 | --trials
sensitivity into no folder  | sensitivity tiny.yaml --out none/x.svg              | 1 | none/x.svg
advise: no such machine     | advise tiny.yaml --machine a1000                      | 1 | no machine 'a1000' (did you mean a100?)
advise: no such profile     | advise tiny.yaml --machine none.yaml                  | 1 | none.yaml: No such file
advise: not a profile       | advise tiny.yaml --machine tiny.yaml                  | 1 | tiny.yaml:1:1: unknown key of a profile
advise: memory in words     | advise tiny.yaml --machine t4 --memory much           | 2 | --memory 'much': expected bytes
advise: memory of another   | advise tiny.yaml --machine t4 --memory 12X            | 2 | --memory '12X': expected bytes
advise: negative memory     | advise tiny.yaml --machine t4 --memory -1G            | 2 | --memory '-1G': expected bytes
advise: loses too much      | advise tiny.yaml --machine t4 --lose 101%             | 2 | --lose '101%': expected a share
advise: price of a day      | advise tiny.yaml --machine t4 --cost 3/d              | 2 | --cost '3/d': expected the price of an hour
advise: no configuration    | advise --machine t4                                   | 2 | CONFIG
advise: an hour's trial      | advise tiny.yaml --trial 3600                         | 2 | --trial
advise: into a folder       | advise tiny.yaml --machine t4 --write .               | 1 | .: is a folder
demo with no weights        | demo init=none                                      | 1 | none: cannot be opened
plan with no weights        | plan tiny.yaml init=none                            | 1 | none: cannot be opened
plan with weights not its   | plan tiny.yaml init=run net.hidden=17               | 1 | run/model.safetensors: tensor 'fc.0.weight' is fp32 [16, 784]
plan told of a new head      | plan tiny.yaml init=run net.hidden=17               | 1 | init_new_head=fc.0 draws that layer anew
captions without a tab       | train pair.yaml out=x data.kind=pairs data.path=untabbed | 1 | untabbed/captions.tsv:1: expected a picture's file, a tab and its caption
captions of no picture       | train pair.yaml out=x data.kind=pairs data.path=undrawn | 1 | undrawn/captions.tsv:1: undrawn/a.ppm: no such file
pictures without captions    | train pair.yaml out=x                              | 1 | model pair needs pictures with captions, the data has (28, 28, 1) images
plan with no teacher         | plan tiny.yaml distill.teacher=none                  | 1 | distill.teacher: none: no such folder
train with a file as teacher | train tiny.yaml out=x distill.teacher=tiny.yaml      | 1 | distill.teacher: tiny.yaml: no such folder
teacher of all the loss      | train tiny.yaml out=x distill.weight=2               | 2 | distill.weight: 2 is out of range
plan with a new head        | plan tiny.yaml init=run init_new_head=zz            | 1 | init_new_head: 'zz' matches no parameter
comma for a point           | train tiny.yaml out=x train.lr=0,5                  | 2 | train.lr: expected a number at least 0, found '0,5'
CSV with an open quote      | train tiny.yaml out=x data.kind=csv data.path=quote.csv | 1 | quote.csv: line 32, column 4:
NPY of complex numbers      | train tiny.yaml out=x data.kind=npy data.path=complex.npy data.labels=labels.npy | 1 | complex.npy: type '<c8' is not one that mixt reads
NPY with a label too few    | train tiny.yaml out=x data.kind=npy data.path=good.npy data.labels=fewer.npy | 1 | fewer.npy: 60 labels, but good.npy holds 64 samples
gzip bomb as IDX            | train tiny.yaml out=x data.kind=idx data.path=bomb  | 1 | bomb/train-images-idx3-ubyte.gz: at least 6417 bytes, but its header
gzip bomb as CSV            | train tiny.yaml out=x data.kind=csv data.path=bomb.csv.gz | 1 | bomb.csv.gz: unpacks to more than 200 times its size
gzip bomb as CIFAR          | train tiny.yaml out=x data.kind=cifar data.path=cifarbomb | 1 | cifarbomb/data_batch_1.bin.gz: unpacks to more than 200 times its size
IDX that promises too much  | predict run many-images-idx3-ubyte                  | 1 | asks for 128000000016: the file is cut off
no part left to train on    | train tiny.yaml out=x data.kind=csv data.path=good.csv data.val_fraction=0.999 train.batch=8 | 1 | leave none to train on
share of more than all      | train tiny.yaml out=x data.val_fraction=1.5         | 2 | data.val_fraction: 1.5 is out of range
eval without the data       | eval carried                                        | 1 | the 'val' part of carried's data cannot be opened
predict without the data    | predict carried train:0                             | 1 | away.csv: No such file
eval of another set         | eval run data.kind=csv data.path=good.csv           | 1 | good.csv: 4 channels, but the set it should be like (digits) has 1
eval of a set not there     | eval carried data.path=none.csv                     | 1 | none.csv: No such file
eval with other training    | eval run train.lr=1                                 | 1 | only keys of the data (data.…) can be given
eval of damaged facts       | predict facts good.npy                              | 1 | facts/inputs.json:2:0:
export of damaged facts     | export facts                                        | 1 | facts/inputs.json:2:0:
export onto the run         | export run --out run                                | 1 | run: is the run itself, whose weights would be replaced
predict of another shape    | predict run good.npy                                | 1 | good.npy: samples of shape [4], but the model was trained on [28, 28, 1]
predict of short integers   | predict run shorts.npy                              | 1 | shorts.npy: integers of another size than the bytes
predict of a text           | predict run words.txt                               | 1 | words.txt: offset 0: no picture: expected PPM, PGM (P6, P5), PNG or JPEG
predict of nothing          | predict run none.png                                | 1 | none.png: No such file
predict of a folder         | predict run folder                                  | 1 | folder: is a directory, expected a picture, a WAV file, a .npy or .npz array or IDX images
predict past the end        | predict run test:999999                             | 1 | test:999999: sample 999999, but there are 256
predict of an archive       | predict run archive.npz                             | 1 | archive.npz: has no list of members at its end
predict with a writer       | predict writer words.txt                            | 1 | writer: is a language model: 'mixt generate writer' lets it write
interlaced PNG              | predict run laced.png                               | 1 | laced.png: PNG: is interlaced; save it without interlacing
PNG of too many pixels      | predict run vast.png                                | 1 | vast.png: PNG: 60000 x 60000 pixels: none, or too many
PNG cut off                 | predict run cut.png                                 | 1 | cut.png: offset 8: PNG: the file is cut off
ids that are no numbers     | generate writer --prompt-ids 3,x                     | 1 | --prompt-ids '3,x': expected token ids
an id past the vocabulary   | generate writer --prompt-ids 999999                  | 1 | token 0 of the prompt is 999999: the model knows 0 to
text of a perceptron        | generate run                                        | 1 | run: its model is mlp: only language models (gpt, llama, lstm, gru, rnn) generate text
resume with another rate    | train --resume run train.lr=0.5                     | 1 | train.lr: 0.001 -> 0.5
resume told what to allow   | train --resume run train.lr=0.5                     | 1 | --allow train.lr would let what it names change
resume allowing another key | train --resume run train.lr=0.5 --allow train.clip  | 1 | train.lr: 0.001 -> 0.5
resume allowing no key      | train --resume run train.lr=0.5 --allow train.lrr   | 1 | 'train.lrr' cannot be allowed to change at a resume
resume with another batch   | train --resume run train.batch=16 --allow train.batch | 1 | 'train.batch' cannot be allowed to change at a resume
allowance of a new run      | train tiny.yaml out=x --allow train.lr              | 2 | --allow is for --resume
plot of nothing             | plot none --out x.svg                               | 1 | cannot read none: No such file
plot of no metric           | plot run --metric lss --out x.svg                   | 1 | run has no metric lss: there are step, epoch, loss
plot of another kind        | plot run --out x.gif                                | 2 | --out x.gif: a chart ends in .svg or .png
plot onto what is there     | plot run --out words.txt                            | 2 | --out words.txt: a chart ends in .svg or .png
plot of another file        | plot good.csv --out x.svg                           | 1 | good.csv has no whole row yet; line 1:
plot without a file         | plot run                                            | 2 | missing option --out FILE
demo of no model            | demo model=xxx                                      | 1 | no model 'xxx'
demo in a precision         | demo precision=fp16                                 | 1 | precision: the demo trains in FP32 and in the format of its option --precision
demo into a directory       | demo out=x                                          | 1 | out: the demo keeps its two runs in a directory of its own
CASES
)

trim() { local s=${1#"${1%%[! ]*}"}; echo "${s%"${s##*[! ]}"}"; }
state() { { find . -type f -exec cksum {} +; find . -type d; } | sort; }

# check NAME STATUS WORDS, after a command whose status is in $found and whose messages are in ../err
check() {
    cases=$((cases + 1))
    [ "$found" = "$2" ] || { fail "$1: status $found, expected $2"; head -3 ../err; }
    grep -qF -- "$3" ../err || { fail "$1: no '$3' in:"; head -3 ../err; }
    [ "$(wc -l <../err)" -le 3 ] || fail "$1: more than three lines of messages"
}

before=$(state)
while IFS='|' read -r name command status words; do
    name=$(trim "$name")
    read -ra arguments <<<"$command"
    "$mixt" "${arguments[@]}" >../out 2>../err
    found=$?
    check "$name" "$(trim "$status")" "$(trim "$words")"
    [ -s ../out ] && fail "$name: wrote to standard output"
    after=$(state)
    [ "$before" = "$after" ] || { fail "$name: changed files:"; diff <(echo "$before") <(echo "$after") | head -5; before=$after; }
done <<<"$table"

# ---- what is done all the same, with a warning: name | command | words on standard error ----

while IFS='|' read -r name command words; do
    read -ra arguments <<<"$command"
    "$mixt" "${arguments[@]}" -q >../out 2>../err
    found=$?
    check "$(trim "$name")" 0 "$(trim "$words")"
    rm -rf x
done <<'CASES'
warm-up above the run       | train tiny.yaml out=x train.warmup=9                | warning: train.warmup=9 is longer than the run (8 updates)
steps that epochs cut off   | train tiny.yaml out=x train.steps=400               | warning: train.epochs=1 ends the run after update 8, before train.steps=400
and at a resume             | train --resume run train.steps=400                  | warning: train.epochs=1 ends the run after update 8, before train.steps=400
a single odd label          | train tiny.yaml out=x data.kind=csv data.path=fraction.csv train.batch=8 | warning: fraction.csv: line 32: target 1.5 is no class, all others are (0 to 2)
channels first              | train tiny.yaml out=x data.kind=npy data.path=first.npy data.labels=labels.npy data.limit=0 | warning: first.npy: samples of 3 x 16 x 16 are read as height 3, width 16 and 16 channels
CASES
cp good.csv away.csv && sed -i 's/1.5/2.5/' away.csv
"$mixt" eval carried >../out 2>../err
found=$?; check "eval of other samples" 0 'away.csv: is not the data that carried was trained on'
rm away.csv
"$mixt" predict carried good.npy:0 >../out 2>../err
found=$?; [ $found = 0 ] && [ ! -s ../err ] || fail "a run without its data: status $found, $(cat ../err)"
"$mixt" train tiny.yaml out=x data.kind=csv data.path=beyond.csv data.task=values train.batch=8 -q >../out 2>../err
found=$?; check "targets that overflow" 1 'warning: targets reach 1e+30: the first loss will be about'
rm -rf x
"$mixt" train tiny.yaml out=x train.lr=1e30 -q >../out 2>../err
found=$?; check "a run that diverges" 1 'training has diverged; lower train.lr'
grep -q 'loss scale' ../err && fail "a loss scale where the loss is not scaled: $(cat ../err)"
rm -rf x
(ulimit -v 300000; "$mixt" train tiny.yaml out=x train.eval_batch=1000000 -q >../out 2>../err)
found=$?; check "validation above the memory" 0 'there is no memory for train.eval_batch=1000000'
[ -s x/model.safetensors ] || fail "validation above the memory: no weights"
rm -rf x
for variable in MIXT_REPLAY=7 MIXT_FUSION=2; do
    env $variable "$mixt" plan tiny.yaml >../out 2>../err
    found=$?; check "$variable" 1 "${variable%=*}: '${variable#*=}' is neither 0 nor 1"
done
MIXT_CACHE=/proc/none "$mixt" train gpt.yaml out=x data.vocab=pairs train.steps=1 -q >../out 2>../err
found=$?; check "a cache that cannot be written" 0 'warning: words.txt: no cache folder can be written'
rm -rf x
LC_ALL=de_DE.UTF-8 "$mixt" train tiny.yaml out=x train.lr=0.5 train.steps=1 -q >../out 2>../err
found=$?; [ $found = 0 ] && grep -q 'lr: 0.5' x/config.yaml || fail "a point under another locale: status $found, $(cat ../err)"
rm -rf x

# ---- what a line of a table cannot say ----

"$mixt" train tiny.yaml out=x "data.path=$(printf 'a\nb')" >../out 2>../err
found=$?; check "control character in a setting" 2 'control character U+000A'
"$mixt" train tiny.yaml "out=$(printf 'a\377b')" >../out 2>../err
found=$?; check "setting that is not UTF-8" 2 'text is not UTF-8'
"$mixt" train tiny.yaml "out=$(printf 'a%.0s' {1..2000})" >../out 2>../err
found=$?; check "name of 2000 letters" 1 'longer than 1023 bytes'
"$mixt" plan tiny.yaml data.kind=csv data.path=noise.csv 2>../err
grep -q '[[:cntrl:]]' <(tr -d '\n' <../err) && fail "control characters of a file reach the terminal"

# Files that may not grow: nothing is left half written, and a run that never began leaves no directory.
(ulimit -f 2; "$mixt" train tiny.yaml out=x -q >../out 2>../err)
found=$?; check "no room for the configuration" 1 'x/config.yaml: configuration cannot be written: File too large'
[ -e x ] && fail "a run without configuration left its directory"
(ulimit -f 20; "$mixt" train tiny.yaml out=x -q >../out 2>../err)
found=$?; check "no room for the weights" 1 'x/model.safetensors: cannot be written'
[ "$(ls x)" = $'checkpoints\nconfig.yaml\nevents.jsonl\ninputs.json\nmetrics.jsonl' ] && [ -z "$(ls -A x/checkpoints)" ] || fail "a run without room for its weights left: $(ls x)"
rm -rf x
(ulimit -f 20; "$mixt" train tiny.yaml out=x net.hidden=1 train.epochs=20 -q >../out 2>../err)
found=$?; check "no room for the metrics" 1 'no room for metrics.jsonl: its rows wait in memory from step'
rm -rf x
(ulimit -f 2; "$mixt" convert run/model.safetensors x.safetensors --dtype fp16 >../out 2>../err)
found=$?; check "no room for a converted file" 1 'x.safetensors: cannot be written'
ls | grep -q '^x' && fail "a refused conversion left $(ls | grep '^x')"
if [ -w /dev/full ]; then
    for command in 'plan tiny.yaml' 'eval run' 'help' 'train tiny.yaml out=x --json'; do
        "$mixt" $command >/dev/full 2>../err
        found=$?; check "full disk under $command" 1 'standard output cannot be written: No space left'
    done
    rm -rf x
fi

# Standard output closed: what would be printed must not land in a file of the run.
"$mixt" train tiny.yaml out=x --json >&- 2>../err
found=$?; check "standard output closed" 1 'standard output cannot be written'
grep -q -d skip '"run"' x/* && fail "what was printed went into a file of the run"
rm -rf x
"$mixt" train tiny.yaml out=x <&- >&- 2>&-
"$mixt" eval x >/dev/null 2>&1 || fail "a run without standard streams is not complete"
rm -rf x

# The reader of the progress line goes away: the run does not. (The pipe has no reader by the time mixt writes to it.)
(exec 3> >(:); sleep 0.3; exec "$mixt" train tiny.yaml out=x >../out 2>&3)
found=$?
[ $found = 0 ] && [ -s x/model.safetensors ] || fail "progress into a closed pipe: status $found, left: $(ls x)"
rm -rf x
(exec 3> >(:); sleep 0.3; exec "$mixt" train tiny.yaml out=x >&3 2>../err)
found=$?; tail -1 ../err >../last && mv ../last ../err
check "result into a closed pipe" 1 'standard output cannot be written: Broken pipe'
[ -s x/model.safetensors ] || fail "result into a closed pipe: no weights"
rm -rf x

# Two runs into one folder at once: one gets it, and it is whole.
for i in 1 2 3; do "$mixt" train tiny.yaml out=x -q >/dev/null 2>../err$i & done
wait
[ "$(cat ../err? | grep -c 'run directory x exists already')" = 2 ] || fail "three runs into one folder: $(cat ../err?)"
"$mixt" eval x >/dev/null 2>&1 || fail "three runs into one folder: it is not whole"
rm -rf x ../err?

# FIFOs that nobody writes to: refused, not waited for.
cp -r run pipes && mkfifo pipe.npy && rm pipes/model.safetensors && mkfifo pipes/model.safetensors
timeout 5 "$mixt" convert pipe.npy x.npy --dtype fp16 >../out 2>../err
found=$?; check "convert of a FIFO" 1 'pipe.npy: is not a regular file'
timeout 5 "$mixt" eval pipes >../out 2>../err
found=$?; check "weights are a FIFO" 1 'pipes/model.safetensors: is not a regular file'
timeout 5 "$mixt" train tiny.yaml init=pipes out=x >../out 2>../err
found=$?; check "weights to begin with are a FIFO" 1 'pipes/model.safetensors: is not a regular file'
timeout 5 "$mixt" train gpt.yaml data.kind=tokens data.path=pipe.npy data.vocab=folder out=x >../out 2>../err
found=$?; check "tokens are a FIFO" 1 'folder: no vocabulary here'
rm -r pipes pipe.npy

# Links that lead nowhere or to themselves.
ln -s self self && ln -s nothing dangling
"$mixt" train self 2>../err
found=$?; check "configuration is a loop of links" 1 'self: cannot be opened: Too many levels of symbolic links'
"$mixt" train tiny.yaml out=dangling 2>../err
found=$?; check "run directory is a dangling link" 1 'run directory dangling exists already'
"$mixt" train tiny.yaml data.kind=csv data.path=self out=x 2>../err
found=$?; check "data is a loop of links" 1 'self: Too many levels of symbolic links'
rm self dangling

# Weights that are no numbers: shown, and a failure.
cp -r run diverged
size=$(stat -c %s run/model.safetensors)
header=$(($(od -An -tu8 -N8 run/model.safetensors) + 8))
{ head -c $header run/model.safetensors; head -c $((size - header)) /dev/zero | tr '\0' '\377'; } >diverged/model.safetensors
"$mixt" eval diverged >../out 2>../err
found=$?; check "eval of NaN weights" 1 'diverged: the loss is not finite'
"$mixt" eval diverged --json >../out 2>../err
found=$?; check "eval of NaN weights as JSON" 1 'diverged: the loss is not finite'
grep -q '"loss":null' ../out || fail "eval of NaN weights as JSON: $(cat ../out)"
for format in fp32 fp16 bf16; do
    "$mixt" convert diverged/model.safetensors diverged/$format.safetensors --dtype $format >../out 2>&1
    "$mixt" train tiny.yaml init=diverged/$format.safetensors out=x >../out 2>../err
    found=$?; check "beginning with NaN in $format" 1 "diverged/$format.safetensors: tensor 'fc.0.weight' holds nan (element 0 of 12544)"
    [ -e x ] && fail "beginning with NaN in $format left a run directory"
done
# One infinity, in the last bias, which 'init_skip' leaves out.
cp run/model.safetensors diverged/ && printf '\0\0\200\377' | dd of=diverged/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc status=none
"$mixt" train tiny.yaml init=diverged out=x >../out 2>../err
found=$?; check "beginning with an infinity" 1 "holds -inf"
infinite=$(sed "s/.*tensor '\([^']*\)' holds.*/\1/" ../err)
"$mixt" train tiny.yaml init=diverged init_skip="$infinite" out=x -q 2>../err || { fail "an infinity in what is left out"; cat ../err; }
rm -rf x
rm -rf diverged
"$mixt" train gpt.yaml out=x train.steps=1 -q || fail "training the model that writes: $?"
if [ -w /dev/full ]; then
    timeout 60 "$mixt" generate x -n 100000000 >/dev/full 2>../err
    found=$?; tail -1 ../err >../last && mv ../last ../err
    check "text onto a full disk" 1 'standard output cannot be written: No space left'
fi
cp -r x "$(printf 'x\377')"
for command in eval generate export; do
    "$mixt" $command "$(printf 'x\377')" --json >../out 2>../err
    found=$?; check "$command of a name that is not UTF-8, as JSON" 1 'not UTF-8'
done
printf 'P5 1 1 255\nA' >"$(printf 'x\377.pgm')"
cp -r run "$(printf 'x\377run')" && rm "$(printf 'x\377run')/model.safetensors"
for command in tokenize 'tokenize words.txt --out' 'predict run' 'train --resume'; do
    case $command in tokenize) name='x\377/config.yaml' ;; *out) name='x\377out' ;; predict*) name='x\377.pgm' ;; *) name='x\377run' ;; esac
    "$mixt" $command "$(printf "$name")" --json >../out 2>../err
    found=$?; check "$command of a name that is not UTF-8, as JSON" 1 'not UTF-8'
    [ -s ../out ] && fail "$command of a name that is not UTF-8, as JSON: wrote to standard output"
done
rm -rf x*

# A finished run without checkpoints cannot go on, and must not begin anew over its weights.
cp -r run bare && rm -r bare/checkpoints
kept=$(cksum bare/*)
"$mixt" train --resume bare train.epochs=2 -q >../out 2>../err
found=$?; check "resuming a run without checkpoints" 1 'final weights but no checkpoint'
[ "$kept" = "$(cksum bare/*)" ] || fail "resuming a run without checkpoints changed it"
"$mixt" train --resume '' >../out 2>../err
found=$?; check "resuming an empty name" 2 '--resume needs the name of a run directory'

# Arguments with nothing in them.
for command in train plan eval; do
    "$mixt" $command '' >../out 2>../err
    found=$?; check "$command of an empty name" 2 'is empty: expected'
done
"$mixt" convert '' '' --dtype fp16 2>../err
found=$?; check "convert of an empty name" 2 'SRC is empty'
"$mixt" train tiny.yaml '' 2>../err
found=$?; check "empty setting" 2 "unexpected argument ''"
"$mixt" "$(printf '\033[2J\377')" 2>../err
found=$?; check "command of control characters" 2 "unknown command '?[2J"

# Too little address space: a message, no crash. The command itself needs about 60 MB of it.
for kib in 70000 90000 120000; do
    (ulimit -v $kib; "$mixt" train tiny.yaml out=x net.hidden=30000 -q >../out 2>../err)
    found=$?
    [ $found = 1 ] && ! grep -q '^mixt: ' ../err && fail "address space of $kib KiB: no message"
    [ $found -gt 1 ] && [ $found != 127 ] && fail "address space of $kib KiB: status $found"
    [ $found = 1 ] && [ -e x ] && fail "address space of $kib KiB: a run that never began left its directory"
    rm -rf x
done

# Every allocation of the library may fail.
for command in 'plan tiny.yaml' 'train tiny.yaml out=x train.steps=1 -q'; do
    n=1
    while :; do
        MIXT_FAIL_ALLOC=$n "$mixt" $command >/dev/null 2>../err
        found=$?
        grep -q 'validation in batches of' ../err && { rm -rf x; n=$((n + 1)); continue; } # which it can do without
        [ $found = 0 ] && break
        [ $found = 1 ] && grep -q '^mixt: .*memory' ../err || { fail "$command without allocation $n: status $found"; head -2 ../err; }
        # An update whose row has no memory is made all the same: that directory stays.
        [ -e x ] && [ ! -s x/metrics.jsonl ] && ! grep -q 'for a row of' ../err && fail "$command without allocation $n left its directory"
        rm -rf x
        n=$((n + (n < 40 ? 1 : 7)))
    done
    [ $n -gt 40 ] || fail "$command: only $n allocations"
    rm -rf x
done

# What root may do anyway.
if [ "$(id -u)" != 0 ]; then
    cp good.csv secret.csv && chmod 0 secret.csv
    "$mixt" train tiny.yaml out=x data.kind=csv data.path=secret.csv 2>../err
    found=$?; check "unreadable data" 1 'Permission denied'
    mkdir locked && chmod 555 locked
    "$mixt" train tiny.yaml out=locked/x 2>../err
    found=$?; check "unwritable folder" 1 'Permission denied'
    chmod 755 locked
    cp -r run closed && chmod 0 closed
    "$mixt" eval closed 2>../err
    found=$?; check "unreadable run directory" 1 'closed/config.yaml: cannot be opened: Permission denied'
    chmod 755 closed
else
    echo "skipped: permissions do not bind root"
fi

echo "$cases cases"
[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
