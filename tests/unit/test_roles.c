/* A role that no other file knows, with a format that no other role has: added through the table alone it is planned,
 * allocated, saved, restored and sharded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/temp_folder.h"
#include "api/api.h"
#include "base/alloc.h"
#include "mixt/mixt.h"
#include "train/checkpoint.h"
#include "train/trainer_inside.h"

#include <string.h>

enum { BATCH = 4, INPUTS = 20, WIDTH = 33, CLASSES = 6 };

/** A byte a weight, transposed as a kernel might want it, and an average of the weights. */
static const mixt__param_role marker = {.name = "markers",
                                        .prefix = "marker/",
                                        .format = MIXT_DTYPE_UINT8,
                                        .layout = MIXT_ROLE_TRANSPOSED,
                                        .counts = MIXT_COUNTS_MOMENTS,
                                        .life = MIXT_LIFE_TRAINING};
static const mixt__param_role average = {.name = "averages",
                                         .prefix = "average/",
                                         .format = MIXT_DTYPE_FP32,
                                         .place = MIXT_PLACE_HOST,
                                         .counts = MIXT_COUNTS_STATE,
                                         .life = MIXT_LIFE_TRAINING};

static mixt_value net(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, mixt_linear(b, "fc1", x, .features = WIDTH));
    return mixt_linear(b, "fc2", x, .features = CLASSES);
}

typedef struct fixture {
    mixt_context *context;
    mixt__trainer *trainer;
    mixt_trainer *outer;
} fixture;

/** @param zero of two ranks, which are only planned; -1: one process */
static fixture start(int zero)
{
    fixture f = {.context = mixt_open(.device = "cpu", .threads = 1)};
    mixt_model *model = mixt_model_new(f.context, net, MIXT_LOSS_CROSS_ENTROPY);
    f.outer = mixt_trainer_new(model, .precision = "bf16", .batch = BATCH, .ranks = zero < 0 ? 1 : 2);
    f.trainer = f.outer->inner;
    if (zero >= 0) {
        f.trainer->ranks.planned = true;
        f.trainer->ranks.shards.zero = zero;
        f.trainer->ranks.overlap.bucket = 1 << 20;
    }
    const mixt_sample_shape shape = {
        .input_dtype = MIXT_DTYPE_FP32, .input_rank = 1, .input_dims = {INPUTS}, .targets = 1};
    assert_int_equal(mixt_trainer_compile_for(f.outer, &shape), MIXT_OK);
    return f;
}

static void add_both(const fixture *f, int ids[2])
{
    ids[0] = mixt__params_add_role(f->trainer->params, &marker);
    ids[1] = mixt__params_add_role(f->trainer->params, &average);
    assert_true(ids[0] >= 0 && ids[1] >= 0);
    assert_int_equal(mixt__params_add_role(f->trainer->params, &marker), -1); // full
}

static void fill(const fixture *f, int id, int salt)
{
    const mixt__param_role *role = &f->trainer->params->roles[id];
    for (size_t i = 0; i < role->bytes; i++)
        role->data[i] = (char)((i * 7 + (size_t)salt) % 100);
}

static void is_planned_and_allocated(void **state)
{
    (void)state;
    fixture f = start(-1);
    size_t total = (size_t)f.trainer->params->total;
    mixt_memory before, after;
    int ids[2];
    assert_int_equal(mixt_trainer_memory(f.outer, &before), MIXT_OK);
    add_both(&f, ids);
    assert_int_equal(mixt_trainer_memory(f.outer, &after), MIXT_OK);
    assert_int_equal(after.moments, before.moments + total);
    assert_int_equal(after.state, before.state + 4 * total);
    assert_int_equal(after.total, before.total + 5 * total);
    assert_int_equal(mixt__trainer_allocate(f.trainer), MIXT_OK);
    for (int i = 0; i < 2; i++)
        assert_non_null(f.trainer->params->roles[ids[i]].data);
    mixt_close(f.context);
}

/** A checkpoint has it in its format and shape; another trainer with the role takes it up, a snapshot goes back to it.
 */
static void is_saved_and_restored(void **state)
{
    (void)state;
    temp_folder_make();
    const char *folder = temp_path("checkpoint");
    fixture f = start(-1), other = start(-1);
    int ids[2];
    mixt__snapshot snapshot;
    mixt__checkpoint *checkpoint;
    add_both(&f, ids);
    add_both(&other, ids);
    assert_int_equal(mixt__trainer_allocate(f.trainer), MIXT_OK);
    fill(&f, ids[0], 1);
    fill(&f, ids[1], 2);
    assert_int_equal(mixt__snapshot_open(&snapshot, f.trainer, MIXT_SNAPSHOT_WHOLE, false), MIXT_OK);
    assert_int_equal(mixt__snapshot_take(&snapshot, f.trainer), MIXT_OK);
    json_t *scalars = json_pack("{s:O}", "trainer", snapshot.scalars);
    mixt__checkpoint_content content = {.tensors = snapshot.tensors, .count = snapshot.count, .scalars = scalars};
    assert_int_equal(mixt__checkpoint_write(folder, &content), MIXT_OK);
    assert_int_equal(mixt__checkpoint_open(folder, &checkpoint), MIXT_OK);
    const mixt__file_tensor *tensor = mixt__safetensors_find(checkpoint->state, "marker/fc1.weight");
    assert_non_null(tensor);
    const mixt__shape *shape = &f.trainer->params->table[mixt__params_find(f.trainer->params, "fc1.weight")].shape;
    assert_true(tensor->dtype == MIXT_DTYPE_UINT8 && tensor->dims[0] == shape->dims[1]);
    assert_int_equal(mixt__trainer_restore(other.trainer, checkpoint, NULL), MIXT_OK);
    for (int k = 0; k < 2; k++) {
        const mixt__params *a = f.trainer->params, *b = other.trainer->params;
        for (int64_t s = 0; s < a->segment_count; s++) // between segments nothing is saved
            assert_memory_equal(mixt__role_at(&a->roles[ids[k]], a->segments[s].offset),
                                mixt__role_at(&b->roles[ids[k]], a->segments[s].offset),
                                mixt__role_size(&a->roles[ids[k]], a->segments[s].count));
        char *kept = mixt__alloc(a->roles[ids[k]].bytes);
        memcpy(kept, a->roles[ids[k]].data, a->roles[ids[k]].bytes);
        fill(&f, ids[k], 50);
        assert_int_equal(mixt__snapshot_restore(&snapshot, f.trainer), MIXT_OK);
        assert_memory_equal(kept, a->roles[ids[k]].data, a->roles[ids[k]].bytes);
        mixt__free(kept);
    }
    json_decref(scalars);
    mixt__snapshot_close(&snapshot);
    mixt__checkpoint_close(checkpoint);
    mixt_close(f.context);
    mixt_close(other.context);
    temp_folder_remove();
}

/** Of two ranks each has its slices, and puts its part of what is read into them. */
static void is_sharded(void **state)
{
    (void)state;
    fixture f = start(1);
    mixt__params *p = f.trainer->params;
    size_t whole = mixt__snapshot_bytes(f.trainer, MIXT_SNAPSHOT_WHOLE);
    size_t own = mixt__snapshot_bytes(f.trainer, MIXT_SNAPSHOT_OWN);
    int ids[2];
    add_both(&f, ids);
    const mixt__param_role *role = &p->roles[ids[0]];
    assert_true(role->owner == MIXT_OWNER_SHARD && role->elements == p->total && role->here == p->shard.room);
    assert_true(role->here <= p->total / 2 + 16);
    assert_true(mixt__snapshot_bytes(f.trainer, MIXT_SNAPSHOT_WHOLE) >= whole + 5 * (size_t)p->total);
    assert_int_equal(mixt__snapshot_bytes(f.trainer, MIXT_SNAPSHOT_OWN), own + 5 * (size_t)p->shard.room);
    assert_int_equal(mixt__params_take_roles(p, MIXT_LIFE_TRAINING), MIXT_OK);
    unsigned char *values = mixt__alloc((size_t)p->total);
    for (int64_t i = 0; i < p->total; i++)
        values[i] = (unsigned char)(i % 251);
    assert_int_equal(mixt__params_set_slices(p, role, 0, p->total, values), MIXT_OK);
    for (int64_t s = 0; s < p->shard.slice_count; s++) {
        const mixt__param_slice *slice = &p->shard.slices[s];
        assert_memory_equal(mixt__role_at(role, slice->at), values + slice->begin, (size_t)slice->count);
    }
    mixt__free(values);
    mixt_close(f.context);
}

/** A format with a scale a channel: the scales stand behind the numbers and are counted with them. */
static void scales_are_counted(void **state)
{
    (void)state;
    fixture f = start(-1);
    mixt__params *p = f.trainer->params;
    mixt__param_role scaled = marker;
    scaled.scales = MIXT_SCALE_CHANNEL;
    const mixt__param_role *role = &p->roles[mixt__params_add_role(p, &scaled)];
    int64_t channels = 0;
    for (int64_t i = 0; i < p->count; i++)
        channels += p->table[i].shape.dims[0];
    assert_int_equal(role->scale_count, channels);
    assert_int_equal(role->bytes, ((size_t)p->total + 63) / 64 * 64 + 4 * (size_t)channels);
    mixt_close(f.context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_planned_and_allocated),
        cmocka_unit_test(is_saved_and_restored),
        cmocka_unit_test(is_sharded),
        cmocka_unit_test(scales_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
