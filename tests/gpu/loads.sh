#!/bin/bash
# The CUDA backend loads, says what is missing, and steps aside where there is no GPU. Where there is one, it runs.
# Usage: loads.sh MIXT LIBRARY
. "$(dirname "$0")/../support/script.sh"
library=$(realpath "$2")
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
unset MIXT_DEVICE MIXT_CUDA_LIBRARY
printf 'model: mlp\nnet: {hidden: [16]}\ndata: {kind: digits, limit: 256}\ntrain: {epochs: 1, batch: 32}\n' >tiny.yaml
bench="bench mlp --precision fp32 --batch 8 --steps 1 --threads 1"

# refused NAME WORDS COMMAND...: status 1, one line that has the words
refused() {
    local name=$1 words=$2
    shift 2
    "$@" >out 2>err
    [ $? = 1 ] || { fail "$name: status is not 1"; cat err; }
    [ "$(wc -l <err)" = 1 ] || { fail "$name: not one line:"; cat err; }
    grep -Eq -- "$words" err || { fail "$name: no '$words' in:"; cat err; }
}
# on DEVICE COMMAND...: a bench that must run there
on() {
    local device=$1
    shift
    "$@" --json >out 2>err || { fail "$*: status $?"; cat err; }
    grep -q "\"device\": *\"$device\"" out || { fail "$*: not on $device:"; cat out; }
}

exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVW]/ { print $3 }' | grep -v '@@' | tr '\n' ' ')
[ "${exported% }" = mixt_cuda_open ] || fail "the library exports more than its entrance: $exported"

if "$mixt" info --json | grep -q '"usable": true'; then
    echo "with a GPU"
    on cuda "$mixt" $bench
    on cuda "$mixt" $bench --device cuda
    MIXT_DEVICE=cpu on cpu "$mixt" $bench
    CUDA_VISIBLE_DEVICES='' on cpu "$mixt" $bench --device auto
    CUDA_VISIBLE_DEVICES='' refused 'every GPU hidden' "device 'cuda': looking for a GPU: there is no GPU" "$mixt" $bench --device cuda
    "$mixt" info | grep -q 'Tensor Cores of generation' || fail "mixt info does not describe the GPU"
else
    echo "without a GPU"
    on cpu "$mixt" $bench
    on cpu "$mixt" $bench --device auto
    refused 'bench on no GPU' "device 'cuda': looking for a GPU: .*(driver|GPU)" "$mixt" $bench --device cuda
    refused 'training on no GPU' "device 'cuda': looking for a GPU" "$mixt" train tiny.yaml device=cuda out=run
    refused 'a plan for no GPU' "device 'cuda': looking for a GPU" "$mixt" plan tiny.yaml --device cuda
    MIXT_DEVICE=cuda refused 'MIXT_DEVICE=cuda' "MIXT_DEVICE: device 'cuda'" "$mixt" $bench
    [ ! -e run ] || fail "a run that could not start left a run directory"
    "$mixt" info | grep -Eq '^GPU +none: .' || fail "mixt info does not say why no GPU is used"
    "$mixt" train tiny.yaml out=run -q || fail "training with device auto: status $?"
    "$mixt" eval run --device auto >/dev/null || fail "eval with device auto: status $?"
    refused 'eval on no GPU' "device 'cuda'" "$mixt" eval run --device cuda

    # A driver that is too old to be of use: auto loads everything, then goes on without.
    if command -v cc >/dev/null; then
        mkdir driver && echo 'int cuInit(unsigned f) { (void)f; return 100; }' | cc -shared -fPIC -x c - -o driver/libcuda.so.1
        LD_LIBRARY_PATH=$work/driver on cpu "$mixt" $bench
        LD_LIBRARY_PATH=$work/driver "$mixt" info | grep -Eq '^GPU +none: looking for a GPU: ' || fail "info with a useless driver"
    fi
fi

MIXT_CUDA_LIBRARY=$work/none.so refused 'no backend' "device 'cuda': .*none.so: cannot open" "$mixt" $bench --device cuda
MIXT_CUDA_LIBRARY=$work/tiny.yaml refused 'a backend that is no library' "device 'cuda': .*tiny.yaml" "$mixt" $bench --device cuda
if command -v cc >/dev/null; then
    # What a machine says that has the backend but lacks a library of CUDA's.
    echo 'int missing(void) { return 1; }' | cc -shared -fPIC -x c - -o libmissing.so.9 -Wl,-soname,libmissing.so.9
    echo 'int missing(void); int mixt_cuda_open(void) { return missing(); }' | cc -shared -fPIC -x c - -o hollow.so -x none libmissing.so.9
    rm libmissing.so.9
    MIXT_CUDA_LIBRARY=$work/hollow.so refused 'a missing library' "device 'cuda': .*libmissing.so.9: cannot open" "$mixt" $bench --device cuda
    echo 'int other(void) { return 1; }' | cc -shared -fPIC -x c - -o other.so
    MIXT_CUDA_LIBRARY=$work/other.so refused "someone else's library" "is not mixt's" "$mixt" $bench --device cuda
    cat >abi.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
static void say(const char *text) { puts(text); }
int main(int count, char **words)
{
    const void *backend;
    void *library = dlopen(words[count - 1], RTLD_NOW);
    int (*open)(const char *, void (*)(const char *), const void **) = library ? dlsym(library, "mixt_cuda_open") : 0;
    return open ? open("mixt 0.0.0 cuda 0", say, &backend) : 99;
}
C
    cc abi.c -o abi -ldl && ./abi "$library" >out
    status=$?
    [ $status != 0 ] && [ $status != 99 ] && grep -q 'from another build' out || { fail "a library of another build: status $status"; cat out; }
fi

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "the backend loads and reports"
