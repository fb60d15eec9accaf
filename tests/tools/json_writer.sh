#!/bin/bash
# The check of who builds JSON must itself be able to fail.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir -p "$tree/src/store" "$tree/cli"
echo >"$tree/src/a.c" && echo >"$tree/cli/a.c"

# expect pass|fail FILE LINE
expect() {
    echo "    $3" >"$tree/$2"
    if "$PWD/tools/json_writer.sh" "$tree" >"$tree/output" 2>&1; then result=pass; else result=fail; fi
    [ "$result" = fail ] && ! grep -q "^$2:" "$tree/output" && result="fail otherwise"
    echo >"$tree/$2"
    [ "$result" = "$1" ] && return
    echo "expected $1, got $result: $2 with $3: $(cat "$tree/output")"
    failures=$((failures + 1))
}
expect fail src/a.c 'json_object_set_new(o, "a", json_integer(1));'
expect fail cli/a.c '(void)json_array_append(list, json_integer(1));'
expect fail cli/a.c 'json_t *o = json_pack("{s:i}", "a", 1);'
expect fail cli/a.c 'json_dumpf(o, stdout, 0);'
expect fail src/a.c 'json_t *o = json_loads(text, 0, NULL);'
expect fail src/a.c 'json_t *o = json_deep_copy(value);'
expect fail src/a.c 'return json_pack("{s:o*}", "a", value);'
expect pass src/a.c 'mixt__json_set(o, "a", json_pack("{s:i}", "b", 1));'
expect pass cli/a.c 'cli_json_set(o, "a", cli_json_pack("{s:i}", "b", 1));'
expect pass src/store/json.c 'int failed = json_object_set_new(object, key, value);'
exit $((failures != 0))
