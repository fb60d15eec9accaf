/* A clip: the input as its second frame of three, in a set of clips and as a folder to predict. */
#include "fuzz.h"

#include "mixt/predict.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SIDE = 4, FRAMES = 3, CLIP = FRAMES * SIDE * SIDE * 3 };

static const char FRAME[] = "P6 3 2 255\n0123456789abcdefgh";

static void require_finite(const float *sample, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        fuzz_require(isfinite(sample[i]));
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static float sample[2 * CLIP];
    static const char *const folders[] = {"set", "set/a", "set/b", "set/a/x", "set/b/y"};
    int32_t target[2];
    int64_t valid;
    char spec[700];
    mixt_data *set;
    mixt_inputs *inputs;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        mkdir(fuzz_path(folders[i]), 0700);
    static const char *const frames[] = {"set/a/x/1.ppm", "set/a/x/3.ppm", "set/b/y/1.ppm", "set/b/y/2.ppm",
                                         "set/b/y/3.ppm"};
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        fuzz_file(frames[i], FRAME, sizeof FRAME - 1);
    fuzz_file("set/a/x/2.ppm", data, size);
    snprintf(spec, sizeof spec, "video:%s", fuzz_path("set"));
    mixt_data_options options = MIXT_OPTIONS(mixt_data_options, .split = "all", .crop = SIDE, .frames = FRAMES,
                                             .normalise = MIXT_NORMALISE_UNIT);
    fuzz_require(mixt_data_open_with(spec, &options, &set) == MIXT_OK); // names alone: frames are read when needed
    if (fuzz_taken(mixt_data_read(set, 0, 2, sample, target, &valid)))
        require_finite(sample, 2 * CLIP);
    if (fuzz_taken(mixt_inputs_open(fuzz_path("set/a/x"), set, &inputs))) {
        fuzz_require(mixt_inputs_read(inputs, 0, 1, sample) == MIXT_OK);
        require_finite(sample, CLIP);
    }
    mixt_inputs_close(inputs);
    mixt_data_close(set);
}
