/* Reads /proc and /sys, and asks the GPU's backend, if it loads; what cannot be read is left out, never guessed. */
#include "mixt/machine.h"

#include "backend/backend.h"
#include "base/cores.h"
#include "base/files.h"
#include "base/isa.h"
#include "base/memory.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool mixt_built_with(const char *library)
{
    static const char *const used[] = {
#ifdef MIXT_HAVE_JPEG
        "jpeg",
#endif
#ifdef MIXT_HAVE_MICROHTTPD
        "microhttpd",
#endif
        NULL,
    };
    for (int i = 0; library && used[i]; i++)
        if (!strcmp(used[i], library))
            return true;
    return false;
}

/* ---- the processor ---- */

/** The first line of a small file without its newline; false when it cannot be read. */
static bool read_line(const char *path, char *text, int size)
{
    FILE *file = mixt__file_open_stream(path);
    if (!file)
        return false;
    bool good = fgets(text, size, file) != NULL;
    fclose(file);
    if (good)
        text[strcspn(text, "\n")] = 0;
    return good;
}

static void read_caches(mixt_cpu_info *info)
{
    for (int i = 0; i < MIXT_CACHES_MAX; i++) {
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
        mixt_cpu_cache *cache = &info->caches[info->cache_count++];
        *cache = (mixt_cpu_cache){.level = atoi(level), .bytes = bytes};
        cache->type = *type == 'D' ? "Data" : *type == 'I' ? "Instruction" : "Unified";
    }
}

static void read_features(mixt_cpu_info *info)
{
    const mixt__cpu_features *f = mixt__cpu();
    const mixt_cpu_feature table[] = {
        {"avx2", f->avx2},
        {"fma", f->fma},
        {"f16c", f->f16c},
        {"avx512", f->avx512},
        {"avx512_vnni", f->avx512_vnni},
        {"avx512_bf16", f->avx512_bf16},
        {"avx512_fp16", f->avx512_fp16},
        {"amx_tile", f->amx_tile},
        {"amx_bf16", f->amx_bf16},
        {"amx_int8", f->amx_int8},
    };
    _Static_assert(sizeof table <= sizeof info->features, "more features than there is room for");
    memcpy(info->features, table, sizeof table);
    info->feature_count = sizeof table / sizeof table[0];
}

void mixt_cpu_describe(mixt_cpu_info *info)
{
    const char *name = mixt__cpu()->model;
    name += strspn(name, " "); // some processors pad it
    *info = (mixt_cpu_info){.isa = mixt__isa_name(mixt__isa_level()), .threads = mixt__threads_count()};
    info->name = *name ? name : "unknown";
    info->cores_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    info->cores_usable = mixt__cores_usable();
    read_features(info);
    read_caches(info);
    info->memory_total = (int64_t)mixt__memory_total();
    info->memory_available = (int64_t)mixt__memory_available();
}

/* ---- GPUs ---- */

int mixt_gpu_count(void)
{
    const mixt__backend *cuda;
    return mixt__backend_gpu(&cuda) == MIXT_OK ? cuda->devices() : 0;
}

mixt_status mixt_gpu_describe(int index, mixt_gpu_info *info)
{
    const mixt__backend *cuda;
    MIXT_TRY(mixt__need(info));
    MIXT_TRY(mixt__backend_gpu(&cuda));
    int count = cuda->devices();
    mixt__device *none;
    if (!count) // opening says why there is none
        MIXT_TRY(cuda->open(0, 0, &none));
    if (index < 0 || index >= count)
        return mixt__fail(MIXT_ERROR_DEVICE, "GPU %d: the driver shows %d, from 0 on", index, count);
    return cuda->describe_at(index, info);
}
