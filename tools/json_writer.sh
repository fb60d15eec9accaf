#!/bin/sh
# JSON is complete or not written: fails where a file of src/ or cli/ puts values together, copies, prints or reads them by
# jansson's own functions, which go on without what they have no memory for. What to call instead: src/store/json.h,
# cli/json.h. Usage: tools/json_writer.sh [ROOT]
set -eu
cd "${1:-$(dirname "$0")/..}"

plain='json_(object_(set|update)|array_(set|append|insert|extend)|dump|load|deep_copy|copy)[a-z_]*\('
packed='json_v?(pack|sprintf)[a-z_]*\('
# In src a value that could not be packed is NULL, which whoever takes it notices; but not where NULL is let pass.
omitting='json_pack\([^;]*"[^"]*[oOs]\*'
# lines PATTERN FOLDER...: of C files that call what it says, but for the writers themselves
lines() {
    pattern="(^|[^_a-z])($1)"
    shift
    grep -rnE "$pattern" "$@" --include=*.c | grep -vE '^(src/store/json(_load)?|cli/json)\.c:' || true
}
found=$(lines "$plain" src cli; lines "$packed" cli; lines "$omitting" src)
[ -z "$found" ] || { printf '%s\n' "$found" "JSON is built, copied and read by store/json.h and cli/json.h"; exit 1; }
