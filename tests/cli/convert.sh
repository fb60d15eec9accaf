#!/bin/bash
# mixt convert, used and misused: values, refusals, and that nothing is overwritten unasked. Usage: convert.sh MIXT
. "$(dirname "$0")/../support/script.sh"

# npy FILE DESCR COUNT BYTES: an array as numpy would write it (bytes in printf's notation)
npy() {
    local head
    head=$(printf "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" "$2" "$3")
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$head"; printf "$4"; } >"$1"
}
payload() { tail -c +129 "$1" | od -An -v -tx1 | tr -d ' \n'; }

# refused STATUS WORDS ARGUMENT...
refused() {
    local expected=$1 words=$2
    shift 2
    "$mixt" convert "$@" >/dev/null 2>"$work/err"
    local status=$?
    [ $status = "$expected" ] || fail "convert $*: status $status, expected $expected"
    grep -qF -- "$words" "$work/err" || { fail "convert $*: no '$words' in:"; cat "$work/err"; }
}

# 1, -2, 65504, 2^-24, 1 + 2^-11 (a tie: to even)
npy "$work/x.npy" '<f4' 5 '\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\xe0\x7f\x47\x00\x00\x80\x33\x00\x10\x80\x3f'
"$mixt" convert "$work/x.npy" "$work/y.npy" --dtype fp16 >"$work/out" || fail "fp32 to fp16: status $?"
grep -q 'fp16' "$work/out" || fail "convert does not say what it did"
[ "$(payload "$work/y.npy")" = 003c00c0ff7b0100003c ] || fail "fp16 values: $(payload "$work/y.npy")"
"$mixt" convert "$work/y.npy" "$work/z.npy" -d fp32 --json >"$work/out" || fail "fp16 to fp32: status $?"
grep -q '"dtype": "fp32"' "$work/out" || fail "JSON of convert: $(cat "$work/out")"
[ "$(payload "$work/z.npy")" = 0000803f000000c000e07f47000080330000803f ] || fail "fp32 values: $(payload "$work/z.npy")"
for i in 1 2; do
    "$mixt" convert "$work/x.npy" "$work/s$i.npy" --dtype fp16 --stochastic --seed 7 >/dev/null || fail "stochastic: status $?"
done
cmp -s "$work/s1.npy" "$work/s2.npy" || fail "the same seed gave other bits"

before=$(cksum <"$work/y.npy")
refused 1 'y.npy' "$work/x.npy" "$work/y.npy" --dtype fp32
[ "$(cksum <"$work/y.npy")" = "$before" ] || fail "an existing file was changed"
"$mixt" convert "$work/x.npy" "$work/y.npy" --dtype fp32 --overwrite >/dev/null || fail "--overwrite: status $?"
cmp -s "$work/x.npy" "$work/y.npy" || fail "--overwrite did not write"

# A scale counts in both directions.
"$mixt" convert "$work/x.npy" "$work/i.npy" -d int8 --scale 0.5 --saturate >/dev/null || fail "to int8: status $?"
"$mixt" convert "$work/i.npy" "$work/f.npy" -d fp32 --scale 0.5 >/dev/null || fail "from int8: status $?"
[ "$(payload "$work/f.npy" | head -c 16)" = 0000803f000000c0 ] || fail "through int8 and back: $(payload "$work/f.npy")"

# What did not fit is counted: NaN, infinity, 1e30, 1e-30, 300, -0.25, 1
npy "$work/l.npy" '<f4' 7 '\x00\x00\xc0\x7f\x00\x00\x80\x7f\xca\xf2\x49\x71\x60\x42\xa2\x0d\x00\x00\x96\x43\x00\x00\x80\xbe\x00\x00\x80\x3f'
# losses DTYPE 'OVERFLOWED CLAMPED VANISHED NAN' [OPTION]
losses() {
    "$mixt" convert "$work/l.npy" "$work/l.safetensors" -d "$1" --overwrite --json ${3:-} >"$work/out" || fail "to $1: status $?"
    local found
    found=$(grep -oE '"(overflowed|clamped|vanished|nan_lost)": [0-9]+' "$work/out" | grep -oE '[0-9]+$' | tr '\n' ' ')
    [ "$found" = "$2 " ] || fail "losses in $1 ${3:-}: $found, expected $2"
}
losses fp32 '0 0 0 0'
losses bf16 '0 0 0 0' --stochastic
losses fp16 '1 0 1 0'
losses fp16 '0 2 1 0' --saturate
losses fp8_e4m3 '2 0 1 0'
losses int8 '0 3 0 1'
losses uint8 '0 3 0 1'
"$mixt" convert "$work/l.npy" "$work/l16.npy" -d fp16 >"$work/out" || fail "losses in words: status $?"
grep -q 'out of the range of fp16, infinite or NaN now: 1 value$' "$work/out" || fail "losses in words: $(cat "$work/out")"

# Weights with integers among them: those stay, and that is said.
head='{"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}   '
{ printf "\\x$(printf %02x ${#head})\0\0\0\0\0\0\0%s" "$head"; printf '\7\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\xc0'; } >"$work/w.safetensors"
"$mixt" convert "$work/w.safetensors" "$work/h.safetensors" -d fp16 >"$work/out" || fail "weights: status $?"
grep -q '^1 tensor without floating-point numbers copied unchanged$' "$work/out" || fail "says of kept integers: $(cat "$work/out")"
"$mixt" convert "$work/w.safetensors" "$work/h.safetensors" -d fp16 --overwrite --json | grep -q '"kept": 1,' || fail "JSON of kept integers"

head -c 100 "$work/x.npy" >"$work/short.npy"
head -c 140 "$work/x.npy" >"$work/cut.npy"
printf 'hello' >"$work/text.npy"
refused 1 'short.npy' "$work/short.npy" "$work/o.npy" --dtype fp16
refused 1 'cut.npy' "$work/cut.npy" "$work/o.npy" --dtype fp16
refused 1 'text.npy' "$work/text.npy" "$work/o.npy" --dtype fp16
refused 1 'none.npy' "$work/none.npy" "$work/o.npy" --dtype fp16
refused 1 '.npy' "$work/x.npy" "$work/o.txt" --dtype fp16
refused 1 'o.npy' "$work/x.npy" "$work/none/o.npy" --dtype fp16
refused 2 'did you mean fp16?' "$work/x.npy" "$work/o.npy" --dtype fp17
refused 2 'missing option --dtype' "$work/x.npy" "$work/o.npy"
refused 2 'missing argument DST' "$work/x.npy" --dtype fp16
refused 2 'must be from 0' "$work/x.npy" "$work/o.npy" --dtype fp16 --seed -1
refused 2 'expected a number' "$work/x.npy" "$work/o.npy" --dtype int8 --scale big
refused 1 'a scale of 2 is not for a conversion to fp32' "$work/x.npy" "$work/o.npy" --dtype fp32 --scale 2
[ -e "$work/o.npy" ] && fail "a refused conversion left a file"
[ -n "$(find "$work" -name '*o.npy?*' -o -name '*partial*' -o -name '*.tmp*')" ] && fail "a refused conversion left a part"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
