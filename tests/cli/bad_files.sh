#!/bin/bash
# What is done all the same, with a warning; and places that cannot be read or written: full disks, closed streams, pipes,
# links, names and weights that are none, folders in use.
# Usage: bad_files.sh MIXT
tokens=$(realpath "$(dirname "$0")/../data/tokens")
. "$(dirname "$0")/../support/bad_input.sh"

csv fraction.csv '1,1,2,3,1.5'
csv beyond.csv '1,1,2,3,1e30'
head -c 3000 /dev/urandom >noise.csv
array first.npy '|u1' '64, 3, 16, 16' $((64 * 768))
mkdir pairs && cp "$tokens"/{encoder.json,vocab.bpe} pairs
carried_run

# ---- what is done all the same, with a warning: name | command | words on standard error ----

while IFS='|' read -r name command words; do
    read -ra arguments <<<"$command"
    "$mixt" "${arguments[@]}" -q >../out 2>../err </dev/null
    found=$?
    trim "$name" && name=$trimmed
    trim "$words" && check "$name" 0 "$trimmed"
    rm -rf x
done <<'CASES'
warm-up above the run       | train tiny.yaml out=x train.warmup=9                | warning: train.warmup=9 is longer than the run (8 updates)
steps that epochs cut off   | train tiny.yaml out=x train.steps=400               | warning: train.epochs=1 ends the run after update 8, before train.steps=400
and at a resume             | train --resume run train.steps=400                  | warning: train.epochs=1 ends the run after update 8, before train.steps=400
a single odd label          | train tiny.yaml out=x data.kind=csv data.path=fraction.csv train.batch=8 | warning: fraction.csv: line 32: target 1.5 is not a class, but all others are (0 to 2)
samples of a file           | train tiny.yaml out=x data.kind=csv data.path=good.csv data.samples=4 train.batch=8 | warning: data: samples=4 is for data that mixt generates and has no effect here: use
channels first              | train tiny.yaml out=x data.kind=npy data.path=first.npy data.labels=labels.npy data.limit=0 | warning: first.npy: samples of 3 x 16 x 16 are read as height 3, width 16 and 16 channels
CASES
cp good.csv away.csv && sed -i 's/1.5/2.5/' away.csv
"$mixt" eval carried >../out 2>../err
found=$?; check "eval of other samples" 0 'away.csv: is not the data that carried was trained on'
rm away.csv
"$mixt" predict carried good.npy:0 >../out 2>../err
found=$?; [ $found = 0 ] && [ ! -s ../err ] || fail "a run without its data: status $found, $(cat ../err)"
"$mixt" train tiny.yaml out=x data.kind=csv data.path=beyond.csv data.task=values data.normalise=unit train.batch=8 -q >../out 2>../err
found=$?; check "targets that overflow" 1 'warning: targets reach 1e+30: the first loss will be about'
rm -rf x
"$mixt" train tiny.yaml out=x train.lr=1e30 -q >../out 2>../err
found=$?; check "a run that diverges" 1 'training has diverged; lower train.lr'
grep -q 'loss scale' ../err && fail "a loss scale where the loss is not scaled: $(cat ../err)"
rm -rf x
(ulimit -v 300000; "$mixt" train tiny.yaml out=x train.eval_batch=1000000 -q >../out 2>../err)
found=$?; check "validation above the memory" 0 'there is no memory for train.eval_batch=1000000'
[ -s x/model.safetensors ] || fail "validation above the memory: no weights"
rm -rf x
for variable in MIXT_REPLAY=7 MIXT_FUSION=2; do
    env $variable "$mixt" plan tiny.yaml >../out 2>../err
    found=$?; check "$variable" 1 "${variable%=*}: '${variable#*=}' is neither 0 nor 1"
done
MIXT_CACHE=/proc/none "$mixt" train gpt.yaml out=x data.vocab=pairs train.steps=1 -q >../out 2>../err
found=$?; check "a cache that cannot be written" 0 'warning: words.txt: no cache folder is writable: the text is tokenised again in'
rm -rf x
LC_ALL=de_DE.UTF-8 "$mixt" train tiny.yaml out=x train.lr=0.5 train.steps=1 -q >../out 2>../err
found=$?; [ $found = 0 ] && grep -q 'lr: 0.5' x/config.yaml || fail "a point under another locale: status $found, $(cat ../err)"
rm -rf x

# ---- what a line of a table cannot say ----

"$mixt" train tiny.yaml out=x "data.path=$(printf 'a\nb')" >../out 2>../err
found=$?; check "control character in a setting" 2 'control character U+000A'
"$mixt" train tiny.yaml "out=$(printf 'a\377b')" >../out 2>../err
found=$?; check "setting that is not UTF-8" 2 'text is not UTF-8'
"$mixt" train tiny.yaml "out=$(printf 'a%.0s' {1..2000})" >../out 2>../err
found=$?; check "name of 2000 letters" 1 'longer than 1023 bytes'
"$mixt" plan tiny.yaml data.kind=csv data.path=noise.csv 2>../err
grep -q '[[:cntrl:]]' <(tr -d '\n' <../err) && fail "control characters of a file reach the terminal"

# Files that may not grow: nothing is left half written, and a run that never began leaves no directory.
(ulimit -f 2; "$mixt" train tiny.yaml out=x -q >../out 2>../err)
found=$?; check "no room for the configuration" 1 'x/config.yaml: configuration cannot be written: File too large'
[ -e x ] && fail "a run without configuration left its directory"
(ulimit -f 28; "$mixt" train tiny.yaml out=x -q >../out 2>../err)
found=$?; check "no room for the weights" 1 'x/model.safetensors: cannot be written'
[ "$(ls x)" = $'checkpoints\nconfig.yaml\nevents.jsonl\ninputs.json\nmetrics.jsonl' ] && [ -z "$(ls -A x/checkpoints)" ] || fail "a run without room for its weights left: $(ls x)"
rm -rf x
(ulimit -f 28; "$mixt" train tiny.yaml out=x net.hidden=1 train.epochs=40 -q >../out 2>../err)
found=$?; check "no room for the metrics" 1 'no space for metrics.jsonl: its rows wait in memory from step'
rm -rf x
(ulimit -f 2; "$mixt" convert run/model.safetensors x.safetensors --dtype fp16 >../out 2>../err)
found=$?; check "no room for a converted file" 1 'x.safetensors: cannot be written'
ls | grep -q '^x' && fail "a refused conversion left $(ls | grep '^x')"
if [ -w /dev/full ]; then
    for command in 'plan tiny.yaml' 'eval run' 'help' 'train tiny.yaml out=x --json'; do
        "$mixt" $command >/dev/full 2>../err
        found=$?; check "full disk under $command" 1 'standard output cannot be written: No space left'
    done
    rm -rf x
fi

# Standard output closed: what would be printed must not land in a file of the run.
"$mixt" train tiny.yaml out=x --json >&- 2>../err
found=$?; check "standard output closed" 1 'standard output cannot be written'
grep -q -d skip '"run"' x/* && fail "what was printed went into a file of the run"
rm -rf x
"$mixt" train tiny.yaml out=x <&- >&- 2>&-
"$mixt" eval x >/dev/null 2>&1 || fail "a run without standard streams is not complete"
rm -rf x

# The reader of the progress line goes away: the run does not. (The pipe has no reader by the time mixt writes to it.)
(exec 3> >(:); wait $!; exec "$mixt" train tiny.yaml out=x >../out 2>&3)
found=$?
[ $found = 0 ] && [ -s x/model.safetensors ] || fail "progress into a closed pipe: status $found, left: $(ls x)"
rm -rf x
(exec 3> >(:); wait $!; exec "$mixt" train tiny.yaml out=x >&3 2>../err)
found=$?; tail -1 ../err >../last && mv ../last ../err
check "result into a closed pipe" 1 'standard output cannot be written: Broken pipe'
[ -s x/model.safetensors ] || fail "result into a closed pipe: no weights"
rm -rf x

# Two runs into one folder at once: one gets it, and it is whole.
for i in 1 2 3; do "$mixt" train tiny.yaml out=x -q >/dev/null 2>../err$i & done
wait
[ "$(cat ../err? | grep -c 'run directory x exists already')" = 2 ] || fail "three runs into one folder: $(cat ../err?)"
"$mixt" eval x >/dev/null 2>&1 || fail "three runs into one folder: it is not whole"
rm -rf x ../err?

# FIFOs that nobody writes to: refused, not waited for.
cp -r run pipes && mkfifo pipe.npy && rm pipes/model.safetensors && mkfifo pipes/model.safetensors
timeout 60 "$mixt" convert pipe.npy x.npy --dtype fp16 >../out 2>../err
found=$?; check "convert of a FIFO" 1 'pipe.npy: is not a regular file'
timeout 60 "$mixt" eval pipes >../out 2>../err
found=$?; check "weights are a FIFO" 1 'pipes/model.safetensors: is not a regular file'
timeout 60 "$mixt" train tiny.yaml init=pipes out=x >../out 2>../err
found=$?; check "weights to begin with are a FIFO" 1 'pipes/model.safetensors: is not a regular file'
timeout 60 "$mixt" train gpt.yaml data.kind=tokens data.path=pipe.npy data.vocab=folder out=x >../out 2>../err
found=$?; check "tokens are a FIFO" 1 'folder: no vocabulary here'
rm -r pipes pipe.npy

# Links that lead nowhere or to themselves.
ln -s self self && ln -s nothing dangling
"$mixt" train self 2>../err
found=$?; check "configuration is a loop of links" 1 'self: cannot be opened: Too many levels of symbolic links'
"$mixt" train tiny.yaml out=dangling 2>../err
found=$?; check "run directory is a dangling link" 1 'run directory dangling exists already'
"$mixt" train tiny.yaml data.kind=csv data.path=self out=x 2>../err
found=$?; check "data is a loop of links" 1 'self: Too many levels of symbolic links'
rm self dangling

# Weights that are no numbers: refused; with --not-finite shown, and a failure.
cp -r run diverged
size=$(stat -c %s run/model.safetensors)
header=$(($(od -An -tu8 -N8 run/model.safetensors) + 8))
{ head -c $header run/model.safetensors; head -c $((size - header)) /dev/zero | tr '\0' '\377'; } >diverged/model.safetensors
"$mixt" eval diverged >../out 2>../err
found=$?; check "eval of NaN weights" 1 "diverged: 'fc.0.weight' is not finite (element 0 is nan)" '(--not-finite evaluates them)'
[ -s ../out ] && fail "eval of NaN weights: shown all the same: $(cat ../out)"
"$mixt" eval diverged --not-finite >../out 2>../err
found=$?; check "eval of NaN weights all the same" 1 'diverged: the loss is not finite'
"$mixt" eval diverged --not-finite --json >../out 2>../err
found=$?; check "eval of NaN weights as JSON" 1 'diverged: the loss is not finite'
grep -q '"loss":null' ../out || fail "eval of NaN weights as JSON: $(cat ../out)"
for format in fp32 fp16 bf16; do
    "$mixt" convert diverged/model.safetensors diverged/$format.safetensors --dtype $format >../out 2>&1
    "$mixt" train tiny.yaml init=diverged/$format.safetensors out=x >../out 2>../err
    found=$?; check "beginning with NaN in $format" 1 "diverged/$format.safetensors: tensor 'fc.0.weight' holds nan (element 0 of 12544)"
    [ -e x ] && fail "beginning with NaN in $format left a run directory"
done
# One infinity, in the last bias, which 'init_skip' leaves out.
cp run/model.safetensors diverged/ && printf '\0\0\200\377' | dd of=diverged/model.safetensors bs=1 seek=$((size - 4)) conv=notrunc status=none
"$mixt" train tiny.yaml init=diverged out=x >../out 2>../err
found=$?; check "beginning with an infinity" 1 "holds -inf"
infinite=$(sed "s/.*tensor '\([^']*\)' holds.*/\1/" ../err)
"$mixt" train tiny.yaml init=diverged init_skip="$infinite" out=x -q 2>../err || { fail "an infinity in what is left out"; cat ../err; }
rm -rf x
rm -rf diverged
"$mixt" train gpt.yaml out=x train.steps=1 -q || fail "training the model that writes: $?"
if [ -w /dev/full ]; then
    timeout 60 "$mixt" generate x -n 100000000 >/dev/full 2>../err
    found=$?; tail -1 ../err >../last && mv ../last ../err
    check "text onto a full disk" 1 'standard output cannot be written: No space left'
fi
cp -r x "$(printf 'x\377')"
for command in eval generate export; do
    "$mixt" $command "$(printf 'x\377')" --json >../out 2>../err
    found=$?; check "$command of a name that is not UTF-8, as JSON" 1 'not UTF-8'
done
printf 'P5 1 1 255\nA' >"$(printf 'x\377.pgm')"
cp -r run "$(printf 'x\377run')" && rm "$(printf 'x\377run')/model.safetensors"
for command in tokenize 'tokenize words.txt --out' 'predict run' 'train --resume'; do
    case $command in tokenize) name='x\377/config.yaml' ;; *out) name='x\377out' ;; predict*) name='x\377.pgm' ;; *) name='x\377run' ;; esac
    "$mixt" $command "$(printf "$name")" --json >../out 2>../err
    found=$?; check "$command of a name that is not UTF-8, as JSON" 1 'not UTF-8'
    [ -s ../out ] && fail "$command of a name that is not UTF-8, as JSON: wrote to standard output"
done
rm -rf x*

# A finished run without checkpoints cannot go on, and must not begin anew over its weights.
cp -r run bare && rm -r bare/checkpoints
kept=$(cksum bare/*)
"$mixt" train --resume bare train.epochs=2 -q >../out 2>../err
found=$?; check "resuming a run without checkpoints" 1 'final weights but no checkpoint'
[ "$kept" = "$(cksum bare/*)" ] || fail "resuming a run without checkpoints changed it"
"$mixt" train --resume '' >../out 2>../err
found=$?; check "resuming an empty name" 2 '--resume needs the name of a run directory'

# Arguments with nothing in them.
for command in train plan eval; do
    "$mixt" $command '' >../out 2>../err
    found=$?; check "$command of an empty name" 2 'is empty: expected'
done
"$mixt" convert '' '' --dtype fp16 2>../err
found=$?; check "convert of an empty name" 2 'SRC is empty'
"$mixt" train tiny.yaml '' 2>../err
found=$?; check "empty setting" 2 "unexpected argument ''"
"$mixt" "$(printf '\033[2J\377')" 2>../err
found=$?; check "command of control characters" 2 "unknown command '?[2J"

# What root may do anyway.
if [ "$(id -u)" != 0 ]; then
    cp good.csv secret.csv && chmod 0 secret.csv
    "$mixt" train tiny.yaml out=x data.kind=csv data.path=secret.csv 2>../err
    found=$?; check "unreadable data" 1 'Permission denied'
    mkdir locked && chmod 555 locked
    "$mixt" train tiny.yaml out=locked/x 2>../err
    found=$?; check "unwritable folder" 1 'Permission denied'
    chmod 755 locked
    cp -r run closed && chmod 0 closed
    "$mixt" eval closed 2>../err
    found=$?; check "unreadable run directory" 1 'closed/config.yaml: cannot be opened: Permission denied'
    chmod 755 closed
else
    echo "skipped: permissions do not bind root"
fi

finish
