#!/bin/bash
# Each public header, included alone and first, is C11 and C++17 without a word from a pedantic compiler, and its first lines say
# what it is for.
set -euo pipefail
cd "$(dirname "$0")/../.."
for header in $(find include/mixt -name '*.h' | LC_ALL=C sort); do
    head -1 "$header" | grep -q '^/\* [A-Za-z]' || { echo "$header: does not begin with what it is for"; exit 1; }
    echo "#include \"${header#include/}\"" | ${CC:-cc} -x c -std=c11 -pedantic-errors -Wall -Wextra -Werror -Iinclude -fsyntax-only -
done
command -v "${CXX:-c++}" >/dev/null || { echo "SKIPPED: there is no C++ compiler; as C all headers are good"; exit 77; }
for header in $(find include/mixt -name '*.h' | LC_ALL=C sort); do
    echo "#include \"${header#include/}\"" | ${CXX:-c++} -x c++ -std=c++17 -pedantic-errors -Wall -Wextra -Werror -Iinclude -fsyntax-only -
done
