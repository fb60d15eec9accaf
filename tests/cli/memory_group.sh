#!/bin/bash
# Every model of the zoo, small, in a control group that leaves it the memory of its plan and 64 MiB: training with
# validation and checkpoints, evaluation and prediction end well; far below, mixt says so and is not killed.
# Usage: memory_group.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
need python3
[ "$(stat -f -c %T .)" != tmpfs ] || skip "files in $work are memory themselves"

# A group inside the one that this process is in, so that limits around it stay: version 1, version 2, else systemd's.
group= limit=
make_group() {
    local first=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    local second=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
    for try in "$first:memory.limit_in_bytes" "$second:memory.max"; do
        group=${try%:*}/mixt-test-$$ limit=${try##*:}
        if mkdir "$group" 2>/dev/null; then
            [ -w "$group/$limit" ] && return
            rmdir "$group"
        fi
    done
    group=
    limit="systemd-run --scope -q"
    [ "$(id -u)" = 0 ] || limit+=" --user"
    $limit -p MemoryMax=100M true 2>/dev/null
}
make_group || skip "no control group with a limit of memory can be made here"
[ -z "$group" ] || trap 'rmdir "$group"; rm -rf "$work"' EXIT

# within BYTES COMMAND...: with that much memory
within() {
    local bytes=$1
    shift
    if [ -n "$group" ]; then
        echo "$bytes" >"$group/$limit" || return 1
        (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@")
    else
        $limit -p MemoryMax="$bytes" -p MemorySwapMax=0 "$@"
    fi
}
# field NAME...: the sum of these parts of the plan, in bytes
field() { python3 -c 'import json, sys; r = json.load(open("plan.json"))["run_memory"]; print(sum(r[n]["host"] for n in sys.argv[1:]))' "$@"; }

for _ in $(seq 3000); do echo "the quick brown fox jumps"; done >words.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the quick brown fox jumps >vocab.txt
text='data.kind=text data.path=words.txt data.seq=32'
words="$text data.tokenizer=wordpiece data.vocab=. data.mask=0.15"
room=$((64 << 20))
cat >run.yaml <<'YAML'
precision: bf16
threads: 2
train: {steps: 4, batch: 8, eval_batch: 32, checkpoint_every: 2}
YAML
while read -r model settings; do
    # shellcheck disable=SC2086 # settings are words
    "$mixt" plan run.yaml model="$model" $settings --json >plan.json 2>err || { fail "$model: plan: status $?"; cat err; continue; }
    within $(($(field total) + room)) "$mixt" train run.yaml model="$model" $settings out="$model" -q >out 2>err </dev/null ||
        { fail "$model: training within the plan and 64 MiB: status $?"; head -3 err; continue; }
    grep -q 'no memory' err && { fail "$model: validation was cut"; cat err; }
    within $(($(field weights validation data tokens graphs) + room)) "$mixt" eval "$model" >out 2>err </dev/null ||
        { fail "$model: evaluation: status $?"; head -3 err; }
    case $model in
    bert*) continue ;; # fills gaps only
    gpt | lstm) use="generate $model --prompt the --tokens 20" ;;
    *) use="predict $model val:0-3" ;;
    esac
    # shellcheck disable=SC2086
    within $(($(field weights prediction data tokens graphs) + room)) "$mixt" $use >out 2>err </dev/null ||
        { fail "$use: status $?"; head -3 err; }
done <<END
mlp net.hidden=512,512 data.limit=512
convnet net.channels=16,32 data.limit=512
resnet net.depth=20 data.limit=128 data.crop=32 data.pad=2
vgg net.depth=11 net.hidden=64 data.limit=64 data.crop=32 data.pad=2
gpt net.layers=2 net.width=64 net.heads=2 $text
bert net.layers=2 net.width=64 net.heads=2 $words
bert_mlm net.layers=2 net.width=64 net.heads=2 $words
lstm net.layers=2 net.width=64 $text
END

# 300 MiB do not hold a step of 500: refused with figures before it is taken. Nor validation, which is cut.
within $((300 << 20)) "$mixt" train run.yaml model=mlp net.hidden=2048,2048 train.batch=30000 data.kind=random data.path=784 data.samples=40000 out=never -q >out 2>err
found=$?
[ $found = 1 ] && grep -q 'training needs .* has .* GiB free: a batch of about' err || { fail "a step that does not fit the group: status $found"; head -3 err; }
within $((300 << 20)) "$mixt" train run.yaml model=mlp net.hidden=2048 data.samples=64 train.eval_batch=60000 out=cut -q >out 2>err
found=$?
[ $found = 0 ] && grep -q 'validation in batches of [0-9]*: there is no memory' err || { fail "validation that does not fit the group: status $found"; head -3 err; }

[ $failures = 0 ] || echo "$failures checks failed"
exit $((failures > 0))
