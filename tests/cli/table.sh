#!/bin/bash
# mixt table: pairing by itself and what it says about the rest, the four formats with their escapes, sources of all kinds, files that
# are there already, runs of older versions. Nothing depends on time. Usage: table.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >a.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 0, steps: 12, batch: 32, lr: 0.01}
YAML
sed 's/fp32/bf16/' a.yaml >b.yaml
train() { "$mixt" train "$@" -q || fail "train $*"; }
for seed in 1 2 3; do
    train a.yaml seed=$seed out=runs/fp32-$seed
    train b.yaml seed=$seed out=runs/bf16-$seed
done
train b.yaml train.lr=0.02 precision=fp16 out=lone

# table STATUS ARGUMENT...: out and err are kept
table() {
    local wanted=$1
    shift
    "$mixt" table "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "table $*: status $got, expected $wanted"; cat out err; }
}
# column NAME: of the first row of the CSV in out
column() { tr -d '\r' <out | awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR == 2 { print $at }'; }

# ---- pairs of several seeds ----

table 0 runs/* --format csv
[ -s err ] && fail "all is paired, and yet: $(cat err)"
[ "$(wc -l <out)" = 2 ] && [ "$(column model) $(column fp32_precision) $(column fp32_runs) $(column mixed_precision) $(column mixed_runs)" = "mlp fp32 3 bf16 3" ] ||
    fail "three seeds of both: $(cat out)"
# The figures are those of the runs: memory by role adds up, the loss is the mean of the three, and lies inside its interval.
for side in fp32 mixed; do
    awk -v all="$(column ${side}_memory)" -v a="$(column ${side}_weights)" -v b="$(column ${side}_gradients)" -v c="$(column ${side}_moments)" \
        -v d="$(column ${side}_activations)" -v e="$(column ${side}_workspace)" -v f="$(column ${side}_other)" 'BEGIN { exit !(all > 0 && a + b + c + d + e + f == all) }' || fail "memory of $side: $(cat out)"
done
[ "$(column fp32_memory)" = "$(sed -n '1s/.*"memory":\([0-9]*\).*/\1/p' runs/fp32-1/metrics.jsonl)" ] || fail "memory is not the run's: $(cat out)"
for run in runs/fp32-?; do sed -n 's/.*"val_loss":\([0-9.]*\).*/\1/p' $run/metrics.jsonl | tail -1; done | awk -v mean="$(column fp32_loss)" -v low="$(column fp32_loss_low)" -v high="$(column fp32_loss_high)" \
    '{ sum += $1 } END { d = sum / NR - mean; exit !(NR == 3 && d < 1e-6 && d > -1e-6 && low < mean && mean < high) }' || fail "the mean loss: $(cat out)"
awk -v a="$(column mixed_samples_s)" -v b="$(column fp32_samples_s)" -v s="$(column speedup)" 'BEGIN { d = a / b - s; exit !(d < 1e-6 && d > -1e-6) }' || fail "the speed-up: $(cat out)"
awk -v a="$(column mixed_memory)" -v b="$(column fp32_memory)" -v s="$(column saved)" 'BEGIN { d = 1 - a / b - s; exit !(d < 1e-6 && d > -1e-6) }' || fail "what is saved: $(cat out)"

table 0 runs/*
grep -q '^precision  *fp32 → bf16$' out && grep -q '^runs  *3$' out && grep -q '^weights, .*iB  *[0-9.]* → [0-9.]*$' out && grep -q '^accuracy, %  *[0-9.]* ± [0-9.]* → [0-9.]* ± [0-9.]*$' out ||
    fail "as text: $(cat out)"
table 0 runs/* --json
grep -q '^{"rows":\[{"model":"mlp","fp32":{"precision":"fp32","runs":3,.*"accuracy_interval":\[.*"memory":{"weights":[0-9]*,.*"speedup":[0-9.]*,"saved":-\?[0-9.]*}\],"notes":\[\]}$' out || fail "--json: $(cat out)"

# ---- what does not pair ----

table 0 runs/fp32-1 runs/bf16-1 lone
grep -q '^mixt table: lone (fp16): there is no FP32 run of the same configuration; the nearest, runs/fp32-1, has another train.lr (0.01, here 0.02)$' err || fail "a lone run: $(cat err)"
grep -q '^model  *mlp train.lr=0.01  *mlp train.lr=0.02$' out && grep -q '^precision .*– → fp16$' out && grep -q '^speed-up .*[0-9]×  *–$' out || fail "a row with one side: $(cat out)"
table 0 runs/fp32-1
grep -q 'runs/fp32-1 (fp32): there is no mixed run of the same configuration$' err && grep -q '^saved  *–$' out || fail "FP32 alone: $(cat out err)"
cp -r runs/bf16-1 again
table 0 runs/fp32-1 runs/bf16-1 again --format csv
grep -q '^mixt table: again: left out: the same precision and seed as runs/bf16-1$' err && [ "$(column mixed_runs)" = 1 ] || fail "the same run twice: $(cat out err)"
# Two policy files with other rules are two rows, although a run calls each of them policy.yaml.
printf 'default: bf16\n' >one.yaml
printf 'default: fp16\n' >two.yaml
train b.yaml precision=one.yaml out=one
train b.yaml precision=two.yaml out=two
table 0 runs/fp32-1 one two --format csv
[ "$(wc -l <out)" = 3 ] || fail "two policies: $(cat out err)"

# What is no run, has no row or cannot be read is left out by its name; where nothing else is there, that is an error. So is a wrong name.
mkdir -p mixed/empty && cp -r runs/fp32-1 runs/bf16-1 mixed && cp -r runs/bf16-1 mixed/cut && : >mixed/cut/metrics.jsonl && echo '{"no": 1}' >mixed/notes.json
table 0 mixed/*
grep -q '^precision  *fp32 → bf16$' out || fail "beside runs that have no row: $(cat out err)"
for left in mixed/empty mixed/cut mixed/notes.json; do grep -q "^mixt table: left out: $left" err || fail "$left: $(cat err)"; done
[ "$(wc -l <err)" = 3 ] || fail "notes on what was left out: $(cat err)"
table 1 mixed/empty mixed/cut
grep -q 'mixed/empty: holds no config.yaml' err && [ ! -s out ] || fail "nothing to make a row of: $(cat out err)"
table 1 runs/fp32-1 runs/nowhere
grep -q 'runs/nowhere: cannot be opened' err && [ ! -s out ] || fail "a wrong name: $(cat out err)"

# ---- escapes ----

table 0 'A_1 50%&#|"x", <y>=runs/fp32-1' runs/bf16-1 --format latex
grep -qF 'A\_1 50\%\&\#$|$"x", $<$y$>$ & fp32 $\rightarrow$ bf16 & 1 & ' out && grep -q '^\\begin{tabular}{ll[r]*}$' out && ! grep -q '[→–±×]' out || fail "LaTeX: $(cat out)"
[ "$(grep -c '\\\\$' out)" = 2 ] && [ "$(grep '\\\\$' out | sed 's/\\&//g' | awk -F'&' '{ print NF }' | sort -u | wc -l)" = 1 ] || fail "columns of LaTeX: $(cat out)"
table 0 'A_1 50%&#|"x", <y>=runs/fp32-1' runs/bf16-1 --format markdown
grep -qF '| A\_1 50%&#\|"x", &lt;y> | fp32 → bf16 | 1 |' out && [ "$(sed 's/\\|//g' out | awk -F'|' '{ print NF }' | sort -u | wc -l)" = 1 ] || fail "Markdown: $(cat out)"
table 0 'A_1 50%&#|"x", <y>=runs/fp32-1' runs/bf16-1 --format csv
grep -qF '"A_1 50%&#|""x"", <y>",fp32,1,' out || fail "CSV: $(cat out)"

# ---- other sources ----

"$mixt" verify b.yaml --seeds 2 --out kept.json verify.speedup=0 verify.memory=-900 verify.lost=1000 verify.output=10 -q >/dev/null
[ $? = 4 ] || fail "verify --out" # two seeds decide nothing
table 0 V=kept.json --format csv
[ "$(column model) $(column fp32_runs) $(column mixed_precision) $(column mixed_runs)" = "V 2 bf16 2" ] && [ -n "$(column fp32_weights)" ] && [ -n "$(column mixed_accuracy_low)" ] || fail "a verification: $(cat out err)"
before=$(cksum <kept.json)
"$mixt" verify b.yaml --seeds 1 --out kept.json -q >out 2>err && fail "verify went over a file"
[ "$before" = "$(cksum <kept.json)" ] && grep -q 'kept.json.*--overwrite' err || fail "verify over a file: $(cat err)"
"$mixt" compare a.yaml b.yaml --margin 50% --name c -q >/dev/null 2>&1
mv runs/compare-c . && mkdir compare-c/pair-0099-a # one that is not done
table 0 compare-c V=kept.json runs/fp32-1 runs/bf16-1 --format csv
[ "$(wc -l <out)" = 4 ] && [ "$(column fp32_runs) $(column mixed_runs)" = "6 6" ] && [ ! -s err ] || fail "all kinds of sources: $(cat out err)"
rm compare-c/pair-0003-b/metrics.jsonl
table 0 compare-c --format csv
[ "$(column fp32_runs) $(column mixed_runs)" = "5 5" ] && grep -q 'left out, with the other run of its pair: .*compare-c/pair-0003-b' err || fail "a pair that lacks a run: $(cat out err)"

# ---- a run of an older version, one that was resumed ----

cp -r runs/bf16-1 old && sed -i 's/,"memory_by_role":{[^}]*}//' old/metrics.jsonl
table 0 runs/fp32-1 old
grep -q '^weights, .*iB  *[0-9.]* → –$' out && grep -q '^memory, .*iB  *[0-9.]* → [0-9.]*$' out || fail "an older run: $(cat out)"
"$mixt" train --resume runs/bf16-1 train.steps=20 -q || fail "going on"
[ "$(grep -c memory_by_role runs/bf16-1/metrics.jsonl)" = 1 ] || fail "a resumed run tells its memory again: $(cat runs/bf16-1/metrics.jsonl)"

# ---- runs that diverged, a file of verify that is not whole ----

for run in runs/fp32-2 runs/bf16-2; do
    cp -r $run wild-${run##*/} && sed -i 's/"loss":[0-9.]*/"loss":null/; s/,"val_loss":[^}]*/,"val_loss":null/' wild-${run##*/}/metrics.jsonl
done
table 0 wild-*
grep -q '^loss  *– (1 diverged) → – (1 diverged)$' out || fail "both sides diverged: $(cat out)"
head -c 900 kept.json >cut.json
table 1 cut.json
grep -q 'cut.json: is not a file of' err && [ ! -s out ] || fail "half a file: $(cat out err)"

# ---- files ----

table 0 runs/fp32-2 runs/bf16-2 --format latex --out t.tex
[ ! -s out ] && grep -q tabular t.tex || fail "--out: $(cat out)"
table 1 runs/fp32-2 runs/bf16-2 --out t.tex
grep -q 't.tex.*--overwrite' err && grep -q tabular t.tex || fail "a file that is there: $(cat err)"
table 0 runs/fp32-2 runs/bf16-2 --out t.tex --overwrite
grep -q '^model ' t.tex || fail "--overwrite: $(cat t.tex)"
MIXT_FAIL_WRITE=1 "$mixt" table runs/fp32-2 runs/bf16-2 --out full.txt >out 2>err
[ $? = 1 ] && grep -q 'No space left' err && [ ! -e full.txt ] || fail "a full disk: $(cat err)"

[ $failures = 0 ] && echo "table: all good"
exit $((failures > 0))
