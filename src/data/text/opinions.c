/* Opinions that mixt writes itself, so that a first run needs no download: sentences that praise or blame a film.
 *
 * A sentence has one to three remarks; a word of praise or blame counts the other way behind "not", and what comes
 * behind "but" counts most. So words alone tell most sentences apart, and their order the rest.
 */
#include "data/text/labelled.h"

#include <stdio.h>
#include <string.h>

static const char *const things[] = {"the plot",     "the cast",    "the film",   "the ending",
                                     "its music",    "the script",  "the acting", "the camera",
                                     "the dialogue", "every scene", "the hero",   "the story"};
static const char *const praise[] = {"clever",  "moving", "funny", "bright",  "charming", "rich",
                                     "elegant", "warm",   "fresh", "perfect", "tense",    "lovely"};
static const char *const blame[] = {"dull",  "weak",   "noisy", "clumsy", "stale",  "long",
                                    "cheap", "hollow", "bland", "silly",  "tiring", "grim"};
static const char *const links[] = {"is", "was", "seems", "stays", "remains", "feels"};

enum { THINGS = 12, WORDS = 12, LINKS = 6, ROOM = 160 };

/** One remark; returns 1 for praise, -1 for blame. */
static int write_remark(mixt__rng *rng, char *text, size_t room)
{
    bool good = mixt__rng_below(rng, 2), turned = mixt__rng_below(rng, 4) == 0;
    const char *thing = things[mixt__rng_below(rng, THINGS)], *link = links[mixt__rng_below(rng, LINKS)];
    const char *word = (good ? praise : blame)[mixt__rng_below(rng, WORDS)];
    snprintf(text, room, "%s %s %s%s", thing, link, turned ? "not " : "", word);
    return good != turned ? 1 : -1;
}

/** A sentence that is meant; returns whether it praises. */
static bool write_opinion(mixt__rng *rng, char text[ROOM])
{
    int remarks = 1 + (int)mixt__rng_below(rng, 3), sum = 0;
    size_t used = 0;
    for (int i = 0; i < remarks; i++) {
        char remark[64];
        int worth = write_remark(rng, remark, sizeof remark);
        bool turns = i && worth * sum < 0; // against what was said so far
        sum = turns ? worth * 2 : sum + worth;
        used += (size_t)snprintf(text + used, ROOM - used, "%s%s", i == 0 ? "" : turns ? " , but " : " , and ", remark);
    }
    return sum > 0;
}

mixt_status mixt__opinions_write(const mixt_data *data, int64_t count, mixt__text_rows *rows)
{
    uint64_t seed = mixt__rng_key(data->options.seed, MIXT_STREAM_OPINIONS, data->part);
    rows->path = "opinions";
    rows->text_column = 1;
    rows->label_column = 2;
    rows->file.bytes = mixt__alloc((size_t)count * ROOM + 1);
    rows->row = mixt__alloc((size_t)count * sizeof *rows->row);
    if (!rows->file.bytes || !rows->row)
        return mixt__fail(MIXT_ERROR_MEMORY, "labelled: no memory for %lld texts", (long long)count);
    rows->file.size = count * ROOM;
    rows->count = rows->capacity = count;
    for (int64_t i = 0; i < count; i++) {
        mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, (uint64_t)i, 0));
        char *text = (char *)rows->file.bytes + i * ROOM;
        const char *label = write_opinion(&rng, text) ? "good" : "bad";
        rows->row[i] = (mixt__text_row){.text = {(const unsigned char *)text, (int64_t)strlen(text)},
                                        .label = {(const unsigned char *)label, (int64_t)strlen(label)},
                                        .line = i + 1};
    }
    return MIXT_OK;
}
