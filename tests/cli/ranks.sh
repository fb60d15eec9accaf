#!/bin/bash
# Training in several processes: the same bits as in one, one run directory, ranks that fail. Usage: ranks.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1

cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [24]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1}
Y

# ---- one process ----

"$mixt" train run.yaml out=one -q || fail "one process"
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "dist.ranks=2 in one process"
"$mixt" train run.yaml out=accumulated train.batch=8 train.accumulate=2 -q || fail "accumulation"
same parts accumulated
"$mixt" train run.yaml out=uneven dist.ranks=3 -q 2>err && fail "3 ranks and a batch of 16"
grep -q '3 ranks: must divide the batch, 16' err || fail "3 ranks and a batch of 16: $(cat err)"
"$mixt" train run.yaml out=many dist.ranks=32 -q 2>err && fail "32 ranks and a batch of 16"
grep -q '32 ranks are more than a batch has samples, 16' err || fail "32 ranks and a batch of 16: $(cat err)"
"$mixt" plan run.yaml dist.ranks=4 --ranks 2 >out 2>err && fail "plan with dist.ranks=4 and --ranks 2"
grep -q '^mixt: dist.ranks=4 makes this a run of 4 ranks, .* as one of 2 that a launcher starts (--ranks)' err || fail "plan with dist.ranks=4 and --ranks 2: $(cat err)"
"$mixt" plan run.yaml dist.ranks=4 --ranks 2 --largest-batch --memory 4M >out 2>err && fail "the largest batch with dist.ranks=4 and --ranks 2"
"$mixt" plan run.yaml dist.ranks=2 --ranks 2 >out 2>err || fail "plan with dist.ranks=2 and --ranks 2: $(cat err)"
[ ! -e uneven ] && [ ! -e many ] || fail "a refused run has left a directory"

need_ranks

# ---- the same bits ----

ranks 1 "$mixt" train run.yaml out=alone -q || fail "one rank: $?"
same one alone
ranks 2 "$mixt" train run.yaml out=two >out 2>said || fail "two ranks: $(cat said)"
same parts two
[ "$(grep -c '^ranks    2 over Open MPI' said)" = 1 ] && grep -q '^ranks .*MiB sent per rank; sums took' said || fail "what is said of ranks: $(cat said)"
[ "$(grep -c '^run  *two$' out)" = 1 ] || fail "one table: $(cat out)"
moments() { "$mixt" plan run.yaml "$@" --json | sed 's/.*"moments":\([0-9]*\).*/\1/'; }
[ $(($(moments --ranks 2 dist.zero=1) * 2 - $(moments --ranks 2))) -le 512 ] || fail "dist.zero=1 keeps $(moments --ranks 2 dist.zero=1) bytes of $(moments --ranks 2) of moments"
planned=$("$mixt" plan run.yaml --ranks 2 --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," two/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' two/metrics.jsonl | head -1)"
"$mixt" plan run.yaml --ranks 2 | grep -q '^one of 2 ranks: it sends .* per update' || fail "plan --ranks: $("$mixt" plan run.yaml --ranks 2 | tail -3)"
"$mixt" plan run.yaml --ranks 2 dist.zero=2 --machine h100 | grep -q '^  weights .* [0-9]*\.[0-9]*$' || fail "plan --ranks --machine: $("$mixt" plan run.yaml --ranks 2 --machine h100 | tail -5)"
"$mixt" plan run.yaml --ranks 2 dist.zero=3 --machine t4 --json | grep -q '"rank_weights":[1-9][0-9]*,"rank_seconds":[0-9.e-]*' || fail "plan --ranks --machine --json"
held=$("$mixt" plan run.yaml --ranks 2 --json | sed 's/.*"run_memory":.*"total":{"host":\([0-9]*\).*/\1/')
ranks 2 "$mixt" train run.yaml out=held --json 2>err | grep -q "\"host_planned\":$held" || fail "the whole run was planned with $held bytes"
"$mixt" plan run.yaml --ranks 2 --largest-batch --memory 4M --json >largest.json || fail "the largest batch of ranks"
batch=$(sed 's/.*"batch":\([0-9]*\).*/\1/' largest.json)
[ $((batch % 2)) = 0 ] && ranks 2 "$mixt" train run.yaml out=large train.batch="$batch" train.memory=4M train.memory_may=[] train.steps=1 -q 2>err || fail "the largest batch of 2 ranks, $batch: $(cat err)"
"$mixt" plan run.yaml --ranks 2 train.batch=$((batch + 2)) train.memory=4M train.memory_may=[] >/dev/null 2>err && fail "a larger batch of 2 ranks than $batch fits"
ls two/checkpoints | grep -q 'step-00000006' || fail "no checkpoint: $(ls two/checkpoints)"

# MODEL SETTINGS...: in one process and over MPI, on $n ranks, and as on a GPU
bits() {
    local name=$1-$2
    shift 2
    "$mixt" train run.yaml "out=$name-one" "dist.ranks=$n" "$@" -q 2>err || { fail "$name in one process: $(cat err)"; return; }
    ranks "$n" "$mixt" train run.yaml "out=$name-ranks" "$@" -q 2>err || { fail "$name on $n ranks: $(cat err)"; return; }
    same "$name-one" "$name-ranks"
    MIXT_DISCRETE=1 ranks "$n" "$mixt" train run.yaml "out=$name-apart" "$@" -q 2>err || { fail "$name as on a GPU: $(cat err)"; return; }
    same "$name-one" "$name-apart"
    planned=$(MIXT_DISCRETE=1 "$mixt" plan run.yaml --ranks "$n" "$@" --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
    grep -q "\"memory\":$planned," "$name-apart/metrics.jsonl" || # the step's, of the last phase
        fail "$name as on a GPU: planned $planned bytes, $(grep -o '"memory":[0-9]*' "$name-apart/metrics.jsonl" | sort -u)"
}
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32'
conv='net.hidden=[] net.channels=[4,8] net.norm=batch train.accumulate=2'
n=2
bits convnet bf16 model=convnet precision=bf16 $conv
bits lstm fp32 model=lstm precision=fp32 $tokens net.hidden=[] train.split=2
bits mlp reduce model=mlp dist.reduce=bf16 train.optimizer=lamb
printf 'default: bf16\nphases:\n  - {name: first, until: 3, default: fp32}\n  - {name: second}\n' >phases.yaml
bits mlp zero dist.zero=1 precision=phases.yaml train.checkpoint_every=2 train.keep=9
for step in 2 4 6; do
    cmp mlp-zero-one/checkpoints/step-0000000$step/state.safetensors mlp-zero-ranks/checkpoints/step-0000000$step/state.safetensors ||
        fail "dist.zero=1: another state after update $step"
done
n=4
bits gpt fp16 model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 net.dropout=0.1 train.clip=0.5 dist.bucket=4K
deep='model=gpt net.hidden=[] net.heads=2'
bits gpt zero2 dist.zero=2 precision=bf16 $tokens $deep net.layers=6 dist.reduce=fp16 dist.bucket=16K train.clip=0.5
role() { "$mixt" plan run.yaml $tokens $deep net.layers=24 net.width=64 --ranks 4 "dist.zero=$1" --json | grep -o "\"$2\":[0-9]*" | head -1 | sed 's/.*://'; }
[ $(($(role 2 gradients) * 2)) -lt "$(role 1 gradients)" ] || fail "dist.zero=2 keeps $(role 2 gradients) bytes of $(role 1 gradients) of gradients"
[ $(($(role 2 moments) * 4 - $(role 0 moments))) -le 131072 ] || fail "dist.zero=2 keeps $(role 2 moments) bytes of $(role 0 moments) of moments" # a chunk a rank

bits gpt zero3 dist.zero=3 precision=bf16 $tokens $deep net.layers=4 dist.bucket=16K train.clip=0.5 train.accumulate=2 watch.every=2 train.keep=9
cmp gpt-zero3-one/checkpoints/step-00000006/state.safetensors gpt-zero3-ranks/checkpoints/step-00000006/state.safetensors || fail "dist.zero=3: another state"
for level in 0 3; do
    of=$(role $level parameters)
    [ $level = 0 ] && whole=$of
done
[ $((of * 4 - whole)) -le 65536 ] || fail "dist.zero=3 keeps $of bytes of $whole of parameters"
[ $(($(role 3 copies) * 2)) -lt "$whole" ] || fail "dist.zero=3 gathers $(role 3 copies) bytes at once"
n=2
bits mlp zero3 dist.zero=3 precision=phases.yaml net.hidden=[64,64,64] train.checkpoint_every=3
bits mlp lamb dist.zero=1 precision=fp16 train.optimizer=lamb net.hidden=[64] 'train.lr_groups=fc.0*=0.3' train.inject_overflow=2
for level in 0 3; do
    limited="net.hidden=[64,64,64] train.batch=256 train.memory=4M dist.zero=$level"
    ranks 2 "$mixt" train run.yaml out=limited-$level $limited -q 2>err || fail "train.memory on two ranks: $(cat err)"
    planned=$("$mixt" plan run.yaml --ranks 2 $limited --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
    grep -q "\"memory\":$planned," limited-$level/metrics.jsonl || fail "train.memory on two ranks, dist.zero=$level: planned $planned bytes, $(grep -o '"memory":[0-9]*' limited-$level/metrics.jsonl | head -1)"
done

# ---- a trace of communication ----

ranks 2 "$mixt" train run.yaml out=traced dist.bucket=4K --profile -q >out 2>err || fail "--profile: $(cat err)"
sed -i 's|\x1b\[[0-9;]*m||g' out # mpirun gives ranks a terminal
grep -q '^ *bucket  *bytes  *ready ms  *start ms  *ended ms  *hidden ms' out && grep -q '^ *1  *4096  ' out || fail "no trace: $(cat out)"
grep -q '^communication of all updates: [0-9]* bytes sent by this rank; sums took [0-9.]* s, [0-9.]*% of it hidden' out || fail "no hidden share: $(cat out)"
same two traced
ranks 2 "$mixt" train run.yaml out=traced-json --profile --json 2>err | grep -q '"communication":{"sent":[0-9]*,.*"buckets":\[{"bytes":' || fail "--profile --json: $(cat err)"
"$mixt" train run.yaml out=traced-one --profile -q | grep -q '^communication: none, there is one process' || fail "--profile in one process"

# ---- threads: the fewest that a rank may use, where none was told ----

(unset MIXT_THREADS && ranks 1 env OMPI_COMM_WORLD_LOCAL_SIZE=1 "$mixt" train run.yaml out=fewest -q : -n 1 "$mixt" train run.yaml out=fewest -q 2>err) ||
    fail "ranks with more cores and less: $(cat err)"

# ---- an overflow on one rank: all skip ----

timeout 60 mpirun -n 1 "$mixt" train run.yaml out=skip precision=fp16 -q : \
    -n 1 "$mixt" train run.yaml out=skip precision=fp16 train.inject_overflow=3 -q 2>err || fail "an overflow on one rank: $(cat err)"
"$mixt" train run.yaml out=skip-one precision=fp16 train.inject_overflow=3 dist.ranks=2 -q || fail "an overflow in one process"
same skip-one skip
MIXT_DISCRETE=1 "$mixt" train run.yaml out=skip-apart precision=fp16 train.inject_overflow=3 dist.ranks=2 -q || fail "an overflow as on a GPU"
same skip-one skip-apart
[ "$(grep -c '"skipped":1' skip/metrics.jsonl)" = 1 ] || fail "one update is skipped: $(cat skip/metrics.jsonl)"

# ---- going on: the same bits on as many ranks, and on others ----

ranks 2 "$mixt" train run.yaml out=part train.steps=3 dist.zero=1 -q 2>err || fail "half a run: $(cat err)"
cp -r part part-one && rm part-one/model.safetensors
ranks 2 "$mixt" train --resume part train.steps=6 -q 2>err || fail "going on: $(cat err)"
same two part
"$mixt" train --resume part-one train.steps=6 -q 2>err || fail "going on in one process: $(cat err)"
grep -q 'part-one resumes with 1 rank instead of 2: the bits' err || fail "going on in one process: $(cat err)"

ranks 4 "$mixt" train run.yaml out=shared train.steps=3 dist.zero=3 train.batch=24 -q 2>err || fail "half a run with dist.zero=3: $(cat err)"
for n in 1 3; do
    cp -r shared "shared-$n" && cp -r shared "parts-$n"
    ranks $n "$mixt" train --resume "shared-$n" train.steps=6 dist.zero=$((n % 3)) -q 2>err || fail "going on from dist.zero=3 on $n ranks: $(cat err)"
    "$mixt" train --resume "parts-$n" train.steps=6 dist.ranks=$n dist.zero=0 -q 2>err || fail "going on in one process: $(cat err)"
    same "shared-$n" "parts-$n"
done

# ---- ranks that see other checkpoints: nothing is thrown away ----

ranks 2 "$mixt" train run.yaml out=seen train.checkpoint_every=3 -q 2>err || fail "a run with checkpoints: $(cat err)"
mkdir apart && cp -r seen apart && rm -r apart/seen/checkpoints/step-00000006
ranks 1 "$mixt" train --resume seen train.steps=9 -q : -n 1 --wdir "$work/apart" "$mixt" train --resume seen train.steps=9 -q 2>err && fail "ranks that see other checkpoints"
grep -q '^mixt: .*seen: rank 1 finds no checkpoint newer than that of step 3, another one that is' err || fail "other checkpoints: $(cat err)"
[ -e seen/checkpoints/step-00000006 ] || fail "a whole checkpoint is gone: $(ls seen/checkpoints)"

# ---- what cannot be: named once, all ranks end, nothing is left ----

# refused WORDS: status 1, one message with these words
refused() {
    [ $status = 1 ] || fail "'$1': status $status"
    [ "$(grep -c '^mixt: ' err)" = 1 ] && grep -q "^mixt: .*$1" err || fail "'$1': $(cat err)"
    [ ! -e never ] || { fail "'$1': a directory is left"; rm -r never; }
}
ranks 1 "$mixt" train run.yaml out=never -q : -n 1 "$mixt" train run.yaml out=never -q train.lr=5 2>err
status=$? && refused 'rank 1: ranks have different configurations: train.lr is 5 here, 0.001 on rank 0'
ranks 1 "$mixt" train run.yaml out=never -q : -n 1 "$mixt" train run.yaml out=never -q threads=2 2>err
status=$? && refused 'ranks differ in their device or threads, .*: rank 0 has cpu with threads=1, rank 1 has cpu with threads=2'
ranks 1 "$mixt" train run.yaml out=never -q : -n 1 env MIXT_THREADS=2 "$mixt" train run.yaml out=never -q 2>err
status=$? && refused 'ranks differ in their device or threads, .*: rank 0 has cpu with threads=1, rank 1 has cpu with threads=2'
faults=$(dirname "$mixt")/tests/libtest_faults.so
if LD_PRELOAD=$faults "$mixt" --version >/dev/null 2>&1; then
    ranks 1 "$mixt" train run.yaml out=never -q : -n 1 env LD_PRELOAD="$faults" MIXT_TORTURE_LIBC=1.2 "$mixt" train run.yaml out=never -q 2>err
    status=$? && refused 'ranks differ in their C library, .*: rank 0 has [0-9.]*, rank 1 has 1.2'
fi
ranks 1 "$mixt" train run.yaml out=default train.steps=1 -q : -n 1 env MIXT_FUSION= "$mixt" train run.yaml out=default train.steps=1 -q 2>err || fail "MIXT_FUSION= is not its default: $(cat err)"
for other in 'MIXT_ISA=scalar:instruction set (MIXT_ISA), .*: rank 0 has [a-z0-9_-]*, rank 1 has scalar' \
    'MIXT_FUSION=0:MIXT_FUSION, .*: rank 0 has 1, rank 1 has 0' \
    'MIXT_CANDIDATE=matmul=plain:MIXT_CANDIDATE, .*: rank 0 has none, rank 1 has matmul=plain'; do
    ranks 1 "$mixt" train run.yaml out=never -q : -n 1 env "${other%%:*}" "$mixt" train run.yaml out=never -q 2>err
    status=$? && refused "ranks differ in their ${other#*:}"
done
echo 'a,b,c' >rows.csv && for i in $(seq 99); do echo "$i,1,$((i % 2))"; done >>rows.csv
mkdir elsewhere && sed 's/^99,1/98,1/' rows.csv >elsewhere/rows.csv
ranks 1 "$mixt" train run.yaml out=never data.kind=csv data.path=rows.csv data.samples=0 -q : \
    -n 1 --wdir /tmp "$mixt" train "$work/run.yaml" out=never data.kind=csv data.path=rows.csv data.samples=0 -q 2>err
status=$? && refused 'rank 1: .*rows.csv: No such file'
ranks 1 "$mixt" train run.yaml out=never data.kind=csv data.path=rows.csv data.samples=0 -q : \
    -n 1 --wdir "$work/elsewhere" "$mixt" train ../run.yaml out=never data.kind=csv data.path=rows.csv data.samples=0 -q 2>err
status=$? && refused 'ranks differ in their data: rank 0 has .* samples'
MIXT_MPI_LIBRARY=$work/none.so ranks 2 -x MIXT_MPI_LIBRARY "$mixt" train run.yaml out=never -q 2>err
status=$? && refused 'the transport mpi is not here: .*none.so'
sed 's/nothing is overwritten/nothing is overwritTen/' "$mixt" >other && chmod +x other # a build that differs in a letter
cmp -s other "$mixt" && fail "the other build is the same"
MIXT_MPI_LIBRARY=$(dirname "$mixt")/libmixt_mpi.so ranks 1 -x MIXT_MPI_LIBRARY "$mixt" train run.yaml out=never -q : -n 1 -x MIXT_MPI_LIBRARY ./other train run.yaml out=never -q 2>err
status=$? && refused 'ranks differ in their build: rank 0 has mixt .*, code [0-9a-f]*, rank 1 has mixt'
ranks 1 "$mixt" train run.yaml out=never -q : -n 1 env MIXT_MPI_LIBRARY="$work/none.so" "$mixt" train run.yaml out=never -q 2>err
status=$? && refused 'rank 1: the transport mpi is not here: .*none.so'
ranks 1 "$mixt" train run.yaml out=never dist.timeout=1 -q : -n 1 sleep 30 2>err
status=$? && refused 'not all ranks have started within 10 s (ten times dist.timeout)'
ranks 2 "$mixt" train run.yaml out=never dist.ranks=4 -q 2>err
status=$? && refused 'dist.ranks is 4, but Open MPI started 2'
ranks 2 "$mixt" train run.yaml out=never dist.zero=2 faults=nan:fc -q 2>err
status=$? && refused 'faults need the gradients on every rank: set dist.zero=0 or 1'
"$mixt" train run.yaml out=never dist.bucket=1K -q 2>err
status=$? && refused 'dist.bucket 1K: must be from 4K to 1G'

# ---- ranks that were started for different runs ----

cp -r seen copy && ln -s seen link
find seen copy -type f -exec md5sum {} + >sums
ranks 1 "$mixt" train run.yaml out=never -q : -n 1 "$mixt" train --resume seen train.steps=9 -q 2>err
status=$? && refused 'rank 1: ranks were started for different runs: --resume seen here, a new run on rank 0'
ranks 1 "$mixt" train --resume seen train.steps=9 -q : -n 1 "$mixt" train run.yaml out=seen -q 2>err
status=$? && refused 'rank 1: ranks were started for different runs: a new run here, --resume seen on rank 0'
ranks 2 "$mixt" train --resume seen train.steps=9 -q : -n 1 "$mixt" train --resume copy train.steps=9 -q 2>err
status=$? && refused 'rank 2: ranks were started for different runs: --resume copy here, --resume seen on rank 0'
md5sum -c sums --quiet || fail "ranks of different runs have changed one"
ranks 1 "$mixt" train --resume seen train.steps=9 -q : -n 1 "$mixt" train --resume "$work/link" train.steps=9 -q 2>err || fail "a run by two names: $(cat err)"

# ---- a rank that computes something else ----

check() { timeout 60 mpirun -n 1 "$mixt" train run.yaml out=odd dist.check=2 -q : -n 1 "$mixt" train run.yaml out=odd dist.check=2 -q "$1" : \
    -n "$2" "$mixt" train run.yaml out=odd dist.check=2 -q 2>err; }
check faults=flip_weight@3:fc.0 2
[ $? = 1 ] && grep -q '^mixt: rank 1 (process .* on .*) has computed other weights than rank 0 and most others, found after update 4' err || fail "a bit of a weight of rank 1: $(cat err)"
rm -r odd && check train.inject_overflow=0 2 || fail "dist.check of ranks that agree: $(cat err)"

# ---- ranks that die, hang, are told to stop ----

# begin NAME N [MPIRUN'S OPTIONS...]: a long run of N ranks; waits until it trains, leaves their processes in the array rank
begin() {
    timeout 120 mpirun "${@:3}" -n "$2" "$mixt" train run.yaml "out=$1" train.steps=1000000 train.checkpoint_every=20 dist.timeout=3 \
        watch.monitor=false -q 2>err &
    job=$!
    for _ in $(seq 3000); do [ "$(ls "$1/checkpoints" 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.02; done
    for process in $(pgrep -P "$(pgrep -P $job)"); do # of timeout, of mpirun
        [ "$(cat "/proc/$process/comm")" = mixt ] || continue
        rank[$(tr '\0' '\n' <"/proc/$process/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')]=$process
    done
}
# whole NAME: what was saved can be gone on from
whole() { "$mixt" train --resume "$1" dist.ranks=2 train.steps=$((1 + $(ls "$1/checkpoints" | tail -1 | sed 's/step-0*//'))) -q 2>err || fail "$1 does not go on: $(cat err)"; }

begin killed 2
kill -KILL "${rank[1]}"
wait $job
grep -q "^mixt: rank 1 (process ${rank[1]} on .*) ended before the run did: its state is lost" err || grep -q 'rank 1 with PID' err || fail "a rank was killed: $(cat err)"
whole killed
for lost in '0 1' '1 2'; do # one that is left says so, once
    begin "lost-${lost% *}" 4 --mca odls_base_sigkill_timeout 3
    kill -KILL "${rank[${lost% *}]}" "${rank[${lost#* }]}"
    wait $job
    [ "$(grep -c '^mixt: ' err)" = 1 ] && grep -q "^mixt: rank [$lost] (process .*) ended before the run did: its state is lost" err || fail "ranks $lost were killed: $(cat err)"
    whole "lost-${lost% *}"
done
begin hung 2
kill -STOP "${rank[0]}"
wait $job
status=$?
kill -KILL "${rank[0]}" 2>/dev/null
[ $status = 1 ] && grep -q "^mixt: rank 0 (process ${rank[0]} on .*) has not answered for 3 s (dist.timeout)" err || fail "a rank hangs: status $status, $(cat err)"
whole hung
begin told 2
kill -TERM "${rank[1]}"
wait $job
[ $? = 143 ] && grep -q '^mixt: stopped by SIGTERM after step ' err || fail "one rank was told to stop: $(cat err)"
whole told

[ $failures = 0 ]
