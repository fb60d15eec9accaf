#!/bin/bash
# Links and pipes in a run's folder: nothing is removed or written through a link, nothing waits for a pipe.
# Usage: links.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >config.yaml <<'YAML'
model: mlp
precision: fp32
device: cpu
threads: 1
data: {kind: digits, samples: 80}
train: {steps: 4, batch: 8, checkpoint_every: 2, log_every: 1}
YAML
"$mixt" train config.yaml out=run -q || fail "train"

# refused TEXT COMMAND...: must end within 20 s with status 1 and say TEXT
refused() {
    local text=$1
    shift
    timeout 20 "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || { fail "$*: status $status"; cat err; }
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
}

fresh() { rm -rf copy precious; cp -a run copy; mkdir precious; echo mine >precious/thesis.txt; echo mine >precious/manifest.json; }
whole() { [ "$(cat precious/* 2>/dev/null | grep -c mine)" = 2 ] || fail "$1: files behind the link are gone"; }

# ---- removing ----
fresh # a save that a process left behind
ln -s "$PWD/precious" copy/checkpoints/.saving-999999-1
ln -s "$PWD/precious" copy/checkpoints/step-00000001
"$mixt" train --resume copy -q train.steps=8 || fail "resume beside a link"
whole "links among checkpoints"
fresh # a folder that a user has called so
mkdir copy/checkpoints/.saving-mine && echo mine >copy/checkpoints/.saving-mine/notes
"$mixt" train --resume copy -q train.steps=8 || fail "resume beside a user's folder"
[ -f copy/checkpoints/.saving-mine/notes ] || fail "a user's folder was removed"
fresh # all checkpoints behind a link
mv copy/checkpoints elsewhere && ln -s "$PWD/elsewhere" copy/checkpoints
before=$(ls -R elsewhere)
refused "symbolic link" "$mixt" train --resume copy -q train.steps=8
[ "$before" = "$(ls -R elsewhere)" ] || fail "checkpoints behind a link were changed"

# ---- writing ----
for file in metrics.jsonl events.jsonl; do
    fresh
    mv copy/$file copy/real 2>/dev/null
    cp precious/thesis.txt was
    ln -sf "$PWD/precious/thesis.txt" copy/$file
    refused "symbolic link" "$mixt" train --resume copy -q train.steps=8
    cmp -s was precious/thesis.txt || fail "$file: was written through a link"
done
for file in config.yaml.partial history.jsonl layers.jsonl; do
    fresh
    ln -sf "$PWD/precious/thesis.txt" copy/$file
    timeout 60 "$mixt" train --resume copy -q train.steps=8 >out 2>err
    whole "$file"
    [ "$(cat precious/thesis.txt)" = mine ] || fail "$file: was written through a link"
done

# ---- pipes ----
for file in metrics.jsonl config.yaml history.jsonl inputs.json; do
    fresh
    rm -f copy/$file && mkfifo copy/$file
    for command in "eval copy" "report copy" "plot copy -o p.svg" "info copy" "predict copy"; do
        timeout 20 "$mixt" $command >out 2>err
        [ $? != 124 ] || fail "$command: waits for the pipe $file"
    done
done
fresh
rm copy/config.yaml && mkfifo copy/config.yaml
refused "not a regular file" "$mixt" eval copy
mkdir -p pictures/a pictures/b && mkfifo pipe pictures/a/1.png pictures/b/2.png
for data in data.path=pipe 'data.kind=tokens data.path=pipe' 'data.kind=text data.path=pipe' 'data.kind=csv data.path=pipe' 'data.kind=images data.path=pictures'; do
    refused "" "$mixt" train config.yaml out=never $data
done
"$mixt" train <(cat config.yaml) out=piped -q || fail "a configuration from the shell's pipe"
[ $failures = 0 ] && echo "links: all good"
exit $((failures > 0))
