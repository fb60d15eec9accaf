#!/bin/bash
# Installs into an empty folder, then builds and runs an example against it as a stranger would. Usage: install.sh BUILD
set -euo pipefail
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >"$prefix/log"
pc=$(find "$prefix" -name mixt.pc)
lib=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs mixt)
inside=$(pkg-config --define-variable=prefix="$prefix" --static --cflags --libs mixt | sed s/-lmixt/-l:libmixt.a/)
# shellcheck disable=SC2086
cc -std=c11 -O1 -Wall -Werror examples/perceptron.c -o "$prefix/perceptron" $flags -lm
LD_LIBRARY_PATH=$lib "$prefix/perceptron"
for example in examples/*.c; do # README's line
    # shellcheck disable=SC2086
    cc "$example" -o "$prefix/example" $flags -lm
done
# shellcheck disable=SC2086
cc examples/fp16_matmul.c -o "$prefix/inside" $inside # the static library brings what it needs
if ldd "$prefix/inside" | grep libmixt; then echo "linked with the shared library"; exit 1; fi
"$prefix/inside"
printf '#include <mixt/mixt.h>\nint main(void) { return mixt_dtype_size(MIXT_DTYPE_BF16) == 2 ? 0 : 1; }\n' >"$prefix/user.c"
# shellcheck disable=SC2086
cc "$prefix/user.c" -o "$prefix/user" $flags && LD_LIBRARY_PATH=$lib "$prefix/user"
if command -v g++ >/dev/null; then # the headers are C++ too
    # shellcheck disable=SC2086
    g++ -x c++ -Wall -Werror "$prefix/user.c" -o "$prefix/user" $flags && LD_LIBRARY_PATH=$lib "$prefix/user"
fi
leaked=$(nm -D --defined-only "$lib/libmixt.so" | awk '$2 ~ /[TDBR]/ && $3 ~ /^mixt__/ { print $3 }')
[ -z "$leaked" ] || { echo "internal symbols are exported: $leaked"; exit 1; }
LD_LIBRARY_PATH=$lib "$prefix/bin/mixt" --version
test -s "$prefix/share/man/man1/mixt-train.1"
if [ -f "$build/libmixt_cuda.so" ]; then # the command finds it where it was installed, and gets as far as the driver
    test -s "$lib/libmixt_cuda.so"
    ! (cd / && "$prefix/bin/mixt" bench mlp --precision fp32 --steps 1 --device cuda 2>&1) | grep 'not here'
fi
