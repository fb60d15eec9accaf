#!/bin/bash
# mixt adopt with a damaged history.jsonl: --undo refuses, names the line and removes nothing. Usage: adopt_damaged.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
cat >a.yaml <<'YAML'
model: convnet
threads: 1
net: {channels: [4]}
data: {kind: digits, limit: 256}
train: {epochs: 0, steps: 10, batch: 32, lr: 0.01}
YAML
"$mixt" adopt a.yaml --for memory --margin 20% --steps 4 --seeds 6 --to formats -q >out 2>&1 || { fail "adopt: $(cat out)"; exit 1; }
history=runs/adopt-a/history.jsonl
cp $history whole
all() { find runs -type f | sort | xargs cksum; }

# refused LINE WORDS: --undo and going on
refused() {
    all >before
    for arguments in 'a.yaml --undo' 'a.yaml --for memory --margin 20% --steps 4 --seeds 6 --from baseline --to baseline' 'a.yaml --history'; do
        "$mixt" adopt $arguments >out 2>err
        status=$?
        [ $status = 1 ] && grep -q "history.jsonl:$1: .*$2.*move the folder runs/adopt-a away" err || fail "$arguments, line $1: status $status: $(cat out err)"
        all | cmp -s before - || fail "$arguments, line $1: something was changed: $(all | diff before -)"
    done
    cp whole $history
}
# damage LINE SED: in a copy of the whole history
damage() { sed "$1$2" whole >$history; cmp -s whole $history && fail "line $1 was not changed"; }

lines=$(wc -l <whole)
[ "$lines" -ge 4 ] && [ "$(grep -c '"checksum":"[0-9a-f]\{16\}"}$' whole)" = "$lines" ] || fail "rows without a checksum: $(cat whole)"
damage 2 's/"/x/'
refused 2 'it is not JSON'
damage 2 's/"stage":"b/"stage":"c/'
refused 2 'its checksum is another'
for line in $(seq "$lines"); do
    damage "$line" 's/\(.\{20\}\)./\1%/'
    refused "$line" 'the row is damaged'
done
truncate -s -1 $history && printf x >>$history
refused "$lines" 'no end of line'
sed '/"stage":"baseline","version"/d' whole >$history
refused "$((lines - 1))" 'an earlier row is missing:'

# Rows of an older version have no checksum; a row cut short is none.
sed 's/,"checksum":"[0-9a-f]*"}$/}/' whole >$history && printf '{"undo":"form' >>$history
"$mixt" adopt a.yaml --undo --json >out 2>err && grep -q '"done":1,' out || fail "rows of an older version: $(cat out err)"
[ "$(wc -l <$history)" = $((lines + 1)) ] && tail -1 $history | grep -q '"undo":"formats".*"checksum":"[0-9a-f]*"}$' || fail "after them: $(cat $history)"

# Of a row that names another file nothing is taken, nor through a link.
cp whole $history
echo 'secret: 1' >secret
sed -i "s#\"config\":\"[^\"]*\"#\"config\":\"$PWD/secret\"#g; s#\"policy\":\"[^\"]*\"#\"policy\":\"$PWD/secret\"#g; s/,\"checksum\":\"[0-9a-f]*\"}$/}/" $history
"$mixt" adopt a.yaml --undo >out 2>&1 || fail "rows that name another file: $(cat out)"
grep -rq secret runs/adopt-a/adopted.yaml runs/adopt-a/report.* && fail "a file that a row named was taken"
cmp -s runs/adopt-a/versions/1-baseline.yaml runs/adopt-a/adopted.yaml || fail "another configuration is in use: $(cat runs/adopt-a/adopted.yaml)"
cp whole $history
mv runs/adopt-a/versions/1-baseline.yaml kept && ln -s "$PWD/secret" runs/adopt-a/versions/1-baseline.yaml
"$mixt" adopt a.yaml --undo >out 2>&1 && fail "a link was followed"
grep -q '1-baseline.yaml: .*symbolic link' out || fail "a link: $(cat out)"
grep -rq secret runs/adopt-a/adopted.yaml runs/adopt-a/report.* && fail "a file behind a link was taken"
rm runs/adopt-a/versions/1-baseline.yaml && mv kept runs/adopt-a/versions/1-baseline.yaml

# An allocation that fails while it is read changes nothing that was there.
cp whole $history
n=1
while MIXT_FAIL_ALLOC=$n "$mixt" adopt a.yaml --history >found 2>err; [ $? != 0 ]; do
    grep -q memory err || fail "allocation $n: $(cat err)"
    n=$((n + 1))
    [ $n -lt 200 ] || { fail "$n allocations to show a history"; break; }
done
cmp -s whole $history || fail "a failed allocation changed the history"

[ $failures = 0 ] && echo "adopt_damaged: all good"
exit $((failures > 0))
