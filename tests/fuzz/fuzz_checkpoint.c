/* Checkpoints: the input as manifest, as it is and with a checksum that fits; as state; and as places to damage in a
 * good one, of which none may go unnoticed. */
#include "fuzz.h"

#include "store/checkpoint.h"
#include "store/checkpoint_inside.h"
#include "store/checksum.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 3, SIZE_MAX_FILE = 4096 };

static const char *const names[FILES] = {MIXT_CHECKPOINT_MANIFEST, MIXT_CHECKPOINT_STATE, "config.yaml"};
static uint8_t good[FILES][SIZE_MAX_FILE];
static size_t sizes[FILES];

static const char *inside(const char *folder, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fuzz_path(path);
}

/** Writes a checkpoint once and keeps its files. */
static void make_good(void)
{
    static const float weight[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t counts[3] = {7, 8, 9};
    const mixt__file_tensor tensors[] = {
        {.name = "fc.weight", .dtype = MIXT_DTYPE_FP32, .rank = 2, .dims = {2, 3}, .data = weight},
        {.name = "counts", .dtype = MIXT_DTYPE_UINT8, .rank = 1, .dims = {3}, .data = counts}};
    const mixt__checkpoint_file file = {"config.yaml", "model: mlp\n", 11};
    json_t *scalars = json_pack("{s:i, s:f, s:s}", "step", 12, "loss", 0.5, "scale", "inf");
    const mixt__checkpoint_content content = {tensors, 2, scalars, &file, 1};
    fuzz_require(mixt__checkpoint_write(fuzz_path("good"), &content) == MIXT_OK);
    json_decref(scalars);
    for (int i = 0; i < FILES; i++) {
        int stream = open(inside("good", names[i]), O_RDONLY | O_CLOEXEC);
        ssize_t got = read(stream, good[i], SIZE_MAX_FILE);
        fuzz_require(got > 0 && got < SIZE_MAX_FILE && !close(stream));
        sizes[i] = (size_t)got;
    }
    fuzz_require(!mkdir(fuzz_path("c"), 0700));
}

/** Opens the folder with one of its files replaced; true when it was taken. */
static bool open_with(int replaced, const void *data, size_t size)
{
    char name[300];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "c/%s", names[i]);
        fuzz_file(name, i == replaced ? data : good[i], i == replaced ? size : sizes[i]);
    }
    mixt__checkpoint *checkpoint;
    if (!fuzz_taken(mixt__checkpoint_open(fuzz_path("c"), &checkpoint)))
        return false;
    int64_t step;
    double loss;
    fuzz_require(json_is_object(checkpoint->scalars) && checkpoint->state);
    fuzz_taken(mixt__json_get_int(checkpoint->scalars, "step", 0, INT64_MAX, &step));
    fuzz_taken(mixt__json_get_double(checkpoint->scalars, "loss", &loss));
    mixt__checkpoint_close(checkpoint);
    return true;
}

/** The first bytes of the input say which byte of which file changes, and how. */
static void damage(const uint8_t *data, size_t size)
{
    uint8_t copy[SIZE_MAX_FILE];
    if (size < 4 || !data[3])
        return;
    int file = data[0] % FILES;
    size_t at = ((size_t)data[1] | (size_t)data[2] << 8) % sizes[file];
    memcpy(copy, good[file], sizes[file]);
    copy[at] ^= data[3];
    fuzz_require(!open_with(file, copy, sizes[file]));
    fuzz_require(!open_with(file, good[file], at));
    fuzz_require(open_with(file, good[file], sizes[file]));
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static char sealed[FUZZ_INPUT_MAX + MIXT_CHECKPOINT_SEAL + 1];
    memcpy(sealed, data, size);
    mixt__checkpoint_seal(sealed + size, mixt__checksum(data, size));
    open_with(0, sealed, size + MIXT_CHECKPOINT_SEAL);
    open_with(0, data, size);
    open_with(1, data, size);
    damage(data, size);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    make_good();
    return 0;
}
