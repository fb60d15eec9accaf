#!/bin/bash
# Labelled texts through the command: trained in each precision, evaluated, predicted, resumed; a vocabulary that the run
# learned goes with it. Usage: texts.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
real=$(realpath "${MIXT_TEST_DATA:-../shared/data}" 2>/dev/null)/sst2
cd "$work" || exit 1

# figure NAME FILE: a number of a JSON object
figure() { grep -o "\"$1\":-\?[0-9.]*" "$2" | head -1 | cut -d: -f2; }

# Opinions that mixt writes: far better than guessing, in every precision.
for precision in fp32 bf16 fp16; do
    "$mixt" train "$root/configs/sst2.yaml" device=cpu threads=2 precision=$precision data.samples=1000 train.epochs=6 train.lr=0.003 train.warmup=10 out=$precision -q || fail "train in $precision"
    "$mixt" eval $precision --json >$precision.json || fail "eval in $precision"
    figure accuracy $precision.json | awk '{ exit !($1 > 0.75) }' || fail "$precision: $(cat $precision.json)"
done

# F1 of the second class and its mean over both are those of the matrix.
sed 's/.*"confusion":\[\[\([0-9]*\),\([0-9]*\)\],\[\([0-9]*\),\([0-9]*\)\]\].*/\1 \2 \3 \4/' bf16.json |
    awk '{ a = 2 * $4 / (2 * $4 + $2 + $3); b = 2 * $1 / (2 * $1 + $2 + $3); printf "%.6f %.6f\n", a, (a + b) / 2 }' >own
printf '%.6f %.6f\n' "$(figure f1_binary bf16.json)" "$(figure f1 bf16.json)" | cmp - own || fail "F1: $(cat own) of $(cat bf16.json)"
"$mixt" eval bf16 | grep -q "F1 .*% (of class 1), .*% (mean) over 1000 targets" || fail "eval: $("$mixt" eval bf16 | head -1)"

# A line a text, a text as it is, and the column of texts of a file; the same class each time, with a probability.
printf 'the plot is clever\n\nthe cast was dull\n' >lines.txt
printf 'number,text\n1,the plot is clever\n2,"the cast was dull"\n' >rows.csv
"$mixt" predict bf16 lines.txt rows.csv 'text:the plot is clever' --json >out || fail "predict"
[ "$(grep -c '"probability"' out)" = 5 ] || fail "not five texts: $(cat out)"
[ "$(grep -o '"name":"[a-z]*","input":"[^"]*"\(,"line":[0-9]*\)*' out | tr '\n' ' ')" = '"name":"good","input":"lines.txt:0","line":1 "name":"bad","input":"lines.txt:1","line":3 "name":"good","input":"rows.csv:0","line":2 "name":"bad","input":"rows.csv:1","line":3 "name":"good","input":"text:the plot is clever" ' ] || fail "classes: $(cat out)"
"$mixt" predict bf16 val:0-3 lines.txt:1 | grep -q '^lines.txt:1  *3  *bad ' || fail "one line: $("$mixt" predict bf16 lines.txt:1)"
"$mixt" predict bf16 val:0-1 'text:the plot is clever' | grep -q '^input  *class' || fail "lines of what is no file: $("$mixt" predict bf16 val:0-1)"

# Texts that are longer than the model has places are cut, which is told.
long=$(printf 'clever %.0s' $(seq 300))
printf 'the plot is clever\n\n%s\nthe cast was dull\n%s\n' "$long" "$long" >long.txt
"$mixt" predict bf16 long.txt "text:$long" --json >out 2>err || fail "predict long texts"
grep -qx 'mixt: long.txt: 2 of 4 texts are longer than the model.s context and are truncated: line 3 is the first' err || { fail "texts that are cut are not told"; cat err; }
grep -q '^mixt: text:clever .*…: is longer than the model.s context and is truncated$' err || { fail "a text that is cut is not told"; cat err; }
[ "$(grep -o '"line":[0-9]*,"cut":true' out | tr '\n' ' ')" = '"line":3,"cut":true "line":5,"cut":true ' ] || fail "cut: $(cat out)"
"$mixt" predict bf16 long.txt:0-1 2>&1 >out | grep -qx 'mixt: long.txt: 1 of 2 texts .*s context and are truncated: line 3' || fail "of those asked for, one is cut"
"$mixt" predict bf16 lines.txt 2>&1 >out | grep -q cut && fail "short texts are told of as cut"

# The run has its vocabulary: it is judged without the data, moved, and evaluated on a file of the same kind.
[ "$(head -3 bf16/vocab/vocab.txt | tr '\n' ' ')" = '[PAD] [UNK] [CLS] ' ] || fail "vocab.txt: $(head -3 bf16/vocab/vocab.txt)"
printf 'text\tlabel\nthe plot is clever\tgood\nthe cast was dull\tbad\n' >own.tsv
mv bf16 moved && "$mixt" predict moved lines.txt:0 | grep -q good || fail "a run that was moved"
"$mixt" eval moved data.path=own.tsv 2>/dev/null | grep -q "accuracy 100.00%.* over 2 targets" || fail "other data: $("$mixt" eval moved data.path=own.tsv 2>&1)"

# Of a folder with parts of its own the test part is evaluated, else val, under its name; "all" is asked for, or all there is.
mkdir parts && cp own.tsv parts/train.tsv && head -2 own.tsv >parts/dev.tsv
"$mixt" eval moved data.path=parts 2>/dev/null | grep -q '^moved on val: .* over 1 targets' || fail "train and dev: $("$mixt" eval moved data.path=parts 2>&1)"
{ cat own.tsv; tail -1 own.tsv; } >parts/test.tsv
"$mixt" eval moved data.path=parts --json 2>/dev/null | grep -q '"split":"test","count":3,' || fail "with test: $("$mixt" eval moved data.path=parts 2>&1)"
"$mixt" eval moved data.path=parts --split all 2>/dev/null | grep -q '^moved on all: .* over 2 targets' || fail "--split all: $("$mixt" eval moved data.path=parts --split all 2>&1)"
printf 'index\tsentence\n0\tthe plot is clever\n' >parts/test.tsv # GLUE's has no labels
"$mixt" eval moved data.path=parts 2>err && fail "a test part without labels was evaluated"
grep -q 'parts/test.tsv: .*(in the test part: --split names another)' err || fail "no labels: $(cat err)"
rm parts/test.tsv parts/dev.tsv
for set in parts own.tsv; do
    "$mixt" eval moved data.path=$set 2>/dev/null | grep -q '^moved on all: .* over 2 targets' || fail "$set: $("$mixt" eval moved data.path=$set 2>&1)"
done

# Hugging Face's names, both ways: the exported folder is evaluated as it stands, and trained further.
"$mixt" export fp32 --out hf 2>told >/dev/null || fail "export: $(cat told)"
grep -q 'first token' told || fail "export does not say that transformers takes the first token: $(cat told)"
for name in bert.embeddings.word_embeddings bert.encoder.layer.0.attention.self.query bert.pooler.dense classifier; do
    head -c 8000 hf/model.safetensors | grep -q "\"$name.weight\"" || fail "no $name.weight"
done
tr -d ' \n' <hf/config.json | grep -q '"architectures":\["BertForSequenceClassification"\].*"num_labels":2' || fail "config.json: $(cat hf/config.json)"
cmp hf/vocab.txt fp32/vocab/vocab.txt || fail "another vocabulary"
tr -d ' \n' <hf/config.json | grep -q '"id2label":{"0":"bad","1":"good"},"label2id":{"bad":0,"good":1}' || fail "names of classes: $(cat hf/config.json)"
rm hf/inputs.json
"$mixt" predict hf 'text:the plot is clever' | grep -q ' good ' || fail "the folder's class: $("$mixt" predict hf 'text:the plot is clever' 2>&1)"
cp -r hf wordless && rm wordless/vocab.txt
for try in "predict wordless text:clever" "eval wordless data.path=own.tsv" "eval wordless data.path=own.tsv data.tokenizer=wordpiece"; do
    "$mixt" $try >out 2>err && fail "$try: took words for tokens of a model without a tokenizer"
    grep -q 'wordless: has no tokenizer' err || fail "$try: $(cat err)"
done

# Classes are those of config.json, not of what mixt writes itself: other names, and the other way round.
cp -r hf turned && sed -i 's/"0": "bad"/"0": "fine"/; s/"1": "good"/"1": "poor"/' turned/config.json
printf 'text\tlabel\nthe plot is clever\tfine\nthe cast was dull\tpoor\n' >turned.tsv
"$mixt" predict turned 'text:the plot is clever' | grep -q ' poor ' || fail "names of config.json: $("$mixt" predict turned 'text:the plot is clever' 2>&1)"
"$mixt" eval turned data.path=turned.tsv 2>/dev/null | grep -q "accuracy 0.00%.* over 2 targets" || fail "labels by the folder's names: $("$mixt" eval turned data.path=turned.tsv 2>&1)"
"$mixt" eval turned data.path=own.tsv 2>err && fail "labels that the folder does not know were taken"
grep -q "'good'" err || fail "other labels: $(cat err)"
sed -i 's/"fine"/"LABEL_0"/; s/"poor"/"LABEL_1"/' turned/config.json # no names: those of the data, in its order
"$mixt" eval turned data.path=own.tsv 2>/dev/null | grep -q "accuracy 100.00%.* over 2 targets" || fail "classes without names: $("$mixt" eval turned data.path=own.tsv 2>&1)"
"$mixt" predict turned 'text:the plot is clever' --json | grep -q '^{"class":1,"probability":[0-9.]*,"input"' || fail "classes without names: $("$mixt" predict turned 'text:the plot is clever' --json 2>&1)"
loss() { grep -o 'loss [0-9.]*' | head -1; }
there=$("$mixt" eval fp32 data.path=own.tsv 2>/dev/null | loss)
[ "$("$mixt" eval hf data.path=own.tsv 2>/dev/null | loss)" = "$there" ] || fail "the folder says $("$mixt" eval hf data.path=own.tsv 2>&1), the run $there"
"$mixt" train "$root/configs/sst2.yaml" device=cpu precision=fp32 init=hf data.samples=64 train.warmup=0 train.lr=0 train.epochs=0 train.steps=1 out=further -q || fail "init=hf"
[ "$("$mixt" eval further data.path=own.tsv 2>/dev/null | loss)" = "$there" ] || fail "init=hf begins elsewhere: $("$mixt" eval further data.path=own.tsv 2>&1)"
sed -i 's/BertForSequenceClassification/BertModel/; s/"mixt_pool": "mean",*//' hf/config.json # an encoder alone: the head is new
"$mixt" train "$root/configs/sst2.yaml" device=cpu init=hf init_new_head=fc net.pool=first data.samples=64 train.warmup=0 train.epochs=0 train.steps=1 out=new -q || fail "init of another head"

# Stopped and resumed: the same bits.
run="device=cpu threads=2 train.epochs=0 train.schedule=constant train.checkpoint_every=10 data.samples=400 train.warmup=5"
"$mixt" train "$root/configs/sst2.yaml" $run train.steps=20 out=whole -q || fail "train"
"$mixt" train "$root/configs/sst2.yaml" $run train.steps=10 out=half -q && "$mixt" train --resume half train.steps=20 -q || fail "resume"
cmp whole/model.safetensors half/model.safetensors || fail "a resumed run is another"

if [ -f "$real/train.tsv.gz" ]; then
    "$mixt" train "$root/configs/sst2.yaml" device=cpu data.path="$real" data.limit=2000 train.warmup=0 train.epochs=0 train.steps=10 out=real -q || fail "train on real texts"
    "$mixt" eval real | grep -q 'over 872 targets' || fail "the validation part of sst2: $("$mixt" eval real | head -1)"
else
    echo "skipped: no sst2 in ${MIXT_TEST_DATA:-../shared/data}"
fi
exit $((failures > 0))
