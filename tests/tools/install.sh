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
flags=$(pkg-config --cflags --libs mixt) # the prefix is where it was installed, not where it was configured for
inside=$(pkg-config --static --cflags --libs mixt | sed s/-lmixt/-l:libmixt.a/)
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
cat >"$prefix/options.c" <<'END'
#include <mixt/mixt.h>
#define TWICE(x) ((x) == (x))
static mixt_value net(mixt_builder *b, mixt_value x) { return mixt_linear(b, "fc", x, .features = 2); }
int main(void) // options of all kinds, named or not, also inside other macros: no word from the compiler
{
    mixt_context *c = mixt_open(), *d = mixt_open(.device = "cpu", .threads = 1);
    mixt_data *data = mixt_data_new(c, "digits:"), *none = NULL;
    mixt_model *m = mixt_model_new(c, net, MIXT_LOSS_CROSS_ENTROPY), *n = mixt_model_new(d, net, MIXT_LOSS_MSE, .user = NULL);
    mixt_trainer *t = mixt_trainer_new(m), *u = mixt_trainer_new(n, .beta1 = 0, .lr = 0,
                                                                 .batch = 4);
    mixt_trainer_options defaults;
    mixt_trainer_options_default(&defaults, sizeof defaults);
    mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .beta1 = 0);
    int good = t && u && data && TWICE(mixt_trainer_new(m, .momentum = 0) != NULL) && !mixt_generator_new(m, .context = 8);
    good = good && mixt_data_open("digits:", &none, .val = 0, .samples = 10) == MIXT_OK;
    mixt_data_close(none);
    mixt_close(c);
    mixt_close(d);
    return good && defaults.beta1 > 0.8f && o.beta1 == 0 && o.batch == 32 ? 0 : 1;
}
END
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2086
    $compiler -std=c11 -pedantic -Wall -Wextra -Wshadow -Werror "$prefix/options.c" -o "$prefix/options" $flags
    LD_LIBRARY_PATH=$lib "$prefix/options"
done
if command -v g++ >/dev/null; then # the headers are C++ too
    # shellcheck disable=SC2086
    g++ -x c++ -Wall -Werror "$prefix/user.c" -o "$prefix/user" $flags && LD_LIBRARY_PATH=$lib "$prefix/user"
fi
# find_package, with both libraries, also after the folder was moved
mkdir "$prefix/project"
cat >"$prefix/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(user C)
find_package(mixt 0.1 REQUIRED)
add_executable(shared user.c)
target_link_libraries(shared PRIVATE mixt::mixt)
add_executable(inside user.c)
target_link_libraries(inside PRIVATE mixt::mixt_static)
END
cp "$prefix/user.c" "$prefix/project/user.c"
moved=$prefix/moved
mkdir "$moved"
cp -a "$prefix/include" "$prefix"/lib* "$moved"
for root in "$prefix" "$moved"; do
    cmake -S "$prefix/project" -B "$prefix/project/build" -DCMAKE_PREFIX_PATH="$root" -DCMAKE_BUILD_TYPE=Release --fresh >"$prefix/log"
    grep -q "mixt_DIR:PATH=$root/" "$prefix/project/build/CMakeCache.txt" || { echo "another mixt was found"; exit 1; }
    cmake --build "$prefix/project/build" >"$prefix/log" || { cat "$prefix/log"; exit 1; }
    "$prefix/project/build/shared"
    "$prefix/project/build/inside"
    ldd "$prefix/project/build/shared" | grep "libmixt.*$root" >"$prefix/log" || { echo "not linked with $root"; exit 1; }
    if ldd "$prefix/project/build/inside" | grep libmixt; then echo "linked with the shared library"; exit 1; fi
done
leaked=$(nm -D --defined-only "$lib/libmixt.so" | awk '$2 ~ /[TDBR]/ && $3 ~ /^mixt__/ { print $3 }')
[ -z "$leaked" ] || { echo "internal symbols are exported: $leaked"; exit 1; }
LD_LIBRARY_PATH=$lib "$prefix/bin/mixt" --version
test -s "$prefix/share/man/man1/mixt-train.1"
if [ -f "$build/libmixt_cuda.so" ]; then # the command finds it where it was installed, and gets as far as the driver
    test -s "$lib/mixt/libmixt_cuda.so"
    ! (cd / && "$prefix/bin/mixt" bench mlp --precision fp32 --steps 1 --device cuda 2>&1) | grep 'not here'
fi
