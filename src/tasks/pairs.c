/* Pictures held against captions by the vectors that a model gives them: see mixt/tasks/pairs.h. */
#include "mixt/tasks/pairs.h"

#include "api/api.h"
#include "base/threads.h"
#include "data/data.h"

#include <string.h>

enum { BATCH = 256, GRAIN = 8 };
static const int64_t cuts[MIXT_RECALL_CUTS] = {1, 5};

/** All vectors of a set. */
typedef struct space {
    int64_t samples, width, captions;
    float *vectors;   // (samples, 2 width): picture, caption
    int32_t *number;  // (samples) which caption
    int64_t *spoken;  // (captions) the first sample that has it; -1: none of this part
    int64_t *results; // (samples or captions) the place of the first right one
} space;

static void close_space(space *s)
{
    mixt__free(s->vectors);
    mixt__free(s->number);
    mixt__free(s->spoken);
    mixt__free(s->results);
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the vectors of images and captions");
}

static mixt_status check_data(const mixt_data_info *info)
{
    int last = info->array_count - 1;
    if (info->array_count == 5 && !strcmp(info->arrays[0].name, "picture") &&
        !strcmp(info->arrays[1].name, "caption") && info->arrays[last].target && info->arrays[last].ids)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: has no images with captions", info->path);
}

static mixt_status read_vectors(mixt_trainer *trainer, const mixt_data *data, space *s)
{
    void *input = mixt__alloc(mixt_data_input_bytes(data, BATCH));
    mixt_status status = input ? MIXT_OK : no_memory();
    for (int64_t first = 0; status == MIXT_OK && first < s->samples; first += BATCH) {
        int64_t valid, count = s->samples - first < BATCH ? s->samples - first : BATCH;
        status = mixt_data_read(data, first, count, input, s->number + first, &valid);
        if (status == MIXT_OK)
            status = mixt_trainer_predict(trainer, input, count, s->vectors + first * 2 * s->width);
    }
    mixt__free(input);
    return status;
}

static mixt_status open_space(mixt_trainer *trainer, const mixt_data *data, space *s)
{
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t outputs;
    MIXT_TRY(check_data(info));
    MIXT_TRY(mixt_trainer_outputs(trainer, &outputs));
    *s = (space){.samples = info->samples, .width = outputs / 2, .captions = info->arrays[4].ids};
    int64_t room = s->samples > s->captions ? s->samples : s->captions;
    s->vectors = mixt__alloc((size_t)(s->samples * outputs) * sizeof *s->vectors);
    s->number = mixt__alloc((size_t)s->samples * sizeof *s->number);
    s->spoken = mixt__alloc((size_t)s->captions * sizeof *s->spoken);
    s->results = mixt__alloc((size_t)room * sizeof *s->results);
    if (!s->vectors || !s->number || !s->spoken || !s->results)
        return no_memory();
    MIXT_TRY(read_vectors(trainer, data, s));
    for (int64_t c = 0; c < s->captions; c++)
        s->spoken[c] = -1;
    for (int64_t i = s->samples; i-- > 0;)
        s->spoken[s->number[i]] = i;
    return MIXT_OK;
}

static double cosine(const space *s, int64_t picture, int64_t caption)
{
    const float *p = s->vectors + picture * 2 * s->width, *c = s->vectors + (2 * caption + 1) * s->width;
    double sum = 0;
    for (int64_t i = 0; i < s->width; i++)
        sum += (double)p[i] * (double)c[i];
    return sum;
}

/** The place of a picture's caption among all captions, from 0. */
static int64_t place_of_caption(const space *s, int64_t picture)
{
    int64_t ahead = 0;
    double own = cosine(s, picture, s->spoken[s->number[picture]]);
    for (int64_t c = 0; c < s->captions; c++)
        ahead += s->spoken[c] >= 0 && c != s->number[picture] && cosine(s, picture, s->spoken[c]) >= own;
    return ahead;
}

/** The place of the closest picture of a caption among all pictures, from 0. */
static int64_t place_of_picture(const space *s, int64_t caption)
{
    int64_t ahead = 0;
    double best = -2;
    for (int64_t i = 0; i < s->samples; i++) {
        double close = s->number[i] == caption ? cosine(s, i, s->spoken[caption]) : -2;
        best = close > best ? close : best;
    }
    for (int64_t i = 0; i < s->samples; i++)
        ahead += s->number[i] != caption && cosine(s, i, s->spoken[caption]) >= best;
    return ahead;
}

static void places_of_captions(void *argument, int64_t begin, int64_t end, int thread)
{
    space *s = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++)
        s->results[i] = place_of_caption(s, i);
}

static void places_of_pictures(void *argument, int64_t begin, int64_t end, int thread)
{
    space *s = argument;
    (void)thread;
    for (int64_t c = begin; c < end; c++)
        s->results[c] = s->spoken[c] < 0 ? -1 : place_of_picture(s, c);
}

/** The shares of results below each cut; those below 0 do not count. @return how many do */
static int64_t count_places(const space *s, int64_t count, double shares[MIXT_RECALL_CUTS])
{
    int64_t counted = 0, hits[MIXT_RECALL_CUTS] = {0};
    for (int64_t i = 0; i < count; i++) {
        counted += s->results[i] >= 0;
        for (int k = 0; k < MIXT_RECALL_CUTS; k++)
            hits[k] += s->results[i] >= 0 && s->results[i] < cuts[k];
    }
    for (int k = 0; k < MIXT_RECALL_CUTS; k++)
        shares[k] = counted ? (double)hits[k] / (double)counted : 0;
    return counted;
}

static mixt_status recall_of(mixt_trainer *trainer, const mixt_data *data, mixt_recall *recall)
{
    space s = {0};
    mixt_status status = open_space(trainer, data, &s);
    if (status == MIXT_OK) {
        mixt__parallel(s.samples, GRAIN, places_of_captions, &s);
        recall->pictures = count_places(&s, s.samples, recall->captions_found);
        mixt__parallel(s.captions, GRAIN, places_of_pictures, &s);
        recall->captions = count_places(&s, s.captions, recall->pictures_found);
    }
    close_space(&s);
    return status;
}

mixt_status mixt_pairs_recall(mixt_trainer *trainer, const mixt_data *data, mixt_recall *recall)
{
    MIXT_TRY(mixt__need(recall));
    *recall = (mixt_recall){0};
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(data, "data"));
    return mixt__context_note(trainer->context, recall_of(trainer, data, recall));
}

/* ---- the closest captions ---- */

/** Takes a caption into a list of the closest; the list is short. */
static void offer(mixt_match *matches, int64_t top, int64_t *found, int64_t caption, double close)
{
    int64_t at = *found;
    if (at == top && !(close > matches[top - 1].cosine))
        return;
    if (at == top)
        at--;
    else
        ++*found;
    for (; at > 0 && matches[at - 1].cosine < close; at--)
        matches[at] = matches[at - 1];
    matches[at] = (mixt_match){caption, close};
}

static mixt_status best_of(mixt_trainer *trainer, const mixt_data *data, int64_t first, int64_t count, int64_t top,
                           mixt_match *matches, int64_t *found)
{
    space s = {0};
    int64_t samples = mixt_data_describe(data)->samples;
    if (first < 0 || count < 0 || top < 1 || first + count > samples)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the closest %lld captions of images %lld to %lld: there are %lld",
                          (long long)top, (long long)first, (long long)(first + count - 1), (long long)samples);
    mixt_status status = open_space(trainer, data, &s);
    for (int64_t i = 0; status == MIXT_OK && i < count; i++) {
        *found = 0;
        for (int64_t c = 0; c < s.captions; c++)
            if (s.spoken[c] >= 0)
                offer(matches + i * top, top, found, c, cosine(&s, first + i, s.spoken[c]));
    }
    close_space(&s);
    return status;
}

mixt_status mixt_pairs_best(mixt_trainer *trainer, const mixt_data *data, int64_t first, int64_t count, int64_t top,
                            mixt_match *matches, int64_t *found)
{
    MIXT_TRY(mixt__need(found));
    *found = 0;
    MIXT_TRY(mixt__need(matches));
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__need_made(data, "data"));
    return mixt__context_note(trainer->context, best_of(trainer, data, first, count, top, matches, found));
}
