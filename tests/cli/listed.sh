#!/bin/bash
# Pictures that a table lists with their labels: classes, numbers, parts, and what is wrong with such tables. Usage: listed.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
# picture FILE LEVEL: 12 x 10 grey pixels
picture() { { printf 'P5\n12 10\n255\n'; head -c 120 /dev/zero | tr '\0' "\\$(printf %03o "$2")"; } >"$1"; }
mkdir -p set/images
for i in $(seq 0 39); do picture set/images/p$i.pgm $((6 * i)); done
{ echo 'picture;mood;level'; for i in $(seq 0 39); do echo "p$i;$([ $i -lt 20 ] && echo dull || echo bright);$((6 * i)).5"; done; } >set/train.csv
{ echo 'picture;mood;level'; echo 'p2;dull;12.5'; echo 'p38;bright;228.5'; } >set/test.csv
printf 'model: mlp\nthreads: 1\nprecision: fp32\nnet: {hidden: [8]}\ndata: {crop: 8, resize: 8}\ntrain: {epochs: 60, batch: 12, lr: 0.02}\n' >rows.yaml
run() { "$mixt" "$@" >out 2>err; }
trains() { rm -rf run; run train rows.yaml out=run "$@" || { fail "train $*: $(cat err)"; return 1; }; }
refused() { rm -rf x; run train rows.yaml out=x data.path="$1" "${@:3}" && fail "not refused: $2"; grep -qF -- "$2" err || { fail "no '$2' in:"; cat err; }; [ ! -e x ] || fail "a folder of a run that failed"; }

# Classes by words: names without an ending, in a folder of images; a test part of its own.
trains data.path=set data.labels=mood || exit 1
grep -q 'data     images set: 36 samples to train on, 4 to validate on; 2 classes' err || fail "classes: $(head -3 err)"
run eval run --split test --json || fail "eval: $(cat err)"
grep -q '"accuracy":1.0' out && grep -q '"count":2' out || fail "test part: $(cat out)"
run predict run set/images/p1.pgm set/images/p39.pgm || fail "predict: $(cat err)"
[ "$(awk 'NR > 1 { print $2 }' out | xargs)" = "dull bright" ] || fail "predicted: $(cat out)"
# The table itself as the path; numbers to regress on, in their units.
trains data.path=set/train.csv data.labels=level || exit 1
grep -q 'images train.csv: 36 samples to train on, 4 to validate on; 1 value each' err || fail "values: $(head -3 err)"
run predict run set/images/p20.pgm || fail "predict a value: $(cat err)"
awk 'NR == 2 { exit !($2 > 110 && $2 < 131) }' out || fail "a value of 120.5 is predicted as: $(cat out)"
# Without a header, and numbers that are classes.
mkdir plain && cp set/images/*.pgm plain && for i in $(seq 0 39); do echo "p$i.pgm,$((i / 20))"; done >plain/list.csv
trains data.path=plain || exit 1
grep -q '36 samples to train on, 4 to validate on; 2 classes' err || fail "no header: $(head -3 err)"
"$mixt" new plain - 2>err | grep -q 'kind: images' || fail "new: $(cat err)"

sed 's/^p7;/p77;/' set/train.csv >set/gone.csv
refused set/gone.csv "set/gone.csv: line 9: 'p77.pgm': no such picture in set/images"
sed 's/^p7;[a-z]*;/p7;;/' set/train.csv >set/hole.csv
refused set/hole.csv "set/hole.csv: line 9: the label is missing" data.labels=mood
sed 's/^p7;.*/p7/' set/train.csv >set/short.csv
refused set/short.csv "set/short.csv: line 9 has 1 field"
refused set/train.csv "set/train.csv: line 1 has no column 'colour' (data.labels)" data.labels=colour
refused set/train.csv "must be another than that of pictures" data.labels=picture
echo 'p1;gloomy;1' >>set/test.csv
trains data.path=set data.labels=mood
run eval run --split test && fail "a class that training does not know"
grep -q "set/test.csv: line 4: label 'gloomy': no class of the training part" err || fail "unknown class: $(cat err)"
printf 'picture;mood;level\np1;\377\0;3\n' >set/bad.csv
refused set/bad.csv "bad.csv"
[ $failures = 0 ]
