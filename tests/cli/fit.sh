#!/bin/bash
# A run within train.memory as the command tells and trains it: planned within the limit, allocated as planned, the same update, and
# gone on with after a stop. Usage: fit.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
need python3

for i in $(seq 600); do echo "the quick brown fox jumps over $i lazy dogs"; done >words.txt
cat >gpt.yaml <<'YAML'
model: gpt
precision: fp32
threads: 2
net: {layers: 3, width: 48, heads: 3}
data: {kind: text, path: words.txt, seq: 32}
train: {steps: 6, batch: 24, epochs: 0, checkpoint_every: 3, validate_every: 3}
YAML

"$mixt" plan gpt.yaml --json >plan.json 2>err || { fail "plan: status $?"; cat err; }
"$mixt" train gpt.yaml out=free --json >free.json 2>err || { fail "train: status $?"; cat err; }
all=$(python3 -c 'import json; print(json.load(open("plan.json"))["run_memory"]["total"]["host"])')
for share in 90 70 50; do
    budget=$((all / 100 * share))
    "$mixt" plan gpt.yaml --memory $budget --json >fit.json 2>err || { fail "$share%: plan: status $?"; cat err; }
    "$mixt" train gpt.yaml train.memory=$budget out=fit-$share --json >train.json 2>err || { fail "$share%: train: status $?"; cat err; }
    python3 - $budget "$all" $share <<'PY' || fail "$share%: plan, limit and run disagree"
import json, sys
budget, free, share = map(int, sys.argv[1:])
plan, train = json.load(open("fit.json")), json.load(open("train.json"))
fit = plan["fit"]
assert fit["budget"] == budget and fit["memory"] <= budget and fit["asked"] == free and fit["of"] == "host", fit
assert fit["batch"] * fit["accumulate"] == 24 and fit["batch"] * fit["split"] == 24 and fit["cost"] >= 0, fit
assert plan["run_memory"]["total"]["host"] == fit["memory"] == train["run_memory"]["host_planned"], (plan["run_memory"], fit)
assert plan["memory"]["total"] == train["memory_planned"] == train["memory_allocated"], train
assert train["run_memory"]["host_allocated"] <= budget + 65536, train
rows = [[json.loads(l) for l in open(f + "/metrics.jsonl")] for f in ("free", "fit-%d" % share)]
for a, b in zip(*rows, strict=True):
    assert a["epoch"] == b["epoch"] and a["lr"] == b["lr"], (a, b)
assert fit["recompute"] >= 0 and (fit["split"] > 1 or fit["recomputed"] > 0), fit
first, second = rows[0][0], rows[1][0]
assert abs(first["loss"] - second["loss"]) <= 24 * 32 * 2**-24 * first["loss"], (first, second)
PY
done
grep -q '^  split: [2-9]' fit-50/config.yaml || fail "the choice is not in the run's configuration"

# Recomputation alone: every loss and every weight has the same bits.
"$mixt" train gpt.yaml train.memory=$((all / 4 * 3)) train.memory_may=recompute out=again --json >train.json 2>err || { fail "recompute: status $?"; cat err; }
cmp -s free/model.safetensors again/model.safetensors || fail "recomputation changes weights"
grep -q '^  recompute: [1-9]' again/config.yaml || fail "recomputation is not in the run's configuration"
python3 - <<'PY' || fail "recomputation changes losses"
import json
a, b = ([json.loads(l) for l in open(f + "/metrics.jsonl")] for f in ("free", "again"))
assert [(r["loss"], r.get("grad_norm")) for r in a] == [(r["loss"], r.get("grad_norm")) for r in b]
PY

# The choice is told by plan and at the start of a training; a run that fits says so.
"$mixt" plan gpt.yaml train.memory_may=recompute --memory $((all / 4 * 3)) >out 2>err || fail "plan: status $?"
grep -Eq 'activations in [0-9.]+ [KM]iB instead of [0-9.]+ [KM]iB: [0-9]+ ops? run again in the backward pass' out || { fail "plan does not tell what is computed again"; head -5 out; }
"$mixt" plan gpt.yaml train.memory_may=split --memory $((all / 2)) >out 2>err || fail "plan: status $?"
grep -Eq '^fit  [0-9.]+ [KM]iB of [0-9.]+ [KM]iB on the host; as configured it would take' out || { fail "plan does not tell the choice"; head -3 out; }
grep -Eq 'each batch of 24 is split into [0-9]+ parts of [0-9]+' out || fail "plan does not tell of the parts"
grep -q 'predicted, not measured' out || fail "plan does not tell the cost"
"$mixt" train gpt.yaml train.memory=$((all / 2)) out=told >out 2>err || fail "train: status $?"
cat out err | grep -Eq '^fit  .*as configured it would take' || fail "training does not tell the choice"
"$mixt" plan gpt.yaml --memory 1G | grep -q ': fits as configured' || fail "a plan that fits is not told"
"$mixt" plan gpt.yaml --json | grep -q '"fit":null' || fail "a plan without a limit has a fit"

# Stopped and gone on with: the same bits as in one go, under the plan that was chosen.
half="train.memory=$((all / 2))"
"$mixt" train gpt.yaml $half train.steps=3 out=stopped -q 2>err || fail "train: status $?"
"$mixt" train --resume stopped train.steps=6 -q 2>err || { fail "resume: status $?"; cat err; }
cmp -s fit-50/model.safetensors stopped/model.safetensors || fail "a resumed run within a limit has other weights"
# Under another limit it goes on with the same bits: what is computed again may change, the parts of a batch may not.
"$mixt" train gpt.yaml $half train.steps=3 out=moved -q 2>err || fail "train: status $?"
"$mixt" train --resume moved train.steps=6 train.memory=1G -q 2>err || { fail "resume under another limit: status $?"; cat err; }
cmp -s fit-50/model.safetensors moved/model.safetensors || fail "another limit at a resume changes the weights"
grep -q '^  recompute: 0' moved/config.yaml || fail "a larger limit still computes again"
"$mixt" train --resume stopped train.steps=8 train.memory=1M -q 2>err && fail "a limit that is too small is taken at a resume"
grep -q 'the parts of a batch cannot change when a run is resumed' err || { fail "a limit that is too small at a resume is not explained"; cat err; }
"$mixt" train --resume stopped train.steps=8 train.split=1 -q 2>err && fail "other parts at a resume are taken"
"$mixt" eval stopped >/dev/null 2>err || { fail "eval: status $?"; cat err; }

# Kept in a lower format only where that is listed; a resumed run keeps it so.
keep="train.memory=$((all / 10 * 8)) train.memory_may=keep"
"$mixt" plan gpt.yaml $keep --json >fit.json 2>err || { fail "keep: plan: status $?"; cat err; }
python3 -c 'import json; f = json.load(open("fit.json"))["fit"]; assert f["keep"] == "bf16" and f["split"] == 1 and not f["recomputed"], f' || fail "keep: the plan does something else"
"$mixt" train gpt.yaml $keep out=kept --json >train.json 2>err || { fail "keep: train: status $?"; cat err; }
python3 -c 'import json; t = json.load(open("train.json")); assert t["memory_planned"] == t["memory_allocated"], t' || fail "keep: more is taken than planned"
grep -q '^  activations: bf16' kept/config.yaml || fail "keep: the choice is not in the run's configuration"
"$mixt" train gpt.yaml $keep train.steps=3 out=kept-stopped -q 2>err || fail "keep: train: status $?"
"$mixt" train --resume kept-stopped train.steps=6 -q 2>err || { fail "keep: resume: status $?"; cat err; }
cmp -s kept/model.safetensors kept-stopped/model.safetensors || fail "keep: a resumed run has other weights"
"$mixt" plan gpt.yaml train.activations=fp8_e4m3 >out 2>err || { fail "train.activations: status $?"; cat err; }

# Batch norm is not split unasked.
net="model=resnet net.depth=20 net.width=4 net.heads=0 net.layers=0 data.kind=digits data.path= data.seq=0 data.limit=64 train.batch=16 train.steps=1"
room=$("$mixt" plan gpt.yaml $net --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run_memory"]["total"]["host"] * 3 // 4)')
"$mixt" train gpt.yaml $net train.memory=$room out=norm --json >/dev/null 2>err || { fail "batch norm within a limit: status $?"; cat err; }
grep -q '^  split: 1$' norm/config.yaml || fail "batch norm is split unasked"
"$mixt" train gpt.yaml $net train.memory=$((room / 2)) out=norm-less 2>err && fail "batch norm within too little"
grep -q 'train.memory_may=recompute,split it would take less, but batch norm' err || { fail "what could be listed is not told"; cat err; }
"$mixt" train gpt.yaml $net train.memory=$room train.memory_may=split out=norm-parts -q 2>err || { fail "split by name: status $?"; cat err; }
grep -q 'warning: batch norm uses' err || { fail "no warning of batch norm"; cat err; }
"$mixt" train gpt.yaml $net train.split=2 out=norm-split -q 2>err || { fail "train.split with batch norm: status $?"; cat err; }
grep -q 'warning: batch norm uses 8 samples instead of 16' err || { fail "no warning of batch norm without a limit"; cat err; }

# Nor is a loss that compares samples of a batch, and its validation is not cut; what is asked for is told.
pair="model=pair net.layers=1 net.width=16 net.heads=0 net.channels=8,16 net.norm=none data.kind=pairs data.path= data.seq=0 data.limit=0 data.samples=96 train.batch=32 train.steps=1"
all=$("$mixt" plan gpt.yaml $pair --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run_memory"]["total"]["host"])')
least=$("$mixt" train gpt.yaml $pair train.memory=1M out=pair-less 2>&1 | tee err | sed -n 's/.* memory (\([0-9]*\) bytes).*/\1/p')
grep -q 'train.memory_may=recompute,split it would take less, but the loss compares the samples of a part; a smaller train.eval_batch may' err || { fail "pair: what could be listed is not told"; cat err; }
[ "${least:-0}" -gt 0 ] && [ "$least" -lt "$all" ] || fail "pair: the least is '$least' of $all"
"$mixt" plan gpt.yaml $pair --memory "$least" --json >fit.json 2>err || { fail "pair: plan: status $?"; cat err; }
python3 -c 'import json; f = json.load(open("fit.json"))["fit"]; assert f["split"] == 1 and f["eval_batch"] == 32 and f["recomputed"] and not f["compares"], f' || fail "pair: split or validated in other batches unasked"
"$mixt" train gpt.yaml $pair train.memory="$least" out=pair 2>err >out || { fail "pair within a limit: status $?"; cat err; }
grep -q 'compares\|validation in batches\|parts of' out err && { fail "pair: tells of parts or of other batches"; cat out err; }
"$mixt" plan gpt.yaml $pair train.memory_may=split --memory $((least / 4 * 3)) >out 2>err || { fail "pair: split by name: status $?"; cat err; }
grep -q 'each batch of 32 is split into [0-9]* parts of [0-9]*, one after the other$' out || { fail "pair: parts are taken for the batch"; head -4 out; }
"$mixt" train gpt.yaml $pair train.split=2 train.eval_batch=16 out=pair-parts -q 2>err || { fail "pair in parts: status $?"; cat err; }
grep -q 'warning: the loss compares 16 samples with each other instead of 32 (train.split=2)' err || { fail "pair: no warning of the split"; cat err; }
grep -q 'warning: validation compares 16 samples with each other instead of 32 (train.eval_batch)' err || { fail "pair: no warning of validation"; cat err; }
batch=$("$mixt" plan gpt.yaml $pair --largest-batch --memory "$all" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["batch"])')
[ "$batch" = 32 ] || fail "pair: the largest batch within what 32 take is $batch"

# The largest batch: it trains within the limit, one more would not.
for limit in 8M 20M; do
    "$mixt" plan gpt.yaml --largest-batch --memory $limit --json >largest.json 2>err || { fail "largest batch: status $?"; cat err; }
    read -r batch memory next < <(python3 -c 'import json; l = json.load(open("largest.json")); print(l["batch"], l["memory"], l["next"])')
    "$mixt" train gpt.yaml train.batch="$batch" train.memory=$limit train.memory_may=[] train.steps=1 out=largest-$limit --json >train.json 2>err ||
        { fail "$limit: a batch of $batch: status $?"; cat err; }
    grep -q "\"host_planned\":$memory" train.json || fail "$limit: a batch of $batch does not take $memory bytes"
    "$mixt" plan gpt.yaml train.batch=$((batch + 1)) train.memory=$limit train.memory_may= 2>err && fail "$limit: a batch of $((batch + 1)) fits"
    grep -q "($next bytes)" err || { fail "$limit: a batch of $((batch + 1)) does not take $next bytes"; cat err; }
done
"$mixt" plan gpt.yaml --largest-batch --memory 20M | grep -q '^train.batch=[0-9]* takes' || fail "the largest batch is not told"

[ $failures = 0 ] || echo "$failures checks failed"
exit $((failures > 0))
