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

# Stopped and resumed: the same bits; parts by time.
run="device=cpu threads=2 train.epochs=0 train.schedule=constant train.checkpoint_every=10 data.samples=2000 data.split_by=time data.test_fraction=0.1"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=20 out=whole -q || fail "train by time"
"$mixt" train "$root/configs/mf.yaml" $run train.steps=10 out=half -q && "$mixt" train --resume half train.steps=20 -q || fail "resume"
cmp whole/model.safetensors half/model.safetensors || fail "a resumed run is another"
"$mixt" eval whole --split test | grep -q "over 200 targets" || fail "the newest 200 are the test part: $("$mixt" eval whole --split test)"

if [ -f "$real/ratings.dat" ]; then
    "$mixt" train "$root/configs/mf.yaml" device=cpu data.path="$real" train.epochs=0 train.steps=20 out=real -q || fail "train on real ratings"
    "$mixt" predict real user:1 --top 2 | grep -q '^user:1 ' || fail "best items of a real user"
else
    echo "skipped: no movietweetings_100k in ${MIXT_TEST_DATA:-../shared/data}"
fi
exit $((failures > 0))
