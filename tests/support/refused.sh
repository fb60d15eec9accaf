# For tests of runs that begin with others; sourced after script.sh.

# train ARGUMENT...: must succeed
train() { "$mixt" train "$@" -q 2>err || { fail "train $*: status $?"; cat err; }; }
# refused PATTERN ARGUMENT...: training fails and says so, and makes nothing
refused() {
    local pattern=$1
    shift
    "$mixt" train "$@" out=none -q 2>err && fail "train $*: was not refused"
    grep -q -- "$pattern" err || { fail "train $*: does not say '$pattern'"; cat err; }
    [ -e none ] && fail "train $*: left a folder"
}

# translators: pairs.yaml, which learns a vocabulary of its own, and two sets of sentences, sums and dogs
translators() {
    local i
    cat >pairs.yaml <<'YAML'
model: seq2seq
precision: fp32
device: cpu
threads: 1
net: {layers: 1, width: 16, heads: 2}
data: {kind: parallel, path: sums, source: en, target: de, vocab_size: 280, seq: 64}
train: {epochs: 0, steps: 2, batch: 4, lr: 0.003}
YAML
    mkdir sums dogs
    for i in $(seq 40); do
        echo "$i and $i make $((i + i))" >>sums/train.en && echo "$i und $i sind $((i + i))" >>sums/train.de
        echo "the lazy dog jumps $i times" >>dogs/train.en && echo "der faule Hund springt $i mal" >>dogs/train.de
    done
}
