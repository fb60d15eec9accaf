#!/bin/bash
# The check of programs that tests call must itself be able to fail, and must find commands wherever they stand.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir -p "$tree/tools" "$tree/tests/cli" "$tree/tests/support"
cp tools/setup.sh tools/test_programs.txt "$tree/tools"
printf '%s\n' 'shared() { true; }' 'need() { true; }' >"$tree/tests/support/script.sh"

# expect pass|fail SCRIPT
expect() {
    printf '%b\n' "$2" >"$tree/tests/cli/a.sh"
    if "$PWD/tools/test_programs.sh" "$tree" >"$tree/output" 2>&1; then result=pass; else result=fail; fi
    [ "$result" = fail ] && ! grep -q 'a.sh:[0-9]*: calls jq,' "$tree/output" && result="fail otherwise"
    [ "$result" = "$1" ] && return
    echo "expected $1, got $result: $2"
    cat "$tree/output"
    failures=$((failures + 1))
}

expect pass 'grep -q jq out | sed s/jq/x/ && echo "jq" jq'
expect pass 'shared; own() { true; }\nown jq'
expect pass '"$mixt" jq; ./jq; x=jq; y=(jq jq)\n# jq'
expect pass 'cat <<END\njq\nEND\ncat >jq <<-"E"\njq "\n\tE\necho a'
expect pass 'case $1 in\njq | x) true ;;\njq) false\nesac\necho jq'
expect pass 'for i in jq x; do echo $i; done; [[ $i = jq && jq < $i ]]'
expect pass 'command -v jq >/dev/null || exit 77\njq . out'
expect pass 'need jq\njq . out'
expect pass 'x=$((jq + 1)) y=${jq:-$((1 + 2))}; echo \x27jq\njq\x27 $\x27jq\x27 "\njq"'
expect pass 'timeout 60 mpirun -n 2 jq'
expect pass 'python3 - <<\x27PY\x27 || jqs=1\njq\nPY'
expect fail 'jq . out'
expect fail 'echo a | jq .'
expect fail 'true && X=1 jq .'
expect fail 'x=$(cat out | jq .)'
expect fail 'echo "and $(jq . out)"'
expect fail 'diff <(jq . a) b'
expect fail 'if ! jq . out; then true; fi'
expect fail 'while read -r x; do jq . "$x"; done <out'
expect fail 'case $1 in\na) jq . ;;\nesac'
expect fail '(cd x && jq .)'
expect fail 'timeout 60 jq .'
expect fail 'ls | xargs -n 1 jq'
expect fail 'own() { jq .; }'
expect fail 'cat <<END >out\nbody\nEND\njq .'
expect fail 'cat <<END | jq .\nbody\nEND'
expect fail '>out jq .'

echo 'jq jq' >>"$tree/tools/test_programs.txt"
echo true >"$tree/tests/cli/a.sh"
"$PWD/tools/test_programs.sh" "$tree" | grep -q 'does not install jq' || { echo "a package that setup does not install is taken"; failures=$((failures + 1)); }

[ "$failures" = 0 ] || { echo "$failures cases failed"; exit 1; }
