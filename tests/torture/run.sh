#!/bin/bash
# Runs of each command in which the n-th allocation or system call fails: no signal, no hang; words and a status that is
# not 0, or what an undisturbed run gives; files that were there stay whole; going on gives the undisturbed bits.
# Usage: run.sh MIXT FAULTS [EVERY [SUBJECT...]]    FAULTS: the library of faults.c; EVERY: one case of so many, default 1
. "$(dirname "$0")/../support/script.sh"
faults=$(realpath "$2") every=${3:-1}
shift $(($# < 3 ? $# : 3))
[ $# = 0 ] && set -- train resume fork eval predict generate export convert plan report plot search sensitivity advise \
    compare pairs adopt verify debug tokenize
# Where the sanitizers' own allocator is, no other can be preloaded.
LD_PRELOAD=$faults "$mixt" --version >/dev/null 2>&1 || skip "the library of faults cannot be preloaded"
export MIXT_CUDA_LIBRARY=$work/none.so MIXT_CACHE=$work/cache
cd "$work" || exit 1
cases=0

# ---- what all begin with ----

mkdir fresh && cd fresh || exit 1
cat >base.yaml <<'YAML'
model: mlp
precision: bf16
device: cpu
threads: 1
net: {hidden: [4]}
data: {kind: digits, limit: 64}
train: {epochs: 0, steps: 4, batch: 16, lr: 0.01, checkpoint_every: 2, log_every: 1, validate_every: 2}
YAML
cat >gpt.yaml <<'YAML'
model: gpt
device: cpu
threads: 1
net: {layers: 1, width: 8, heads: 2}
data: {kind: text, path: words.txt, seq: 8}
train: {epochs: 0, steps: 2, batch: 4, checkpoint_every: 1}
YAML
sed 's/bf16/fp32/' base.yaml >fp32.yaml
yes 'the quick brown fox' | head -c 1000 >words.txt
"$mixt" train base.yaml out=run -q && "$mixt" train fp32.yaml out=other -q && "$mixt" train gpt.yaml out=writer -q || fail "runs to begin with"
cd ..

declare -A command
command[train]='train base.yaml out=new train.steps=8 -q'
command[resume]='train --resume run train.steps=8 -q'
command[fork]='train --resume run out=new train.steps=8 -q'
command[eval]='eval run'
command[predict]='predict run train:0-3'
command[generate]='generate writer --prompt the --tokens 4 --seed 1'
command[export]='export writer --out new'
command[convert]='convert run/model.safetensors new.safetensors --dtype fp16'
command[plan]='plan base.yaml'
command[report]='report run other --out new.html'
command[plot]='plot run other --out new.svg'
command[search]='search base.yaml --for memory --lose 50% --steps 2 --trials 2 --out new.yaml -q'
command[sensitivity]='sensitivity base.yaml --formats bf16 --trials 1 --confirm 0 --out new.svg -q'
command[advise]='advise base.yaml --trial 0 --out new.yaml -q'
command[compare]='compare run other'
command[pairs]='compare fp32.yaml base.yaml train.steps=1 train.checkpoint_every=0 --name new --seeds 6 --margin 50% -q'
command[adopt]='adopt fp32.yaml --name new --for memory --margin 50% --steps 1 --seeds 6 --to baseline -q'
command[verify]='verify base.yaml verify.speedup=0.0001 --seeds 1 --steps 2 --out new.json -q'
command[debug]='debug run'
command[tokenize]='tokenize words.txt --train --size 260 --out new'

# ---- comparing ----

# figures FILE...: without what another run measures otherwise; whether verify found it faster, and worth it, is such a thing
figures() { sed -E '/^ *faster: /d; s/not worth it here/worth it here/g; s/-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?/N/g; s/(N +)+/N /g; s/ +/ /g' "$@"; }
# rows FILE: of metrics, without time
rows() { sed -E 's/,"(samples_s|time|checkpoint_stall|memory)":[^,}]*//g; s/,"memory_by_role":\{[^}]*\}//' "$1"; }
sums() { (cd "$1" && find . -type f | sort | xargs -r -d '\n' cksum); }
# same KIND A B
same() {
    case $1 in
    bytes) cmp -s "$2" "$3" ;;
    rows) cmp -s <(rows "$2") <(rows "$3") ;;
    figures) cmp -s <(figures "$2") <(figures "$3") ;;
    there) [ -s "$3" ] ;;
    esac
}
# new_case: a folder as each begins
new_case() { rm -rf case && cp -a fresh case; }
# disturbed SETTING... -- SUBJECT: in case; leaves status, case.out, case.err
disturbed() {
    (cd case && timeout --signal=KILL 60 env "${setting[@]}" LD_PRELOAD="$faults" "$mixt" ${command[$1]} >../case.out 2>../case.err </dev/null)
    status=$?
}

# learn SUBJECT: what it does undisturbed, twice; leaves how (file -> how to compare), whole (files it does not change), $calls, $allocations
learn() {
    local round file path
    rm -rf count good good2
    for round in good good2; do
        new_case
        setting=(MIXT_TORTURE_COUNT=$work/count)
        disturbed "$1"
        [ $status = 0 ] || [ $status = 4 ] || { fail "$1: undisturbed: status $status: $(head -3 case.err)"; return 1; }
        mv case $round && mv case.out $round.out
    done
    good_status=$status
    read -r allocations calls < <(od -An -t d8 count)
    how=() whole=$(comm -12 <(sums fresh | sort) <(sums good | sort))
    while read -r file; do
        [ -e "fresh/$file" ] && cmp -s "fresh/$file" "good/$file" && continue
        how[$file]=there
        for path in figures rows bytes; do
            [[ $path = bytes && $file = *.jsonl ]] || { same $path "good/$file" "good2/$file" && how[$file]=$path; }
        done
    done < <(cd good && find . -type f | sort)
    [ "$1" = verify ] && how[./new.json]=there # which says what it found of speed in many places
    out_as=figures # what may have times in it
    case $1 in eval | predict | generate | export | convert | tokenize | plot | compare) out_as=bytes ;; esac
    same $out_as good.out good2.out || fail "$1: undisturbed: the output is another each time"
}

# goes_on SUBJECT: of a training, the same bits in the end
goes_on() {
    local folder=new
    [ "$1" = resume ] && folder=run
    cmp -s case/$folder/model.safetensors good/$folder/model.safetensors && return # it has come to its end
    # a run that is there is gone on with; what is none gives way to nobody: then it must not be there
    if [ -e case/$folder ]; then
        (cd case && "$mixt" train --resume $folder train.steps=8 -q >/dev/null 2>../on.err)
    else
        (cd case && "$mixt" ${command[$1]} >/dev/null 2>../on.err)
    fi || { finding "$1" "cannot go on: $(head -c 300 on.err)"; return; }
    cmp -s case/$folder/model.safetensors good/$folder/model.safetensors || finding "$1" "other bits after going on"
    same rows good/$folder/metrics.jsonl case/$folder/metrics.jsonl || finding "$1" "other rows after going on: $(diff <(rows good/$folder/metrics.jsonl) <(rows case/$folder/metrics.jsonl) | head -3)"
    [ -z "$(ls case/$folder/checkpoints | grep damaged)" ] || finding "$1" "a whole checkpoint was called damaged"
}

# says SUBJECT: whether what came out another way names what is missing: the page the file, debug why it has no FP32
says() {
    case $1 in
    report) grep -q '"problems":\["' case/new.html ;;
    debug) grep -q '^  not compared with FP32: .*memory' case.out ;;
    *) false ;;
    esac
}

finding() { fail "$1, $label: $2"; found=$((found + 1)); }

# judge SUBJECT: after disturbed
judge() {
    local file
    if [ $status -ge 124 ] || grep -q 'assert\|double free\|corrupt' case.err; then
        finding "$1" "status $status: $(head -c 200 case.err)"
        return
    elif [ $status = $good_status ] && { [ $status = 0 ] || ! grep -q ^mixt: case.err; }; then
        same "$out_as" good.out case.out || says "$1" || finding "$1" "status $status, other output: $(diff <(figures good.out) <(figures case.out) | head -4 | cut -c1-150); $(head -c 200 case.err)"
        for file in "${!how[@]}"; do
            if [ ! -e "case/$file" ]; then
                [ -s case.err ] || finding "$1" "status $status, $file is missing without a word"
            elif ! same "${how[$file]}" "good/$file" "case/$file"; then
                says "$1" || { { [ "$1" = train ] || [ "$1" = resume ] || [ "$1" = fork ]; } && [ -s case.err ]; } || finding "$1" "status $status, $file is another: $(head -c 200 case.err)"
            fi
        done
    else
        [ -s case.err ] || finding "$1" "status $status without a word"
    fi
    [ -z "$(comm -23 <(echo "$whole" | sort) <(sums case | sort))" ] || finding "$1" "files that were there changed: $(comm -23 <(echo "$whole" | sort) <(sums case | sort) | head -3)"
    case $1 in train | resume | fork) goes_on "$1" ;; esac
}

# ---- going over n ----

# over SUBJECT LABEL COUNT STEP SETTING...
over() {
    local subject=$1 name=$2 count=$3 step=$4 n
    shift 4
    [ "$step" -le "$count" ] || step=$((count > 0 ? count : 1)) # at least one
    for ((n = 1 + (cases % step); n <= count; n += step)); do
        label="$name $n"
        setting=("${@//%/$n}")
        new_case
        disturbed "$subject"
        judge "$subject"
        cases=$((cases + 1))
    done
}

declare -A how
for subject; do
    found=0 before=$cases
    learn "$subject" || continue
    over "$subject" "allocation" "$allocations" "$every" MIXT_TORTURE_ALLOC=%
    over "$subject" "allocations from" "$allocations" $((every * 10)) MIXT_TORTURE_ALLOC=% MIXT_TORTURE_ON=1
    for kind in io files intr short; do
        over "$subject" "$kind at call" "$calls" "$(((every + 3) / 4))" MIXT_TORTURE_CALL=% MIXT_TORTURE_KIND=$kind
    done
    over "$subject" "io from call" "$calls" "$every" MIXT_TORTURE_CALL=% MIXT_TORTURE_KIND=io MIXT_TORTURE_ON=1
    over "$subject" "full from call" "$calls" "$every" MIXT_TORTURE_CALL=% MIXT_TORTURE_KIND=full MIXT_TORTURE_ON=1
    echo "$subject: $((cases - before)) cases, $found findings"
done
echo "$cases cases"
[ $failures = 0 ] || { echo "$failures findings"; exit 1; }
