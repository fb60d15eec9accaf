#!/bin/bash
# mixt predict: classes, probabilities and values of every kind of input, the same as eval counts. Usage: predict.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
cd "$work" || exit 1

# refused WORDS ARGUMENT...: status 1 and these words on stderr
refused() {
    local words=$1
    shift
    "$mixt" predict "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || fail "predict $*: status $status, expected 1"
    grep -qF -- "$words" err || { fail "predict $*: no '$words' in:"; cat err; }
}

cat >net.yaml <<'YAML'
model: convnet
precision: fp32
threads: 2
train: {epochs: 2, batch: 32, lr: 0.01}
YAML
"$mixt" train net.yaml net.channels=[8] net.norm=batch data.kind=digits data.limit=1024 data.pad=1 out=run -q || fail "train"

# ---- the run's own data: predictions and eval agree ----

"$mixt" predict run test --json >lines || fail "predict test"
wanted=$("$mixt" eval run --split test --json | sed 's/.*"count":\([0-9]*\).*"accuracy":\([0-9.]*\).*/\1 \2/')
found=$(sed 's/{"class":\([0-9]*\),.*"label":\([0-9]*\),.*/\1 \2/' lines | awk '{ n++; good += $1 == $2 } END { printf "%d %.9g", n, good / n }')
[ "$(awk -v a="${wanted#* }" -v b="${found#* }" 'BEGIN { d = a - b; print (d < 1e-6 && d > -1e-6) }') ${found% *}" = "1 ${wanted% *}" ] ||
    fail "predict says $found, eval $wanted"
"$mixt" predict run test:3-5 test:0 >table
[ "$(wc -l <table)" = 5 ] && grep -q '^test:4 .*%' table && grep -q '^test:0 ' table || { fail "a table of four"; cat table; }
[ "$("$mixt" predict run test:3 --json)" = "$(sed -n 4p lines)" ] || fail "one sample alone gets other probabilities"
[ "$("$mixt" predict run test:3 --json --top 10 | grep -o '"class"' | wc -l)" = 11 ] || fail "--top 10"
[ "$("$mixt" predict run test:3 --json --top 999 | grep -o '"class"' | wc -l)" = 11 ] || fail "--top past the classes"

# ---- labels beside predictions, and how good they are: eval and predict count the same ----

"$mixt" predict run test:0-3 | awk 'NR == 1 { exit !($3 == "label") }' || fail "no column for labels"
"$mixt" predict run test:0-3 | awk 'NR > 1 && /wrong/ { bad += $2 == $4 } NR > 1 && !/wrong/ { bad += $2 != $3 } END { exit bad }' ||
    fail "labels do not fit what is called wrong"
"$mixt" predict run test --report | sed '1,/samples with labels/d' >by_predict
"$mixt" eval run --split test | sed 1d >by_eval
cmp -s by_predict by_eval || { fail "eval and predict --report differ"; diff by_eval by_predict | head -4; }
[ "$(grep -c '%.*%.*%' by_eval)" = 11 ] && grep -q 'Confusion matrix' by_eval || { fail "no table or matrix by class"; cat by_eval; }
"$mixt" eval run --split test --json >found.json
"$mixt" predict run test --report --json >lines.json
python3 - <<'PY' || fail "figures by class are not those of the predictions"
import json
found = json.load(open("found.json"))
lines = [json.loads(line) for line in open("lines.json")]
report = lines.pop()["report"]
matrix = [[0] * 10 for _ in range(10)]
for line in lines:
    matrix[line["label"]][line["class"]] += 1
assert found["confusion"] == report["confusion"] == matrix, "matrix"
assert report["samples"] == found["count"] == len(lines)
for k in range(10):
    of, taken, right = sum(matrix[k]), sum(row[k] for row in matrix), matrix[k][k]
    c = found["classes"][k]
    assert (c["samples"], c["guessed"], c["right"]) == (of, taken, right)
    for name, part, whole in (("precision", right, taken), ("recall", right, of), ("f1", 2 * right, of + taken)):
        assert c[name] is None if whole == 0 else abs(c[name] - part / whole) < 1e-8, name
assert abs(found["recall"] - sum(matrix[k][k] / sum(matrix[k]) for k in range(10)) / 10) < 1e-8
PY
for i in $(seq 600); do echo "$((i % 7)),$((i % 11)),$((i % 30))"; done >thirty.csv
"$mixt" train net.yaml model=mlp net.hidden=[8] data.kind=csv data.path=thirty.csv out=thirty -q || fail "thirty classes"
[ "$("$mixt" eval thirty | wc -l)" = 1 ] || fail "thirty classes: a table unasked"
"$mixt" eval thirty --classes | grep -q 'most frequent mistakes' || fail "thirty classes: no mistakes when asked"
"$mixt" eval thirty --classes | grep -q 'Confusion matrix' && fail "thirty classes: a matrix"

# Data that is gone: that files need none of it is said to those who predict alone.
mv thirty.csv gone.csv
refused "thirty: its data is no longer at" thirty val:0
refused '(predicting your own files does not need them)' thirty val:0
"$mixt" eval thirty 2>err && fail "data that is gone was evaluated"
grep -q "thirty: its data is no longer at" err && ! grep -q 'files of your own' err || fail "eval without its data: $(cat err)"
mv gone.csv thirty.csv

# ---- pictures ----

{ printf 'P5 28 28 255\n'; head -c 784 /dev/zero; } >black.pgm
{ printf 'P6 56 56 255\n'; head -c 9408 /dev/zero; } >large.ppm
"$mixt" predict run black.pgm large.ppm --json >lines 2>err || fail "predict pictures"
[ "$(cat err)" = "mixt: large.ppm: 56 x 56 pixels, but the model takes 28 x 28: its middle part is resized" ] || { fail "a picture of another size"; cat err; }
[ "$(sed 's/"input":"[^"]*"//' lines | uniq | wc -l)" = 1 ] || { fail "black is black at every size"; cat lines; }

# ---- values ----

{ echo 'a,b,y'; for i in $(seq 200); do echo "$((i % 7)),$((i % 5)),$((i % 7 * 2 + i % 5)).5"; done; } >rows.csv
"$mixt" train net.yaml model=mlp net.hidden=[16] data.kind=csv data.path=rows.csv out=values -q ||
    fail "train on values"
"$mixt" predict values val:0-1 --json | grep -c '"values":\[[-0-9.e]*\]' | grep -qx 2 || fail "values as JSON"
refused 'black.pgm: is not a table (.csv, .tsv) or array (.npy, .npz), but the model was trained on samples of shape [2]' values black.pgm
"$mixt" predict values val:0-1 | grep -q '^input *values *target' || fail "no column for the target values"
"$mixt" eval values | grep -q 'loss .*, MAE [0-9.]*, RMSE [0-9.]*, R2 [-0-9.]* over' || fail "eval of values"
"$mixt" eval values --json >found.json
"$mixt" predict values val --json >lines.json
python3 - <<'PY' || fail "MAE, RMSE or R2 are not those of the predictions"
import json
found = json.load(open("found.json"))
pairs = [(l["values"][0], l["target"][0]) for l in map(json.loads, open("lines.json"))]
n, mean = len(pairs), sum(t for _, t in pairs) / len(pairs)
missed = sum((v - t) ** 2 for v, t in pairs)
assert abs(found["mae"] - sum(abs(v - t) for v, t in pairs) / n) < 1e-6
assert abs(found["rmse"] - (missed / n) ** 0.5) < 1e-6
assert abs(found["r2"] - (1 - missed / sum((t - mean) ** 2 for _, t in pairs))) < 1e-6
PY
refused '--report: no INPUT has labels' run black.pgm --report

# ---- arrays ----

python3 - <<'PY' || fail "predict .npy"
def npy(name, shape, data, format="|u1"):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (format, shape)
    head = head.ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data)
npy("one.npy", (28, 28), bytes(784))
npy("three.npy", (3, 28, 28, 1), bytes(3 * 784))
npy("wrong.npy", (3, 5), bytes(15))
npy("wide.npy", (1, 28, 28), bytes(8 * 784), "<i8")
PY
"$mixt" predict run one.npy three.npy three.npy:1 --json >more || fail "predict arrays"
[ "$(wc -l <more)" = 5 ] || fail "1 + 3 + 1 samples: $(wc -l <more)"
[ "$(cat lines more | sed 's/"input":"[^"]*"//' | sort -u | wc -l)" = 1 ] || fail "a black array is a black picture"
refused 'wrong.npy: samples of shape [5]' run wrong.npy
refused 'wide.npy: integers, but the model was trained on bytes: save them as' run wide.npy
refused 'three.npy:3: sample 3, but there are 3' run three.npy:3

# ---- what cannot be ----

refused 'No such file' run nothing.ppm
refused 'not an image' run net.yaml
refused 'is a directory' run .
refused 'expected NAME:INDEX' run test:x
refused 'expected NAME:INDEX' run test:5-3
refused 'there are 1024' run test:5000
refused 'there are 1024' run test:9223372036854775805
for most in 9223372036854775806 9223372036854775807 99999999999999999999; do
    refused 'expected NAME:INDEX' run test:$most
    refused 'expected NAME:INDEX' run test:0-$most
done
refused 'no such folder' nowhere test:0
head -c 500 black.pgm >cut.pgm
refused 'cut.pgm: 487 bytes of pixels after offset 13, 28 x 28 need 784: the file is cut off' run cut.pgm
"$mixt" predict run 2>err; [ $? = 2 ] && grep -q 'missing argument INPUT' err || fail "no input"
"$mixt" predict run test:0 --top 0 2>err; [ $? = 2 ] || fail "--top 0"

# Weights that are no numbers.
for run in run values; do
    cp -r $run diverged
    size=$(stat -c %s $run/model.safetensors)
    header=$(($(od -An -tu8 -N8 $run/model.safetensors) + 8))
    { head -c $header $run/model.safetensors; head -c $((size - header)) /dev/zero | tr '\0' '\377'; } >diverged/model.safetensors
    refused "the model's output is NaN or Inf: its weights are damaged or" diverged val:0
    refused "val:0: the model's output is NaN or Inf: its weights are damaged or" diverged val:0 --json
    [ -s out ] && fail "a $run of no numbers: $(cat out)"
    rm -r diverged
done

# ---- random data has no mean and deviation ----

"$mixt" train net.yaml model=mlp net.hidden=8 data.kind=random data.shape=12 data.classes=3 data.samples=200 out=random -q || fail "train on random data"
"$mixt" eval random >/dev/null || fail "eval of a run on random data"
echo 1,2,3,4,5,6,7,8,9,10,11,12 >twelve.csv
refused 'trained on random data' random twelve.csv

# ---- language models ----

for _ in $(seq 100); do printf 'the cat naps. '; done >text.txt
"$mixt" train net.yaml model=lstm net.width=16 net.layers=1 data.kind=text data.path=text.txt data.seq=8 \
    data.limit=64 train.batch=8 out=text -q || fail "train on text"
refused 'mixt generate' text val:0
"$mixt" eval text --json | awk -F'[:,}]' '{ for (i = 1; i < NF; i++) { if ($i == "\"loss\"") loss = $(i + 1); if ($i == "\"perplexity\"") p = $(i + 1) } }
    END { exit !(p > 1 && p / exp(loss) < 1.000001 && p / exp(loss) > 0.999999) }' || fail "perplexity is not the exponential of the loss"
"$mixt" eval text | grep -q 'perplexity [0-9]' || fail "eval without perplexity"
"$mixt" eval run --json | grep -q perplexity && fail "perplexity of pictures"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
