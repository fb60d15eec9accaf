/* Plans by length, states that begin anew, the rows of caches that change places. */
#include "infer/writer.h"

#include "base/block.h"

#include <string.h>

void mixt__writer_open(mixt__writer *w, const mixt__writer_options *options)
{
    *w = (mixt__writer){.o = *options};
}

static void free_plans(mixt__writer *w)
{
    for (int i = 0; i < w->plan_count; i++) {
        mixt__forward_free(w->plans[i].read);
        mixt__forward_free(w->plans[i].write);
    }
    w->plan_count = 0;
    w->plan = NULL;
}

void mixt__writer_close(mixt__writer *w)
{
    free_plans(w);
    for (int64_t i = 0; w->caches && i < w->cache_count; i++)
        if (w->caches[i])
            mixt__device_free(w->o.device, w->caches[i]);
    if (w->spare)
        mixt__device_free(w->o.device, w->spare);
    mixt__free(w->caches);
    mixt__free(w->cache_bytes);
    mixt__free(w->input);
    *w = (mixt__writer){0};
}

/* ---- plans ---- */

static mixt__array tokens_of(const char *name, int64_t rows, int64_t columns)
{
    mixt__array a = {.dtype = MIXT_DTYPE_INT32, .shape = {columns ? 2 : 1, {rows, columns}}};
    memcpy(a.name, name, strlen(name) + 1);
    return a;
}

static mixt__batch_spec read_spec(const mixt__writer *w, int64_t source)
{
    int64_t texts = w->o.texts;
    mixt__batch_spec spec = {.input_dtype = MIXT_DTYPE_INT32, .input = {2, {texts, source}}, .input_name = "source"};
    spec.more[0] = tokens_of("source.length", texts, 0);
    spec.more[1] = tokens_of("previous", texts * w->o.beams, 1); // what no output needs is not computed
    spec.more_count = 2;
    return spec;
}

static mixt__batch_spec write_spec(const mixt__writer *w, int64_t source, const mixt__shape *memory)
{
    int64_t texts = w->o.texts;
    mixt__batch_spec spec = {
        .input_dtype = MIXT_DTYPE_INT32, .input = {2, {texts * w->o.beams, 1}}, .input_name = "previous"};
    spec.more[0] = tokens_of("source.length", texts, 0);
    spec.more[1] = tokens_of("source", texts, source);
    spec.more[2] = (mixt__array){.name = "memory", .dtype = MIXT_DTYPE_FP32, .shape = *memory};
    spec.more_count = 3;
    return spec;
}

static mixt_status make(const mixt__writer *w, const mixt__model *model, const mixt__forward_shape *shape,
                        mixt__forward **forward)
{
    mixt__forward_shape own = *shape;
    own.params = w->o.params;
    MIXT_TRY(mixt__forward_new(model, &w->o.policy, w->o.device, &own, forward));
    return mixt__forward_bind(*forward, w->o.params);
}

/** Memory of at least so many bytes in place of a smaller one, whose content is not needed. */
static mixt_status grow(const mixt__writer *w, size_t bytes, void **memory, size_t *have)
{
    if (bytes <= *have)
        return MIXT_OK;
    if (*memory)
        mixt__device_free(w->o.device, *memory);
    *memory = mixt__device_alloc(w->o.device, bytes);
    *have = *memory ? bytes : 0;
    return *memory ? MIXT_OK
                   : mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the keys and values of %lld beams",
                                w->o.device->backend->name, (long long)(w->o.texts * w->o.beams));
}

/** Plans have as many caches as each other, of different sizes. */
static mixt_status take_caches(mixt__writer *w, const mixt__forward *write)
{
    if (!w->caches) {
        while (mixt__forward_cache_bytes(write, w->cache_count) >= 0)
            w->cache_count++;
        w->caches = mixt__alloc((size_t)(w->cache_count + 1) * sizeof *w->caches);
        w->cache_bytes = mixt__alloc((size_t)(w->cache_count + 1) * sizeof *w->cache_bytes);
    }
    if (!w->caches || !w->cache_bytes)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for caches");
    for (int64_t i = 0; i < w->cache_count; i++) {
        size_t bytes = (size_t)mixt__forward_cache_bytes(write, i);
        MIXT_TRY(grow(w, bytes, &w->caches[i], &w->cache_bytes[i]));
        MIXT_TRY(grow(w, bytes / (size_t)(w->o.texts * w->o.beams), &w->spare, &w->spare_bytes));
    }
    return MIXT_OK;
}

static mixt_status make_plan(mixt__writer *w, int64_t source, mixt__writer_plan *plan)
{
    mixt__batch_spec spec = read_spec(w, source);
    MIXT_TRY(make(w, &w->o.read, &(mixt__forward_shape){.spec = &spec}, &plan->read));
    size_t reads = mixt__spec_input_bytes(&spec);
    spec = write_spec(w, source, mixt__forward_output_shape(plan->read));
    mixt__forward_shape shape = {.spec = &spec, .given = 1, .cache_rows = plan->context};
    MIXT_TRY(make(w, &w->o.write, &shape, &plan->write));
    mixt__forward_give(plan->write, "memory", mixt__forward_result(plan->read));
    const mixt__shape *logits = mixt__forward_output_shape(plan->write);
    if (logits->rank != 3 || logits->dims[0] != w->o.texts * w->o.beams || logits->dims[1] != 1)
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "the function that writes translations must return logits (%lld, 1, tokens)",
                          (long long)(w->o.texts * w->o.beams));
    w->row = logits->dims[2];
    size_t bytes = plan->write->input_bytes > reads ? plan->write->input_bytes : reads;
    if (bytes > w->input_room) {
        mixt__free(w->input);
        w->input = mixt__alloc(bytes);
        w->input_room = w->input ? bytes : 0;
    }
    return w->input ? take_caches(w, plan->write) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for sentences");
}

static mixt_status find_plan(mixt__writer *w, int64_t source, int64_t context)
{
    for (int i = 0; i < w->plan_count; i++)
        if (w->plans[i].source == source) {
            w->plan = &w->plans[i];
            return MIXT_OK;
        }
    if (w->plan_count == MIXT_WRITER_PLANS)
        free_plans(w);
    w->plan = &w->plans[w->plan_count++];
    *w->plan = (mixt__writer_plan){.source = source, .context = context};
    return make_plan(w, source, w->plan);
}

/* ---- reading, writing ---- */

/** Recurrent states begin at 0; of keys and values nothing is looked at that was not written. */
static mixt_status clear_states(const mixt__writer *w)
{
    const mixt__forward *write = w->plan->write;
    for (int64_t i = 0; i < w->cache_count; i++)
        if (!mixt__forward_cache_places(write, i))
            MIXT_TRY(mixt__device_zero(w->o.device, w->caches[i], (size_t)mixt__forward_cache_bytes(write, i)));
    return MIXT_OK;
}

mixt_status mixt__writer_read(mixt__writer *w, int64_t source, const int32_t *tokens, const int32_t *lengths,
                              int64_t context)
{
    mixt__block block = {0};
    size_t texts = (size_t)w->o.texts, size = sizeof *tokens;
    MIXT_TRY(find_plan(w, source, context));
    MIXT_TRY(clear_states(w));
    memset(w->input, 0, w->input_room);
    memcpy(w->input + mixt__block_add(&block, texts * (size_t)source * size), tokens, texts * (size_t)source * size);
    memcpy(w->input + mixt__block_add(&block, texts * size), lengths, texts * size);
    MIXT_TRY(mixt__forward_run(w->plan->read, w->input, 0, NULL));
    block = (mixt__block){0}; // lengths stay where every step finds them
    memset(w->input, 0, w->input_room);
    (void)mixt__block_add(&block, texts * (size_t)w->o.beams * size);
    memcpy(w->input + mixt__block_add(&block, texts * size), lengths, texts * size);
    return MIXT_OK;
}

mixt_status mixt__writer_next(mixt__writer *w, const int32_t *newest, int64_t place, float *logits)
{
    int64_t rows = w->o.texts * w->o.beams;
    memcpy(w->input, newest, (size_t)rows * sizeof *newest);
    MIXT_TRY(mixt__forward_run(w->plan->write, w->input, place, w->caches));
    return mixt__forward_output(w->plan->write, 0, rows * w->row, logits);
}

/* ---- beams that change places ---- */

enum { SPARE = -1, MOVES = 2 * MIXT_WRITER_BEAMS };

/** A beam's row, or the spare one, to another's. */
typedef struct move {
    int32_t to, from;
} move;

/** How the rows of a text's beams come to their places without one being overwritten that is needed: first those that
 *  nobody goes on from; where beams go round in a circle, one waits in the spare row. */
static int moves_of(const int32_t *from, int64_t beams, move *moves)
{
    int32_t source[MIXT_WRITER_BEAMS], needed[MIXT_WRITER_BEAMS] = {0};
    int count = 0;
    for (int64_t i = 0; i < beams; i++) {
        source[i] = from[i];
        needed[from[i]] += from[i] != i;
    }
    for (;;) {
        int64_t free = 0, circle = 0;
        while (free < beams && (source[free] == free || needed[free]))
            free++;
        if (free < beams) {
            moves[count++] = (move){(int32_t)free, source[free]};
            if (source[free] != SPARE)
                needed[source[free]]--;
            source[free] = (int32_t)free;
            continue;
        }
        while (circle < beams && source[circle] == circle)
            circle++;
        if (circle == beams)
            return count;
        moves[count++] = (move){SPARE, (int32_t)circle};
        for (int64_t i = 0; i < beams; i++)
            if (i != circle && source[i] == circle)
                source[i] = SPARE;
        needed[circle] = 0;
    }
}

mixt_status mixt__writer_move(mixt__writer *w, const int32_t *from, int64_t places)
{
    int64_t beams = w->o.beams;
    for (int64_t t = 0; t < w->o.texts; t++) {
        move moves[MOVES];
        int count = moves_of(from + t * beams, beams, moves);
        for (int64_t c = 0; count && c < w->cache_count; c++) {
            size_t row = (size_t)mixt__forward_cache_bytes(w->plan->write, c) / (size_t)(w->o.texts * beams);
            int64_t context = mixt__forward_cache_places(w->plan->write, c); // of a state all of the row moves
            size_t bytes = context ? row / (size_t)context * (size_t)places : row;
            char *rows = (char *)w->caches[c] + (size_t)(t * beams) * row;
            for (int m = 0; m < count; m++) {
                char *to = moves[m].to == SPARE ? w->spare : rows + (size_t)moves[m].to * row;
                const char *source = moves[m].from == SPARE ? w->spare : rows + (size_t)moves[m].from * row;
                MIXT_TRY(mixt__device_copy(w->o.device, to, source, bytes));
            }
        }
    }
    return MIXT_OK;
}
