#!/bin/bash
# The check of symbols must itself be able to fail: two folders, a call down, a call up.
# Usage: symbol_order.sh CC
set -u
check=$PWD/tools/symbol_order.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
table=

# make_object FOLDER NAME TEXT: an object of a source in src/FOLDER
make_object() {
    mkdir -p "$tree/src/$1"
    printf '%s\n' "$3" > "$tree/src/$1/$2.c"
    "$cc" -c -o "$tree/src/$1/$2.c.o" "$tree/src/$1/$2.c" || exit 1
    echo "$tree/src/$1/$2.c.o" >> "$tree/objects"
}

# expect pass|fail WHAT TEXT: how the check ends, and what it says
expect() {
    if "$check" "$tree/objects" $table > "$tree/output" 2>&1; then result=pass; else result=fail; fi
    echo "$result" >> "$tree/output"
    if [ "$result" != "$1" ] || ! grep -q "$3" "$tree/output"; then
        echo "expected $1, got $result: $2"
        cat "$tree/output"
        failures=$((failures + 1))
    fi
    rm -rf "$tree/src" "$tree/objects"
}

cc=$1
make_object base low 'int low(void) { return 1; }'
make_object num high 'int low(void); int high(void) { return low(); }'
expect pass "a call down" ''

make_object base low 'int high(void); int low(void) { return high(); }'
make_object num high 'int high(void) { return 1; }'
expect fail "a call up" 'src/base/low.c needs high of src/num/high.c'

make_object base low 'extern const int table[]; const int *low = table;'
make_object num high 'const int table[] = {1, 2};'
expect fail "data above" 'src/base/low.c needs table'

make_object unheard low 'int low;'
expect fail "a folder that the table lacks" 'src/unheard is not in'

printf '%s\n' 'base num' 'num base' > "$tree/table"
table=$tree/table
make_object base low 'int low;'
expect fail "folders that use each other" 'base uses num'
table=

: > "$tree/objects"
expect fail "no objects" 'no objects'

[ "$failures" = 0 ] || { echo "$failures cases failed"; exit 1; }
