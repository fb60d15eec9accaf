#!/bin/sh
# Installs the Debian packages that mixt builds with, where they are missing. Needs root or sudo only if any is.
# Usage: setup.sh [test], with what the tests need beside that: Open MPI, Python, pgrep. tools/test_programs.txt says which
# programs tests may call.
set -eu
packages="gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libyaml-dev zlib1g-dev libcmocka-dev libjpeg-dev libmicrohttpd-dev"
[ "${1:-}" != test ] || packages="$packages libopenmpi-dev openmpi-bin python3 procps"
missing=""
for p in $packages; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
root=""
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "setup: need root or sudo to install:$missing" >&2; exit 1; }
    root=sudo
fi
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq
$root apt-get install -y -qq --no-install-recommends $missing >/dev/null
