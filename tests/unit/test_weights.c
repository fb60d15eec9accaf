/* Weights under other programs' names: layouts against numbers written by hand, files out and back bit for bit, and
 * every way a file can be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

#include "../support/temp_folder.h"
#include "base/globs.h"
#include "base/status.h"
#include "store/weights.h"

#include <sys/stat.h>

enum { MOST = 4096 };

/** Tensors with values 0, 1, 2, …: a small model here. */
typedef struct model {
    mixt__file_tensor tensors[32];
    float values[32][MOST];
    int64_t count;
} model;

static model made, read_back;
static mixt__name_differs differs; // of the newest export

static void add(model *m, const char *name, int rank, const int64_t *dims)
{
    mixt__file_tensor *t = &m->tensors[m->count];
    *t = (mixt__file_tensor){.name = name, .dtype = MIXT_DTYPE_FP32, .rank = rank, .data = m->values[m->count]};
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    int64_t n = mixt__file_tensor_count(t->dtype, rank, dims);
    assert_in_range(n, 1, MOST);
    t->bytes = (size_t)n * 4;
    for (int64_t i = 0; i < n; i++)
        m->values[m->count][i] = (float)i + 0.25f * (float)m->count;
    m->count++;
}
#define ADD(m, name, ...) add((m), (name), sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static void make_gpt(model *m, int64_t vocab)
{
    m->count = 0;
    ADD(m, "wte.weight", vocab, 4);
    ADD(m, "wpe.weight", 6, 4);
    ADD(m, "h.0.ln1.weight", 4);
    ADD(m, "h.0.ln1.bias", 4);
    ADD(m, "h.0.attn.qkv.weight", 12, 4);
    ADD(m, "h.0.attn.qkv.bias", 12);
    ADD(m, "h.0.mlp.fc.weight", 16, 4);
    ADD(m, "ln_f.weight", 4);
}

/** Writes the model as mixt does and exports it; the exported file is temp/model.safetensors. */
static mixt_status export_model(const model *m, const char *family, mixt_dtype dtype, int64_t vocab)
{
    char source[4096];
    int64_t tensors;
    const mixt__metadata metadata = {.pairs = &(const mixt__text_pair){"format", "mixt"}, .count = 1};
    snprintf(source, sizeof source, "%s", temp_path("own.safetensors"));
    assert_int_equal(mixt__safetensors_write(source, m->tensors, m->count, &metadata), MIXT_OK);
    mixt__export_request r = {.source = source, .folder = temp_folder, .dtype = dtype, .vocab = vocab};
    r.names = mixt__names_find(family);
    r.facts = (mixt__name_facts){.heads = 2, .architecture = "resnet18"};
    r.overwrite = true;
    return mixt__weights_export(&r, &tensors, &differs);
}

static mixt_status open_weights(const char *path, const char *family, const model *m, const char *skip,
                                const char *new_head, mixt__weights **w)
{
    mixt__weights_request r = {.path = path, .wanted = m->tensors, .count = m->count};
    r.names = mixt__names_find(family);
    r.skip = skip;
    r.new_head = new_head;
    return mixt__weights_open(&r, w);
}

static void opens_not(const char *path, const char *family, const model *m, const char *text)
{
    mixt__weights *w = NULL;
    assert_int_not_equal(open_weights(path, family, m, NULL, NULL, &w), MIXT_OK);
    assert_null(w);
    if (!strstr(mixt_error_text(), text))
        fail_msg("'%s' says nothing of '%s'", mixt_error_text(), text);
}

static void holds(const mixt__safetensors *file, const char *name, const char *shape, const float *values,
                  int64_t count)
{
    const mixt__file_tensor *t = mixt__safetensors_find(file, name);
    assert_non_null(t);
    assert_string_equal(mixt__dims_print(t->rank, t->dims).text, shape);
    assert_memory_equal(t->data, values, (size_t)count * 4);
}
#define HOLDS(file, name, shape, ...)                                                                                  \
    holds((file), (name), (shape), (const float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / 4)

/* ---- layouts ---- */

static void layouts(void **state)
{
    (void)state;
    model *m = &made;
    mixt__safetensors *file;
    m->count = 0;
    ADD(m, "wte.weight", 3, 2);
    ADD(m, "h.11.attn.proj.weight", 2, 3); // 0.25 + (0 1 2; 3 4 5)
    assert_int_equal(export_model(m, "gpt2", MIXT_DTYPE_FP32, 2), MIXT_OK);
    assert_int_equal(mixt__safetensors_open(temp_path("model.safetensors"), &file), MIXT_OK);
    HOLDS(file, "transformer.wte.weight", "[2, 2]", 0, 1, 2, 3);
    HOLDS(file, "transformer.h.11.attn.c_proj.weight", "[3, 2]", 0.25f, 3.25f, 1.25f, 4.25f, 2.25f, 5.25f);
    assert_string_equal(mixt__safetensors_metadata(file, "format"), "pt");
    mixt__safetensors_close(file);

    m->count = 0;
    ADD(m, "h.3.attn.qkv.weight", 3, 2);
    ADD(m, "h.3.attn.qkv.bias", 6);
    assert_int_equal(export_model(m, "bert", MIXT_DTYPE_FP32, 0), MIXT_OK);
    assert_int_equal(mixt__safetensors_open(temp_path("model.safetensors"), &file), MIXT_OK);
    HOLDS(file, "bert.encoder.layer.3.attention.self.query.weight", "[1, 2]", 0, 1);
    HOLDS(file, "bert.encoder.layer.3.attention.self.key.weight", "[1, 2]", 2, 3);
    HOLDS(file, "bert.encoder.layer.3.attention.self.value.bias", "[2]", 4.25f, 5.25f);
    mixt__safetensors_close(file);

    m->count = 0;
    ADD(m, "layer4.1.downsample.conv.weight", 1, 2, 1, 3); // (O, H, W, C): rows of channels 0 1 2, 3 4 5
    ADD(m, "layer4.1.bn2.running_mean", 2);
    assert_int_equal(export_model(m, "resnet", MIXT_DTYPE_FP32, 0), MIXT_OK);
    assert_int_equal(mixt__safetensors_open(temp_path("model.safetensors"), &file), MIXT_OK);
    HOLDS(file, "layer4.1.downsample.0.weight", "[1, 3, 2, 1]", 0, 3, 1, 4, 2, 5);
    const mixt__file_tensor *counter = mixt__safetensors_find(file, "layer4.1.bn2.num_batches_tracked");
    assert_non_null(counter);
    assert_int_equal(counter->dtype, MIXT_DTYPE_INT64);
    assert_int_equal(counter->rank, 0);
    mixt__safetensors_close(file);
}

/** A linear layer on a flattened image: (H·W, C) columns become (C, H·W). */
static void flattened_images(void **state)
{
    (void)state;
    model *m = &made;
    mixt__safetensors *file;
    m->count = 0;
    ADD(m, "classifier.0.weight", 2, 1024);
    assert_int_equal(export_model(m, "vgg", MIXT_DTYPE_FP32, 0), MIXT_OK);
    assert_int_equal(mixt__safetensors_open(temp_path("model.safetensors"), &file), MIXT_OK);
    const float *there = file->tensors[0].data;
    for (int o = 0; o < 2; o++)
        for (int p = 0; p < 2; p++)
            for (int c = 0; c < 512; c++)
                assert_float_equal(there[o * 1024 + c * 2 + p], (float)(o * 1024 + p * 512 + c), 0);
    mixt__safetensors_close(file);
}

/* ---- out and back ---- */

static void round_trip(void **state)
{
    (void)state;
    static const char *const families[] = {"gpt2", "bert", "resnet", "vgg"};
    for (int f = 0; f < 4; f++) {
        model *m = &made;
        mixt__weights *w;
        make_gpt(m, 7);
        if (f == 1)
            m->tensors[7].name = "head.ln.weight"; // BERT has no ln_f
        if (f >= 2) {
            m->count = 0;
            ADD(m, f == 2 ? "layer1.0.conv2.weight" : "features.3.weight", 5, 3, 3, 7);
            ADD(m, f == 2 ? "layer1.0.bn2.running_var" : "features.4.running_var", 7);
            ADD(m, f == 2 ? "fc.weight" : "classifier.0.weight", 3, 512);
        }
        assert_int_equal(export_model(m, families[f], MIXT_DTYPE_FP32, 0), MIXT_OK);
        assert_int_equal(open_weights(temp_path("model.safetensors"), families[f], m, NULL, NULL, &w), MIXT_OK);
        assert_int_equal(w->loaded, m->count);
        assert_string_equal(w->left_over, "");
        for (int64_t i = 0; i < m->count; i++) {
            assert_int_equal(mixt__weights_read(w, i, read_back.values[i]), MIXT_OK);
            assert_memory_equal(read_back.values[i], m->values[i], m->tensors[i].bytes);
        }
        mixt__weights_close(w);
    }
}

/** Files without the family's prefix, and with the names of old ones. */
static void other_names(void **state)
{
    (void)state;
    model *m = &made;
    mixt__weights *w;
    mixt__file_tensor there[2];
    float values[2] = {1, 2};
    const int64_t two = 2;
    m->count = 0;
    add(m, "h.0.ln1.weight", 1, &two);
    there[0] = (mixt__file_tensor){.name = "h.0.ln_1.weight", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {2}};
    there[0].data = values;
    there[1] = there[0];
    there[1].name = "h.0.attn.bias"; // a mask: known and left alone
    assert_int_equal(mixt__safetensors_write(temp_path("a.safetensors"), there, 2, NULL), MIXT_OK);
    assert_int_equal(open_weights(temp_path("a.safetensors"), "gpt2", m, NULL, NULL, &w), MIXT_OK);
    assert_string_equal(w->left_over, "");
    mixt__weights_close(w);
    there[0].name = "encoder.layer.0.attention.output.LayerNorm.gamma";
    there[1].name = "strange.weight";
    assert_int_equal(mixt__safetensors_write(temp_path("a.safetensors"), there, 2, NULL), MIXT_OK);
    assert_int_equal(open_weights(temp_path("a.safetensors"), "bert", m, NULL, NULL, &w), MIXT_OK);
    assert_string_equal(w->left_over, "strange.weight");
    assert_int_equal(mixt__weights_read(w, 0, read_back.values[0]), MIXT_OK);
    assert_memory_equal(read_back.values[0], values, sizeof values);
    mixt__weights_close(w);
}

static void padded_vocabulary(void **state)
{
    (void)state;
    mixt__weights *w;
    make_gpt(&made, 2);
    assert_int_equal(export_model(&made, "gpt2", MIXT_DTYPE_FP32, 0), MIXT_OK);
    make_gpt(&made, 4);
    opens_not(temp_path("model.safetensors"), "gpt2", &made, "[2, 4], expected a float tensor [4, 4]");
    mixt__weights_request r = {.path = temp_path("model.safetensors"), .wanted = made.tensors, .count = made.count};
    r.names = mixt__names_find("gpt2");
    r.vocab = 3;
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "[2, 4], expected a float tensor [3, 4]"));
    r.vocab = 2;
    assert_int_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_int_equal(w->padded, 2);
    assert_int_equal(mixt__weights_read(w, 0, read_back.values[0]), MIXT_OK);
    const float rows[16] = {0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 2, 3, 4, 5}; // the mean of both
    assert_memory_equal(read_back.values[0], rows, sizeof rows);
    mixt__weights_close(w);
    make_gpt(&made, 1);
    opens_not(temp_path("model.safetensors"), "gpt2", &made, "[2, 4], expected a float tensor [1, 4]");
}

static void half_precision(void **state)
{
    (void)state;
    make_gpt(&made, 3);
    made.values[4][5] = 65519.0f;
    assert_int_equal(export_model(&made, "gpt2", MIXT_DTYPE_FP16, 0), MIXT_OK);
    made.values[4][5] = -65520.0f;
    assert_int_not_equal(export_model(&made, "gpt2", MIXT_DTYPE_FP16, 0), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "transformer.h.0.attn.c_attn.weight"));
    assert_int_equal(export_model(&made, "gpt2", MIXT_DTYPE_BF16, 0), MIXT_OK);
}

/* ---- new heads ---- */

static void new_heads(void **state)
{
    (void)state;
    model *m = &made;
    mixt__weights *w;
    m->count = 0;
    ADD(m, "conv1.weight", 2, 3, 3, 1);
    ADD(m, "fc.weight", 10, 2);
    ADD(m, "fc.bias", 10);
    assert_int_equal(export_model(m, "resnet", MIXT_DTYPE_FP32, 0), MIXT_OK);
    char file[512];
    snprintf(file, sizeof file, "%s", temp_path("model.safetensors"));
    m->tensors[1].dims[0] = m->tensors[2].dims[0] = 4;
    opens_not(file, "resnet", m, "tensor 'fc.weight' is fp32 [10, 2], expected a float tensor [4, 2]");
    assert_int_equal(open_weights(file, "resnet", m, NULL, "fc", &w), MIXT_OK);
    assert_true(w->taken[0] && !w->taken[1] && !w->taken[2]);
    assert_string_equal(w->skipped, "fc.weight, fc.bias");
    assert_string_equal(w->left_over, "");
    mixt__weights_close(w);
    assert_int_equal(open_weights(file, "resnet", m, "fc.*, conv1", NULL, &w), MIXT_OK);
    assert_int_equal(w->loaded, 0);
    mixt__weights_close(w);
    assert_int_not_equal(open_weights(file, "resnet", m, "fc.*, layer9.*", NULL, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "layer9.*"));
    assert_int_not_equal(open_weights(file, "resnet", m, NULL, "fc, zz", &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "init_new_head: 'zz' matches no parameter"));
}

/* ---- rows by name ---- */

static void named_rows(void **state)
{
    (void)state;
    model *m = &made;
    mixt__weights *w;
    float values[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    m->count = 0;
    ADD(m, "user.factors", 3, 2);
    const mixt__metadata metadata = {.pairs = &(const mixt__text_pair){"format", "mixt"}, .count = 1};
    char file[512];
    snprintf(file, sizeof file, "%s", temp_path("rows.safetensors"));
    assert_int_equal(mixt__safetensors_write(file, m->tensors, m->count, &metadata), MIXT_OK);
    m->tensors[0].dims[0] = 4;
    mixt__weights_rows rows = {
        .tensor = "user.factors", .from = (const int64_t[]){2, -1, 0, 1}, .there = 3, .add = 0.5f};
    mixt__weights_request r = {.path = file, .wanted = m->tensors, .count = 1, .rows = &rows, .row_count = 1};
    assert_int_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_int_equal(mixt__weights_read(w, 0, values), MIXT_OK);
    assert_memory_equal(values, ((const float[]){4.5f, 5.5f, 9, 9, 0.5f, 1.5f, 2.5f, 3.5f}), sizeof values);
    mixt__weights_close(w);
    rows.there = 5;
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "is fp32 [3, 2], expected a float tensor [5, 2]"));
}

/* ---- bad files ---- */

static void bad_files(void **state)
{
    (void)state;
    char file[4096];
    model *m = &made;
    make_gpt(m, 3);
    assert_int_equal(export_model(m, "gpt2", MIXT_DTYPE_FP32, 0), MIXT_OK);
    snprintf(file, sizeof file, "%s", temp_path("model.safetensors"));
    ADD(m, "h.0.ln2.weight", 4);
    opens_not(file, "gpt2", m, "'transformer.h.0.ln_2.weight' ('h.0.ln2.weight' in mixt) is missing: expected [4]");
    m->count--;
    m->tensors[6].dims[0] = 8;
    opens_not(file, "gpt2", m, "is fp32 [4, 16], expected a float tensor [4, 8]");
    make_gpt(m, 3);
    m->tensors[2].name = "h.0.rotary.weight";
    opens_not(file, "gpt2", m, "' does not exist in the names of");
    opens_not(temp_path("nothing.safetensors"), "gpt2", m, "nothing.safetensors");
    make_gpt(m, 3);
    const float ints[4] = {0};
    mixt__file_tensor wrong = {.name = "transformer.ln_f.weight", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {4}};
    wrong.data = ints;
    assert_int_equal(mixt__safetensors_write(temp_path("ints.safetensors"), &wrong, 1, NULL), MIXT_OK);
    m->count = 1;
    m->tensors[0] = m->tensors[7];
    opens_not(temp_path("ints.safetensors"), "gpt2", m, "is int32 [4], expected a float tensor [4]");
}

static void truncated_files(void **state)
{
    (void)state;
    static char bytes[65536];
    mixt__weights *w;
    make_gpt(&made, 3);
    assert_int_equal(export_model(&made, "gpt2", MIXT_DTYPE_FP32, 0), MIXT_OK);
    FILE *whole = fopen(temp_path("model.safetensors"), "rb");
    assert_non_null(whole);
    size_t size = fread(bytes, 1, sizeof bytes, whole);
    fclose(whole);
    for (size_t cut = 0; cut < size; cut += cut < 64 ? 1 : 97) {
        FILE *part = fopen(temp_path("cut.safetensors"), "wb");
        assert_non_null(part);
        assert_int_equal(fwrite(bytes, 1, cut, part), cut);
        fclose(part);
        assert_int_not_equal(open_weights(temp_path("cut.safetensors"), "gpt2", &made, NULL, NULL, &w), MIXT_OK);
        assert_non_null(strstr(mixt_error_text(), "cut.safetensors"));
    }
}

static void untied_heads(void **state)
{
    (void)state;
    mixt__weights *w;
    model *m = &made;
    m->count = 0;
    ADD(m, "wte.weight", 2, 2);
    float head[4] = {0, 1, 2, 3};
    mixt__file_tensor there[2] = {m->tensors[0], m->tensors[0]};
    there[0].name = "transformer.wte.weight";
    there[1].name = "lm_head.weight";
    there[1].data = head;
    assert_int_equal(mixt__safetensors_write(temp_path("a.safetensors"), there, 2, NULL), MIXT_OK);
    assert_int_equal(open_weights(temp_path("a.safetensors"), "gpt2", m, NULL, NULL, &w), MIXT_OK);
    assert_string_equal(w->left_over, "");
    mixt__weights_close(w);
    head[3] = 4;
    assert_int_equal(mixt__safetensors_write(temp_path("a.safetensors"), there, 2, NULL), MIXT_OK);
    opens_not(temp_path("a.safetensors"), "gpt2", m, "'lm_head.weight' differs from");
}

static void configs(void **state)
{
    (void)state;
    mixt__weights *w;
    make_gpt(&made, 3);
    assert_int_equal(export_model(&made, "gpt2", MIXT_DTYPE_FP32, 0), MIXT_OK);
    mixt__name_facts facts = {.heads = 2};
    mixt__name_facts_read(&facts, made.tensors, made.count);
    assert_int_equal(facts.layers, 1);
    assert_int_equal(facts.width, 4);
    assert_int_equal(facts.inner, 16);
    mixt__weights_request r = {.path = temp_folder, .facts = &facts, .wanted = made.tensors, .count = made.count};
    r.names = mixt__names_find("gpt2");
    assert_int_equal(mixt__weights_open(&r, &w), MIXT_OK);
    mixt__weights_close(w);
    facts.heads = 4;
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "config.json: n_head is 2, the model here has 4"));
    FILE *file = fopen(temp_path("config.json"), "w");
    fputs("{\"n_head\": ", file);
    fclose(file);
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "config.json:1:"));
    const char *config = temp_path("config.json");
    assert_int_equal(truncate(config, 0), 0);
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "config.json:1:"));
    assert_int_equal(unlink(config), 0);
    assert_int_equal(mkfifo(config, 0600), 0); // to wait for its writer would be for ever
    assert_int_not_equal(mixt__weights_open(&r, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "config.json: is not a regular file"));
    assert_int_equal(unlink(config), 0);
}

/** The table of positions is cut under mixt's own names too, and taken back where texts are no longer. */
static void positions(void **state)
{
    (void)state;
    char source[4096];
    int64_t tensors;
    mixt__weights *w;
    make_gpt(&made, 3);
    snprintf(source, sizeof source, "%s", temp_path("own.safetensors"));
    const mixt__metadata metadata = {.pairs = &(const mixt__text_pair){"format", "mixt"}, .count = 1};
    assert_int_equal(mixt__safetensors_write(source, made.tensors, made.count, &metadata), MIXT_OK);
    mixt__export_request r = {.source = source, .folder = temp_folder, .dtype = MIXT_DTYPE_FP32, .overwrite = true};
    r.positions = 2;
    r.vocab = 1; // whose rows stay: nobody knows which of them are padding
    assert_int_equal(mixt__weights_export(&r, &tensors, &differs), MIXT_OK);
    assert_int_equal(tensors, made.count);
    mixt__weights_request request = {.path = temp_path("model.safetensors"), .wanted = made.tensors};
    request.count = made.count;
    assert_int_not_equal(mixt__weights_open(&request, &w), MIXT_OK);
    assert_non_null(strstr(mixt_error_text(), "tensor 'wpe.weight' is fp32 [2, 4], expected a float tensor [6, 4]"));
    request.positions = 3;
    assert_int_not_equal(mixt__weights_open(&request, &w), MIXT_OK);
    request.positions = 2;
    assert_int_equal(mixt__weights_open(&request, &w), MIXT_OK);
    assert_int_equal(w->places, 2);
    float values[24];
    for (int i = 0; i < 24; i++)
        values[i] = -1;
    assert_int_equal(mixt__weights_read(w, 1, values), MIXT_OK);
    assert_memory_equal(values, made.values[1], 8 * sizeof *values);
    assert_float_equal(values[8], -1, 0);
    mixt__weights_close(w);
}

/** What torchvision builds by itself, and why it does not. */
static void torchvision(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int64_t first[4], hidden[2]; // of the first convolution; of VGG's first linear layer
        bool shortcut;               // a projection
        bool other;                  // ResNet: three stages only; VGG: three hidden layers
        const char *differs;
    } cases[] = {
        {"resnet", {64, 7, 7, 3}, {0}, true, false, ""},
        {"resnet", {64, 7, 7, 1}, {0}, true, false, "torchvision's net has 3 input channels, this model does not"},
        {"resnet", {4, 7, 7, 3}, {0}, true, false, "torchvision's net has a width of 64, this model does not"},
        {"resnet", {16, 3, 3, 3}, {0}, false, true, "torchvision has no net"},
        {"resnet",
         {64, 7, 7, 3},
         {0},
         false,
         false,
         "torchvision's net has projections as shortcuts, this model does not"},
        {"vgg", {64, 3, 3, 3}, {4096, 25088}, false, false, ""},
        {"vgg",
         {64, 3, 3, 1},
         {4096, 25088},
         false,
         false,
         "torchvision's net has 3 input channels, this model does not"},
        {"vgg",
         {64, 3, 3, 3},
         {512, 512},
         false,
         false,
         "torchvision's net has 7 x 7 pixels before its classifier, this model does not"},
        {"vgg",
         {64, 3, 3, 3},
         {512, 25088},
         false,
         false,
         "torchvision's net has hidden layers of 4096 and 4096, this model does not"},
        {"vgg",
         {64, 3, 3, 3},
         {4096, 25088},
         false,
         true,
         "torchvision's net has two hidden layers, this model has more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool vgg = cases[i].hidden[0] > 0;
        mixt__file_tensor t[5] = {{.name = vgg ? "features.0.weight" : "conv1.weight", .rank = 4}};
        int64_t count = 1;
        memcpy(t[0].dims, cases[i].first, sizeof cases[i].first);
        if (cases[i].shortcut)
            t[count++] =
                (mixt__file_tensor){.name = "layer2.0.downsample.conv.weight", .rank = 4, .dims = {128, 1, 1, 64}};
        if (vgg) {
            t[count++] = (mixt__file_tensor){.name = "classifier.0.weight", .rank = 2};
            memcpy(t[1].dims, cases[i].hidden, sizeof cases[i].hidden);
            t[count++] = (mixt__file_tensor){.name = "classifier.3.weight", .rank = 2, .dims = {4096, 4096}};
            t[count++] = (mixt__file_tensor){.name = "classifier.6.weight", .rank = 2, .dims = {10, 4096}};
        }
        if (!vgg && !cases[i].other)
            t[count++] = (mixt__file_tensor){.name = "layer4.0.conv1.weight", .rank = 4, .dims = {512, 3, 3, 256}};
        if (vgg && cases[i].other)
            t[count++] = (mixt__file_tensor){.name = "classifier.9.weight", .rank = 2, .dims = {10, 10}};
        const mixt__names *names = mixt__names_find(cases[i].family);
        assert_string_equal(names->differs(t, count, "net").text, cases[i].differs);
    }
}

static void globs(void **state)
{
    (void)state;
    mixt__globs g;
    assert_int_equal(mixt__globs_parse(&g, " h.*=0.5, h.0 = 2 ,wte*=0", true, "x"), MIXT_OK);
    assert_int_equal(g.count, 3);
    assert_float_equal(mixt__globs_find(&g, "h.1.ln1.bias")->value, 0.5, 0);
    assert_float_equal(mixt__globs_find(&g, "h.0.ln1.bias")->value, 2, 0);
    assert_null(mixt__globs_find(&g, "wpe.weight"));
    assert_int_not_equal(mixt__globs_check(&g, "x", ""), MIXT_OK);
    assert_float_equal(mixt__globs_find(&g, "wte.weight")->value, 0, 0);
    assert_int_equal(mixt__globs_check(&g, "x", ""), MIXT_OK);
    mixt__globs_free(&g);
    assert_int_equal(mixt__globs_parse(&g, "", true, "x"), MIXT_OK);
    static const char *const bad[] = {"a", "a=", "a=-1", "a=1e", "a=nan", "=1", "a=1,=2", "a=1, b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mixt__globs_parse(&g, bad[i], true, "x"), MIXT_ERROR_CONFIG);
}

static void layer_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *family, *name;
        int64_t layer;
    } names[] = {
        {"gpt2", "transformer.h.11.ln_1.weight", 11},
        {"gpt2", "h.3.attn.c_attn.bias", 3}, // without the prefix that a file may leave away
        {"gpt2", "h.3.adapter.weight", 3},
        {"gpt2", "transformer.wte.weight", -1},
        {"gpt2", "transformer.h.x.ln_1.weight", -1},
        {"gpt2", "h.99999999999999999999.ln_1.weight", -1},
        {"llama", "model.layers.2.mlp.up_proj.weight", 2},
        {"llama", "layers.0.mlp.up_proj.weight", 0},
        {"bert", "bert.encoder.layer.7.output.dense.bias", 7},
        {"resnet", "layer1.0.conv1.weight", -1},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(mixt__names_layer(mixt__names_find(names[i].family), names[i].name), names[i].layer);
    assert_string_equal(mixt__names_layers_key(mixt__names_find("gpt2")), "n_layer");
    assert_string_equal(mixt__names_layers_key(mixt__names_find("llama")), "num_hidden_layers");
    assert_string_equal(mixt__names_layers_key(mixt__names_find("resnet")), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),           cmocka_unit_test(flattened_images),
        cmocka_unit_test(round_trip),        cmocka_unit_test(other_names),
        cmocka_unit_test(padded_vocabulary), cmocka_unit_test(half_precision),
        cmocka_unit_test(new_heads),         cmocka_unit_test(bad_files),
        cmocka_unit_test(truncated_files),   cmocka_unit_test(untied_heads),
        cmocka_unit_test(configs),           cmocka_unit_test(positions),
        cmocka_unit_test(torchvision),       cmocka_unit_test(globs),
        cmocka_unit_test(layer_numbers),     cmocka_unit_test(named_rows),
    };
    temp_folder_make();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_folder_remove();
    return failed;
}
