/* A translator that reads sentences once and then writes a token at a time, for several beams of each.
 *
 * Two plans for each length of sentences share the parameters: one makes of a sentence what the decoder's attention
 * looks at in every layer, which stays on the device; one makes the logits of the next token from the newest one, with
 * caches of the keys and values of those before. Beams that go on from others get their rows of the caches.
 */
#ifndef MIXT_INFER_WRITER_H
#define MIXT_INFER_WRITER_H

#include "infer/forward.h"

enum { MIXT_WRITER_PLANS = 16, MIXT_WRITER_BEAMS = 64 };

typedef struct mixt__writer_options {
    mixt__model read; // "source" (B, S), "source.length" (B), "previous" → (B, S, any)
    mixt__model write; // "previous" (B · beams, 1), "source.length", "source", "memory" as read made it → (…, 1, row)
    mixt__policy policy; // borrowed rules
    mixt__device *device;
    const mixt__params *params; // borrowed
    int64_t texts, beams;
} mixt__writer_options;

/** Both plans, for sentences of one length. */
typedef struct mixt__writer_plan {
    int64_t source, context;
    mixt__forward *read, *write;
} mixt__writer_plan;

typedef struct mixt__writer {
    mixt__writer_options o;
    mixt__writer_plan plans[MIXT_WRITER_PLANS], *plan; // plan: that of the sentences that were read
    int plan_count;
    void **caches; // (B · beams, context, any) or, of a recurrent state, (B · beams, any) each
    size_t *cache_bytes;
    int64_t cache_count;
    void *spare; // one row of a cache, while beams change places
    size_t spare_bytes;
    char *input;
    size_t input_room;
    int64_t row; // logits of a token
} mixt__writer;

/** Takes nothing yet: plans are made when sentences come. */
void mixt__writer_open(mixt__writer *w, const mixt__writer_options *options);
void mixt__writer_close(mixt__writer *w);

/** Reads sentences; texts begin anew.
 *  @param tokens (texts, source)
 *  @param lengths (texts), each from 1 to `source`
 *  @param context tokens of a text at most, the same each time for a `source` */
mixt_status mixt__writer_read(mixt__writer *w, int64_t source, const int32_t *tokens, const int32_t *lengths,
                              int64_t context);
/** The logits of what comes behind `newest`, (texts · beams), which is at `place`. @param logits (texts · beams,
 * w->row) of the host */
mixt_status mixt__writer_next(mixt__writer *w, const int32_t *newest, int64_t place, float *logits);
/** Beams go on from others of their text. @param from (texts · beams) which of its beams @param places written so far
 */
mixt_status mixt__writer_move(mixt__writer *w, const int32_t *from, int64_t places);

#endif
