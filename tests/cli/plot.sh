#!/bin/bash
# mixt plot: charts of runs, in both kinds of file, and what it says where there is nothing to draw. Usage: plot.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >mlp.yaml <<'YAML'
model: mlp
net: {hidden: [8]}
data: {kind: digits, limit: 256}
train: {epochs: 3, batch: 32}
YAML
"$mixt" train mlp.yaml out=runs/one -q && "$mixt" train mlp.yaml train.lr=0.01 out=runs/two -q || fail "runs to draw"

# good ARGUMENT...: status 0 and nothing said
good() { "$mixt" plot "$@" >said 2>&1 || fail "plot $*: status $?"; [ -s said ] && { fail "plot $*: said something"; cat said; }; }
# bad STATUS WORDS ARGUMENT...: that status, and a message with those words
bad() {
    "$mixt" plot "${@:3}" >said 2>&1
    status=$?
    [ $status = "$1" ] || fail "plot ${*:3}: status $status, not $1"
    grep -q "$2" said || { fail "plot ${*:3}: does not say '$2'"; cat said; }
}
curves() { grep -c '<polyline' "$1"; }

good runs/one --out one.svg
[ "$(curves one.svg)" = 1 ] || fail "one run: $(curves one.svg) curves"
good runs/one runs/two --metric loss,val_loss --log --smooth 3 --title 'Both & more' --out both.svg
[ "$(curves both.svg)" = 4 ] || fail "two runs, two metrics: $(curves both.svg) curves"
for name in 'one loss' 'two val_loss' 'Both &amp; more'; do grep -q ">$name</text>" both.svg || fail "both.svg lacks '$name'"; done
good runs/one/ runs/two/metrics.jsonl --x time --out time.svg
grep -q '>seconds</text>' time.svg && grep -q '>one</text>' time.svg || fail "time.svg: labels"
cp -r runs other
good runs/one other/one --out paths.svg
grep -q '>other/one</text>' paths.svg || fail "runs of the same name are not told apart"
good runs/one --out one.png
[ "$(head -c 8 one.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "one.png is no PNG"

cp one.svg before.svg
bad 1 overwrite runs/two --out one.svg
cmp -s one.svg before.svg || fail "a chart that existed was changed"
good runs/two --out one.svg --overwrite
cmp -s one.svg before.svg && fail "--overwrite did nothing"
bad 2 '\.svg or \.png' runs/one --out one.pdf
bad 2 out runs/one
bad 1 'expected one of step, epoch, loss' runs/one --metric los --out x.svg
bad 1 'cannot read nothing' nothing --out x.svg
bad 2 '10 curves' runs/{one,two} --metric loss,accuracy,lr,scale,grad_norm,memory --out x.svg
[ -e x.svg ] && fail "a chart came of nothing"

echo '{"step":' >>runs/two/metrics.jsonl
echo '{"step":' >>runs/two/metrics.jsonl
bad 0 "two: 2 rows of its metrics left out; line $(($(wc -l <runs/two/metrics.jsonl) - 1)):" runs/two --out damaged.svg

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
