#!/bin/bash
# Pages in a real browser: installs Chromium and Python where they are missing, then runs tests/page. Usage: run.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
if ! command -v chromium >/dev/null || ! command -v python3 >/dev/null; then
    root=""
    [ "$(id -u)" = 0 ] || root=sudo
    echo "installing: chromium python3"
    DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends chromium python3 >/dev/null
fi
tests/page/report.sh "$1/mixt"
tests/page/watch.sh "$1/mixt"
