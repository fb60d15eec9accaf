/* Parallel text as samples: the tokens of a sentence, and those of its translation.
 *
 * Inputs are "source" (T) with its length, and "previous" (T), what a translator has written before each of its tokens:
 * the end of a text, then the translation. The target is the translation, then the end. Pairs that are empty on one
 * side or longer than `seq` tokens are left out, and counted.
 */
#include "data/columns.h"
#include "data/text/parallel.h"

#include <stdio.h>
#include <string.h>

/** Tokens of all pairs, each side in one array. */
typedef struct tokens {
    int32_t *values[3]; // source, previous, target
    int64_t *begin[3];  // (count + 1)
    int64_t count, left_out, room[3], used[3];
    int64_t longer[512]; // pairs that are left out for their length, by it in steps of 8; at the end: longer ones
} tokens;

static void free_tokens(tokens *t)
{
    for (int i = 0; i < 3; i++) {
        mixt__free(t->values[i]);
        mixt__free(t->begin[i]);
    }
}

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its tokens", data->kind->name, data->path);
}

static bool make_room(tokens *t, int which, int64_t more)
{
    int64_t room = t->room[which] ? t->room[which] : 4096;
    while (room < t->used[which] + more)
        room *= 2;
    if (room == t->room[which])
        return true;
    int32_t *values = mixt__realloc(t->values[which], (size_t)room * sizeof *values);
    if (!values)
        return false;
    t->values[which] = values;
    t->room[which] = room;
    return true;
}

/** Appends tokens, with `first` in front or `last` behind unless negative. */
static void append(tokens *t, int which, int32_t first, const mixt__tokens *from, int32_t last)
{
    int32_t *at = t->values[which] + t->used[which], *begin = at;
    if (first >= 0)
        *at++ = first;
    for (int64_t i = 0; i < from->count; i++)
        *at++ = (int32_t)from->ids[i];
    if (last >= 0)
        *at++ = last;
    t->used[which] += at - begin;
    t->begin[which][t->count + 1] = t->used[which];
}

/** Notes how long a pair is that is left out for its length. */
static void note_length(tokens *t, int64_t length)
{
    enum { STEP = 8, LAST = sizeof t->longer / sizeof t->longer[0] - 1 };
    int64_t step = (length + STEP - 1) / STEP;
    t->longer[step < LAST ? step : LAST]++;
}

/** The least data.seq, in steps of 8, that keeps 99% of the pairs that are not empty; 0: none that is looked at. */
static int64_t seq_for_most(const tokens *t)
{
    enum { STEP = 8, LAST = sizeof t->longer / sizeof t->longer[0] - 1 };
    int64_t all = t->count, kept = t->count;
    for (int i = 0; i <= LAST; i++)
        all += t->longer[i];
    for (int i = 0; i < LAST; i++) {
        kept += t->longer[i];
        if (t->longer[i] && kept * 100 >= all * 99)
            return (int64_t)i * STEP;
    }
    return 0;
}

static mixt_status add_pair(mixt_data *data, tokens *t, const mixt__tokens side[MIXT_SIDES], int32_t end)
{
    int64_t seq = data->options.seq;
    if (!side[0].count || !side[1].count || side[0].count > seq || side[1].count + 1 > seq) {
        t->left_out++;
        if (side[0].count && side[1].count)
            note_length(t, side[0].count > side[1].count ? side[0].count : side[1].count + 1);
        return MIXT_OK;
    }
    for (int i = 0; i < 3; i++)
        if (!make_room(t, i, seq))
            return no_memory(data);
    append(t, 0, -1, &side[0], -1);
    append(t, 1, end, &side[1], -1);
    append(t, 2, -1, &side[1], end);
    t->count++;
    return MIXT_OK;
}

static mixt_status encode(mixt_data *data, const mixt_tokenizer *tokenizer, const mixt__pairs *p, tokens *t)
{
    mixt__tokens side[MIXT_SIDES] = {{0}};
    void *worker;
    for (int i = 0; i < 3; i++)
        if (!(t->begin[i] = mixt__alloc((size_t)(p->count + 1) * sizeof **t->begin)))
            return no_memory(data);
    MIXT_TRY(tokenizer->kind->worker_new(tokenizer, &worker));
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < p->count && status == MIXT_OK; i++) {
        for (int k = 0; k < MIXT_SIDES && status == MIXT_OK; k++) {
            side[k].count = 0;
            status = tokenizer->kind->encode(tokenizer, worker, p->line[k][i].bytes, p->line[k][i].size, &side[k]);
        }
        if (status == MIXT_OK)
            status = add_pair(data, t, side, (int32_t)tokenizer->special.end);
    }
    tokenizer->kind->worker_free(worker);
    mixt__tokens_free(&side[0]);
    mixt__tokens_free(&side[1]);
    return status;
}

static mixt_status check(mixt_data *data, const mixt__pairs *p, const tokens *t)
{
    const char *where = *data->path ? data->path : "parallel";
    int64_t seq = seq_for_most(t);
    char more[64] = "";
    if (seq)
        snprintf(more, sizeof more, "; data.seq=%lld keeps 99%% of them", (long long)seq);
    if (!t->count)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: no pair of sentences is left of %lld: all are empty or over data.seq=%lld tokens%s",
                          where, (long long)p->count, (long long)data->options.seq, more);
    if (!t->left_out)
        return MIXT_OK;
    return mixt__data_warn(data,
                           "%s: %lld of %lld pairs of the %s part are left out: empty, or over data.seq=%lld tokens%s",
                           where, (long long)t->left_out, (long long)p->count, mixt__part_names[data->part],
                           (long long)data->options.seq, t->left_out * 100 > p->count ? more : "");
}

static void make_columns(tokens *t, int64_t seq, int64_t vocabulary, mixt__columns *c)
{
    static const char *const names[] = {"source", "source.length", "previous", "target"};
    static const int from[] = {0, -1, 1, 2};
    *c = (mixt__columns){.rows = t->count, .count = 4};
    for (int i = 0; i < 4; i++) {
        mixt__column *column = &c->column[i];
        column->array = (mixt_data_array){.name = names[i], .target = i == 3, .dtype = MIXT_DTYPE_INT32};
        column->array.elements = 1;
        column->array.ids = seq + 1;
        column->source = MIXT_COLUMN_LENGTH;
        if (from[i] < 0)
            continue;
        column->source = MIXT_COLUMN_VALUES;
        column->array.rank = 1;
        column->array.dims[0] = column->array.elements = seq;
        column->array.ids = vocabulary;
        column->values = t->values[from[i]];
        column->begin = t->begin[from[i]];
        t->values[from[i]] = NULL;
        t->begin[from[i]] = NULL;
    }
}

static mixt_status read_pairs(mixt_data *data, mixt__pairs *p, bool *shared)
{
    *shared = false;
    if (!*data->path)
        return mixt__pairs_draw(data, data->part, p);
    return mixt__pairs_read(data, data->part, p, shared);
}

/** Chooses the part's rows of a file that several have a share in. */
static mixt_status share(mixt_data *data, mixt__columns *c)
{
    bool val, test;
    mixt_data_options *o = &data->options;
    MIXT_TRY(mixt__pairs_have_files(data, MIXT_PART_VAL, &val));
    MIXT_TRY(mixt__pairs_have_files(data, MIXT_PART_TEST, &test));
    double val_share = o->val, test_share = o->test;
    o->val = val ? 0 : val_share;
    o->test = test ? 0 : test_share;
    mixt_status status = mixt__columns_share(data, c);
    o->val = val_share;
    o->test = test_share;
    return status;
}

static mixt_status open_with(mixt_data *data, const mixt_tokenizer *tokenizer, mixt__columns *c)
{
    mixt__pairs pairs = {0};
    tokens t = {0};
    bool shared;
    mixt_status status = read_pairs(data, &pairs, &shared);
    if (status == MIXT_OK)
        status = encode(data, tokenizer, &pairs, &t);
    if (status == MIXT_OK)
        status = check(data, &pairs, &t);
    mixt__pairs_free(&pairs);
    if (status == MIXT_OK)
        make_columns(&t, data->options.seq, tokenizer->size, c);
    free_tokens(&t);
    MIXT_TRY(status);
    data->info.samples = c->rows;
    return shared ? share(data, c) : MIXT_OK;
}

static mixt_status open(mixt_data *data)
{
    mixt__columns c = {0};
    mixt_tokenizer *tokenizer;
    MIXT_TRY(mixt__need_seq(data));
    MIXT_TRY(mixt__pairs_tokenizer(data, &tokenizer));
    mixt_status status = open_with(data, tokenizer, &c);
    mixt_tokenizer_close(tokenizer);
    if (status == MIXT_OK)
        return mixt__columns_adopt(data, &c);
    mixt__columns_free(&c);
    return status;
}

const mixt__data_kind mixt__data_parallel = {
    .name = "parallel",
    .what = "sentences and their translations",
    .uses = MIXT_DATA_PAIRS | MIXT_DATA_SAMPLES | MIXT_DATA_SEQ,
    .open = open,
    .arrays = mixt__columns_arrays,
    .length = mixt__columns_length,
    .bucketed = true,
    .close = mixt__columns_close,
    .raw = mixt__columns_raw,
    .draws = true,
};
