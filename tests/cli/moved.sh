#!/bin/bash
# Data that has moved since a run was begun: known by its checksums at a resume; another set is refused, or allowed by name.
# Usage: moved.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
rows() { awk -v first="$1" 'BEGIN { print "a,b,word,class"; for (i = first; i < first + 100; i++) print i % 13 "," i % 7 ",w" i % 3 "," (i % 13 > 6 ? "many" : "few") }'; }
cat >rows.yaml <<'YAML'
model: mlp
threads: 1
precision: fp32
net: {hidden: [8]}
train: {epochs: 4, batch: 10, lr: 0.01, schedule: cosine}
YAML
run() { "$mixt" "$@" >out 2>err; }
says() { grep -qF -- "$1" err || { fail "no '$1' in:"; cat err; }; }
mkdir old && rows 1 >old/rows.csv
run train rows.yaml data.path=old/rows.csv out=straight || fail "train: $(cat err)"
run train rows.yaml data.path=old/rows.csv out=run train.steps=20 train.schedule=constant || fail "train: $(cat err)"
cp -r run copy && cp -r run before

mv old new
for command in "train --resume run train.steps=30" "eval run" "predict run val:0-3"; do
    run $command && fail "$command: data that is not there"
    says "data is no longer at $work/old/rows.csv: say where it is now with data.path=NEW"
done
diff -r run before >/dev/null || fail "a refused resume changed the run"

# From the new place the run goes on with the bits that it would have had, and remembers the place.
mkdir old && rows 1 >old/rows.csv
run train --resume copy train.steps=30 || fail "resume in the old place: $(cat err)"
rm -r old
run train --resume run train.steps=30 data.path=new/rows.csv || fail "resume with data that moved: $(cat err)"
cmp -s run/model.safetensors copy/model.safetensors || fail "other bits with data that moved"
grep -qx "  path: $work/new/rows.csv" run/config.yaml || fail "the new place is not in config.yaml"
grep -q '"data.path":{"from":' run/history.jsonl || fail "the new place is not in history.jsonl"
(cd new && run eval ../run) || fail "eval of a run whose data moved"
run eval straight data.path=new/rows.csv || fail "eval with the new place: $(cat err)"
[ -s err ] && grep -q 'is not the data' err && fail "data that only moved is called other data"

# Another set: refused with what differs, taken when allowed, never with other classes.
rows 500 >other.csv
cp -r run before2
run train --resume run train.steps=35 data.path=other.csv && fail "other data is taken"
says 'cannot resume with other data than it was begun with: both of its parts at other.csv differ'
says '--allow data'
diff -r run before2 >/dev/null || fail "a refused set changed the run"
run train --resume run train.steps=35 data.path=other.csv --allow data || fail "other data, allowed: $(cat err)"
says 'run continues with other data than it was begun with: 90 samples, checksum'
mean() { tr -d ' \n' <"$1/inputs.json" | sed 's/.*"mean":\(\[[^]]*\]\).*/\1/'; }
[ "$(mean run)" = "$(mean before2)" ] || fail "other data is normalised in another way"
sed 's/many/lots/' other.csv >named.csv
run train --resume run train.steps=40 data.path=named.csv --allow data && fail "classes of other names are taken"
run train --resume run train.steps=40 data.path=nowhere.csv && fail "no data"
says 'run: its data is no longer at nowhere.csv'
run train --resume run train.steps=40 --allow data.path && fail "--allow data.path"
says "cannot change at a resume"
[ $failures = 0 ]
