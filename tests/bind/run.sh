#!/bin/bash
# mixt from other languages, over the shared library. Usage: run.sh python|cpp LIBRARY
set -euo pipefail
language=$1 library=$2
cd "$(dirname "$0")/../.."
case $language in
python)
    command -v python3 >/dev/null || { echo "SKIPPED: python3 is not installed"; exit 77; }
    python3 tests/bind/bind.py "$library"
    ;;
cpp)
    command -v "${CXX:-c++}" >/dev/null || { echo "SKIPPED: there is no C++ compiler"; exit 77; }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "${CXX:-c++}" -std=c++17 -pedantic-errors -Wall -Wextra -Werror -Iinclude tests/bind/bind.cpp "$library" -o "$work/bind"
    LD_LIBRARY_PATH=$(dirname "$library") "$work/bind"
    ;;
esac
