/* A checksum of the code that runs, as it lies in memory: the parts of its file that nobody writes to, which the loader
 * leaves as they are. */
#include "run/build.h"

#include "mixt/program.h"
#include "store/checksum.h"

#include <link.h>
#include <stdint.h>
#include <stdio.h>

typedef struct code {
    uintptr_t inside; // an address in the part that is looked for
    uint64_t sums[2]; // of the parts so far, of the newest
} code;

static bool is_read_only(const ElfW(Phdr) * h)
{
    return h->p_type == PT_LOAD && (h->p_flags & PF_R) && !(h->p_flags & PF_W);
}

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + h->p_vaddr;
        if (h->p_type == PT_LOAD && address >= begin && address - begin < h->p_memsz)
            return true;
    }
    return false;
}

/** Byte by byte, also what lies between constants, where a sanitizer wants nobody to read. */
__attribute__((no_sanitize("address"))) static void copy(unsigned char *to, const volatile unsigned char *from,
                                                         size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[i];
}

static void add(code *c, const unsigned char *from, size_t bytes)
{
    unsigned char piece[4096];
    for (size_t at = 0; at < bytes; at += sizeof piece) {
        size_t count = bytes - at < sizeof piece ? bytes - at : sizeof piece;
        copy(piece, from + at, count);
        c->sums[1] = mixt__checksum(piece, count);
        c->sums[0] = mixt__checksum(c->sums, sizeof c->sums);
    }
}

static int sum_code(struct dl_phdr_info *info, size_t size, void *user)
{
    code *c = user;
    (void)size;
    if (!holds(info, c->inside))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (is_read_only(h))
            add(c, (const unsigned char *)(info->dlpi_addr + h->p_vaddr), h->p_filesz);
    }
    return 1;
}

void mixt__build_describe(char *text, size_t size)
{
    code c = {.inside = (uintptr_t)&mixt__build_describe};
    dl_iterate_phdr(sum_code, &c);
    snprintf(text, size, "mixt %s, code %016llx", mixt_version(), (unsigned long long)c.sums[0]);
}
