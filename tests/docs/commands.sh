#!/bin/bash
# What README and docs/ say, done: every `mixt` command in their code blocks is run, every YAML block is read. A page's commands
# run in order in a folder of the page's own, beside small files of the names that pages use; trainings and benchmarks are
# shortened by settings put behind them. Usage: commands.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
export MIXT_CACHE=$work/cache MIXT_CUDA_LIBRARY=$work/none.so # on no machine is there a GPU's backend

# What is not run: pattern of the command | why. A pattern that fits no command any more is an error.
skipped='
*device=cuda*   | needs a GPU
*--device cuda* | needs a GPU
'

# ---- files that pages name ----

be32() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
# noise BYTES: the same on every machine
seq 1 99999 >"$work/noise"
noise() { head -c "$1" "$work/noise"; }
# idx PREFIX COUNT: 28 x 28 images and their labels
idx() {
    { printf '\0\0\10\3'; be32 "$2"; be32 28; be32 28; noise $((784 * $2)); } >"mnist/$1-images-idx3-ubyte"
    { printf '\0\0\10\1'; be32 "$2"; for i in $(seq "$2"); do printf "\\x0$((i % 10))"; done; } >"mnist/$1-labels-idx1-ubyte"
}
# ppm FILE SIDE
ppm() { { printf 'P6 %d %d 255\n' "$2" "$2"; noise $((3 * $2 * $2)); } >"$1"; }

# wav FILE SAMPLES: 16 bits at 8000 a second
le() { local i; for i in $(seq "$2"); do printf "\\x$(printf %02x $(($1 >> (8 * (i - 1)) & 255)))"; done; }
wav() {
    { printf 'RIFF'; le $((36 + 2 * $2)) 4; printf 'WAVEfmt '; le 16 4; le 1 2; le 1 2; le 8000 4; le 16000 4; le 2 2; le 16 2
        printf data; le $((2 * $2)) 4; noise $((2 * $2)); } >"$1"
}

mkdir "$work/files" && cd "$work/files" || exit 1
mkdir -p mnist gpt2 build machines recordings pairs pictures/{train,val}/{cat,dog} clips/{train,val}/{jump,run}/{1,2,3,4,5}
ln -s "$root/configs" configs
ln -s "$mixt" build/mixt
sed 's/^name: .*/name: mine/' "$root/profiles/t4.yaml" >machines/mine.yaml
for part in train val test; do for language in en de; do
    for i in $(seq 12); do echo "Sentence $i of the $part part, in $language."; done >pairs/$part.$language; done; done
for u in 1 2 3 4 5 6 7 8; do for i in 1 2 3 4 5 6 7; do echo "$u::$((i * u % 9))::$(((u + i) % 5 + 1))::$((100 * i + u))"; done; done >ratings.dat
for i in 0 1 2 3 4 5 6 7 8; do echo "$i::Film $i ($((1990 + i)))::$([ $((i % 2)) = 0 ] && echo Drama || echo 'Comedy|Drama')"; done >movies.dat
{ printf 'sentence\tlabel\n'; for i in $(seq 100); do printf 'so good , %s\t1\nso bad , %s\t0\n' $i $i; done; } >reviews.tsv
printf 'so bad\nso good\n' >lines.txt
mkdir -p tiny-chat && cp "$root"/tests/data/tokens/{encoder.json,vocab.bpe} tiny-chat
echo '{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}' >tiny-chat/chat_template.jinja
for i in $(seq 60); do echo "{\"messages\": [{\"role\": \"user\", \"content\": \"$i and 1?\"}, {\"role\": \"assistant\", \"content\": \"$((i + 1))\"}]}"; done >chats.jsonl
echo '[{"role": "user", "content": "2 and 1?"}]' >messages.json
printf 'model: llama\nnet: {layers: 2, width: 64, heads: 2}\ndata: {path: chats.jsonl, vocab: tiny-chat, seq: 64}\ntrain: {batch: 4, lr: 0.001}\n' >chat.yaml
cp "$root"/tests/data/tokens/{encoder.json,vocab.bpe} gpt2
cp -r gpt2 gpt2-chat
echo '{"chat_template": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"}' >gpt2-chat/tokenizer_config.json
for i in $(seq 60); do echo "{\"messages\": [{\"role\": \"user\", \"content\": \"say $i\"}, {\"role\": \"assistant\", \"content\": \"$i!\"}]}"; done >chats.jsonl
for i in $(seq 40); do echo "{\"prompt\": \"say $i\", \"chosen\": \" $i\", \"rejected\": \" no $((i % 3))\"}"; done >pairs.jsonl
printf 'say 7\n' >questions.txt
for i in $(seq 400); do echo "The mill $i stood where two rivers met, and ROMEO: $((i * 7 % 31)) words were said."; done >book.txt
idx train 100
idx t10k 40
{ echo 'a,b,class'; for i in $(seq 300); do echo "0.$i,$((i % 7)),$((i % 3))"; done; } >rows.csv
sed '4s/^[^,]*//; 7s/,[^,]*,/,NA,/' rows.csv >holes.csv
mkdir -p listed/images
for i in $(seq 30); do { printf 'P5 16 16 255\n'; noise 256; } >listed/images/$i.pgm; done
{ echo 'file,level,mood'; for i in $(seq 30); do echo "$i,$i.5,$([ $((i % 2)) = 0 ] && echo calm || echo wild)"; done; } >listed/labels.csv
python3 - <<'PY' || fail "set.npz"
import zipfile
def array(shape, data):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }" % shape
    return b"\x93NUMPY\1\0\x76\0" + head.ljust(117).encode() + b"\n" + data
with zipfile.ZipFile("set.npz", "w") as z:
    z.writestr("pictures.npy", array("40, 8, 8", bytes(range(256)) * 10))
    z.writestr("kind.npy", array("40,", bytes(i % 2 for i in range(40))))
PY
python3 "$root/tests/support/onnx_file.py" rows net.onnx || fail "net.onnx"
mkdir moved && cp rows.csv moved
{ cat rows.csv; echo '0.5,3,1'; } >grown.csv
{ printf 'P5 28 28 255\n'; noise 784; } >digit.pgm
for i in $(seq 0 9); do for word in 3 7; do wav recordings/${word}_jackson_$i.wav 6000; done; done
mkdir clip && ppm clip/101.ppm 40 && for i in $(seq 2 16); do cp clip/101.ppm "clip/$((100 + i)).ppm"; done
for clip in clips/*/*/*; do cp clip/* "$clip"; done
rm -r clip
for i in 1 2 3 4; do for part in train val; do ppm pictures/$part/cat/$i.ppm 80; ppm pictures/$part/dog/$i.ppm 96; done; done
printf 'model: resnet\nnet: {depth: 18, width: 4}\ndata: {kind: digits, limit: 64}\ntrain: {batch: 8, lr: 0.01}\n' >my.yaml
printf 'model: mlp\nthreads: 1\nprecision: fp32\nnet: {hidden: [16]}\ntrain: {lr: 0.01}\n' >fp32.yaml
sed 's/fp32/bf16/' fp32.yaml >bf16.yaml
"$mixt" train my.yaml train.steps=1 out=trained -q && "$mixt" export trained --out resnet18 >/dev/null || fail "weights to begin with"
cp trained/model.safetensors weights.safetensors
rm -r trained
printf 'model: qwen3\nnet: {layers: 2, width: 32, heads: 4, kv_heads: 2, head_dim: 12}\ndata: {kind: text, path: book.txt, seq: 64}\ntrain: {batch: 4}\n' >qwen3.yaml
"$mixt" train qwen3.yaml train.steps=1 out=trained -q && "$mixt" export trained --out Qwen3-0.6B >/dev/null || fail "a folder of Hugging Face"
printf 'init: Qwen3-0.6B\ndata: {kind: text, path: book.txt, vocab: Qwen3-0.6B, seq: 64}\n' >tuned.yaml
rm -r trained qwen3.yaml
{ echo 'id,rooms,city,built,price'; for i in $(seq 300); do echo "$i,$((i % 7)),$([ $((i % 3)) = 0 ] || echo city$((i % 3))),20$((i % 20 + 10))-0$((i % 9 + 1))-11,$((50 * (i % 7) + 7 * (i % 3)))"; done; } >houses.csv
cut -d, -f1-4 houses.csv | head -40 >new.csv
"$mixt" train configs/gpt.yaml data.path=book.txt net.layers=1 net.width=32 net.heads=2 data.seq=16 train.batch=4 train.accumulate=1 train.steps=1 train.warmup=0 out=trained -q &&
    "$mixt" export trained --out hf-model >/dev/null || fail "a Hugging Face folder"
rm -r trained

# ---- what makes a command short ----

tokens="net.layers=1 net.width=32 net.heads=2 data.seq=16 train.batch=4 train.accumulate=1"
commands=0 resumes=0
# shortened COMMAND: what is put behind it. A resumed run goes further each time.
shortened() {
    case $1 in
    *--resume*) echo "train.steps=$((resumes + 1))" ;;
    *'bench gpt'*) echo "--batch 1 --seq 16 --steps 1" ;;
    *bench*) echo "--batch 8 --steps 1" ;;
    *' search '*) echo "--budget 60s --steps 2 --trials 2 data.limit=128 train.batch=8" ;;
    *sensitivity*configs/gpt*) echo "--trials 1 $tokens" ;;
    *sensitivity*) echo "--trials 1 data.limit=64 train.batch=8" ;;
    *' adopt '*--undo* | *' adopt '*--history*) ;;
    *' adopt '*) echo "--margin 20% --seeds 6 --budget 60s --steps 2 train.epochs=0 train.steps=30 train.warmup=0 data.limit=128 train.batch=8 || [ \$? -ge 3 ]" ;; # FP32 may stay
    *compare*runs/*) echo '|| [ $? = 4 ]' ;; # one run of each allows no verdict
    *compare*--seeds*) echo "--seeds 7 --margin 20% train.steps=30 data.limit=256 train.batch=32" ;;
    *compare*) echo "--margin 20% train.steps=30 data.limit=256 train.batch=32" ;;
    *verify*configs/gpt*) echo "--steps 2 verify.lost=1000 $tokens" ;;
    *table*) ;; # only reads
    *verify*) echo "--steps 2 verify.lost=1000 data.limit=64 train.batch=8" ;;
    *' train '*faults=*) echo "data.limit=1024 train.batch=8" ;; # the update of the fault must come
    *train*configs/llama*out=runs/base*) echo "train.steps=1 train.warmup=0 net.layers=1 net.width=32 net.heads=2 net.kv_heads=1 data.seq=16 train.batch=4 train.accumulate=1" ;;
    *out=runs/[ab]* | *out=runs/fp16*) echo "train.steps=4 train.validate_every=2 data.limit=64 train.batch=8" ;; # curves need points
    *train*configs/gpt* | *plan*configs/gpt*--profile*) echo "train.steps=1 $tokens" ;;
    *train*out=runs/first*) echo "train.steps=1 train.warmup=0 net.layers=1 net.width=32 net.heads=2 net.kv_heads=1 train.batch=4" ;; # talked to
    *' finetune '*) echo "train.epochs=0 train.steps=2" ;;
    *train*configs/llama*) echo "train.steps=1 train.warmup=0 net.layers=1 net.width=32 net.heads=2 net.kv_heads=1 data.seq=16 train.batch=4 train.accumulate=1" ;;
    *train*configs/seq2seq*) echo "train.steps=1 train.batch=8 net.layers=1 net.width=32 net.heads=2" ;; # evaluated below
    *train*resnet50*) echo "train.steps=1 train.batch=2 net.depth=18 net.width=4" ;;
    *' train '*) echo "train.steps=1 data.limit=64 train.batch=8" ;;
    *' plan '*configs/digits* | *' advise '*configs/digits*) echo "data.limit=256" ;; # else most of the time draws digits
    *generate*) echo "--tokens 8" ;;
    esac
}

# ---- the pages ----

# blocks PAGE: one line each of "yaml FILE" and "run COMMAND", in the page's order; YAML blocks become block-N.yaml
blocks() {
    awk '
    /^```/ { inside = !inside; kind = inside ? substr($0, 4) : ""
             if (kind == "yaml") { file = "block-" ++count ".yaml"; printf "" >file }
             if (!inside && file) { close(file); print "yaml " file; file = "" }
             next }
    !inside { next }
    file { print >file; next }
    kind != "" && kind != "sh" { next }
    /\\$/ { sub(/\\$/, ""); line = line $0; next }
    { line = line $0; sub(/[ \t]+#[ \t].*$/, "", line)
      if (line ~ /^([A-Z_]+=[^ ]+ )*(build\/)?mixt /) print "run " line
      line = "" }' "$1"
}

# run PAGE COMMAND
run() {
    local pattern why extra
    while IFS='|' read -r pattern why; do
        pattern=${pattern%"${pattern##*[! ]}"}
        # shellcheck disable=SC2254 # a pattern it is
        case $2 in $pattern) [ -n "$pattern" ] && echo "$pattern" >>"$work/used" && return ;; esac
    done <<<"$skipped"
    commands=$((commands + 1))
    [[ $2 = *--resume* ]] && resumes=$((resumes + 1))
    extra=$(shortened "$2")
    PATH=$PWD/build:$PATH bash -c "$2 $extra" >out 2>err </dev/null ||
        { fail "$1: '$2' ended with status $?"; echo "  as: $2 $extra"; tail -3 err | sed 's/^/  /'; }
}
# read_yaml PAGE FILE: a configuration, or a policy, which the page calls attn.yaml, keep.yaml or warm-up.yaml
read_yaml() {
    if grep -q '^model:\|^init:' "$2"; then
        run "$1" "build/mixt plan $2"
    elif grep -q '^default:' "$2"; then
        run "$1" "build/mixt plan configs/gpt.yaml data.path=book.txt precision=$2"
        ln -sf "$2" attn.yaml
        ln -sf "$2" keep.yaml
        ln -sf "$2" warm-up.yaml
    else
        fail "$1: a block of YAML that is neither a configuration nor a policy: $(head -1 "$2")"
    fi
}

for page in "$root"/README.md "$root"/docs/*.md; do
    name=${page#"$root"/}
    mkdir "$work/page" && cd "$work/page" || exit 1
    blocks "$page" >"$work/blocks"
    if [ -s "$work/blocks" ]; then
        cp -r "$work/files/." . || exit 1
        while read -r kind rest; do
            if [ "$kind" = yaml ]; then read_yaml "$name" "$rest"; else run "$name" "$rest"; fi
        done <"$work/blocks"
    fi
    cd "$work" && rm -r "$work/page"
done

while IFS='|' read -r pattern why; do
    pattern=${pattern%"${pattern##*[! ]}"}
    [ -z "$pattern" ] || grep -qxF -- "$pattern" "$work/used" || fail "'$pattern' ($why ) fits no command any more: take it out of the table"
done <<<"$skipped"
[ $commands -ge 40 ] || fail "only $commands commands were found: are code blocks still read?"
echo "$commands commands run, $(wc -l <"$work/used") skipped, $failures failures"
[ $failures = 0 ]
