#!/bin/bash
# Pages in a real browser: installs Chromium where it is missing, then runs tests/page. Usage: run.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
if ! command -v chromium >/dev/null; then
    root=""
    [ "$(id -u)" = 0 ] || root=sudo
    echo "installing: chromium"
    DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
tests/page/report.sh "$1/mixt"
tests/page/watch.sh "$1/mixt"
