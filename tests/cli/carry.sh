#!/bin/bash
# A run stands on its own: for every kind of data, predictions, texts and exports are the same after the data was moved
# away or replaced by another. Usage: carry.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
need python3

# ---- data of every kind, from a seed ----
cat >make.py <<'PY'
import json, os, random, struct, sys, zipfile
seed, folder = int(sys.argv[1]), sys.argv[2]
rng = random.Random(seed)
os.makedirs(folder)
os.chdir(folder)
def npy(name, shape, data, format="|u1"):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (format, shape)
    head = head.ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data)
def picture(label, channels):  # classes are brightness; another seed has other colours
    level = (40 + 60 * label) if seed == 1 else 250 - 70 * label
    return bytes(min(255, max(0, level + rng.randrange(-30, 30))) for _ in range(8 * 8 * channels))
labels = [i % 3 for i in range(120)]
npy("x.npy", (120, 8, 8, 3), b"".join(picture(l, 3) for l in labels))
npy("y.npy", (120,), bytes(labels))
npy("big.npy", (24, 32, 32, 1), bytes(rng.randrange(256) for _ in range(24 * 1024)))
npy("tall.npy", (24, 16, 4, 3), bytes(24 * 192))
npy("few.npy", (24,), bytes(labels[:24]))
os.mkdir("idx")
open("idx/train-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, 120, 8, 8) + b"".join(picture(l, 1) for l in labels))
open("idx/train-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, 120) + bytes(labels))
os.mkdir("cifar")  # planes of red, green and blue; files for both parts
for name in "data_batch_1.bin", "test_batch.bin":
    with open("cifar/" + name, "wb") as f:
        for label in labels[:24]:
            f.write(bytes([label]) + bytes(min(255, p + 9 * label + 90 * seed) for p in rng.randbytes(3072)))
open("cifar/batches.meta.txt", "w").write("".join("%s\n" % w for w in "ant bee cow dog eel fox gnu hen ibex jay".split()))
for i, label in enumerate(labels[:60]):
    name = ["ant", "bee", "cow"][label]
    os.makedirs("images/" + name, exist_ok=True)
    open("images/%s/%d.ppm" % (name, i), "wb").write(b"P6 8 8 255\n" + picture(label, 3))
with open("values.csv", "w") as f:
    f.write("a,b,y\n")
    for i in range(120):
        a, b = rng.random() * seed, rng.random() * 5
        f.write("%g,%g,%g\n" % (a, b, 3 * a - b + 0.5))
with open("words.csv", "w") as f:
    f.write("a,b,animal\n")
    for i in range(120):
        f.write("%g,%g,%s\n" % (rng.random() + i % 3, rng.random(), ["ant", "bee", "cow"][i % 3]))
words = ["sun", "moon", "star", "sky"] if seed == 1 else ["fish", "reef", "tide", "sand"]
open("text.txt", "w").write(" ".join(rng.choice(words) for _ in range(3000)))
alphabet, extra = {}, 256
for b in range(256):
    prints = 32 < b < 127 or 160 < b < 256 and b != 173
    alphabet[b] = chr(b if prints else extra)
    extra += not prints
merges = [("s", "u"), ("su", "n"), ("m", "o")] if seed == 1 else [("f", "i"), ("fi", "s"), ("s", "a")]
tokens = {alphabet[b]: b for b in range(256)}
for pair in merges:
    tokens["".join(pair)] = len(tokens)
tokens["<|endoftext|>"] = len(tokens)
os.mkdir("bpe")
json.dump(tokens, open("bpe/encoder.json", "w"))
open("bpe/vocab.bpe", "w").write("#version: 0.2\n" + "".join("%s %s\n" % p for p in merges))
os.mkdir("pieces")
open("pieces/vocab.txt", "w").write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words) + "\n")
open("raw.bin", "wb").write(b"".join(rng.randrange(1 + seed, 200).to_bytes(2, "little") for _ in range(3000)))
with zipfile.ZipFile("both.npz", "w") as z:
    z.write("x.npy")
    z.write("y.npy")
PY
python3 make.py 1 data && python3 make.py 2 other || fail "no data"
for folder in data other; do # ready token files: of bytes, of pairs
    "$mixt" tokenize $folder/text.txt --out $folder/bytes.tokens 2>err >/dev/null &&
        "$mixt" tokenize $folder/text.txt --vocab $folder/bpe --out $folder/pairs.tokens 2>err >/dev/null || fail "tokenize: $(cat err)"
done
python3 - <<'PY'
exec(open("make.py").read().split("def picture")[0].split("os.makedirs")[0].replace("int(sys.argv[1]), sys.argv[2]", "7, '.'"))
head = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 8, 8, 3), }".ljust(117) + "\n"
open("probe.npy", "wb").write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + bytes(rng.randrange(256) for _ in range(768)))
open("probe.ppm", "wb").write(b"P6 12 10 255\n" + bytes(rng.randrange(256) for _ in range(360)))
open("probe.pgm", "wb").write(b"P5 8 8 255\n" + bytes(rng.randrange(256) for _ in range(64)))
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }".ljust(117) + "\n"
import array
open("rows.npy", "wb").write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + array.array("f", [0.5, 2, 0.1, 4]).tobytes())
PY

# ---- a run of each ----
common="precision=bf16 device=cpu threads=2 train.steps=6 train.batch=8 train.lr=0.01 -q"
echo 'model: mlp' >net.yaml
runs=""
# train RUN PROBES SETTING...
train() {
    local run=$1
    probes[${#probes[@]}]="$run:$2"
    runs="$runs $run"
    shift 2
    "$mixt" train net.yaml out="$run" $common "$@" 2>err || { fail "train $run: $(cat err)"; }
    [ -s "$run/inputs.json" ] || fail "$run has no inputs.json"
}
probes=()
train arrays "probe.npy probe.ppm" data.path=data/x.npy data.labels=data/y.npy net.hidden=[16]
train convnet "probe.npy probe.ppm" model=convnet net.channels=[4] net.norm=batch data.path=data/x.npy data.labels=data/y.npy data.crop=6 data.flip=true
train digits "probe.pgm" model=convnet net.channels=[4] data.kind=digits data.limit=64
train idx "probe.pgm" data.kind=idx data.path=data/idx net.hidden=[16]
train images "probe.npy probe.ppm" data.kind=images data.path=data/images data.crop=8 data.resize=9 net.hidden=[16]
train values "rows.npy" data.path=data/values.csv net.hidden=[16]
train words "rows.npy" data.path=data/words.csv net.hidden=[16]
train resnet "probe.ppm" model=resnet net.depth=18 net.width=4 data.path=data/x.npy data.labels=data/y.npy
train cifar "probe.npy probe.ppm" model=convnet net.channels=[4] data.kind=cifar data.path=data/cifar data.pad=2 data.flip=true
train archive "probe.npy probe.ppm" data.path=data/both.npz net.hidden=[16]
train vgg "probe.pgm" model=vgg net.depth=11 net.hidden=[8] data.path=data/big.npy data.labels=data/few.npy train.steps=1
train given "probe.npy" data.path=data/x.npy data.labels=data/y.npy data.mean=0.5,0.4,0.3 data.std=0.2 net.hidden=[16]
gpt="model=gpt net.layers=1 net.width=16 net.heads=2 data.kind=text data.path=data/text.txt data.seq=16"
train bytes "" $gpt
train bpe "" $gpt data.vocab=data/bpe
train ready "" ${gpt/text data.path=data\/text.txt/tokens data.path=data\/bytes.tokens}
train readypairs "" ${gpt/text data.path=data\/text.txt/tokens data.path=data\/pairs.tokens} data.vocab=data/bpe
train raw "" ${gpt/text data.path=data\/text.txt/tokens data.path=data\/raw.bin} data.vocab=data/bpe
train unnamed "" ${gpt/text data.path=data\/text.txt/tokens data.path=data\/pairs.tokens}
train lstm "" model=lstm net.layers=1 net.width=16 data.kind=text data.path=data/text.txt data.seq=16
train bert "" ${gpt/gpt/bert} data.vocab=data/pieces data.mask=0.2
train pieces "" ${gpt/gpt/bert_mlm} data.vocab=data/pieces data.mask=0.2

# ---- what they say ----
# say FOLDER: everything that the runs give without their data
say() {
    mkdir "$1"
    local run input one top
    for one in "${probes[@]}"; do
        run=${one%%:*}
        for input in ${one#*:}; do
            [ "$run" = values ] && top= || top="--top 9" # which values have not
            "$mixt" predict "$run" "$input" --json $top >>"$1/$run.predict" 2>>"$1/errors" || fail "$1: predict $run $input: $(tail -1 "$1/errors")"
        done
        case $run in bytes | bpe | ready | readypairs | raw | lstm)
            "$mixt" generate "$run" -n 40 -q --prompt "sun m" >"$1/$run.text" 2>>"$1/errors" || fail "$1: generate $run: $(tail -1 "$1/errors")" ;;
        esac
        "$mixt" export "$run" --out "$1/$run" >/dev/null 2>>"$1/errors" || fail "$1: export $run: $(tail -1 "$1/errors")"
    done
    rm -f "$1/errors"
}
say before
[ "$(cat before/*.predict | wc -l)" -ge 20 ] || fail "few predictions: $(cat before/*.predict | wc -l)"
for run in images words; do grep -q '"name":"bee"' before/$run.predict || fail "$run: no class names"; done

# ---- what lies beside exported weights ----
python3 - <<'PY' || fail "exports"
import json
def load(name):
    return json.load(open("before/" + name))
def rows(run, tensor):
    file = open("before/%s/model.safetensors" % run, "rb")
    return json.loads(file.read(int.from_bytes(file.read(8), "little")))[tensor]["shape"][0]
inputs = load("images/inputs.json")
assert inputs["data"]["class_names"] == ["ant", "bee", "cow"] and inputs["loss"] == "cross_entropy", inputs
assert len(inputs["data"]["mean"]) == len(inputs["data"]["std"]) == 3 and inputs["precision"] == "bf16", inputs
assert load("resnet/inputs.json")["data"]["input_shape"] == [8, 8, 3]
assert load("given/inputs.json")["data"]["std"] == [0.200000003] * 3
assert load("values/inputs.json")["loss"] == "mse"
for run in "bytes", "bpe":  # data.seq is 16, the table here has 1024 rows
    assert load(run + "/config.json")["n_positions"] == rows(run, "transformer.wpe.weight") == 16
    assert load(run + "/tokenizer_config.json")["model_max_length"] == 16
assert load("pieces/config.json")["max_position_embeddings"] == rows("pieces", "bert.embeddings.position_embeddings.weight") == 16
assert rows("bert", "wpe.weight") == 16  # under mixt's own names too
assert open("before/bert/vocab.txt").read() == open("data/pieces/vocab.txt").read()
assert "model_max_length" not in load("lstm/tokenizer_config.json") and len(load("lstm/vocab.json")) == 256
for run in "readypairs", "raw":
    assert load(run + "/config.json")["eos_token_id"] == 259 and load(run + "/vocab.json") == load("bpe/vocab.json")
assert load("cifar/inputs.json")["data"]["class_names"][9] == "jay" and len(load("cifar/inputs.json")["data"]["std"]) == 3
assert load("bytes/config.json")["eos_token_id"] is None and load("bytes/tokenizer_config.json")["bos_token"] is None
config, tokenizer = load("bpe/config.json"), load("bpe/tokenizer_config.json")
assert config["bos_token_id"] == config["eos_token_id"] == 259 and config["vocab_size"] == 260, config
assert tokenizer["tokenizer_class"] == "GPT2Tokenizer" and tokenizer["eos_token"] == "<|endoftext|>", tokenizer
assert load("bpe/vocab.json") == json.load(open("data/bpe/encoder.json"))
assert open("before/bpe/merges.txt").read() == open("data/bpe/vocab.bpe").read()
assert open("before/pieces/vocab.txt").read() == open("data/pieces/vocab.txt").read()
assert load("pieces/tokenizer_config.json")["do_lower_case"] and load("pieces/config.json")["pad_token_id"] == 0
PY
# tokens of a vocabulary that nobody named: no tokenizer, and that is said
"$mixt" export unnamed --out noname >out 2>err && grep -q 'no tokenizer is written' err || fail "tokens of no known vocabulary: $(cat err)"
[ "$(ls noname)" = $'config.json\ninputs.json\nmodel.safetensors' ] || fail "tokens of no known vocabulary: $(ls noname)"
"$mixt" generate unnamed >out 2>err && fail "text of tokens that nobody named"
grep -q 'has no tokenizer: use token ids (--prompt-ids, --ids), or,' err || fail "text of tokens that nobody named: $(cat err)"
# bytes as a byte-pair vocabulary: the same tokens
head -c 2000 data/text.txt >some.txt
printf 'a\n\303\244\t\377 z' >>some.txt
"$mixt" tokenize some.txt >as-bytes 2>err || fail "tokenize: $(cat err)"
"$mixt" tokenize some.txt --vocab before/bytes >as-pairs 2>err || fail "tokenize with the exported bytes: $(cat err)"
[ "$(awk '{ print $1 }' as-bytes | cksum)" = "$(awk '{ print $1 }' as-pairs | cksum)" ] || fail "bytes through the exported vocabulary"
[ "$(wc -l <as-pairs)" -ge 2008 ] || fail "few tokens: $(wc -l <as-pairs)"
# positions that were begun with count too; they are known to a run that goes on, and to one that begins with it
"$mixt" train net.yaml out=longer $common $gpt data.seq=32 2>err || fail "train longer: $(cat err)"
"$mixt" train net.yaml out=tuned $common $gpt init=longer 2>err || fail "train tuned: $(cat err)"
"$mixt" train net.yaml out=again $common $gpt init=before/bytes 2>err || fail "train again: $(cat err)"
"$mixt" train net.yaml out=bert-again $common ${gpt/gpt/bert} data.vocab=data/pieces data.mask=0.2 init=before/bert 2>err || fail "train bert again: $(cat err)"
for one in tuned:32 again:16; do
    "$mixt" export ${one%:*} >/dev/null && grep -q "\"n_positions\": ${one#*:}," ${one%:*}/export/config.json || fail "$one positions"
done
"$mixt" train net.yaml out=bad $common $gpt data.seq=32 init=before/bytes 2>err && fail "16 positions for texts of 32"
grep -q "expected a float tensor \[32, 16\]" err || fail "too few positions: $(cat err)"
"$mixt" train net.yaml out=bad $common ${gpt/gpt/bert} data.vocab=data/pieces data.seq=32 init=before/bert 2>err && fail "16 positions of bert for texts of 32"
grep -q "'wpe.weight' is fp32 \[16, 16\], expected a float tensor \[32, 16\]" err || fail "too few positions of bert: $(cat err)"

mv data gone
say after
diff -r before after >differences || { fail "runs say something else without their data:"; head -5 differences; }

mv other data # other pictures, texts and vocabularies in the old place
say changed
diff -r before changed >differences || { fail "runs say something else beside other data:"; head -5 differences; }

mkdir away && mv $runs away && cd away || exit 1 # and from another folder, with no data at all
mv ../data ../other
for file in probe.npy probe.ppm probe.pgm rows.npy; do cp ../$file .; done
say moved
diff -r ../before moved >differences || { fail "runs say something else in another folder:"; head -5 differences; }
cd .. && mv away/* . && rmdir away
rm -r moved

# ---- the run's own data, when it is asked for ----
# warned WORDS COMMAND...: succeeds with these words on stderr; none: without a word
warned() {
    local words=$1
    shift
    "$@" >out 2>err || fail "$*: $(cat err)"
    if [ "$words" ]; then grep -qF -- "$words" err || fail "$*: no '$words' in: $(cat err)"
    else [ -s err ] && fail "$*: $(cat err)"; fi
}
# refused WORDS COMMAND...: status 1 and these words on stderr
refused() {
    local words=$1
    shift
    "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || fail "$*: status $status, expected 1"
    grep -qF -- "$words" err || fail "$*: no '$words' in: $(cat err)"
}
refused "arrays: its data is no longer at" "$mixt" eval arrays
refused "data/x.npy" "$mixt" predict arrays val:0
mv gone data
for run in $runs; do warned "" "$mixt" eval "$run"; done
figures=$("$mixt" eval arrays --json)
mv data gone && mv other data
for run in arrays idx images values bytes; do warned "is not the data that $run was trained on" "$mixt" eval "$run"; done
warned "is not the data that arrays was trained on" "$mixt" predict arrays train:0-3
[ "$("$mixt" eval arrays --json 2>/dev/null)" = "$figures" ] && fail "other data has the same figures"
mv data other && mv gone data
[ "$("$mixt" eval arrays --json)" = "$figures" ] || fail "eval of the same data changed"

# ---- data that is given: data.path of the run is not looked at ----
mv data gone
given="data.path=gone/x.npy data.labels=gone/y.npy"
warned "" "$mixt" eval arrays $given --split val --json
[ "$(cat out)" = "$figures" ] || fail "the same data in another place: $(cat out)"
warned "" "$mixt" eval arrays $given
grep -q '^arrays on all: .*over 120 targets' out || fail "all of a given set: $(cat out)"
warned "other/x.npy: is not the data that arrays was trained on" "$mixt" eval arrays ${given//gone/other}
warned "other/text.txt: is not the data that bpe was trained on" "$mixt" eval bpe data.path=other/text.txt
refused ": only keys data." "$mixt" eval arrays train.lr=1
refused "1 channels, but the data it must match (data/x.npy) has 3" "$mixt" eval arrays data.kind=idx data.path=gone/idx data.labels=
refused "samples of shape [16, 4, 3], but arrays was trained on [8, 8, 3]" "$mixt" eval arrays data.path=gone/tall.npy data.labels=gone/few.npy
mv other/images/bee other/images/dog
refused "class 1 is 'cow', but images was trained with 'bee' there" "$mixt" eval images data.path=other/images
mv other/images/dog other/images/bee
mv gone data

# ---- a run of an older mixt has no inputs.json, and needs its data ----
cp -r arrays old && rm old/inputs.json
"$mixt" predict old probe.npy probe.ppm --json --top 9 >out || fail "predict without inputs.json"
cmp -s out before/arrays.predict || fail "without inputs.json predictions differ"

# ---- inputs.json is checked ----
# damage WORDS EDIT
damage() {
    rm -rf bad && cp -r arrays bad
    python3 - "$2" <<'PY'
import json, sys
facts = json.load(open("bad/inputs.json"))
exec(sys.argv[1])
json.dump(facts, open("bad/inputs.json", "w"))
PY
    refused "$1" "$mixt" predict bad probe.npy
    grep -qF bad/inputs.json err || fail "$2: the file is not named: $(cat err)"
}
damage 'has version 9, this version of mixt reads 1' 'facts["version"] = 9'
damage 'is not a description of inputs written by mixt' 'facts["format"] = "other"'
damage '"mean" is missing or wrong' 'facts["data"]["mean"] = [0.5]'
damage '"std" is missing or wrong' 'facts["data"]["std"][1] = 0'
damage '"input_shape" is missing or wrong' 'facts["data"]["input_shape"][0] = -8'
damage '"target" is missing or wrong' 'facts["data"]["target"] = "pets"'
damage '"classes" is missing or wrong' 'facts["data"]["classes"] = 1 << 40'
damage '"class_names" is missing or wrong' 'facts["data"]["class_names"] = ["one"]'
damage '"kind" is missing or wrong' 'facts["data"] = None'
rm -rf bad && cp -r arrays bad && head -c 100 arrays/inputs.json >bad/inputs.json
refused 'bad/inputs.json:' "$mixt" predict bad probe.npy

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
