#!/bin/sh
# Fails where a test script calls a program that tools/setup.sh does not install, and that the script does not ask for
# before: such a test fails, or checks nothing, on a machine that has mixt's packages alone.
# Usage: tools/test_programs.sh [ROOT]. Reads tools/test_programs.txt and tests/**/*.sh of ROOT.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${1:-$here/..}
cd "$root"
packages=" $(sed -n 's/^packages="//p; s/.*|| packages="\$packages//p' tools/setup.sh | tr -d '"' | tr '\n' ' ') shell essential make git "

bad=0
for package in $(awk '!/^#/ { print $1 }' tools/test_programs.txt | sort -u); do
    case $packages in *" $package "*) ;; *) echo "tools/test_programs.txt: tools/setup.sh does not install $package"; bad=1 ;; esac
done
allowed=$(awk '!/^#/ { $1 = ""; print }' tools/test_programs.txt | tr '\n' ' ')
shared=$(find tests -path '*/support/*.sh' -exec sed -n 's/^ *\([A-Za-z_][A-Za-z0-9_]*\)() .*/\1/p' {} + | tr '\n' ' ')
find tests -name '*.sh' -not -path 'tests/peers/*' | sort | xargs awk -v allowed="$allowed" -v shared="$shared" -f "$here/test_programs.awk" || bad=1
exit $bad
