#!/bin/bash
# Runs that look after themselves on 2 to 4 ranks, with a random fault at a random update, of the machine or of the format on a
# random rank alone, of the data on the rank that its sample falls to: each gets the right diagnosis with layer and rank, and
# where it can be undone the run ends with the bits of one that had no fault. Usage: rank_faults.sh MIXT [TRIALS]
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
trials=${2:-50}
seed=${MIXT_FAULT_SEED:-20261118}
cd "$work" || exit 1
need_ranks
cat >mlp.yaml <<'Y'
model: mlp
precision: fp16
device: cpu
net: {hidden: [32, 24]}
data: {kind: digits, samples: 2400}
train: {epochs: 0, steps: 150, batch: 48, lr: 0.003, log_every: 10, validate_every: 150}
auto: {steer: true, snapshot_every: 20}
dist: {timeout: 30}
Y
sed 's/^model: mlp/model: convnet/; s/^net: .*/net: {channels: [4, 8], norm: batch}/' mlp.yaml >convnet.yaml
layers_mlp=(fc.0 fc.1 fc.2)
layers_convnet=(conv1 conv2 fc)
kinds=(flip_weight flip_activation overflow scale_collapse nan_data lr)
field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" <<<"$row"; }

right=0 silent=0
for i in $(seq "$trials"); do
    below 6 && kind=${kinds[drawn]}
    below 2 && [ "$drawn" = 0 ] && model=mlp || model=convnet
    below 3 && n=$((drawn + 2))
    below $n && rank=$drawn
    below 20 && update=$((111 + drawn))
    below 3 && declare -n list=layers_$model && layer=${list[drawn]}
    below 2 && settings="dist.zero=$drawn"
    [ $kind = flip_activation ] && layer=${list[0]} # of the others some are computed together with the next
    fault=$kind@$update:$layer wanted="$layer $rank"
    case $kind in
    flip_*) what="hardware hardware" ;;
    overflow | scale_collapse) what="precision precision" ;;
    nan_data) fault=$kind@$update what="batch data" ;;
    lr) fault=$kind@$update what="optimizer optimizer" ;;
    esac
    out=$kind-$i
    words=()
    for r in $(seq 0 $((n - 1))); do
        own=
        [ $r = "$rank" ] && own=faults=$fault
        case $kind in nan_data | lr) own=faults=$fault ;; esac # all ranks have the same data, and the same settings
        words+=(${words[0]+:} -n 1 "$mixt" train $model.yaml out=$out $settings -q $own)
    done
    timeout 120 mpirun "${words[@]}" >out 2>err
    status=$?
    row=$(grep -s '"kind":"diagnosis"' $out/events.jsonl | head -1)
    plain=plain-$model-$n
    [ -e $plain ] || "$mixt" train $model.yaml out=$plain dist.ranks=$n auto.steer=false -q 2>/dev/null || fail "$plain"
    case $kind in
    flip_activation) wanted=$rank found="$(field rank)" ;; # which layer cannot always be told
    nan_data) wanted=$(($(field place) * n / 48)) found="$(field rank)" ;;
    lr) wanted= found= ;;
    *) found="$(field layer) $(field rank)" ;;
    esac
    trial="trial $i, $fault on rank $rank of $n, $model, $settings"
    if [ -z "$row" ] && [ "${kind%%_*}" = flip ] && cmp -s $out/model.safetensors $plain/model.safetensors; then
        silent=$((silent + 1)) # the owner's copy came over a weight before anybody had read it
    elif [ "$(field found) $(field cause)" != "$what" ] || [ "$found" != "$wanted" ]; then
        fail "$trial, status $status: $row $(cat err)"
    elif [ "${kind%%_*}" = flip ] && ! cmp -s $out/model.safetensors $plain/model.safetensors; then
        fail "$trial: does not end as without the fault: $(cat err)"
    else
        right=$((right + 1))
    fi
    rm -rf "$out"
done
echo "$right of $trials faults on one of several ranks: the right diagnosis and rank; $silent changed nothing"
[ $failures = 0 ]
