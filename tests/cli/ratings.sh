#!/bin/bash
# Ratings through the command: both models trained in each precision, evaluated, predicted, resumed; best items of a user.
# Usage: ratings.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
real=$(realpath "${MIXT_TEST_DATA:-../shared/data}" 2>/dev/null)/movietweetings_100k
cd "$work" || exit 1

# figure NAME FILE: a number of a JSON object
figure() { grep -o "\"$1\":-\?[0-9.]*" "$2" | head -1 | cut -d: -f2; }

# Ratings that mixt draws: both models do better than the mean of all ratings, whose R2 is 0, in every precision.
for model in mf ncf; do
    for precision in fp32 bf16 fp16; do
        "$mixt" train "$root/configs/$model.yaml" device=cpu threads=2 precision=$precision train.epochs=6 out=$model-$precision -q || fail "train $model in $precision"
        "$mixt" eval $model-$precision --json >$model-$precision.json || fail "eval $model in $precision"
        figure r2 $model-$precision.json | awk '{ exit !($1 > 0.4) }' || fail "$model in $precision: $(cat $model-$precision.json)"
        figure hit_rate $model-$precision.json | awk '{ exit !($1 > 0.1 && $1 < 1) }' || fail "$model in $precision ranks: $(cat $model-$precision.json)"
    done
    for precision in bf16 fp16; do # what low precision costs
        echo "$(figure rmse $model-fp32.json) $(figure rmse $model-$precision.json)" | awk '{ exit !($2 < 1.02 * $1) }' ||
            fail "$model: RMSE in fp32 and $precision: $(figure rmse $model-fp32.json) $(figure rmse $model-$precision.json)"
    done
done

# What eval says of the loss is what predictions say.
"$mixt" predict mf-bf16 val --json >predicted || fail "predict"
sed 's/.*"values":\[\([^]]*\)\].*"target":\[\([^]]*\)\].*/\1 \2/' predicted | awk '{ s += ($1 - $2) ^ 2 } END { print s / NR }' >own
echo "$(cat own) $(figure loss mf-bf16.json)" | awk '{ d = $1 - $2; exit !(d < 1e-3 && d > -1e-3) }' || fail "loss $(figure loss mf-bf16.json), of predictions $(cat own)"
grep -q '"user":"[0-9]*","item":"[0-9]*"' predicted || fail "predict names no user and item: $(head -1 predicted)"

# The best items of a user are in order and not among those that he has rated.
"$mixt" predict mf-bf16 user:7 --top 20 --json >best || fail "best items"
"$mixt" predict mf-bf16 train --json | grep '"user":"7"' | grep -o '"item":"[0-9]*"' | sort >rated
grep -o '"item":"[0-9]*"' best | sort | comm -12 - rated | grep -q . && fail "an item that was rated is among the best"
grep -o '"rating":[0-9.]*' best | cut -d: -f2 | sort -gr -c || fail "best items are not in order"
[ "$(grep -o '"item"' best | wc -l)" = 20 ] || fail "not 20 items: $(cat best)"
"$mixt" predict mf-bf16 user:nobody 2>error && fail "a user that there is not"
grep -q "user:nobody: .*has no such user" error || fail "$(cat error)"

"$mixt" predict mf-bf16 error 2>said && fail "a file of ratings"
grep -q 'error: the model predicts ratings: give a part, as in val:0-4, or user:NAME' said || fail "$(cat said)"

# Stopped and resumed: the same bits; parts by time.
run="device=cpu threads=2 train.epochs=0 train.schedule=constant train.checkpoint_every=10 data.samples=2000 data.split_by=time data.test_fraction=0.1"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=20 out=whole -q || fail "train by time"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=10 out=half -q && "$mixt" train --resume half train.steps=20 -q || fail "resume"
cmp whole/model.safetensors half/model.safetensors || fail "a resumed run is another"
"$mixt" eval whole --split test | grep -q "over 200 targets" || fail "the newest 200 are the test part: $("$mixt" eval whole --split test)"

# Features: few ratings an item, but what kind it is decides; with them the error is much smaller, in every precision.
awk 'BEGIN { srand(7); for (u = 1; u <= 150; u++) for (k = 0; k < 6; k++) { i = int(rand() * 400); print "u" u "::i" i "::" 3 + (i % 4 < 2 ? 1 : -1) * (u % 2 ? 1.5 : 0.5) } }' >likes.dat
awk 'BEGIN { print "item,kinds"; for (i = 0; i < 390; i++) print "i" i "," (i % 4 < 2 ? "good" : "bad") "|k" i % 3 }' >items.csv
run="device=cpu threads=1 data.path=likes.dat train.batch=32 train.lr=2"
"$mixt" train "$root/configs/mf.yaml" $run out=bare -q && "$mixt" eval bare --json >bare.json || fail "train without features"
for precision in fp32 bf16 fp16; do
    "$mixt" train "$root/configs/mf.yaml" $run data.items=items.csv data.counts=true precision=$precision out=known-$precision -q 2>said || fail "train with features in $precision"
    grep -q 'items.csv: says nothing of [0-9]* of [0-9]* items' said || fail "items without features are not counted: $(cat said)"
    "$mixt" eval known-$precision --json >known.json || fail "eval with features"
    echo "$(figure rmse bare.json) $(figure rmse known.json)" | awk '{ exit !($2 < 0.85 * $1) }' || fail "features in $precision: RMSE $(figure rmse bare.json) without, $(figure rmse known.json) with"
done
mv likes.dat gone.dat # which a user's best items cannot do without
"$mixt" predict bare user:u1 2>said && fail "best items without the ratings"
grep -q "bare: its data is no longer at" said && ! grep -q 'files of your own' said || fail "without the ratings: $(cat said)"
mv gone.dat likes.dat
"$mixt" predict known-bf16 user:u1 --top 3 | grep -q '^user:u1 ' || fail "best items with features"
"$mixt" train "$root/configs/ncf.yaml" device=cpu threads=1 data.path=likes.dat data.items=items.csv train.epochs=2 out=deep -q 2>said && "$mixt" eval deep >/dev/null || fail "ncf with features: $(cat said)"
run+=" data.items=items.csv data.counts=true train.epochs=0 train.schedule=constant train.checkpoint_every=10"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=20 out=full --json >full.json 2>said || fail "train with features: $(cat said)"
mkdir -p elsewhere && mv items.csv elsewhere && ln -s elsewhere/items.csv . # a run knows its files by where they are
"$mixt" train "$root/configs/mf.yaml" $run train.steps=10 out=part -q 2>said && (cd elsewhere && "$mixt" train --resume ../part train.steps=20 -q 2>said) || fail "resume with features: $(cat said)"
cmp full/model.safetensors part/model.safetensors || fail "a resumed run with features is another"
planned=$("$mixt" plan "$root/configs/mf.yaml" $run train.steps=20 --json 2>said | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," full/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' full/metrics.jsonl | sort -u)"

# A run knows users and items by their names: the order of lines says nothing, and a file may have grown since.
cp likes.dat likes.kept
tac likes.kept >likes.dat
"$mixt" eval bare data.path=likes.dat --json >turned.json 2>said || fail "eval with lines turned round: $(cat said)"
cp likes.kept likes.dat && "$mixt" eval bare data.path=likes.dat --json >straight.json || fail "eval of all lines"
echo "$(figure rmse straight.json) $(figure rmse turned.json)" | awk '{ d = $1 - $2; exit !(d < 1e-5 && d > -1e-5) }' || fail "RMSE $(figure rmse straight.json), of the same lines in another order $(figure rmse turned.json)"
{ echo 'new::i1::3'; cat likes.kept; echo 'u1::other::4'; } >grown.dat
"$mixt" eval bare data.path=grown.dat --json >grown.json 2>said || fail "eval of a file that has grown: $(cat said)"
grep -q 'grown.dat: 2 of 902 ratings are dropped: their users or items are not in the training data' said || fail "ratings of others: $(cat said)"
[ "$(figure rmse straight.json)" = "$(figure rmse grown.json)" ] || fail "RMSE $(figure rmse straight.json), with unknown users $(figure rmse grown.json)"
echo 'a::b::1' >others.dat
"$mixt" eval bare data.path=others.dat 2>said && fail "ratings of nobody that is known"
grep -q 'others.dat: none of its 1 ratings has a user and an item of the training data' said || fail "$(cat said)"

# So does a run that begins with another's weights: rows go by names, those of new users and items are drawn.
still="device=cpu threads=1 train.lr=0 train.min_lr=0 train.epochs=0 train.steps=1 train.warmup=0"
for run in bare deep; do
    config="$root/configs/mf.yaml" more=
    [ $run = deep ] && config="$root/configs/ncf.yaml" more=data.items=items.csv
    "$mixt" train "$config" $still $more init=$run data.path=likes.dat out=$run-same -q 2>said || fail "init=$run: $(cat said)"
    tac likes.kept >turned.dat && "$mixt" train "$config" $still $more init=$run data.path=turned.dat out=$run-turned >/dev/null 2>said || fail "init=$run, lines turned round: $(cat said)"
    grep -q 'init: rows matched by name: 150 of 150 users, \([0-9]*\) of \1 items; all others are random' said || fail "init=$run does not count names: $(cat said)"
    { echo 'new::i1::3'; cat likes.kept; echo 'u1::other::4'; } >grown.dat
    "$mixt" train "$config" $still $more init=$run data.path=grown.dat out=$run-grown >/dev/null 2>said || fail "init=$run, more users: $(cat said)"
    grep -q 'init: rows matched by name: 150 of 151 users, ' said || fail "init=$run does not count new users: $(cat said)"
    for of in same turned grown; do
        "$mixt" eval $run-$of data.path=likes.kept --split all --json >$of.json 2>said || fail "eval $run-$of: $(cat said)"
        echo "$(figure rmse same.json) $(figure rmse $of.json)" | awk '{ d = $1 - $2; exit !($1 > 0 && d < 1e-4 && d > -1e-4) }' || fail "init=$run: RMSE $(figure rmse same.json), $of $(figure rmse $of.json)"
    done
done

# Names that are numbers, and times: ratings are by the age of the item, and by the mood of the user on that day.
awk 'BEGIN { srand(3); for (u = 1; u <= 60; u++) for (k = 0; k < 12; k++) { i = int(exp(rand() * 12)); d = int(k / 4); print u "::" i "::" 5 + log(i) / 2 + ((u * 7 + d * 5) % 3 - 1) "::" d * 86400 + k } }' >moods.dat
run="device=cpu threads=1 data.path=moods.dat data.counts=true train.batch=32 train.lr=2"
"$mixt" train "$root/configs/mf.yaml" $run out=plain -q && "$mixt" eval plain --json >plain.json || fail "train on moods"
last=plain
for more in numbers=items times=true; do
    run+=" data.$more" name=${more%=*}
    "$mixt" train "$root/configs/mf.yaml" $run out=$name -q && "$mixt" eval $name --json >$name.json || fail "train with $more"
    echo "$(figure rmse $last.json) $(figure rmse $name.json)" | awk '{ exit !($2 < 0.93 * $1) }' || fail "$more: RMSE $(figure rmse $last.json) without, $(figure rmse $name.json) with"
    last=$name
done
shuf --random-source=moods.dat moods.dat >shuffled.dat
"$mixt" train "$root/configs/mf.yaml" $run data.path=shuffled.dat $still init=times out=times-on -q && "$mixt" eval times-on data.path=moods.dat --split all --json >on.json 2>/dev/null && "$mixt" eval times data.path=moods.dat --split all --json >times-all.json 2>/dev/null || fail "init with days"
echo "$(figure rmse times-all.json) $(figure rmse on.json)" | awk '{ exit !($2 < 1.1 * $1) }' || fail "init with days: RMSE $(figure rmse times-all.json), then $(figure rmse on.json)"
"$mixt" predict times user:1 --top 3 | grep -q '^user:1 ' || fail "best items on a day that nobody knows"
run+=" data.split_by=time train.epochs=0 train.schedule=constant train.checkpoint_every=10"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=20 out=all -q || fail "train by time with times"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=10 out=some -q && "$mixt" train --resume some train.steps=20 -q || fail "resume with times"
cmp all/model.safetensors some/model.safetensors || fail "a resumed run with times is another"
planned=$("$mixt" plan "$root/configs/mf.yaml" $run train.steps=20 --json 2>said | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," all/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' all/metrics.jsonl | sort -u)"

if [ -f "$real/ratings.dat" ]; then
    "$mixt" train "$root/configs/mf.yaml" device=cpu data.path="$real" data.counts=true data.numbers=items data.times=true train.epochs=0 train.steps=20 out=real -q || fail "train on real ratings"
    "$mixt" predict real user:1 --top 2 | grep -q '^user:1 ' || fail "best items of a real user"
    [ ! -f "$real/movies.dat" ] || "$mixt" train "$root/configs/mf.yaml" device=cpu data.path="$real" data.items=movies.dat data.counts=true train.epochs=0 train.steps=20 out=films -q ||
        fail "train on real ratings with features"
else
    echo "skipped: no movietweetings_100k in ${MIXT_TEST_DATA:-../shared/data}"
fi
exit $((failures > 0))
