#!/bin/bash
# The memory of a whole run, as the command tells it: parts that sum up, and validation that takes smaller batches where
# there is no room, not the run's end. Usage: memory.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
cd "$work" || exit 1
need python3

cat >tiny.yaml <<'YAML'
model: mlp
precision: bf16
threads: 1
net: {hidden: [64]}
data: {kind: digits, limit: 256}
train: {steps: 4, batch: 32, eval_batch: 64, checkpoint_every: 2}
YAML

"$mixt" plan tiny.yaml >out 2>err || { fail "plan: status $?"; cat err; }
for part in step validation batches checkpoints data tokens graphs total; do
    grep -q "^$part " out || fail "plan does not tell of $part"
done
grep -q 'validation in batches of 64; predicting would take' out || fail "plan does not tell of validation's batches"
"$mixt" plan tiny.yaml --json >plan.json 2>err || { fail "plan --json: status $?"; cat err; }
"$mixt" train tiny.yaml out=plain --json >train.json 2>err || { fail "train: status $?"; cat err; }
python3 - <<'PY' || fail "the figures of plan and train disagree"
import json
plan, train = json.load(open("plan.json")), json.load(open("train.json"))
run = plan["run_memory"]
parts = ["step", "validation", "batches", "checkpoints", "data", "tokens", "graphs"]
assert sum(run[p]["host"] for p in parts) == run["total"]["host"], run
assert run["step"]["host"] == plan["memory"]["total"] == train["memory_allocated"], run
assert run["eval_batch"] == 64 and run["prediction"]["host"] > 0 and run["total"]["device"] == 0, run
# The plan of the command and that of the run know the same, and no more is taken.
assert train["run_memory"]["host_planned"] == run["total"]["host"], (train, run)
assert train["run_memory"]["host_allocated"] <= train["run_memory"]["host_planned"], train
PY
"$mixt" train "$root/configs/mf.yaml" data.samples=2000 train.epochs=1 out=ratings --json >train.json 2>err || { fail "ratings: status $?"; cat err; }
python3 -c 'import json; m = json.load(open("train.json"))["run_memory"]; assert m["host_allocated"] <= m["host_planned"], m' || fail "a small run takes more than planned"
"$mixt" train tiny.yaml out=table >out 2>err || { fail "train: status $?"; cat err; }
grep -Eq 'step: [0-9.]+ [KMG]iB planned, [0-9.]+ [KMG]iB allocated' out || fail "no line for the step's memory"
grep -Eq 'run: [0-9.]+ [KMG]iB planned, [0-9.]+ [KMG]iB allocated' out || fail "no line for the run's memory"

cat out err | grep -Eq '^memory .* for the step, .* for validation, .* for the data; in all ' || fail "the start does not tell of all memory"

# Validation alone would need 40 GiB: under any limit the run goes on, with its weights and all figures.
(ulimit -s 1024; ulimit -d 300000; "$mixt" train tiny.yaml train.eval_batch=10000000 out=cut -q >out 2>err)
found=$?
[ $found = 0 ] || { fail "no room for validation: status $found"; head -3 err; }
grep -q 'validation in batches of [0-9]*: there is no memory for train.eval_batch=10000000' err || { fail "a cut is not told"; head -3 err; }
[ -s cut/model.safetensors ] || fail "no room for validation: no weights"
grep -q '"val_loss"' cut/metrics.jsonl || fail "no room for validation: no validation"
# The same losses as in small batches, but for the order of sums.
python3 - <<'PY' || fail "validation in smaller batches gives other losses"
import json
last = [[json.loads(l) for l in open(f + "/metrics.jsonl")][-1]["val_loss"] for f in ("plain", "cut")]
assert abs(last[0] - last[1]) < 1e-5 * last[0], last
PY
for command in 'eval cut' 'predict cut val:0-3'; do
    (ulimit -s 1024; ulimit -d 300000; "$mixt" $command >out 2>err) || { fail "$command under a limit: status $?"; head -3 err; }
done
(ulimit -s 1024; ulimit -d 300000; "$mixt" plan tiny.yaml train.eval_batch=10000000 --json >plan.json 2>err) || fail "plan under a limit: status $?"
python3 -c 'import json; r = json.load(open("plan.json"))["run_memory"]; assert 0 < r["eval_batch"] < 10000000 and r["validation"]["host"] < 300000 * 1024, r' ||
    fail "plan under a limit: validation is not cut"

[ $failures = 0 ] || echo "$failures checks failed"
exit $((failures > 0))
