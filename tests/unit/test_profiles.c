/* Profiles of machines: those built in are whole and have sources; a user's is read strictly; times that come of them
 * are those that were measured. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "choose/assumed.h"
#include "choose/cost.h"
#include "mixt/advise.h"
#include "run/open/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char good[] = "version: 1\nname: mine\ntitle: My GPU\nkind: gpu\ncapability: 8.6\ncores: 10\n"
                           "memory: 8e9\nreserved: 1e9\nbandwidth: 1e11\nflops: {fp32: 1e13, fp16: 2e13}\n"
                           "launch: 1e-6\nreach: {fp32: 0.5, fp16: {products: 0.4, attention: 0.3, convolution: 0.2, "
                           "recurrent: 0.1}}\nreach_bytes: 0.8\nsources: {capability: a, cores: b, memory: c, "
                           "reserved: d, bandwidth: e, flops: f, launch: g, reach: h, reach_bytes: i}\n";

static void test_built_in(void **state)
{
    (void)state;
    static const char *const wanted[] = {"v100",    "t4",       "a100",       "a100-80",        "h100",   "h200",
                                         "rtx4090", "cpu-avx2", "cpu-avx512", "cpu-avx512bf16", "cpu-amx"};
    static const char *const figures[] = {"cores", "memory", "bandwidth", "flops", "launch", "reach", "reach_bytes"};
    assert_int_equal(mixt_machine_count(), sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        mixt_machine *m;
        assert_int_equal(mixt_machine_open(wanted[i], &m), MIXT_OK);
        assert_string_equal(mixt_machine_describe(m)->name, wanted[i]);
        for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++)
            assert_true(strlen(mixt_machine_source(m, figures[f])) > 5);
        assert_null(mixt_machine_source(m, "colour"));
        mixt_machine_free(m);
    }
    for (int i = 0; mixt_machine_name(i); i++)
        assert_true(i < mixt_machine_count());
}

static void test_units(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool tf32, fp16, bf16, fp8;
    } rows[] = {{"v100", false, true, false, false},   {"t4", false, true, false, false},
                {"a100", true, true, true, false},     {"rtx4090", true, true, true, true},
                {"h100", true, true, true, true},      {"cpu-avx2", false, false, false, false},
                {"cpu-amx", false, false, true, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mixt_machine *m;
        assert_int_equal(mixt_machine_open(rows[i].name, &m), MIXT_OK);
        const double *flops = mixt_machine_describe(m)->flops;
        assert_int_equal(flops[MIXT_DTYPE_TF32] > 0, rows[i].tf32);
        assert_int_equal(flops[MIXT_DTYPE_FP16] > 0, rows[i].fp16);
        assert_int_equal(flops[MIXT_DTYPE_BF16] > 0, rows[i].bf16);
        assert_int_equal(flops[MIXT_DTYPE_FP8_E5M2] > 0, rows[i].fp8);
        mixt_machine_free(m);
    }
}

static void test_own_file(void **state)
{
    (void)state;
    char folder[] = "/tmp/mixt_profiles_XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(good, file);
    fclose(file);
    mixt_machine *m;
    assert_int_equal(mixt_machine_open(path, &m), MIXT_OK);
    mixt_machine_free(m);
    assert_int_equal(mixt_machine_open("mine", &m), MIXT_ERROR_ARGUMENT);
    setenv("MIXT_PROFILES", folder, 1);
    assert_int_equal(mixt_machine_open("mine", &m), MIXT_OK);
    const mixt_machine_info *info = mixt_machine_describe(m);
    assert_int_equal(info->capability, 86);
    assert_true(info->memory == 8000000000u && info->reserved == 1000000000u && isnan(info->price));
    assert_true(info->reach[MIXT_DTYPE_FP32][MIXT_WORK_RECURRENT] == 0.5);
    assert_true(info->reach[MIXT_DTYPE_FP16][MIXT_WORK_CONVOLUTION] == 0.2);
    assert_true(info->reach_bytes[MIXT_WORK_OPTIMIZER] == 0.8);
    mixt_machine_free(m);
    unsetenv("MIXT_PROFILES");
    unlink(path);
    rmdir(folder);
}

/** The good profile with one text replaced is refused with words that say what and where. */
static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *message;
    } rows[] = {
        {"version: 1", "version: 2", "p:1:10: version must be 1"},
        {"kind: gpu", "kind: tpu", "p:4:7: kind must be gpu or cpu"},
        {"kind: gpu", "kind: cpu", "capability is of a gpu"},
        {"capability: 8.6\n", "", "capability is missing"},
        {"memory: 8e9", "memory: lots", "p:7:9: memory must be a number"},
        {"memory: 8e9", "memory: -1", "p:7:9: memory must be a number"},
        {"reserved: 1e9", "reserved: 9e9", "p:8:11: reserved must be a number"},
        {"bandwidth: 1e11", "bandwidth: nan", "p:9:12: bandwidth must be a number"},
        {"bandwidth: 1e11", "bandwith: 1e11", "p:9:1: unknown key of a profile (did you mean bandwidth?)"},
        {"bandwidth: 1e11", "bandwidth: 1e11\nbandwidth: 1e12", "p:10:1: this key is given twice"},
        {"fp32: 1e13, ", "", "fp32 is missing"},
        {"fp16: 2e13", "fp17: 2e13", "unknown key of flops"},
        {"fp32: 0.5, ", "", "fp32 is missing"},
        {"recurrent: 0.1", "recurrent: 1.5", "recurrent must be a number from 1e-06 to 1"},
        {", recurrent: 0.1", "", "recurrent is missing"},
        {"reach_bytes: 0.8\n", "", "reach_bytes is missing"},
        {"memory: c, ", "", "p:7:9: memory has no source"},
        {"memory: c", "memory: c, price: d", "the source of price"},
        {"memory: c", "memory: {}", "a source must be a text"},
        {"sources: {", "sources: [", "not YAML"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[2048];
        const char *at = strstr(good, rows[i].old);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, rows[i].new, at + strlen(rows[i].old));
        mixt_machine *m;
        assert_int_equal(mixt__machine_parse(text, strlen(text), "p", &m), MIXT_ERROR_CONFIG);
        assert_null(m);
        if (!strstr(mixt_error_text(), rows[i].message))
            fail_msg("row %zu: '%s' lacks '%s'", i, mixt_error_text(), rows[i].message);
    }
    mixt_machine *m;
    assert_int_equal(mixt_machine_open("h2000", &m), MIXT_ERROR_ARGUMENT);
    assert_non_null(strstr(mixt_error_text(), "did you mean h200?"));
    assert_int_equal(mixt_machine_open("./none.yaml", &m), MIXT_ERROR_FILE);
    assert_int_equal(mixt_machine_open("", &m), MIXT_ERROR_ARGUMENT);
    assert_int_equal(mixt_machine_open(NULL, &m), MIXT_ERROR_ARGUMENT);
}

/** Seconds of a step, modelled. */
static double modelled(const char *machine, const char *precision, const char *const *settings)
{
    mixt_machine *m;
    mixt_config *config;
    mixt__experiment e = {0};
    char text[32];
    assert_int_equal(mixt_machine_open(machine, &m), MIXT_OK);
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    snprintf(text, sizeof text, "precision=%s", precision);
    assert_int_equal(mixt_config_set(config, text, "test"), MIXT_OK);
    for (; *settings; settings++)
        assert_int_equal(mixt_config_set(config, *settings, "test"), MIXT_OK);
    mixt__assume_begin(m);
    assert_int_equal(mixt__experiment_open(&e, config), MIXT_OK);
    double seconds = mixt__cost_step(m, e.trainer->inner).seconds;
    mixt__experiment_close(&e);
    mixt__assume_end();
    mixt_config_free(config);
    mixt_machine_free(m);
    return seconds;
}

/** docs/performance.md has what an H200 measured; a model that is not near it misleads. */
static void test_measured_times(void **state)
{
    (void)state;
    static const char *const gpt2[] = {"model=gpt",
                                       "net.layers=12",
                                       "net.width=768",
                                       "net.heads=12",
                                       "data.kind=random",
                                       "data.path=tokens",
                                       "data.classes=50257",
                                       "data.seq=1024",
                                       "data.samples=64",
                                       "train.batch=32",
                                       NULL};
    static const char *const bert[] = {"model=bert_mlm",   "net.layers=12",    "net.width=768",      "net.heads=12",
                                       "data.kind=random", "data.path=tokens", "data.classes=30522", "data.seq=128",
                                       "data.samples=512", "train.batch=256",  "data.mask=0.15",     NULL};
    static const char *const resnet50[] = {"model=resnet",
                                           "net.depth=50",
                                           "data.kind=random",
                                           "data.path=224x224x3",
                                           "data.classes=1000",
                                           "data.samples=512",
                                           "train.batch=256",
                                           "train.optimizer=momentum",
                                           NULL};
    static const struct {
        const char *const *model;
        const char *precision;
        double ms;
    } rows[] = {{gpt2, "bf16", 53.7},     {gpt2, "tf32", 131.5},    {gpt2, "fp32", 585},
                {bert, "bf16", 44.9},     {bert, "tf32", 106},      {bert, "fp32", 470},
                {resnet50, "bf16", 30.7}, {resnet50, "tf32", 62.8}, {resnet50, "fp32", 178}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double ratio = 1e3 * modelled("h200", rows[i].precision, rows[i].model) / rows[i].ms;
        if (fabs(ratio - 1) > 0.06)
            fail_msg("row %zu: %.3f of what was measured", i, ratio);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in),  cmocka_unit_test(test_units),          cmocka_unit_test(test_own_file),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_measured_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
