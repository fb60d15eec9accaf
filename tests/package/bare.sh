#!/bin/bash
# Packages on a bare Debian 12: the folder unpacks and its demo runs, with nothing installed; the Debian packages install, a
# program builds against them, and they are removed without a trace. Needs root, debootstrap and, for what lintian says,
# lintian. Usage: bare.sh DIST, the folder that `make package` fills
. "$(dirname "$0")/../support/script.sh"
dist=$1
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null || skip "no root or no debootstrap: packages are not tried on a bare Debian"
archive=$(ls "$dist"/mixt-*-linux-x86_64.tar.zst) || { fail "no archive in $dist"; exit 1; }
[ "$(stat -c %s "$archive")" -le $((12 << 20)) ] || [ "$(tar tf "$archive" | grep -c mixt_cuda)" -gt 0 ] ||
    fail "$(stat -c %s "$archive") bytes: over 12 MiB"
if command -v lintian >/dev/null; then
    lintian "$dist"/*.deb >"$work/lintian" 2>/dev/null
    ! grep '^E:' "$work/lintian" || fail "lintian has errors"
fi
root=$work/root
debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap" 2>&1 || { tail -5 "$work/debootstrap"; skip "debootstrap failed: no Debian to be had"; }
mount -t proc proc "$root/proc" || skip "no mount: programs do not find where they lie"
trap 'umount "$root/proc"; rm -rf "$work"' EXIT
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root "$@"; }

# ---- unpacked, nothing installed ----

need zstd # in what `make package` writes
zstd -dcq "$archive" | tar x -C "$root/opt" || fail "the archive does not unpack"
folder=$(cd "$root" && ls -d opt/mixt-*)
began=$(date +%s%N)
inside sh -c "cd /tmp && /$folder/bin/mixt demo" >"$work/demo" 2>&1 || { fail "demo"; tail -20 "$work/demo"; }
echo "demo: $((($(date +%s%N) - began) / 1000000)) ms"
grep -q 'equal to the plan, to the byte' "$work/demo" || fail "the demo has no table"
inside sh -c "cd /$folder/share/mixt && /$folder/bin/mixt plan configs/digits.yaml" >"$work/plan" || fail "plan of a configuration that came with it"
inside sh -c "ldd /$folder/lib/libmixt.so.0" | grep -q 'not found' && fail "a library is missing beside libmixt.so"
inside rm -r "/$folder" /tmp/runs

# ---- installed ----

cp "$dist"/*.deb "$root/opt/"
inside sh -c 'cd /opt && rm -f mixt-mpi*.deb mixt-cuda*.deb && apt-get -qq update && apt-get install -y -qq --no-install-recommends ./*.deb gcc libc6-dev pkg-config' \
    >"$work/apt" 2>&1 || { fail "the packages do not install"; tail -5 "$work/apt"; }
inside sh -c 'cd /tmp && mixt info' >/dev/null || fail "mixt info, installed"
cat >"$root/tmp/try.c" <<'C'
#include <mixt/mixt.h>
#include <stdio.h>
int main(void)
{
    mixt_context *ctx = mixt_open(.device = "cpu");
    mixt_data *train = mixt_data_new(ctx, "digits:");
    printf("%d %s\n", train != NULL, mixt_error(ctx));
    mixt_close(ctx);
    return train == NULL;
}
C
inside sh -c 'cd /tmp && gcc -std=gnu11 try.c -o try $(pkg-config --cflags --libs mixt) -lm && ./try' >"$work/try" 2>&1 || { fail "a program against the packages"; cat "$work/try"; }
inside sh -c 'ls /usr/share/man/man1/mixt-train.1.gz /usr/share/bash-completion/completions/mixt' >/dev/null || fail "no man page or no completion"
inside apt-get purge -y -qq mixt libmixt0 libmixt-dev >/dev/null 2>&1 || fail "the packages cannot be removed"
[ -z "$(inside find /usr -name '*mixt*')" ] || fail "left behind: $(inside find /usr -name '*mixt*')"
[ $failures = 0 ]
