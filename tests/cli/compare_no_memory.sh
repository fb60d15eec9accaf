#!/bin/bash
# mixt compare with one allocation that fails: it ends with status 1 and keeps no figure, or its figures are the same.
# Usage: compare_no_memory.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
cat >a.yaml <<'YAML'
model: mlp
threads: 1
net: {hidden: [8]}
data: {kind: digits, limit: 128}
train: {epochs: 0, steps: 12, batch: 16, lr: 0.01}
YAML
sed 's/^model/precision: bf16\nmodel/' a.yaml >b.yaml
"$mixt" train a.yaml out=a -q && "$mixt" train a.yaml out=b precision=bf16 -q || fail "train"
"$mixt" compare a b >/dev/full 2>err
[ $? = 1 ] && grep -q 'standard output cannot be written' err || fail "a full disk: $(cat err)" # no verdict that nobody has seen
"$mixt" compare a b --json >whole 2>err; [ -s whole ] || fail "compare: $(cat err)"
"$mixt" compare a.yaml b.yaml --name pairs --seeds 6 --margin 20% --json -q >pairs 2>err
[ -s runs/compare-pairs/compare.jsonl ] || fail "pairs: $(cat err)"
[ "$(grep -c '"checksum":"[0-9a-f]\{16\}"}$' runs/compare-pairs/compare.jsonl)" = "$(wc -l <runs/compare-pairs/compare.jsonl)" ] || fail "rows without a checksum"
rows=$(cksum <runs/compare-pairs/compare.jsonl)

# every EXPECTED ARGUMENT...: without each allocation in turn
every() {
    local expected=$1 n=1 failed=0 status
    shift
    while [ $n -lt 400 ]; do
        MIXT_FAIL_ALLOC=$n "$mixt" compare "$@" >out 2>err
        status=$?
        if [ $status = 0 ] || [ $status -gt 2 ]; then
            cmp -s out "$expected" || fail "compare $* without allocation $n: other figures: $(diff out "$expected" | cut -c1-300)"
        else
            grep -q memory err || fail "compare $* without allocation $n: status $status: $(cat err)"
            failed=$((failed + 1))
        fi
        n=$((n + 1))
    done
    [ $failed -gt 5 ] || fail "compare $*: only $failed allocations failed"
}
every whole a b --json
every pairs a.yaml b.yaml --name pairs --seeds 6 --margin 20% --json -q
[ "$(cksum <runs/compare-pairs/compare.jsonl)" = "$rows" ] || fail "the rows of the pairs changed: $(cat runs/compare-pairs/compare.jsonl)"

# Damage is named, and nothing is changed.
sed -i '2s/"loss":./"loss":7/' runs/compare-pairs/compare.jsonl
rows=$(cksum <runs/compare-pairs/compare.jsonl)
"$mixt" compare a.yaml b.yaml --name pairs --seeds 6 --margin 20% -q >out 2>err && fail "a damaged row was taken"
grep -q 'compare.jsonl:2: the row is damaged: its checksum is another' err || fail "a damaged row: $(cat err)"
[ "$(cksum <runs/compare-pairs/compare.jsonl)" = "$rows" ] || fail "a damaged file was changed"
sed -i 2d runs/compare-pairs/compare.jsonl

# Nor is memory taken for what nobody can have asked for.
echo '{"look":2147483648}' >>runs/compare-pairs/compare.jsonl
(ulimit -v 4000000; "$mixt" compare a.yaml b.yaml --name pairs --seeds 6 --margin 20% -q >out 2>err) && fail "a look at 2147483648 pairs was taken"
grep -q 'compare.jsonl:[0-9]*: the row is damaged: a look at 2147483648 pairs' err || fail "a look at 2147483648 pairs: $(cat err)"

[ $failures = 0 ] && echo "compare_no_memory: all good"
exit $((failures > 0))
