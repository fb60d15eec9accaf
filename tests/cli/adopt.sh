#!/bin/bash
# mixt adopt: all stages to a policy that is adopted, what is kept, killed and gone on with, taken back, done again, and what is refused.
# Nothing depends on time: the goal is memory. Usage: adopt.sh MIXT [KILLS]. MIXT_KILL_SEED draws other places.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-4}
seed=${MIXT_KILL_SEED:-20261116}
cd "$work" || exit 1

# Activations that are large next to the weights: lower formats save memory on any CPU.
cat >a.yaml <<'YAML'
model: convnet
threads: 1
net: {channels: [4]}
data: {kind: digits, limit: 256}
train: {epochs: 0, steps: 30, batch: 32, lr: 0.01}
YAML
options=(--margin 20% --for memory --steps 8 --seeds 6)

# adopt STATUS ARGUMENT...: out and err are kept
adopt() {
    local wanted=$1
    shift
    "$mixt" adopt "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "adopt $*: status $got, expected $wanted"; cat out err; }
}
# field KEY: of the object in out, before its lists
field() { sed 's/,"figures":.*//' out | sed -n "s/.*[{,]\"$1\":\(\"[^\"]*\"\|[^,}]*\).*/\1/p"; }
# decisions: of the history in out, without what may differ from run to run
decisions() { sed 's/.*"history"://' out | grep -o '"stage":"[a-z]*"\|"undo":"[a-z]*"\|"precision":"[a-z0-9]*"\|"decision":"[^"]*"\|"reason":"[^"]*"' | sed 's/adopt-[a-z]*//g; s/loss [+-][0-9.]*%//'; }

# ---- stage by stage ----

adopt 0 a.yaml "${options[@]}" --to formats --json
[ -s err ] && fail "--json wrote to standard error: $(cat err)"
[ "$(field outcome) $(field done) $(field next)" = '"under way" 2 "mixed"' ] || fail "two stages: $(cat out)"
grep -q '"stage":"baseline","name":"fp32","loss":[0-9.]*,' out || fail "the figures of the baseline: $(cat out)"
grep -q '"stage":"formats","name":"fp16"' out || fail "the formats: $(cat out)"
[ -e runs/adopt-a/mixed ] && fail "--to formats went on"
adopt 0 a.yaml "${options[@]}" --json
[ "$(field outcome) $(field done) $(field next)" = '"adopted" 5 null' ] || fail "all stages: $(cat out)"
[ "$(grep -o '"stage":"[a-z]*","time"' out | wc -l)" = 5 ] || fail "five decisions: $(cat out)"
grep -q '"name":"compare".*"decision":"adopt it"' out || fail "the proof: $(cat out)"
grep -q '"judgements":\[{"claim":"safe","verdict":"yes",.*"pairs":6,.*"updates":30,.*{"claim":"faster",.*{"claim":"smaller","verdict":"yes"' out || fail "the judgements: $(cat out)"
cp out whole && decisions >whole.decisions
for file in adopted.yaml report.md report.html original.yaml versions/5-policy.yaml versions/5-validated.yaml versions/1-baseline.yaml; do
    [ -s runs/adopt-a/$file ] || fail "no $file"
done
cmp -s runs/adopt-a/adopted.yaml runs/adopt-a/versions/5-validated.yaml || fail "adopted.yaml is not the last version"
grep -q '^  adopt_validated:' runs/adopt-a/versions/5-policy.yaml || fail "a policy without its evidence: $(cat runs/adopt-a/versions/5-policy.yaml)"
grep -q '^# Mixed precision for a: adopted' runs/adopt-a/report.md && grep -q '| validated | compare |' runs/adopt-a/report.md || fail "the report: $(cat runs/adopt-a/report.md)"
page=$(sed -n 's/.*id="lead-data">//p' runs/adopt-a/report.html)
for part in '"verdict":"adopted: [a-z0-9]*","mood":"good"' '"title":"What was decided"' '"title":"The validation: FP32 against ' '"title":"Is it safe? Is it worth it?"' \
    '"title":"Memory of a step, by role"' '"activations"' 'u003csvg' '"commands":\["mixt adopt runs/adopt-a/original.yaml --name a --undo"' 'adopt_validated' '"title":"The configuration to use"'; do
    grep -q -- "$part" <<<"$page" || fail "the page lacks $part"
done
"$mixt" train runs/adopt-a/adopted.yaml out=used -q >out 2>&1 || fail "the configuration to use cannot be trained with: $(cat out)"
# The same again: nothing is done, the same comes out; in words too.
files=(runs/adopt-a/{history.jsonl,adopted.yaml,report.md,report.html,original.yaml})
sum=$(cat "${files[@]}" | cksum)
adopt 0 a.yaml "${options[@]}" --json
cmp -s out whole && [ "$(cat "${files[@]}" | cksum)" = "$sum" ] || fail "a second call: $(diff whole out)"
adopt 0 a.yaml "${options[@]}"
grep -q '^adopted: 5 of 5 stages done' out && grep -q '^safe: yes; loss' out && grep -q '^smaller: yes; memory saved' out && grep -q '^use: runs/adopt-a/adopted.yaml' out && grep -q '^to undo: ' out || fail "in words: $(cat out)"

# ---- killed ----

now=(a.yaml "${options[@]}" --name killed --json)
hits=0
for _ in $(seq "$kills"); do
    below 900
    signalled KILL@write:$((drawn + 1)) "$mixt" adopt "${now[@]}" >out 2>err
    status=$?
    [ $status = 137 ] || [ $status = 0 ] || fail "KILL@write:$((drawn + 1)): status $status: $(cat err)"
    [ $status = 137 ] && hits=$((hits + 1))
done
[ $hits -gt 0 ] || fail "none of $kills kills hit it"
adopt 0 "${now[@]}"
decisions >killed.decisions
diff whole.decisions killed.decisions >differences || fail "killed on the way: $(cat differences)"
# A row cut short is dropped; lost rows are made again.
sed '/"stage":"tuned","time"\|"stage":"tuned","version"\|"undo"/,$d' runs/adopt-killed/history.jsonl >kept && printf '{"sta' >>kept && cp kept runs/adopt-killed/history.jsonl
adopt 0 "${now[@]}"
decisions >killed.decisions
diff whole.decisions killed.decisions >differences || fail "rows lost: $(cat differences)"

# ---- taken back, done again ----

adopt 0 a.yaml --undo --json
[ "$(field outcome) $(field done) $(field next)" = '"under way" 4 "validated"' ] && grep -q '{"undo":"validated","time":"[0-9TZ:-]*"}\]' out || fail "--undo: $(cat out)"
cmp -s runs/adopt-a/adopted.yaml runs/adopt-a/versions/4-tuned.yaml || fail "adopted.yaml after --undo"
[ -s runs/adopt-a/versions/5-validated.yaml ] || fail "--undo lost a version"
adopt 0 a.yaml "${options[@]}" --from tuned --to tuned --json
[ "$(field done) $(field config)" = '4 "runs/adopt-a/versions/6-tuned.yaml"' ] || fail "--from tuned: $(cat out)"
adopt 0 a.yaml --history
[ "$(grep -c 'undone$' out)" = 2 ] && grep -q 'version 6, tuned' out && grep -q '^  because ' out && grep -q '^  evidence ' out || fail "--history: $(cat out)"
for _ in 1 2 3 4; do adopt 0 a.yaml --undo -q; done
[ -e runs/adopt-a/adopted.yaml ] && fail "nothing is adopted, and yet there is adopted.yaml"
adopt 1 a.yaml --undo
grep -q 'no stage is done' err || fail "--undo of nothing: $(cat err)"

# ---- FP32 stays ----

adopt 3 a.yaml "${options[@]}" verify.memory=99 --name greedy --json
[ "$(field outcome) $(field precision)" = '"kept" "fp32"' ] && grep -q '"decision":"keep FP32: it is not worth it here"' out && grep -q '"claim":"safe","verdict":"yes"' out || fail "99% of the memory were asked for: $(cat out)"
# Runs of the search that are as long as the run are the proof; a margin that they cannot tell is undecided, not refused.
adopt 0 a.yaml --margin 20% --for memory --steps 30 --name whole --json
[ ! -e runs/compare-adopt-whole-4 ] && grep -q '"stage":"validated","name":"search"' out || fail "the search's pairs: $(cat out)"
adopt 4 a.yaml --margin 0.0001% --for memory --steps 30 --name open --budget 20s
grep -q '^undecided: 5 of 5' out && grep -q '^safe: undecided; .*more pairs' out && grep -q '^undecided: runs/adopt-open/versions/4-tuned.yaml' out || fail "undecided: $(cat out)"
"$mixt" train runs/adopt-open/versions/4-tuned.yaml out=open train.steps=2 -q || fail "the policy in question cannot be trained with"
# A tuned policy that loses: the one format of `mixed` is asked about before FP32 stays.
adopt 0 a.yaml "${options[@]}" --name second --to tuned -q
printf 'version: 1\ndefault: fp16\nloss_scale: 1e30\n' >runs/adopt-second/versions/4-policy.yaml
adopt 0 a.yaml "${options[@]}" --name second --json
[ "$(field outcome) $(field precision)" = '"adopted" "fp16"' ] && grep -q '"name":"compare",.*B diverged in 6 of 6 pairs.*"name":"compare-mixed",.*"good":true' out ||
    fail "a tuned policy that loses: $(cat out)"
grep -q 'fp16: safe: yes; .*; asked about because .* is not (safe: no; ' runs/adopt-second/history.jsonl || fail "that the tuned policy lost first is not told: $(tail -2 runs/adopt-second/history.jsonl)"
grep -q '"title":"The validation: FP32 against fp16' runs/adopt-second/report.html && [ -e runs/compare-adopt-second-3 ] || fail "the second proof on the page"
adopt 1 a.yaml "${options[@]}" train.lr=0 --name still
grep -q 'FP32 itself does not train' err || fail "a baseline that learns nothing: $(cat err)"

adopt 1 a.yaml "${options[@]}" train.lr=1e30 --name wild
grep -q 'FP32 itself does not train: it diverged' err || fail "a baseline that diverges: $(cat err)"

# ---- data that changes under the same name ----

{ echo 'a,b,class'; for i in $(seq 300); do echo "0.$i,$((i % 7)),$((i % 3))"; done; } >rows.csv
cp rows.csv kept.csv
printf 'model: mlp\nthreads: 1\nnet: {hidden: [32, 32]}\ndata: {kind: csv, path: rows.csv}\ntrain: {epochs: 0, steps: 30, batch: 64, lr: 0.03}\n' >rows.yaml
csv=("${options[@]}" --name data --json)
adopt 0 rows.yaml "${csv[@]}" --to formats
tail -200 kept.csv >rows.csv
adopt 1 rows.yaml "${csv[@]}" --to mixed
grep -q 'adopt-data/baseline and runs/adopt-data/mixed used different data (' err && [ ! -e runs/adopt-data/mixed ] || fail "data that changed on the way: $(cat err)"
cp kept.csv rows.csv
adopt 0 rows.yaml "${csv[@]}" --to mixed
[ "$(field done)" = 3 ] || fail "with the data back: $(cat out)"

# ---- refused, a full disk ----

adopt 1 a.yaml "${options[@]}" train.steps=31 --name killed
grep -q 'train.steps is 31, was 30' err || fail "another configuration: $(cat err)"
adopt 1 a.yaml "${options[@]}" --name later --from tuned
grep -q 'start with baseline' err && [ ! -e runs/adopt-later ] || fail "--from a stage to come: $(cat err)"
for write in 1 9 40; do
    MIXT_FAIL_WRITE=$write "$mixt" adopt a.yaml "${options[@]}" --name full --json >out 2>err
    status=$?
    [ $status = 0 ] || { [ $status = 1 ] && grep -q 'No space left' err; } || fail "write $write fails: status $status: $(cat out err)"
done
adopt 0 a.yaml "${options[@]}" --name full --json
decisions >full.decisions
diff whole.decisions full.decisions >differences || fail "after a full disk: $(cat differences)"

[ $failures = 0 ] && echo "adopt: all good"
exit $((failures > 0))
