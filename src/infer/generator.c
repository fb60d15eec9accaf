/* Reading a prompt in pieces, then one token at a time. */
#include "infer/generator.h"

#include "base/rng.h"

#include <string.h>

enum { RNG_STREAM_GENERATE = 5 };

static mixt_status compile(const mixt__generator *g, int64_t tokens, mixt__forward **forward)
{
    mixt__forward_shape shape = {.dtype = MIXT_DTYPE_INT32, .input = {2, {1, tokens}}, .cache_rows = g->context};
    return mixt__forward_new(&g->model, &g->policy, g->device, &shape, forward);
}

static mixt_status take_caches(mixt__generator *g)
{
    while (mixt__forward_cache_bytes(g->one, g->cache_count) >= 0)
        g->cache_count++;
    g->caches = mixt__alloc((size_t)(g->cache_count + 1) * sizeof *g->caches);
    for (int64_t i = 0; g->caches && i < g->cache_count; i++) {
        g->caches[i] = mixt__device_alloc(g->device, (size_t)mixt__forward_cache_bytes(g->one, i));
        if (!g->caches[i])
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the keys and values of %lld tokens",
                              g->device->backend->name, (long long)g->context);
    }
    return g->caches ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the caches");
}

static mixt_status open(mixt__generator *g)
{
    MIXT_TRY(compile(g, 1, &g->one));
    const mixt__shape *out = mixt__forward_output_shape(g->one);
    if (out->rank != 3 || out->dims[0] != 1 || out->dims[1] != 1) {
        char text[128];
        return mixt__fail(
            MIXT_ERROR_SHAPE,
            "the model makes %s from one token: to generate text it must make (batch, tokens, vocabulary)",
            mixt__shape_text(out, text, sizeof text));
    }
    g->row = out->dims[2];
    g->vocab = g->model.classes > 0 ? g->model.classes : g->row;
    g->endless = !mixt__forward_has_places(g->one);
    MIXT_TRY(mixt__params_new(g->one->executable->graph, g->device, false, 0, MIXT_DTYPE_FP32, &g->params));
    MIXT_TRY(mixt__params_allocate(g->params));
    MIXT_TRY(mixt__forward_bind(g->one, g->params));
    MIXT_TRY(take_caches(g));
    g->text = mixt__alloc((size_t)(g->context + 1) * sizeof *g->text);
    g->logits = mixt__alloc((size_t)g->vocab * sizeof *g->logits);
    g->scratch = mixt__alloc((size_t)g->vocab * sizeof *g->scratch);
    return g->text && g->logits && g->scratch ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
}

mixt_status mixt__generator_open(mixt__generator *g, const mixt__model *model, const mixt__policy *policy,
                                 mixt__device *device, int64_t context)
{
    *g = (mixt__generator){.model = *model, .policy = *policy, .device = device, .context = context};
    if (context < 1 || context > INT32_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a context of %lld tokens: expected 1 to %d", (long long)context,
                          INT32_MAX);
    mixt_status status = open(g);
    if (status != MIXT_OK)
        mixt__generator_close(g);
    return status;
}

void mixt__generator_close(mixt__generator *g)
{
    mixt__forward_free(g->one);
    mixt__forward_free(g->piece);
    mixt__params_free(g->params);
    for (int64_t i = 0; g->caches && i < g->cache_count; i++)
        if (g->caches[i])
            mixt__device_free(g->device, g->caches[i]);
    mixt__free(g->caches);
    mixt__free(g->text);
    mixt__free(g->logits);
    mixt__free(g->scratch);
    *g = (mixt__generator){0};
}

/** The plan for a piece of this length. */
static mixt_status piece_of(mixt__generator *g, int64_t tokens, mixt__forward **forward)
{
    *forward = tokens == 1 ? g->one : g->piece;
    if (tokens == 1 || (g->piece && g->piece->tokens == tokens))
        return MIXT_OK;
    mixt__forward_free(g->piece); // before the next takes its memory
    g->piece = NULL;
    MIXT_TRY(compile(g, tokens, &g->piece));
    mixt_status status = mixt__forward_bind(g->piece, g->params);
    if (status != MIXT_OK) {
        mixt__forward_free(g->piece);
        g->piece = NULL;
    }
    *forward = g->piece;
    return status;
}

/** Reads the next tokens of the text, leaving their last logits. */
static mixt_status read_piece(mixt__generator *g, int64_t tokens)
{
    mixt__forward *f;
    MIXT_TRY(piece_of(g, tokens, &f));
    MIXT_TRY(mixt__forward_run(f, g->text + g->read, g->read, g->caches));
    g->read += tokens;
    return mixt__forward_output(f, (tokens - 1) * g->row, g->vocab, g->logits);
}

/** What attention has seen stays with its place, so forgetting the older half is reading the newer half again. */
static void make_room(mixt__generator *g)
{
    int64_t kept = g->endless ? 0 : g->context / 2;
    memmove(g->text, g->text + g->known - kept, (size_t)kept * sizeof *g->text);
    g->known = kept;
    g->read = 0;
}

mixt_status mixt__generator_catch_up(mixt__generator *g)
{
    if (!g->known && !g->read)
        return mixt__fail(MIXT_ERROR_STATE, "no text yet: call mixt_generator_start first");
    while (g->read < g->known) {
        int64_t left = g->known - g->read;
        MIXT_TRY(read_piece(g, left < MIXT_PIECE_MAX ? left : MIXT_PIECE_MAX));
    }
    return MIXT_OK;
}

static mixt_status check_token(const mixt__generator *g, int32_t token, int64_t i)
{
    if (token >= 0 && token < g->vocab)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_DATA, "token %lld of the prompt is %d: the model knows 0 to %lld", (long long)i, token,
                      (long long)g->vocab - 1);
}

/** Adds a token to the text; when the context is full, only what was read is forgotten. */
static mixt_status add(mixt__generator *g, int32_t token)
{
    if (g->known == g->context) {
        if (g->endless)
            MIXT_TRY(mixt__generator_catch_up(g));
        make_room(g);
    }
    g->text[g->known++] = token;
    return MIXT_OK;
}

mixt_status mixt__generator_start(mixt__generator *g, const int32_t *tokens, int64_t count)
{
    if (count < 1 || !tokens)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a text begins with at least one token");
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(check_token(g, tokens[i], i));
    g->read = g->known = g->drawn = 0;
    for (int64_t i = 0; i < g->cache_count; i++)
        MIXT_TRY(mixt__device_zero(g->device, g->caches[i], (size_t)mixt__forward_cache_bytes(g->one, i)));
    for (int64_t i = g->endless || count < g->context ? 0 : count - g->context; i < count; i++)
        MIXT_TRY(add(g, tokens[i]));
    return mixt__generator_catch_up(g);
}

mixt_status mixt__generator_start_again(mixt__generator *g, const int32_t *tokens, int64_t count, int64_t *read)
{
    int64_t same = 0;
    while (same < g->read && same + 1 < count && g->text[same] == tokens[same]) // the last one is read for its logits
        same++;
    if (g->endless || !same || count > g->context)
        same = 0;
    if (read)
        *read = count - same;
    if (!same)
        return mixt__generator_start(g, tokens, count);
    for (int64_t i = same; i < count; i++)
        MIXT_TRY(check_token(g, tokens[i], i));
    memcpy(g->text + same, tokens + same, (size_t)(count - same) * sizeof *g->text);
    g->read = same;
    g->known = count;
    g->drawn = 0;
    return mixt__generator_catch_up(g);
}

/** 53 random bits, a pure function of the seed and how many tokens were drawn before. */
static double uniform(uint64_t seed, int64_t drawn)
{
    mixt__rng_block r = mixt__rng_block_at(mixt__rng_key(seed, RNG_STREAM_GENERATE, 0), (uint64_t)drawn);
    return (double)(((uint64_t)r.word[0] << 32 | r.word[1]) >> 11) * 0x1p-53;
}

mixt_status mixt__generator_next(mixt__generator *g, const mixt_sampling *sampling, int32_t *token)
{
    MIXT_TRY(mixt__generator_catch_up(g));
    double u = uniform(sampling->seed, g->drawn);
    MIXT_TRY(mixt__sample(g->logits, g->vocab, sampling, u, g->scratch, token));
    g->drawn++;
    return add(g, *token);
}
