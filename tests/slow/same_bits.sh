#!/bin/bash
# Two builds train to the same bits: every model of the zoo in four formats, weights and metrics after 20 updates; the second build
# goes on from the first one's checkpoints to the same end; and 2 ranks with every dist.zero.
# Usage: same_bits.sh BEFORE AFTER [FOLDER]: two mixt commands. FOLDER keeps what BEFORE made for the next time. MODELS, PRECISIONS and
# LEVELS narrow it; DEVICE=cuda trains on the GPU, without ranks; THREADS=2.
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
before=$mixt
after=$(realpath "$2")
kept=${3:-$work/kept}
mkdir -p "$kept" && cd "$kept" || exit 1
device=${DEVICE:-cpu}
unset MIXT_DEVICE MIXT_REPLAY MIXT_FUSION MIXT_CANDIDATE
export MIXT_THREADS=${THREADS:-2}
[ "$device" = cpu ] || export MIXT_CACHE=$kept/cache # what one build has timed, the other takes

seq 20000 >text
mkdir -p vocabulary
printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n0\n1\n2\n3\n4\n##0\n##1\n##2\n##5\n##7\n' >vocabulary/vocab.txt
printf 'model: mlp\n' >any.yaml
tokens='data.kind=text data.path=text data.limit=400 data.seq=32 data.tokenizer=bytes'
words='data.kind=text data.path=text data.limit=400 data.seq=32 data.tokenizer=wordpiece data.vocab=vocabulary'
small='net.layers=2 net.width=64 net.heads=2 net.dropout=0.1'
mlp='model=mlp net.hidden=[96,64] net.dropout=0.1 data.samples=600 train.clip=1'
convnet='model=convnet net.channels=[8,16] net.norm=batch data.samples=600 train.optimizer=momentum'
resnet='model=resnet net.depth=20 net.width=8 data.samples=400 data.crop=32 data.pad=2 train.optimizer=sgd train.lr=0.05'
vgg='model=vgg net.depth=11 net.hidden=[64] data.samples=400 data.crop=32 data.pad=2 train.batch=8'
c3d='model=c3d net.channels=[4,8] net.hidden=[32] net.norm=batch data.kind=moving data.frames=8 data.samples=160 train.batch=8'
gpt="model=gpt $small $tokens train.accumulate=2 train.clip=0.5"
llama="model=llama net.layers=2 net.width=64 net.heads=4 net.kv_heads=2 net.tied=true $tokens train.optimizer=lamb"
bert="model=bert $small $words"
bert_mlm="model=bert_mlm $small $words data.mask=0.15"
bert_classify='model=bert_classify net.layers=1 net.width=64 net.heads=4 net.pool=mean net.dropout=0.3 data.kind=labelled data.seq=32 data.samples=400'
lstm="model=lstm net.layers=2 net.width=48 $tokens"
gru="model=gru net.layers=2 net.width=48 $tokens"
rnn="model=rnn net.layers=2 net.width=48 $tokens train.optimizer=adam"
seq2seq='model=seq2seq net.layers=1 net.width=64 net.heads=2 data.kind=parallel data.samples=400 data.vocab_size=300 data.seq=32'
speech='model=speech net.channels=[8,16] net.layers=1 net.width=32 data.kind=audio data.task=text data.mels=20 data.samples=160 train.batch=8'
mf='model=mf net.width=16 net.penalty=0.05 data.kind=ratings data.samples=4000 train.batch=64'
ncf='model=ncf net.width=16 net.hidden=[32,16] data.kind=ratings data.samples=4000 train.batch=64'
pair='model=pair net.channels=[8,16] net.width=32 data.kind=pairs data.samples=300'
models=${MODELS:-mlp convnet resnet vgg c3d gpt llama bert bert_mlm bert_classify lstm gru rnn seq2seq speech mf ncf pair}
common="device=$device seed=3 train.epochs=0 train.steps=20 train.checkpoint_every=10 train.log_every=1"

# train MIXT OUT SETTING...
train() {
    local command=$1 out=$2
    shift 2
    rm -rf "$out"
    "$command" train any.yaml train.batch=16 $common out="$out" "$@" -q 2>"$work/err" || { fail "$command train $*: $(tail -2 "$work/err")"; return 1; }
}
# once OUT SETTING...: what BEFORE makes, unless it is there
once() { [ -e "$1/model.safetensors" ] || train "$before" "$@"; }

compared=0
for model in $models; do
    for precision in ${PRECISIONS:-fp32 tf32 bf16 fp16}; do
        name=$model-$precision
        once "before-$name" ${!model} precision=$precision || continue
        train "$after" "$work/after" ${!model} precision=$precision || continue
        same "before-$name" "$work/after"
        rm -rf "$work/resumed"
        cp -r "before-$name" "$work/resumed"
        rm -rf "$work/resumed"/{checkpoints/step-00000020,model.safetensors}
        "$after" train --resume "$work/resumed" -q 2>"$work/err" || fail "$name: resumed from a checkpoint of the build before: $(tail -2 "$work/err")"
        same "before-$name" "$work/resumed"
        compared=$((compared + 2))
    done
done
if [ "$device" = cpu ] && command -v mpirun >/dev/null && [ -e "$(dirname "$after")/libmixt_mpi.so" ]; then
    for model in ${RANKED:-mlp convnet gpt lstm}; do
        for precision in ${PRECISIONS:-fp32 bf16 fp16}; do
            [ $precision != tf32 ] || continue
            MIXT_THREADS=1 once "ranks-$model-$precision" ${!model} train.accumulate=1 dist.ranks=2 precision=$precision || continue
            for zero in ${LEVELS:-0 1 2 3}; do
                rm -rf "$work/after"
                MIXT_THREADS=1 ranks 2 "$after" train any.yaml train.batch=16 $common ${!model} train.accumulate=1 precision=$precision \
                    dist.zero=$zero out="$work/after" -q 2>"$work/err" || { fail "$model $precision, dist.zero=$zero: $(tail -2 "$work/err")"; continue; }
                same "ranks-$model-$precision" "$work/after"
                compared=$((compared + 1))
            done
        done
    done
fi
echo "$compared trainings compared, $failures differ"
[ $failures = 0 ]
