/* Reads /proc and /sys; what cannot be read is left out, never guessed. */
#include "cli/machine.h"

#include "base/cores.h"
#include "base/isa.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The first line of a small file without its newline; false when it cannot be read. */
static bool read_line(const char *path, char *text, int size)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool good = fgets(text, size, file) != NULL;
    fclose(file);
    if (good)
        text[strcspn(text, "\n")] = 0;
    return good;
}

static void read_caches(cli_machine *machine)
{
    for (int i = 0; i < CLI_CACHES_MAX; i++) {
        char path[96], level[16], type[16], size[32];
        const char *folder = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%d/level", folder, i);
        bool good = read_line(path, level, sizeof level);
        snprintf(path, sizeof path, "%s%d/type", folder, i);
        good = good && read_line(path, type, sizeof type);
        snprintf(path, sizeof path, "%s%d/size", folder, i);
        if (!good || !read_line(path, size, sizeof size))
            return;
        char *unit;
        int64_t bytes = strtoll(size, &unit, 10);
        bytes *= *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
        cli_cache *cache = &machine->caches[machine->cache_count++];
        *cache = (cli_cache){.level = atoi(level), .bytes = bytes};
        snprintf(cache->type, sizeof cache->type, "%s", type);
    }
}

cli_machine cli_machine_read(void)
{
    cli_machine machine = {0};
    machine.cores_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    machine.cores_usable = mixt__cores_usable();
    read_caches(&machine);
    machine.memory_total = (int64_t)mixt__memory_total();
    machine.memory_available = (int64_t)mixt__memory_available();
    return machine;
}

void cli_formats_read(cli_format formats[CLI_FORMATS])
{
    mixt__isa isa = mixt__isa_level();
    static const char *const fp32_units[] = {"one value at a time", "AVX2 and FMA, 8 at a time",
                                             "AVX-512, 16 at a time", "AVX-512, 16 at a time", "AVX-512, 16 at a time"};
    bool convert16 = isa >= MIXT_ISA_AVX2;
    const cli_format table[CLI_FORMATS] = {
        {"fp32", "native", fp32_units[isa], "master weights, sums and losses of every run; all of an fp32 run"},
        {"tf32", "emulated", "CPUs have no TF32 units", "computed in fp32: no faster, no less exact"},
        {"fp16", convert16 ? "widened" : "emulated",
         convert16 ? "F16C converts to fp32 on load and back on store" : "converted to fp32 and back in software",
         "stored in 16 bits, products and sums in fp32; dynamic loss scaling"},
        {"bf16", isa >= MIXT_ISA_AVX512_BF16 ? "native" : "widened",
         isa == MIXT_ISA_AMX           ? "AMX tiles multiply bf16 and sum in fp32"
         : isa == MIXT_ISA_AVX512_BF16 ? "AVX512-BF16 multiplies bf16 and sums in fp32"
                                       : "a shift converts to fp32 on load, rounding on store",
         isa >= MIXT_ISA_AVX512_BF16 ? "stored and multiplied in 16 bits, summed in fp32; no loss scaling"
                                     : "stored in 16 bits, products and sums in fp32; no loss scaling"},
        {"fp8", "emulated", "converted in software", "not trained in; mixt convert writes and reads it"},
        {"int8", "emulated", "converted in software", "not trained in; mixt convert writes and reads it"},
    };
    memcpy(formats, table, sizeof table);
}
