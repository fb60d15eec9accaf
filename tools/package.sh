#!/bin/sh
# Packs mixt: DIST/mixt-VERSION-linux-x86_64.tar.zst, to be unpacked anywhere, and Debian packages. Usage: package.sh BUILD
# [CMAKE-OPTION...]. One build folder serves both: what differs is how it is installed.
set -eu
build=$1
shift
cd "$(dirname "$0")/.."
rm -rf "$build/dist"
pack() {
    cmake -S . -B "$build" -G Ninja -DMIXT_TESTS=OFF "$@" >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
    cmake --build "$build" || exit 1
    (cd "$build" && cpack >"cpack.log" 2>&1) || { cat "$build/cpack.log" >&2; exit 1; }
}
pack "$@" -DMIXT_PACKAGE=archive -DCMAKE_INSTALL_PREFIX=/usr/local -DCMAKE_INSTALL_LIBDIR=lib
pack "$@" -DMIXT_PACKAGE=deb -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$(gcc -print-multiarch)"
rm -f "$build.log"
ls -l "$build/dist"
