#!/bin/bash
# Memory that is not there: too little address space, and every allocation of the library that may fail. Each time the
# command says so, ends with status 1 and leaves no run that never began.
# Usage: no_memory.sh MIXT
. "$(dirname "$0")/../support/bad_input.sh"

# Too little address space: a message, no crash. The command itself needs about 60 MB of it.
for kib in 70000 90000 120000; do
    (ulimit -v $kib; "$mixt" train tiny.yaml out=x net.hidden=30000 -q >../out 2>../err)
    found=$?
    [ $found = 1 ] && ! grep -q '^mixt: ' ../err && fail "address space of $kib KiB: no message"
    [ $found -gt 1 ] && [ $found != 127 ] && fail "address space of $kib KiB: status $found"
    [ $found = 1 ] && [ -e x ] && fail "address space of $kib KiB: a run that never began left its directory"
    cases=$((cases + 1))
    rm -rf x
done

# Every allocation of the library may fail.
for command in 'plan tiny.yaml' 'train tiny.yaml out=x train.steps=1 -q'; do
    n=1
    while :; do
        MIXT_FAIL_ALLOC=$n "$mixt" $command >/dev/null 2>../err
        found=$?
        grep -q 'validation in batches of' ../err && { rm -rf x; n=$((n + 1)); continue; } # which it can do without
        [ $found = 0 ] && break
        [ $found = 1 ] && grep -q '^mixt: .*memory' ../err || { fail "$command without allocation $n: status $found"; head -2 ../err; }
        # An update whose row has no memory is made all the same: that directory stays.
        [ -e x ] && [ ! -s x/metrics.jsonl ] && ! grep -q 'for a row of' ../err && fail "$command without allocation $n left its directory"
        cases=$((cases + 1))
        rm -rf x
        n=$((n + (n < 40 ? 1 : 7)))
    done
    [ $n -gt 40 ] || fail "$command: only $n allocations"
    rm -rf x
done

# Advice is the same, or there is none: a candidate that could not be planned is not one that does not fit.
words() { "$mixt" advise tiny.yaml --trial 0 2>../err >../out; found=$?; sed -E 's/[0-9.]+ GiB for the run//; s/-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?/N/g; s/ +/ /g' ../out; }
words >../advice
[ -s ../advice ] || fail "advise: $(cat ../err)"
told=0
for ((n = 1; told < 40; n += 3)); do
    MIXT_FAIL_ALLOC=$n words >../now
    [ $found = 0 ] && told=$((told + 1)) || { [ $found = 1 ] && grep -q '^mixt: .*memory' ../err && told=0; } || { fail "advise without allocation $n: status $found"; head -2 ../err; }
    [ $found != 0 ] || cmp -s ../advice ../now || { fail "advise without allocation $n: $(diff ../advice ../now | head -4)"; [ $failures -lt 5 ] || break; }
    cases=$((cases + 1))
done
[ $n -gt 300 ] || fail "advise: only $n allocations"

finish
