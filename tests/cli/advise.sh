#!/bin/bash
# mixt advise: the answer for assumed machines, its JSON, the policy that it writes. Nothing is timed. Usage: advise.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
root=$PWD
cd "$work" || exit 1

cat >net.yaml <<'YAML'
model: gpt
precision: fp32
threads: 1
net: {layers: 2, width: 128, heads: 4}
data: {kind: random, path: tokens, classes: 256, seq: 128, samples: 64}
train: {epochs: 0, steps: 1000, batch: 16}
YAML

# advise STATUS ARGUMENT...: out and err are kept
advise() {
    local wanted=$1
    shift
    "$mixt" advise "$@" >out 2>err
    local got=$?
    [ $got = "$wanted" ] || { fail "advise $*: status $got, expected $wanted"; cat out err; }
}

# ---- names that scripts rely on ----

advise 0 net.yaml --machine a100 --cost 2.50/h --json
python3 - <<'PY' || fail "the JSON is not what scripts rely on: $(cat out)"
import json
o = json.load(open("out"))
assert o["machine"] == "a100"
choice = o["choice"]
assert choice["precision"] == "bf16" and choice["batch"] == 16 and choice["accumulate"] == 1
assert choice["recompute"] is False and choice["loss_scale"] == "none" and choice["clip"] == 1
assert "default: bf16" in choice["policy"]
names = [c["name"] for c in o["candidates"]]
assert names == ["fp32", "tf32", "bf16", "fp16", "fp8"], names
for c in o["candidates"]:
    assert set("name memory ms source verdict why".split()) <= set(c), c
    assert c["why"] and c["verdict"]
    if c["name"] != "fp8":
        assert c["source"] == "modelled" and c["memory"] > 0 and c["ms"] > 0
        assert abs(c["cost"] - 2.5 * c["run_seconds"] / 3600) < 1e-6
assert isinstance(o["remedies"], list)
safe, faster, smaller = o["judgements"]  # all of it is predicted here, and says so
assert [j["claim"] for j in o["judgements"]] == ["safe", "faster", "smaller"]
assert all(j["evidence"] == "predicted" for j in (safe, faster)), o["judgements"]
assert (safe["verdict"], safe["needs"], faster["verdict"]) == ("undecided", 6, "yes"), o["judgements"]
assert safe["margin"] == 0.005 and 0 < safe["value"] < 0.005 and faster["value"] > 1
assert o["proof"] == "mixt verify net.yaml precision=bf16", o["proof"]
assert choice["largest_reason"] and o["price"] == 2.5 and o["price_source"] == ""
assert all(c["judgement"]["claim"] == "safe" for c in o["candidates"])
PY
# What is only predicted refuses nothing: it is open.
advise 0 net.yaml --machine a100 --lose 0.1% --json
python3 - <<'PY' || fail "a tolerance below the prediction: $(cat out)"
import json
o = json.load(open("out"))
bf16 = next(c for c in o["candidates"] if c["name"] == "bf16")
assert bf16["judgement"]["verdict"] == "undecided" and bf16["judgement"]["evidence"] == "predicted", bf16
assert o["choice"]["precision"] != "bf16"
PY
advise 0 net.yaml --machine v100 --json
grep -q '"precision":"fp16"' out && grep -q '"loss_scale":"dynamic"' out || fail "a V100: $(cat out)"

# ---- for people ----

advise 0 net.yaml --machine v100
grep -q '^machine  *NVIDIA V100' out && grep -q '^precision  *fp16: ' out && grep -q '^with  *dynamic loss scaling, clipping at 1; batch 16, 1 pass per update' out &&
    grep -q '^bf16 .* no units  *this machine has no units for bf16' out && grep -q 'modelled' out || fail "the text: $(cat out)"
[ -s err ] && fail "said on standard error: $(cat err)"
grep -q '^safe: undecided; loss .*, margin 0.5%; predicted, 6 more pairs would decide$' out && grep -q '^to verify  *mixt verify net.yaml precision=fp16$' out || fail "what would prove it: $(cat out)"
grep -q 'the largest batch that fits is 64: the data has no more samples for an update$' out || fail "64 samples, and all of them fit: $(cat out)"
advise 0 net.yaml --machine a100
grep -q '^cost of the whole run at 1.84 per hour: .*dollars' out || fail "the currency of the profile: $(cat out)"
advise 0 net.yaml --machine a100 --cost 3/h
grep -q '^cost of the whole run at 3.00 per hour: in the currency of --cost\.$' out || fail "the currency of --cost: $(cat out)"
advise 1 net.yaml --machine v100 --memory 1M
grep -q 'nothing fits' out || fail "1 MiB: $(cat out)"
advise 0 net.yaml --machine v100 --memory 16M
grep -q 'to make it fit: set train.memory=16M' out && grep -q '^decided by memory' out || fail "16 MiB: $(cat out)"
advise 0 net.yaml --machine h100 --lose 0
grep -q '^precision  *fp32' out && grep -q '^decided by accuracy' out || fail "--lose 0: $(cat out)"

# ---- the policy ----

advise 0 net.yaml --machine v100 --out policy.yaml
grep -q '^default: fp16' policy.yaml && grep -q '^made_by: .*mixt advise' policy.yaml && grep -q 'decided_by' policy.yaml || fail "the policy: $(cat policy.yaml)"
"$mixt" train net.yaml precision=policy.yaml train.steps=2 out=trained -q || fail "training does not take the policy"
before=$(cksum <policy.yaml)
advise 1 net.yaml --machine a100 --out policy.yaml
grep -q 'policy.yaml: exists already: .*--overwrite' err && [ ! -s out ] && [ "$(cksum <policy.yaml)" = "$before" ] || fail "an old policy: $(cat out err)"
advise 0 net.yaml --machine a100 --out policy.yaml --overwrite
grep -q '^default: bf16' policy.yaml || fail "--overwrite: $(cat policy.yaml)"
advise 1 net.yaml --machine a100 --out net.yaml --overwrite
grep -q 'is the configuration itself' err && grep -q '^model: gpt' net.yaml || fail "the configuration: $(cat err)"
advise 1 net.yaml --machine v100 --memory 1M --out nothing.yaml
[ -e nothing.yaml ] && fail "a policy that does not fit was written"

# ---- this machine, and a run on it: that times are measured, not which they are ----

cat >tiny.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 0, steps: 20, batch: 32}
YAML
"$mixt" train tiny.yaml out=run -q || fail "training"
before=$(cd run && find . -type f | sort | xargs cksum)
for what in tiny.yaml run; do
    advise 0 $what --trial 3 --json -q
    python3 - $what <<'PY' || fail "a trial: $(cat out)"
import json, sys
o = json.load(open("out"))
assert o["machine"] == "this machine" and not o["assumed"]
names = {c["name"]: c for c in o["candidates"]}
assert len({names[n]["source"] for n in ("fp32", "bf16", "fp16")}) == 1 # all in turn, or none where there was no time
assert all(names[n]["ms"] > 0 for n in ("fp32", "bf16", "fp16"))
assert names["tf32"]["verdict"] == "no units" and names["fp8"]["verdict"] == "not trained"
assert names[o["choice"]["precision"]]["verdict"] == "chosen"
assert sys.argv[1] != "run" or o["looked_at"] == "fp32"
for r in o["remedies"]:
    assert r["what"] and r["text"] and 0.02 <= r["share"] <= 1 and 0 <= r["gain"] <= r["share"] + 1e-9, r
PY
    [ -s err ] && fail "-q said: $(cat err)"
done
[ "$(cd run && find . -type f | sort | xargs cksum)" = "$before" ] || fail "the run was touched"

# ---- why it is not faster ----

advise 0 tiny.yaml net.hidden='[511]' train.batch=512 data.limit=2000 --machine v100
grep -q 'unaligned products  *a dimension of 511 is not a multiple of 8, so that .*: make it 512: fc' out || fail "a dimension of 511: $(cat out)"
advise 0 tiny.yaml --machine h100
grep -q 'launches of small ops' out && grep -q 'a small batch  *train.batch=64 instead of 32' out || fail "small work: $(cat out)"

# ---- machines of one's own ----

mkdir own && sed 's/^name: .*/name: mine/; s/^title: .*/title: My card/' "$root/profiles/t4.yaml" >own/mine.yaml
MIXT_PROFILES=own advise 0 net.yaml --machine mine
grep -q '^machine  *My card, assumed: mine' out || fail "a profile of one's own: $(cat out)"
advise 0 net.yaml --machine own/mine.yaml --json
grep -q '"machine":"mine"' out || fail "a profile by its path: $(cat out)"

[ $failures = 0 ] && echo "advise: all good"
exit $((failures > 0))
