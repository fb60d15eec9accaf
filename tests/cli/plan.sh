#!/bin/bash
# mixt plan: what it says is what training then takes, to the byte, and it names every layer. Usage: plan.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
cd "$work" || exit 1

yes 'the quick brown fox' | head -c 20000 >words.txt
common='threads=2 train.steps=1 train.batch=16'
printf 'model: mlp\n' >any.yaml
mlp="model=mlp net.hidden=24,16 data.limit=128"
convnet="model=convnet net.channels=8,16 data.limit=128"
gpt="model=gpt net.layers=2 net.width=32 net.heads=2 data.kind=text data.path=words.txt data.seq=32"
lstm="model=lstm net.layers=2 net.width=32 data.kind=text data.path=words.txt data.seq=32"
layers_mlp='fc.0 fc.1 fc.2 loss'
layers_convnet='conv1 conv2 fc loss'
layers_gpt='wte h.0.attn h.1.attn h.0.mlp h.1.mlp loss'
layers_lstm='lstm loss'

number() { grep -o "\"$1\":[0-9]*" | head -1 | grep -o '[0-9]*$'; }

for model in mlp convnet gpt lstm; do
    for precision in fp32 fp16 bf16; do
        settings="$common ${!model} precision=$precision"
        "$mixt" plan any.yaml $settings --json >plan 2>err || { fail "plan $settings"; cat err; }
        "$mixt" train any.yaml $settings out=$model-$precision --json >train 2>err || { fail "train $settings"; cat err; }
        planned=$(number total <plan) allocated=$(number memory_allocated <train)
        [ -n "$planned" ] && [ "$planned" = "$allocated" ] || fail "$model $precision: planned $planned, allocated $allocated"
        total=0
        for role in parameters copies gradients moments state activations workspace batches control; do
            bytes=$(number $role <plan)
            total=$((total + ${bytes:--1}))
        done
        [ $total = "$planned" ] || fail "$model $precision: the roles sum up to $total, the total is $planned"
        grep -q "\"memory\":$allocated" $model-$precision/metrics.jsonl || fail "$model $precision: metrics say something else"
        [ $precision = fp32 ] && full=$(number activations <plan)
        # The perceptron is left out: its largest activation is the 16-bit copy of the batch.
        [ $precision = fp32 ] || [ $model = mlp ] || [ "$(number activations <plan)" -lt "$full" ] ||
            fail "$model $precision: activations not below fp32's"
        [ $precision = fp32 ] || grep -q "\"dtype\":\"$precision\"" plan || fail "$model $precision: no value has that format"
        python3 -m json.tool plan >/dev/null || fail "plan --json is no JSON"
    done
    list=layers_$model
    for option in --explain --graph; do
        "$mixt" plan any.yaml $common ${!model} precision=bf16 $option >text 2>err || { fail "plan $option"; cat err; }
        for layer in ${!list}; do
            grep -qF "$layer" text || fail "plan $option of $model does not name $layer"
        done
        grep -Eq '^total +[0-9]+' text || fail "plan $option of $model has no total"
    done
done

# What waits for the backward pass in another format: said, planned, and taken to the byte.
printf 'default: fp32\nkeep: fp8_e4m3\n' >keep.yaml
deep="$common ${gpt/net.layers=2/net.layers=4}"
"$mixt" plan any.yaml $deep precision=fp32 --json >plan && full=$(number activations <plan)
"$mixt" plan any.yaml $deep precision=keep.yaml --json >plan && kept=$(number activations <plan)
[ "$((kept * 2))" -lt "$full" ] || fail "keep: $kept bytes of activations, whole $full"
"$mixt" train any.yaml $deep precision=keep.yaml out=kept --json >train 2>err || { fail "train with keep"; cat err; }
[ "$(number total <plan)" = "$(number memory_allocated <train)" ] || fail "keep: another amount is allocated than planned"
"$mixt" plan any.yaml $deep precision=keep.yaml --explain >text
grep -q 'h.1.mlp.* scaled_cast .*kept in fp8_e4m3 for the backward pass: keep.yaml:2' text || fail "--explain does not say what is kept"

# The arithmetic of products stands beside their op, in both directions.
"$mixt" plan any.yaml $common $mlp precision=tf32 --graph >text
grep -Eq '^ *[0-9]+ f fc.1 +matmul:tf32 .* fp32' text || fail "--graph does not show the arithmetic of a product"
grep -Eq '^ *[0-9]+ b fc.1 +matmul:tf32 .* fp32' text || fail "--graph does not show the arithmetic of a gradient's product"
"$mixt" plan any.yaml $common $mlp precision=tf32 --json | grep -q '"backward":true,"dtype":"fp32","arithmetic":"tf32"' || fail "--json has no arithmetic"

# --explain says why a better kernel was refused, and obeys a forced one.
MIXT_CANDIDATE=matmul=plain "$mixt" plan any.yaml $common $mlp --explain | grep -Eq 'matmul +plain .*MIXT_CANDIDATE forces another' ||
    fail "--explain does not say why a kernel was refused"
MIXT_CANDIDATE=matmul=none "$mixt" plan any.yaml $common $mlp 2>&1 | grep -q "MIXT_CANDIDATE: cpu has no candidate 'none' for matmul, only .*plain" || fail "a forced kernel that is not there"
MIXT_CANDIDATE=pool=plain,matmull=plain "$mixt" plan any.yaml $common $mlp 2>&1 | grep -q "MIXT_CANDIDATE: cpu has no op 'matmull'" || fail "a kernel forced for no op"
MIXT_CANDIDATE=foo "$mixt" plan any.yaml $common $mlp 2>&1 | grep -q "MIXT_CANDIDATE: 'foo' is not of the form op=candidate, as in matmul=plain" || fail "a kernel forced for nothing"

# A small classifier's head is one op, unless nothing may be fused.
"$mixt" plan any.yaml $common $mlp --json | grep -q '"op":"head_step"' || fail "no head_step in an MLP's plan"
MIXT_FUSION=0 "$mixt" plan any.yaml $common $mlp --json | grep -Eq '"op":"(head_step|cross_entropy_step)"' && fail "MIXT_FUSION=0 leaves fused ops"

MIXT_FUSION=off "$mixt" plan any.yaml $common $mlp 2>&1 | grep -q "MIXT_FUSION: 'off' is neither 0 nor 1" || fail "MIXT_FUSION=off is taken for something"

MIXT_REPLAY=7 "$mixt" plan any.yaml $common $mlp 2>&1 | grep -q "MIXT_REPLAY: '7' is neither 0 nor 1" || fail "MIXT_REPLAY=7 is taken for something"

# --profile runs the step; --device wins over the configuration.
"$mixt" plan any.yaml $common $mlp --profile >text 2>err || { fail "plan --profile: status $?"; cat err; }
grep -Eq '^products +[0-9]+ +[0-9.]+%' text && grep -Eq '^total +[0-9]+' text || fail "plan --profile has no table"
"$mixt" plan any.yaml $common $mlp device=cuda --device cpu --json | grep -q '"device":"cpu"' || fail "--device does not win over device="

# A policy types layers by name; planning creates nothing.
printf 'default: bf16\nrules:\n  - {layer: "fc.1", precision: fp32}\n' >policy.yaml
before=$(ls)
plan=$("$mixt" plan any.yaml $common $mlp precision=policy.yaml --json) || fail "plan with a policy: status $?"
while read -r layer op backward dtype; do
    grep -q "\"layer\":\"$layer\",\"op\":\"$op\",[^}]*\"backward\":$backward,\"dtype\":\"$dtype\"" <<<"$plan" || fail "policy: $layer is not $dtype"
done <<'END'
fc.0 matmul false bf16
fc.1 matmul false fp32
fc.2 head_step true bf16
END
[ "$before" = "$(ls)" ] || fail "planning left files"

# --explain names what decided: a rule by its line, the default, the class of the op; and why a cast is there.
"$mixt" plan any.yaml $common $mlp precision=policy.yaml --explain >text || fail "--explain with a policy: status $?"
grep -Eq '^fc.0 +matmul .* bf16: default, policy.yaml:1' text || fail "--explain does not name the default: $(grep '^fc.0' text)"
grep -Eq "^fc.1 +matmul .* fp32: policy.yaml:3 \(layer 'fc.1'" text || fail "--explain does not name the rule: $(grep '^fc.1' text)"
grep -q 'input 0 of fc.1 wants fp32, fc.0 gives bf16' text || fail "--explain does not say why a cast is there"
grep -q 'class of the op: ' text || fail "--explain does not name the class of an op"
grep -q '"why":"fp32: policy.yaml:3 ' <<<"$plan" && grep -q '"rule":0' <<<"$plan" || fail "--json does not say what decided"

# --layer narrows what is shown; one that nothing matches is an error.
for option in --explain --graph; do
    "$mixt" plan any.yaml $common $mlp precision=policy.yaml $option --layer 'fc.1*' >text || fail "$option --layer: status $?"
    grep -q 'fc.1 ' text && ! grep -Eq '^( *[0-9]+ [fb] )?fc.[02] ' text && grep -Eq '^total +[0-9]+' text || fail "$option --layer shows other layers"
done
"$mixt" plan any.yaml $common $mlp --json --layer fc.1 | grep -q '"layer":"fc.[02]"' && fail "--json --layer shows other layers"
"$mixt" plan any.yaml $common $mlp --graph --layer 'conv*' >out 2>err
[ $? = 1 ] && grep -q "conv\*.*no layer" err && [ ! -s out ] || fail "a layer that is not there: $(cat err)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
