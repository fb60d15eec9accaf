# What the tests of wrong input share (cli/bad_*.sh, cli/no_memory.sh); sourced first, with the command under test as the
# script's first argument. Beyond what script.sh leaves, the script then is in a folder of files for its cases, and has
#   makers of such files, and of runs: carried_run, writing_run;
#   refused, which runs a table of cases: each ends with the right status and a message that names it, and changes no file;
#   check NAME STATUS WORDS, one case of a command that was run;
#   finish, at the end.
. "$(dirname "${BASH_SOURCE[0]}")/script.sh"
cases=0
mkdir "$work/in" && cd "$work/in" || exit 1
export MIXT_CUDA_LIBRARY=$work/none.so # on no machine is there a GPU's backend

# ---- makers of files ----

be32() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
bytes() { head -c "$1" /dev/zero | tr '\0' "${2:-A}"; }
# idx FOLDER IMAGES LABELS: 8 x 8 images of which the headers promise 100
idx() {
    mkdir "$1"
    { printf '\0\0\10\3'; be32 100; be32 8; be32 8; bytes "$2"; } >"$1/train-images-idx3-ubyte"
    { printf '\0\0\10\1'; be32 "$3"; bytes "$3" '\1'; } >"$1/train-labels-idx1-ubyte"
}
# npy FILE BYTES ELEMENT: 64 rows of 4 FP32 numbers, all the same
npy() {
    local header="{'descr': '<f4', 'fortran_order': False, 'shape': (64, 4), }"
    { printf '\x93NUMPY\1\0\x76\0%-117s\n' "$header"; for _ in $(seq $(($2 / 4))); do printf "$3"; done; } >"$1"
}
# array FILE TYPE SHAPE BYTES: an array of bytes 0
array() { { printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"; bytes "$4" '\0'; } >"$1"; }
# csv FILE LINE: 60 rows of four numbers and a class, one of them replaced
csv() {
    echo 'a,b,c,d,class' >"$1"
    for i in $(seq 30); do echo "0.$i,1.5,-2,$i,$((i % 3))"; done >>"$1"
    [ -z "$2" ] || echo "$2" >>"$1"
    for i in $(seq 30); do echo "1.$i,0.5,-1,$i,$((i % 3))"; done >>"$1"
}

# ---- what all read ----

cat >tiny.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16]}
data: {kind: digits, limit: 256}
train: {epochs: 1, batch: 32}
YAML
sed 's/mlp/gpt/; s/hidden: .16./layers: 1, width: 16, heads: 2/; s/kind: digits, limit: 256/kind: text, path: words.txt, seq: 16/' tiny.yaml >gpt.yaml
yes 'the quick brown fox' | head -c 4000 >words.txt
idx good 6400 100
csv good.csv ''
npy good.npy 1024 '\0\0\200\77'
{ printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (64,), }"; bytes 256 '\0'; } >labels.npy
mkdir folder
"$mixt" train tiny.yaml out=run -q || fail "the run that the cases damage: status $?"

# carried_run: a run whose data is gone (carried), and one whose facts about its inputs are damaged (facts)
carried_run() {
    cp good.csv away.csv
    "$mixt" train tiny.yaml out=carried data.kind=csv data.path=away.csv train.batch=8 -q && rm away.csv || fail "a run whose data goes: status $?"
    cp -r carried facts && echo '{' >facts/inputs.json
}
# writing_run: a language model (writer)
writing_run() { "$mixt" train gpt.yaml out=writer train.steps=1 -q || fail "a run that writes: status $?"; }

# ---- cases ----

# trim TEXT: without the spaces around it, in $trimmed
trim() {
    trimmed=${1#"${1%%[! ]*}"}
    trimmed=${trimmed%"${trimmed##*[! ]}"}
}
# state: every file with what any write to it changes, and every folder
state() { find . -type f -printf '%p %i %s %C@\n' -o -type d -print | sort; }

# check NAME STATUS WORDS, after a command whose status is in $found and whose messages are in ../err
check() {
    cases=$((cases + 1))
    [ "$found" = "$2" ] || { fail "$1: status $found, expected $2"; head -3 ../err; }
    grep -qF -- "$3" ../err || { fail "$1: no '$3' in:"; head -3 ../err; }
    [ "$(wc -l <../err)" -le 3 ] || fail "$1: more than three lines of messages"
}
# refused: from standard input, a line a case: name | command after "mixt" | status | words on standard error
refused() {
    local before after name command status words arguments
    before=$(state)
    while IFS='|' read -r name command status words; do
        trim "$name" && name=$trimmed
        trim "$status" && status=$trimmed
        trim "$words"
        read -ra arguments <<<"$command"
        "$mixt" "${arguments[@]}" >../out 2>../err </dev/null
        found=$?
        check "$name" "$status" "$trimmed"
        [ -s ../out ] && fail "$name: wrote to standard output"
        after=$(state)
        [ "$before" = "$after" ] || { fail "$name: changed files:"; diff <(echo "$before") <(echo "$after") | head -5; before=$after; }
    done
}
finish() {
    echo "$cases cases"
    [ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
}
