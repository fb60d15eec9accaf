/* NVRTC, a folder of machine code, and a list of what this process has loaded.
 *
 * A file is written under a name of its own and renamed, so readers see whole files only; a header with length and
 * checksum finds the rest of the accidents. Without a folder everything works, and compiles each time.
 */
#include "backend/cuda/core/jit.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"

#include <errno.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

typedef struct header {
    char magic[8];
    uint64_t key[2], bytes, checksum;
} header;

typedef struct loaded {
    struct loaded *next;
    char *source;
    int sm;
    const void *kernels[MIXT_JIT_MAX_KERNELS];
    char *reason; // why there are no kernels
} loaded;

static loaded *list; // of all devices, under the lock: loaded code belongs to none of them
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char magic[8] = "mixtjit1";

static uint64_t hash(uint64_t start, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t h = start ^ 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h ^ h >> 29;
}

/* ---- compiling ---- */

static char *failure(nvrtcProgram program, nvrtcResult result)
{
    size_t bytes = 0;
    char *log = NULL;
    if (result == NVRTC_ERROR_COMPILATION && nvrtcGetProgramLogSize(program, &bytes) == NVRTC_SUCCESS)
        log = mixt__alloc(bytes + 1);
    if (log && nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS)
        MIXT_LOG(ERROR, "NVRTC: %s", log);
    mixt__free(log);
    return mixt__strdup(nvrtcGetErrorString(result));
}

void *mixt__jit_compile(const char *source, int sm, size_t *bytes, char **reason)
{
    char arch[40];
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", sm);
    const char *options[] = {arch, "--std=c++17"};
    nvrtcProgram program = NULL;
    void *code = NULL;
    nvrtcResult result = nvrtcCreateProgram(&program, source, "mixt.cu", 0, NULL, NULL);
    if (result == NVRTC_SUCCESS)
        result = nvrtcCompileProgram(program, 2, options);
    if (result == NVRTC_SUCCESS)
        result = nvrtcGetCUBINSize(program, bytes);
    if (result == NVRTC_SUCCESS && !(code = mixt__alloc_uninit(*bytes)))
        result = NVRTC_ERROR_OUT_OF_MEMORY;
    if (result == NVRTC_SUCCESS)
        result = nvrtcGetCUBIN(program, code);
    *reason = NULL;
    if (result != NVRTC_SUCCESS) {
        *reason = failure(program, result);
        mixt__free(code);
        code = NULL;
    }
    if (program)
        nvrtcDestroyProgram(&program);
    return code;
}

/* ---- the folder ---- */

/** Of MIXT_CACHE, or as the user's system says; false: there is none. */
static bool folder(char *path, size_t size)
{
    const char *own = mixt__env_get(MIXT_ENV_CACHE), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (*own)
        length = snprintf(path, size, "%s/kernels", own);
    else if (xdg && *xdg)
        length = snprintf(path, size, "%s/mixt/kernels", xdg);
    else if (home && *home)
        length = snprintf(path, size, "%s/.cache/mixt/kernels", home);
    if (length < 0 || (size_t)length >= size)
        return false;
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0777); // a failure shows below, at the last one
            *p = '/';
        }
    return mkdir(path, 0777) == 0 || errno == EEXIST;
}

static header header_of(const char *source, int sm)
{
    header h = {.bytes = 0};
    int version[3] = {0, 0, sm};
    nvrtcVersion(&version[0], &version[1]);
    memcpy(h.magic, magic, sizeof h.magic);
    for (int i = 0; i < 2; i++)
        h.key[i] = hash(hash((uint64_t)i, version, sizeof version), source, strlen(source));
    return h;
}

static bool file_name(const header *h, char *path, size_t size)
{
    char place[PATH_SIZE];
    if (!folder(place, sizeof place))
        return false;
    int length = snprintf(path, size, "%s/%016llx%016llx.cubin", place, (unsigned long long)h->key[0],
                          (unsigned long long)h->key[1]);
    return length > 0 && (size_t)length < size;
}

/** NULL: there is no such file, or it is damaged. */
static void *read_code(const char *path, const header *wanted, size_t *bytes)
{
    header h;
    void *code = NULL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    if (fread(&h, sizeof h, 1, file) == 1 && !memcmp(h.magic, magic, sizeof magic) &&
        !memcmp(h.key, wanted->key, sizeof h.key) && h.bytes < (uint64_t)1 << 30)
        code = mixt__alloc_uninit((size_t)h.bytes);
    if (code && (fread(code, 1, (size_t)h.bytes, file) != h.bytes || fgetc(file) != EOF ||
                 hash(0, code, (size_t)h.bytes) != h.checksum)) {
        mixt__free(code);
        code = NULL;
    }
    fclose(file);
    *bytes = code ? (size_t)h.bytes : 0;
    return code;
}

static void write_code(const char *path, header h, const void *code, size_t bytes)
{
    char temporary[PATH_SIZE + 128];
    h.bytes = bytes;
    h.checksum = hash(0, code, bytes);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "wb");
    if (!file)
        return;
    bool good = fwrite(&h, sizeof h, 1, file) == 1 && fwrite(code, 1, bytes, file) == bytes;
    good = fclose(file) == 0 && good;
    if (!good || rename(temporary, path) != 0)
        (void)remove(temporary);
}

/* ---- loading ---- */

#if CUDART_VERSION >= 12080

static bool load(loaded *entry, const void *code, const char *const *names, int count)
{
    cudaLibrary_t library = NULL;
    cudaError_t error = cudaLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0);
    for (int i = 0; i < count && error == cudaSuccess; i++) {
        cudaKernel_t kernel = NULL;
        error = cudaLibraryGetKernel(&kernel, library, names[i]);
        entry->kernels[i] = (const void *)kernel;
    }
    if (error == cudaSuccess)
        return true;
    (void)cudaGetLastError();
    mixt__free(entry->reason);
    entry->reason = mixt__strdup(cudaGetErrorString(error));
    return false;
}

#else

static bool load(loaded *entry, const void *code, const char *const *names, int count)
{
    (void)code, (void)names, (void)count;
    mixt__free(entry->reason);
    entry->reason = mixt__strdup("compiling at plan time needs a build with CUDA 12.8 or later");
    return false;
}

#endif

/** From the folder if that has it, else from the compiler. */
static bool find(loaded *entry, const char *const *names, int count)
{
    char path[PATH_SIZE + 64];
    header h = header_of(entry->source, entry->sm);
    bool named = file_name(&h, path, sizeof path), good = false;
    size_t bytes = 0;
    void *code = named ? read_code(path, &h, &bytes) : NULL;
    if (code)
        good = load(entry, code, names, count);
    mixt__free(code);
    if (good)
        return true;
    mixt__free(entry->reason);
    code = mixt__jit_compile(entry->source, entry->sm, &bytes, &entry->reason);
    MIXT_LOG(PLAN, "compiled a kernel of %zu bytes", bytes);
    if (code && named)
        write_code(path, h, code, bytes);
    good = code && load(entry, code, names, count);
    mixt__free(code);
    return good;
}

bool mixt__jit_kernels(int sm, const char *source, const char *const *names, int count, const void **kernels,
                       const char **reason)
{
    pthread_mutex_lock(&lock);
    loaded *entry = list;
    while (entry && (entry->sm != sm || strcmp(entry->source, source)))
        entry = entry->next;
    if (!entry && (entry = mixt__alloc(sizeof *entry)) && (entry->source = mixt__strdup(source))) {
        entry->sm = sm;
        if (!find(entry, names, count) && !entry->reason)
            entry->reason = mixt__strdup("no memory to compile");
        entry->next = list;
        list = entry;
    }
    bool good = entry && entry->source && entry->kernels[count - 1];
    for (int i = 0; i < count && good; i++)
        kernels[i] = entry->kernels[i];
    if (!good)
        *reason = entry && entry->reason ? entry->reason : "no memory to compile";
    pthread_mutex_unlock(&lock);
    return good;
}
