/* Tokenising by all threads: rounds of chunks that end at boundaries, each thread with a worker and an array of its
 * own; after a round the caller hands the tokens on, in order. What comes out does not depend on threads or chunks.
 */
#include "data/text/tokenizer.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_CHUNK = 1 << 20, CHUNKS_A_THREAD = 2 };

typedef struct chunk {
    int64_t begin, end;
    mixt__tokens tokens;
    mixt_status status;
    char error[512];
} chunk;

typedef struct round_state {
    const mixt__tokenize_job *job;
    chunk *chunks;
    int64_t count;  // of this round
    void **workers; // one a thread
} round_state;

static void encode_chunks(void *argument, int64_t begin, int64_t end, int thread)
{
    round_state *r = argument;
    const mixt_tokenizer *t = r->job->tokenizer;
    for (int64_t i = begin; i < end; i++) {
        chunk *c = &r->chunks[i];
        c->tokens.count = 0;
        c->status = r->workers[thread] || !t->kind->worker_new ? MIXT_OK : t->kind->worker_new(t, &r->workers[thread]);
        if (c->status == MIXT_OK)
            c->status = t->kind->encode(t, r->workers[thread], r->job->text + c->begin, c->end - c->begin, &c->tokens);
        if (c->status != MIXT_OK)
            snprintf(c->error, sizeof c->error, "%s", mixt_error_text());
    }
}

/** The end of a chunk that begins at `begin`: a boundary near the wanted size, else further on. */
static int64_t chunk_end(const mixt__tokenize_job *job, int64_t begin, int64_t divisible, int64_t wanted)
{
    if (begin >= divisible)
        return job->size;
    int64_t low = begin;
    for (int64_t high = begin + wanted; high < divisible; low = high, high += wanted) {
        int64_t cut = job->tokenizer->kind->boundary(job->text, low, high);
        if (cut > low)
            return cut;
    }
    return divisible;
}

/** Lays chunks out from *at on, one round at most. */
static void lay_out(round_state *r, int64_t room, int64_t divisible, int64_t *at)
{
    int64_t wanted = r->job->chunk > 0 ? r->job->chunk : DEFAULT_CHUNK;
    for (r->count = 0; r->count < room && *at < r->job->size; r->count++) {
        chunk *c = &r->chunks[r->count];
        c->begin = *at;
        c->end = *at = chunk_end(r->job, *at, divisible, wanted);
    }
}

static mixt_status hand_on(round_state *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        chunk *c = &r->chunks[i];
        if (c->status != MIXT_OK) {
            mixt__error_set(c->error);
            return c->status;
        }
        MIXT_TRY(r->job->sink(r->job->sink_user, c->tokens.ids, c->tokens.count));
    }
    return MIXT_OK;
}

static mixt_status tell(const mixt__tokenize_job *job, int64_t done)
{
    mixt_progress p = mixt__progress(MIXT_PROGRESS_DATA, "tokenising");
    p.what = job->name ? job->name : "";
    p.unit = "bytes";
    p.done = done;
    p.total = job->size;
    return mixt__tell(job->teller, &p);
}

static mixt_status run_rounds(round_state *r, int64_t room)
{
    const mixt__tokenize_job *job = r->job;
    const mixt__tokenizer_kind *kind = job->tokenizer->kind;
    int64_t divisible = kind->divisible ? kind->divisible(job->text, job->size) : job->size;
    for (int64_t at = 0; at < job->size;) {
        lay_out(r, room, divisible, &at);
        mixt__parallel(r->count, 1, encode_chunks, r);
        MIXT_TRY(hand_on(r));
        MIXT_TRY(tell(job, at));
    }
    return MIXT_OK;
}

mixt_status mixt__tokenize(const mixt__tokenize_job *job)
{
    int threads = mixt__threads_count();
    int64_t room = (int64_t)threads * CHUNKS_A_THREAD;
    round_state r = {.job = job};
    r.chunks = mixt__alloc((size_t)room * sizeof *r.chunks);
    r.workers = mixt__alloc((size_t)threads * sizeof *r.workers);
    mixt_status status =
        r.chunks && r.workers ? run_rounds(&r, room) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to tokenise in");
    for (int64_t i = 0; r.chunks && i < room; i++)
        mixt__tokens_free(&r.chunks[i].tokens);
    for (int i = 0; r.workers && i < threads; i++)
        if (r.workers[i])
            job->tokenizer->kind->worker_free(r.workers[i]);
    mixt__free(r.chunks);
    mixt__free(r.workers);
    return status;
}
