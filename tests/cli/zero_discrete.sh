#!/bin/bash
# Gradients and weights that ranks share out on a device with memory of its own, with the CPU in a GPU's place and its copies as late
# as they may be: the bits of one process, less memory, overflows, going on, a rank that is lost. Usage: zero_discrete.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
export MIXT_DISCRETE=1
seq 20000 >text
cat >run.yaml <<'Y'
model: gpt
precision: fp16
device: cpu
net: {layers: 6, width: 32, heads: 2}
data: {kind: text, path: text, tokenizer: bytes, seq: 16, limit: 200}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1, clip: 0.5}
dist: {bucket: 16K}
Y

# ---- what is kept where ----

# role LEVEL NAME: bytes of one of four ranks of a deep model
role() { "$mixt" plan run.yaml net.layers=24 net.width=64 dist.bucket=4M --ranks 4 "dist.zero=$1" --json | grep -o "\"$2\":[0-9]*" | head -1 | sed 's/.*://'; }
[ $(($(role 2 gradients) * 2)) -lt "$(role 1 gradients)" ] || fail "dist.zero=2 keeps $(role 2 gradients) bytes of $(role 1 gradients) of gradients"
[ $(($(role 3 parameters) * 4 - $(role 0 parameters))) -le 65536 ] || fail "dist.zero=3 keeps $(role 3 parameters) bytes of $(role 0 parameters) of parameters"
[ $(($(role 3 copies) * 2)) -lt "$(role 0 parameters)" ] || fail "dist.zero=3 gathers $(role 3 copies) bytes at once"

need_ranks

# state FOLDER: of the newest checkpoint
state() { ls -d "$1"/checkpoints/step-* | tail -1 | sed 's|$|/state.safetensors|'; }
# alike FOLDER FOLDER: weights and states
alike() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$1 and $2 have other weights"
    cmp -s "$(state "$1")" "$(state "$2")" || fail "$1 and $2 have other states"
}

# ---- an overflow on one rank alone ----

"$mixt" train run.yaml out=one dist.ranks=2 train.inject_overflow=3 -q || fail "one process"
for level in 2 3; do
    timeout 60 mpirun -n 1 "$mixt" train run.yaml out=skip-$level dist.zero=$level -q : \
        -n 1 "$mixt" train run.yaml out=skip-$level dist.zero=$level train.inject_overflow=3 -q 2>err || fail "dist.zero=$level: $(cat err)"
    same one skip-$level
    alike one skip-$level
    [ "$(grep -c '"skipped":1' skip-$level/metrics.jsonl)" = 1 ] || fail "dist.zero=$level: one update is skipped"
done

# ---- going on: with less sharded, and with more ----

"$mixt" train run.yaml out=whole dist.ranks=2 -q || fail "one process"
ranks 2 "$mixt" train run.yaml out=to-none train.steps=3 dist.zero=3 -q 2>err || fail "half a run with dist.zero=3: $(cat err)"
ranks 2 "$mixt" train --resume to-none train.steps=6 dist.zero=0 -q 2>err || fail "from dist.zero=3 to 0: $(cat err)"
alike whole to-none
ranks 2 "$mixt" train run.yaml out=to-all train.steps=3 dist.zero=2 -q 2>err || fail "half a run with dist.zero=2: $(cat err)"
ranks 2 "$mixt" train --resume to-all train.steps=6 dist.zero=3 -q 2>err || fail "from dist.zero=2 to 3: $(cat err)"
alike whole to-all

# ---- a rank that is lost while weights are gathered ----

timeout 120 mpirun --mca odls_base_sigkill_timeout 10 -n 2 "$mixt" train run.yaml out=lost dist.zero=3 train.steps=1000000 train.checkpoint_every=20 \
    dist.timeout=3 -q 2>err &
job=$!
for _ in $(seq 1000); do [ "$(ls lost/checkpoints 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.02; done
for process in $(pgrep -P "$(pgrep -P $job)"); do # of timeout, of mpirun
    [ "$(cat "/proc/$process/comm")" = mixt ] && tr '\0' '\n' <"/proc/$process/environ" | grep -q '^OMPI_COMM_WORLD_RANK=1' && kill -KILL "$process"
done
wait $job
[ $? != 0 ] && grep -q '^mixt: rank 1 .*' err || fail "a rank that is lost: $(cat err)"

[ $failures = 0 ]
