#!/bin/bash
# Another policy that one rank asks for is taken by all at the same update. Usage: ranks_policy.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
need_ranks

cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [24]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, log_every: 1}
dist: {timeout: 10, check: 1}
Y
export MIXT_MPI_LIBRARY=$(dirname "$mixt")/libmixt_mpi.so
ask() { ranks 2 -x MIXT_MPI_LIBRARY "$(dirname "$mixt")/tests/ranks_policy" run.yaml "$@" >said 2>&1 || fail "$*: $(cat said)"; }

ask none - -
ask first bf16 -
ask second - bf16
ask both bf16 bf16
for run in first second both; do
    grep -q '"policy"' $run/history.jsonl || fail "$run: no other policy in its history: $(cat $run/history.jsonl)"
    cmp -s none/model.safetensors $run/model.safetensors && fail "$run: the weights of fp32"
    same first $run
done
ask differ bf16 fp16
grep -q 'step 3: continues with the policy that it had: ranks 0 and 1 ask for different ones' said || fail "different policies: $(cat said)"
same none differ

[ $failures = 0 ]
