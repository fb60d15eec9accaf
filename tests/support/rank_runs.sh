# Runs of several ranks for the slow tests; sourced after script.sh and ranks.sh, in $work. `variant I` leaves in $n a
# number of ranks and in $settings what to train: nets, formats, ways to share, in turn.
seq 20000 >text
cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [48, 32]}
data: {kind: digits, samples: 800}
train: {batch: 24, eval_batch: 24, epochs: 0, steps: 10, validate_every: 50, log_every: 1}
Y
tokens='data.kind=text data.path=text data.samples=0 data.limit=400 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32 net.hidden=[]'
variant() {
    case $(($1 % 4)) in
    0) n=2 settings='precision=fp16 dist.zero=1' ;;
    1) n=3 settings="model=gpt precision=fp16 $tokens net.heads=2 net.dropout=0.1 train.clip=0.5 dist.bucket=4K" ;;
    2) n=2 settings='model=convnet precision=fp16 net.hidden=[] net.channels=[4,8] net.norm=batch train.accumulate=2' ;;
    3) n=4 settings='precision=fp16 dist.compress=topk:5%' ;;
    esac
}
