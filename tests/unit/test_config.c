/* Configuration files and overrides: what is refused and with which words, precedence, and the round trip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/words.h"
#include "../support/temp_folder.h"
#include "config/config.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[300];

static void write_bytes(const char *text, size_t size)
{
    assert_true(temp_write(path, text, size));
}

static int make_folder(void **state)
{
    temp_folder_setup(state);
    snprintf(path, sizeof path, "%s/c.yaml", temp_folder);
    return 0;
}

static mixt_config *fresh(void)
{
    mixt_config *config;
    assert_int_equal(mixt_config_new(&config), MIXT_OK);
    return config;
}

/** A file that must be refused: the message is "<path>:<place>: …<words>…". */
typedef struct bad_file {
    const char *text, *place, *words;
} bad_file;

static const bad_file bad_files[] = {
    {"trian:\n  lr: 1\n", "1:1", "unknown key 'trian'"},
    {"train:\n  lrr: 1\n", "2:3", "unknown key 'train.lrr' (did you mean train.lr?)"},
    {"lr: 0.1\n", "1:1", "did you mean train.lr?"},
    {"model: mlp\nnet:\n  widht: 3\n", "3:3", "did you mean net.width?"},
    {"xyzzyquux: 1\n", "1:1", "mixt help config"},
    {"train: {epochs: ten}\n", "1:17", "train.epochs: expected an integer at least 0, found 'ten'"},
    {"train: {epochs: 1.5}\n", "1:17", "found '1.5'"},
    {"train: {epochs: \"5\"}\n", "1:17", "remove the quotes"},
    {"train: {epochs: -1}\n", "1:17", "-1 is out of range: must be at least 0"},
    {"train: {epochs: 99999999999999999999}\n", "1:17", "does not fit 64 bits"},
    {"train: {batch: 0}\n", "1:16", "must be from 1 to 16777216"},
    {"train: {lr: fast}\n", "1:13", "train.lr: expected a number at least 0, found 'fast'"},
    {"train: {lr: nan}\n", "1:13", "found 'nan'"},
    {"train: {lr: .inf}\n", "1:13", "found '.inf'"},
    {"train: {lr: 0x10}\n", "1:13", "found '0x10'"},
    {"train: {lr: 1e999}\n", "1:13", "too large"},
    {"train: {lr: 1e39}\n", "1:13", "too large"},
    {"train: {eps: 1e-60}\n", "1:14", "too small"},
    {"train: {lr: 1e}\n", "1:13", "found '1e'"},
    {"train: {beta2: 1}\n", "1:16", "must be from 0 to 1 (not included)"},
    {"train: {eps: 0}\n", "1:14", "out of range"},
    {"train:\n  optimizer: adamm\n", "2:14", "did you mean adam?"},
    {"train: {optimizer: 3}\n", "1:20", "one of sgd, momentum, nesterov, adam, adamw, lamb"},
    {"device: tpu\n", "1:9", "device: expected one of auto, cpu, cuda, cuda:N, found 'tpu'"},
    {"train: {loss_scale: dynamite}\n", "1:21", "did you mean dynamic?"},
    {"train: {loss_scale: -2}\n", "1:21", "-2 is out of range: must be greater than 0"},
    {"net: {hidden: [64, wide]}\n", "1:20", "found 'wide'"},
    {"net: {hidden: [64, 0]}\n", "1:20", "0 is out of range"},
    {"net: {hidden: [[1]]}\n", "1:16", "found a list of lists"},
    {"net: {hidden: [{a: 1}]}\n", "1:16", "found a list of maps"},
    {"net: {hidden: 64;32}\n", "1:15", "net.hidden: expected"},
    {"net: {hidden: \"64\"}\n", "1:15", "expected a list of integers"},
    {"train: 3\n", "1:8", "train is a section: expected a map of its keys, found a single value"},
    {"train: [1]\n", "1:8", "found a list"},
    {"train:\n", "1:7", "train is a section"},
    {"seed: {a: 1}\n", "1:7", "seed: expected an integer at least 0, found a map"},
    {"seed: [1]\n", "1:7", "found a list"},
    {"seed:\n", "1:6", "seed has no value"},
    {"seed: ~\n", "1:7", "seed has no value"},
    {"model:\n", "1:7", "model has no value: expected text"},
    {"model: null\n", "1:8", "model has no value"},
    {"model: \"a\\x01b\"\n", "1:8", "control character U+0001"},
    {"model: \"a\\0b\"\n", "1:8", "control character U+0000"},
    {"seed: 1\nseed: 2\n", "2:1", "seed is given twice: first in line 1"},
    {"train: {lr: 1}\ntrain: {clip: 1}\n", "2:1", "train is given twice"},
    {"train:\n  lr: 1\ntrain.lr: 2\n", "3:1", "train.lr is given twice: first in line 2"},
    {"train:\n\tlr: 1\n", "2:1", "the line has a tab"},
    {"train: {lr: 1\n", "2:1", "not valid YAML"},
    {"model: \"mlp\n", "2:1", "not valid YAML"},
    {"model: mlp\n  out: x\n", "2:6", "not valid YAML"},
    {"- model\n- mlp\n", "1:1", "expected a map of keys at the top, as in 'model: convnet', found a list"},
    {"hello\n", "1:1", "found a single value"},
    {"", "1:1", "the file has no settings"},
    {"# nothing but a comment\n", "1:1", "the file has no settings"},
    {"seed: &a 1\n", "1:7", "anchors (&a) are not supported"},
    {"train: &t\n  <<: *t\n", "1:8", "anchors (&t)"},
    {"seed: *a\n", "1:7", "aliases (*a) are not supported"},
    {"seed: !!int 1\n", "1:7", "tags"},
    {"seed: 1\n---\nseed: 2\n", "2:1", "a second document"},
    {"? [a]\n: 1\n", "1:3", "a key must be a name, found a list"},
    {"? {a: 1}\n: 1\n", "1:3", "a key must be a name, found a map"},
    {"\"\": 1\n", "1:1", "a key is missing"},
    {"model: \xff\xfe\n", "1:8", "not valid text"},
    {"train: {scheduel: step}\n", "1:9", "did you mean train.schedule?"},
    {"{{{{{{{{{{{{\n", "1:2", "a key must be a name"},
};

static void test_bad_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        const bad_file *bad = &bad_files[i];
        write_bytes(bad->text, strlen(bad->text));
        mixt_config *config = fresh();
        mixt_status status = mixt_config_load(config, path);
        char place[512];
        snprintf(place, sizeof place, "%s:%s: ", path, bad->place);
        if (status != MIXT_ERROR_CONFIG || strncmp(mixt_error_text(), place, strlen(place)) ||
            !strstr(mixt_error_text(), bad->words))
            fail_msg("case %zu: %s\nstatus %d, message: %s\nexpected: %s … %s", i, bad->text, (int)status,
                     mixt_error_text(), place, bad->words);
        mixt_config_free(config);
    }
}

static void test_nul_size_and_missing(void **state)
{
    (void)state;
    mixt_config *config = fresh();
    write_bytes("seed: 1\nmo\0del: x\n", 18);
    assert_int_equal(mixt_config_load(config, path), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), ":2:3: the file has a NUL byte"));

    size_t size = (1 << 20) + 1;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, '#', size);
    write_bytes(large, size);
    assert_int_equal(mixt_config_load(config, path), MIXT_ERROR_CONFIG);
    assert_non_null(strstr(mixt_error_text(), "more than 1 MiB"));
    free(large);

    unlink(path);
    assert_int_equal(mixt_config_load(config, path), MIXT_ERROR_FILE);
    assert_non_null(strstr(mixt_error_text(), "cannot be opened"));
    assert_int_equal(mixt_config_load(config, temp_folder), MIXT_ERROR_FILE);
    mixt_config_free(config);
}

static void test_bad_overrides(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"train.lr", "not of the form key=value"},
        {"=3", "not of the form key=value"},
        {"train=3", "train is a section"},
        {"train.lrate=3", "did you mean train."},
        {"train.lr=", "train.lr has no value"},
        {"train.lr=0.1x", "found '0.1x'"},
        {"seed=-1", "out of range"},
        {"net.hidden=1,,2", "expected a list"},
        {"net.hidden=1,2,", "expected a list"},
        {"net.hidden=", "net.hidden has no value"},
        {"net.hidden=[1,2", "found '[1'"},
        {"model=\xc3\x28", "not UTF-8 at byte 0"},
        {"model=a\nb", "control character U+000A at byte 1"},
        {"precision=null", "has no value"},
        {"net.hidden=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
         "1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
         "more than 64 elements"},
    };
    mixt_config *config = fresh();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_status status = mixt_config_set(config, cases[i][0], "command line");
        if (status != MIXT_ERROR_CONFIG || strncmp(mixt_error_text(), "command line: ", 14) ||
            !strstr(mixt_error_text(), cases[i][1]))
            fail_msg("%s: status %d, message: %s", cases[i][0], (int)status, mixt_error_text());
    }
    mixt_config_free(config);
}

static void test_precedence(void **state)
{
    (void)state;
    mixt_config *config = fresh();
    assert_false(mixt__config_was_set(config, MIXT_KEY_TRAIN_LR));
    assert_string_equal(mixt__config_origin(config, MIXT_KEY_TRAIN_LR), "default");

    static const char first[] = "model: gpt\ntrain: {lr: 0.25, batch: 8}\nnet: {hidden: [1, 2, 3]}\nseed: 7\n";
    static const char second[] = "train.lr: 0.5\nnet.hidden: []\n";
    write_bytes(first, strlen(first));
    assert_int_equal(mixt_config_load(config, path), MIXT_OK);
    int64_t count;
    assert_int_equal(mixt__config_ints(config, MIXT_KEY_NET_HIDDEN, &count)[2], 3);
    assert_int_equal(count, 3);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LR) == 0.25);

    write_bytes(second, strlen(second));
    assert_int_equal(mixt_config_load(config, path), MIXT_OK);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LR) == 0.5);
    mixt__config_ints(config, MIXT_KEY_NET_HIDDEN, &count);
    assert_int_equal(count, 0);
    assert_int_equal(mixt__config_int(config, MIXT_KEY_TRAIN_BATCH), 8);

    assert_int_equal(mixt_config_set(config, "train.lr=1e-3", "command line"), MIXT_OK);
    assert_int_equal(mixt_config_set(config, "train.lr=2e-3", "command line"), MIXT_OK);
    assert_int_equal(mixt_config_set(config, "data.path=a=b c", "command line"), MIXT_OK);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LR) == 2e-3);
    assert_string_equal(mixt__config_string(config, MIXT_KEY_DATA_PATH), "a=b c");
    assert_string_equal(mixt__config_origin(config, MIXT_KEY_TRAIN_LR), "command line");
    assert_non_null(strstr(mixt__config_origin(config, MIXT_KEY_SEED), ":4:7"));
    assert_true(mixt__config_was_set(config, MIXT_KEY_SEED));
    assert_int_equal(mixt__config_int(config, MIXT_KEY_SEED), 7);
    assert_string_equal(mixt__config_string(config, MIXT_KEY_MODEL), "gpt");

    assert_int_equal(mixt_config_set(config, "train.loss_scale=128", "command line"), MIXT_OK);
    assert_int_equal(mixt__config_choice(config, MIXT_KEY_TRAIN_LOSS_SCALE), -1);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LOSS_SCALE) == 128);
    assert_int_equal(mixt_config_set(config, "train.loss_scale=none", "command line"), MIXT_OK);
    assert_int_equal(mixt__config_choice(config, MIXT_KEY_TRAIN_LOSS_SCALE), 2);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LOSS_SCALE) == 0);
    mixt_config_free(config);
}

static void test_rules(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"train.epochs=0", "train.steps=0", "both 0"},
        {"train.lr=0.1", "train.min_lr=0.2", "greater than train.lr"},
        {"train.scale_init=1", "train.scale_floor=2", "less than train.scale_floor"},
        {"train.scale_init=8", "train.scale_ceiling=4", "greater than train.scale_ceiling"},
        {"net.width=10", "net.heads=3", "must divide net.width"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mixt_config *config = fresh();
        assert_int_equal(mixt_config_check(config), MIXT_OK);
        assert_int_equal(mixt_config_set(config, cases[i][0], "command line"), MIXT_OK);
        assert_int_equal(mixt_config_set(config, cases[i][1], "command line"), MIXT_OK);
        assert_int_equal(mixt_config_check(config), MIXT_ERROR_CONFIG);
        assert_non_null(strstr(mixt_error_text(), cases[i][2]));
        mixt_config_free(config);
    }
}

/** The configuration as text, for comparing two. */
static char *printed(const mixt_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(mixt__config_print(config, stream, false), MIXT_OK);
    fclose(stream);
    return text;
}

static void expect_round_trip(const mixt_config *config)
{
    assert_int_equal(mixt_config_write(config, path), MIXT_OK);
    mixt_config *again = fresh();
    if (mixt_config_load(again, path) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    char *before = printed(config), *after = printed(again);
    assert_string_equal(before, after);
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        bool written = !mixt__config_table[key].test || mixt__config_was_set(config, (mixt__config_key)key);
        assert_int_equal(mixt__config_was_set(again, (mixt__config_key)key), written);
        if (mixt__config_table[key].type == MIXT_CONFIG_FLOAT) // bit for bit, not only as printed
            assert_true(mixt__config_float(config, (mixt__config_key)key) ==
                        mixt__config_float(again, (mixt__config_key)key));
    }
    free(before);
    free(after);
    mixt_config_free(again);
}

static void test_round_trip(void **state)
{
    (void)state;
    mixt_config *config = fresh();
    expect_round_trip(config);
    static const char *const awkward[] = {
        "train.lr=0.1",
        "train.lr=3.0000000000000004e-05",
        "train.eps=1.4e-45",
        "train.clip=3.4028234663852886e38",
        "seed=9223372036854775807",
        "net.hidden=[]",
        "net.hidden=7",
        "net.hidden=[1, 2,3]",
        "model=",
        "model=no",
        "model=~x",
        "model=123",
        "model=1e5",
        "model=- a",
        "model=a: b # c",
        "model=\"quoted\\",
        "model='x'",
        "model= spaces ",
        "model=größe/模型",
        "model=*a",
        "model=Null",
        "model=.inf",
        "model=0x1f",
        "model={}",
        "train.loss_scale=0.1",
        "train.loss_scale=none",
        "data.path=/a/b-c_d.e",
        "precision=%",
    };
    for (size_t i = 0; i < sizeof awkward / sizeof awkward[0]; i++) {
        if (mixt_config_set(config, awkward[i], "test") != MIXT_OK)
            fail_msg("%s", mixt_error_text());
        expect_round_trip(config);
    }
    mixt_config_free(config);
}

/** A program may run in a locale that writes 0,5: the file must not. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found) {
        print_message("skipped: no locale with a decimal comma installed\n");
        return;
    }
    mixt_config *config = fresh();
    assert_int_equal(mixt_config_set(config, "train.lr=0.5", "test"), MIXT_OK);
    assert_true(mixt__config_float(config, MIXT_KEY_TRAIN_LR) == 0.5);
    expect_round_trip(config);
    mixt_config_free(config);
    setlocale(LC_NUMERIC, "C");
}

static void test_unwritable(void **state)
{
    (void)state;
    mixt_config *config = fresh();
    assert_int_equal(mixt_config_write(config, "/nonexistent/c.yaml"), MIXT_ERROR_FILE);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(mixt__config_print(config, full, true), MIXT_ERROR_FILE);
        fclose(full);
    }
    mixt_config_free(config);
}

/** Keys of one section stand together (the writer relies on it), and every row is complete. */
static void test_table(void **state)
{
    (void)state;
    char seen[512] = "", section[64] = "";
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const mixt_config_record *record = &mixt__config_table[key];
        assert_true(*record->help != 0);
        assert_int_equal(mixt__config_find(record->name), key);
        char name[64];
        snprintf(name, sizeof name, "%.*s.", (int)strcspn(record->name, "."), record->name);
        if (!strchr(record->name, '.')) {
            assert_true(*section == 0);
        } else if (strcmp(name, section)) {
            assert_null(strstr(seen, name));
            strncat(seen, name, sizeof seen - strlen(seen) - 1);
            strcpy(section, name);
        }
    }
}

/** Each name of another tool stands there once, is no key itself, and leads to a key or a note. */
static void test_aliases(void **state)
{
    (void)state;
    const mixt_config_alias *alias, *other;
    int64_t count = 0;
    for (; (alias = mixt_config_alias_at(count)); count++) {
        const char *note = "x";
        const mixt_config_record *key = mixt_config_meant(alias->name, &note);
        assert_string_equal(key ? key->name : "", alias->key);
        assert_string_equal(note, alias->note);
        assert_true(*alias->key || *alias->note);
        assert_int_equal(mixt__config_find(alias->name), MIXT_KEY_COUNT);
        for (int64_t i = 0; i < count; i++) {
            other = mixt_config_alias_at(i);
            if (!strcmp(other->name, alias->name))
                fail_msg("two rows for %s", alias->name);
        }
    }
    assert_true(count > 200);
    assert_null(mixt_config_alias_at(-1));
    const char *note;
    assert_string_equal(mixt_config_meant("Learning-Rate", &note)->name, "train.lr");
    assert_string_equal(mixt_config_meant("optimizer.lr", &note)->name, "train.lr");
    assert_null(mixt_config_meant("xyzzyquux", &note));
    assert_string_equal(note, "");
    assert_null(mixt_config_meant(NULL, &note));
}

/** Keys that only tests set are written where they are set, and nowhere else. */
static void test_test_keys(void **state)
{
    (void)state;
    mixt_config *config = fresh();
    char *text;
    assert_int_equal(mixt_config_print(config, true, &text), MIXT_OK);
    assert_null(strstr(text, "faults"));
    assert_null(strstr(text, "inject_overflow"));
    mixt_free(text);
    assert_int_equal(mixt_config_set(config, "train.inject_overflow=3", "test"), MIXT_OK);
    expect_round_trip(config);
    assert_int_equal(mixt_config_print(config, true, &text), MIXT_OK);
    assert_non_null(strstr(text, "inject_overflow: 3"));
    mixt_free(text);
    mixt_config_free(config);
}

static void test_nearest(void **state)
{
    (void)state;
    assert_int_equal(mixt__edit_distance("", "abc"), 3);
    assert_int_equal(mixt__edit_distance("abc", ""), 3);
    assert_int_equal(mixt__edit_distance("kitten", "sitting"), 3);
    assert_int_equal(mixt__edit_distance("trian", "train"), 1);
    assert_int_equal(mixt__edit_distance("Train", "train"), 0);
    mixt__nearest nearest = {.wanted = "ifno"};
    mixt__nearest_offer(&nearest, "train");
    assert_null(mixt__nearest_get(&nearest));
    mixt__nearest_offer(&nearest, "info");
    mixt__nearest_offer(&nearest, "bench");
    assert_string_equal(mixt__nearest_get(&nearest), "info");
}

static void test_no_leak(void **state)
{
    (void)state;
    size_t before = mixt__alloc_bytes();
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        mixt_config *config = fresh();
        write_bytes(bad_files[i].text, strlen(bad_files[i].text));
        mixt_config_load(config, path);
        mixt_config_set(config, "model=mlp", "test");
        mixt_config_free(config);
    }
    assert_int_equal(mixt__alloc_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),         cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_bad_overrides), cmocka_unit_test(test_nul_size_and_missing),
        cmocka_unit_test(test_precedence),    cmocka_unit_test(test_rules),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_locale),
        cmocka_unit_test(test_unwritable),    cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_test_keys),     cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_no_leak),
    };
    return cmocka_run_group_tests(tests, make_folder, temp_folder_teardown);
}
