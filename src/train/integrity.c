/* Sums of the state: their memory, when they are made and compared, and what is said where they differ. */
#include "train/integrity.h"

#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE = 64 };

static const char *const names[] = {
    [MIXT_SUMMED_WEIGHT] = "weights",         [MIXT_SUMMED_MOMENT1] = "first moments",
    [MIXT_SUMMED_MOMENT2] = "second moments", [MIXT_SUMMED_COPY] = "working copy",
    [MIXT_DAMAGED_CONTROL] = "control block", [MIXT_DAMAGED_STATE] = "running statistics",
    [MIXT_DAMAGED_FROZEN] = "frozen weights", [MIXT_DAMAGED_TEACHER] = "teacher's weights",
};

/* ---- memory ---- */

bool mixt__integrity_possible(const mixt__device *device)
{
    return device->backend->sum_segments != NULL;
}

static bool is_on(const mixt__trainer *t)
{
    return !t->settings.no_integrity && mixt__integrity_possible(t->device);
}

/** Whether the weights are those of the last update when the next one reads them: ranks that compress change them in
 *  between. */
static bool is_summed(const mixt__trainer *t)
{
    return t->integrity.memory && t->ranks.local.compression.kind == MIXT_COMPRESS_NONE;
}

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/** Memory of one parameter that no update writes: where it is kept, its scales, a copy beside it. @param blocks NULL:
 *  they are only counted */
static int64_t list_frozen(const mixt__params *p, int32_t i, mixt__still_block *blocks)
{
    int64_t count = 0, scales = 0;
    mixt_dtype home = p->frozen.home[i], low = p->copies[i].dtype;
    mixt__still_block block = {.what = MIXT_DAMAGED_FROZEN, .param = i};
    bool copied = low != MIXT_DTYPE_NONE && low != home;
    if (!blocks)
        return 2 + copied;
    block.data = mixt__frozen_place(p, i, NULL);
    block.bytes = (int64_t)mixt__format_bytes(home, p->table[i].count);
    blocks[count++] = block;
    block.data = mixt__frozen_scales(p, i, &scales);
    block.bytes = scales * (int64_t)sizeof(float);
    blocks[count++] = block;
    if (copied) {
        block.data = mixt__role_at(&p->roles[MIXT_PARAM_COPY + (int)low], p->copies[i].offset);
        block.bytes = p->table[i].count * (int64_t)mixt_dtype_size(low);
        blocks[count++] = block;
    }
    return count;
}

static int64_t list_fixed(const mixt__params *p, int64_t i, mixt__still_block *blocks)
{
    int64_t count = 0;
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        if (p->fixed[i].offset[d] < 0)
            continue;
        if (blocks)
            blocks[count] =
                (mixt__still_block){.data = p->fixed_block + p->fixed[i].offset[d],
                                    .bytes = p->table[p->count + i].count * (int64_t)mixt_dtype_size((mixt_dtype)d),
                                    .what = MIXT_DAMAGED_TEACHER,
                                    .param = (int32_t)(p->count + i)};
        count++;
    }
    return count;
}

static int64_t list_blocks(const mixt__params *p, mixt__still_block *blocks)
{
    int64_t count = 0;
    for (int32_t i = 0; i < p->count; i++)
        if (mixt__params_is_frozen(p, i))
            count += list_frozen(p, i, blocks ? blocks + count : NULL);
    for (int64_t i = 0; i < p->fixed_count; i++)
        count += list_fixed(p, i, blocks ? blocks + count : NULL);
    return count;
}

static size_t sums_bytes(const mixt__trainer *t)
{
    return lines((size_t)t->params->segment_count * sizeof(mixt__segment_sums));
}

size_t mixt__integrity_bytes(const mixt__trainer *t)
{
    size_t blocks = (size_t)list_blocks(t->params, NULL) * sizeof(mixt__still_block);
    return is_on(t) ? 2 * sums_bytes(t) + lines(sizeof(mixt__damage)) + lines(blocks) : 0;
}

void mixt__integrity_release(mixt__trainer *t)
{
    bool told = t->integrity.told;
    if (t->integrity.memory)
        mixt__device_free(t->device, t->integrity.memory);
    t->integrity = (mixt__integrity){.told = told};
}

mixt_status mixt__integrity_take(mixt__trainer *t)
{
    mixt__integrity *g = &t->integrity;
    size_t bytes = mixt__integrity_bytes(t);
    mixt__integrity_release(t);
    if (!bytes)
        return MIXT_OK;
    g->memory = mixt__device_alloc(t->device, bytes);
    if (!g->memory)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the sums of the state");
    g->sums[0] = (mixt__segment_sums *)(void *)g->memory;
    g->sums[1] = (mixt__segment_sums *)(void *)(g->memory + sums_bytes(t));
    g->damage = (mixt__damage *)(void *)(g->memory + 2 * sums_bytes(t));
    g->blocks = (mixt__still_block *)(void *)(g->memory + 2 * sums_bytes(t) + lines(sizeof *g->damage));
    g->block_count = list_blocks(t->params, NULL);
    mixt__integrity_renew_later(t);
    return mixt__device_zero(t->device, g->memory, bytes);
}

void mixt__integrity_fill(mixt__trainer *t)
{
    const mixt__integrity *g = &t->integrity;
    t->update.damage = g->damage;
    for (int i = 0; i < 2; i++)
        t->update.sums[i] = is_summed(t) ? g->sums[i] : NULL;
    mixt__integrity_renew_later(t);
}

/* ---- around an update ---- */

static mixt_status sum_group(void *user, const mixt__update *own, int64_t group)
{
    (void)group;
    return own->segment_count ? mixt__device_sum_segments(((mixt__trainer *)user)->device, own) : MIXT_OK;
}

static mixt_status read_group(void *user, const mixt__update *own, int64_t group)
{
    (void)group;
    return own->segment_count ? mixt__device_check_segments(((mixt__trainer *)user)->device, own) : MIXT_OK;
}

/** Of all segments that this rank updates. */
static mixt_status sum_segments(mixt__trainer *t)
{
    if (!is_summed(t))
        return MIXT_OK;
    return mixt__ranks_sharded(t) ? mixt__sharded_each(t, &t->update, sum_group, t)
                                  : mixt__device_sum_segments(t->device, &t->update);
}

static mixt_status make_blocks(mixt__trainer *t)
{
    mixt__integrity *g = &t->integrity;
    size_t bytes = (size_t)g->block_count * sizeof *g->blocks;
    mixt__still_block *blocks = bytes ? mixt__alloc(bytes) : NULL;
    if (!bytes)
        return MIXT_OK;
    if (!blocks)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the sums of frozen parameters");
    (void)list_blocks(t->params, blocks);
    mixt_status status = mixt__device_upload(t->device, g->blocks, blocks, bytes);
    mixt__free(blocks);
    return status == MIXT_OK ? mixt__device_sum_blocks(t->device, g->blocks, g->block_count, NULL) : status;
}

void mixt__integrity_renew_later(mixt__trainer *t)
{
    t->integrity.stale = true;
    t->integrity.found = false;
    t->integrity.known = 0;
}

/** Whether values were written since the sums were made. */
static bool is_stale(const mixt__trainer *t)
{
    return t->integrity.stale || t->integrity.written != t->params->written;
}

mixt_status mixt__integrity_renew(mixt__trainer *t)
{
    mixt__integrity *g = &t->integrity;
    if (!g->memory || !is_stale(t))
        return MIXT_OK;
    mixt__integrity_renew_later(t);
    MIXT_TRY(mixt__device_zero(t->device, g->damage, sizeof *g->damage));
    MIXT_TRY(sum_segments(t));
    MIXT_TRY(make_blocks(t));
    g->stale = false;
    g->written = t->params->written;
    return MIXT_OK;
}

static bool is_due(const mixt__trainer *t)
{
    return t->settings.integrity_every > 0 && t->attempts % t->settings.integrity_every == 0;
}

mixt_status mixt__integrity_begin(mixt__trainer *t)
{
    mixt__integrity *g = &t->integrity;
    if (!g->memory)
        return MIXT_OK;
    MIXT_TRY(mixt__integrity_renew(t));
    if (t->update.statistics_count)
        MIXT_TRY(mixt__device_check_statistics(t->device, &t->update));
    return g->block_count && is_due(t) ? mixt__device_sum_blocks(t->device, g->blocks, g->block_count, g->damage)
                                       : MIXT_OK;
}

mixt_status mixt__integrity_read(mixt__trainer *t, const mixt__update *update)
{
    if (!is_summed(t))
        return MIXT_OK;
    return mixt__ranks_sharded(t) ? mixt__sharded_each(t, update, read_group, t)
                                  : mixt__device_check_segments(t->device, update);
}

mixt_status mixt__integrity_judge(mixt__trainer *t, const mixt__update *update)
{
    mixt__update own = *update;
    const mixt__ranks *r = &t->ranks;
    if (!is_summed(t))
        return MIXT_OK;
    if (mixt__ranks_sharded(t)) {
        own.segments = r->shards.own;
        own.segment_count = r->shards.own_first[r->shards.owners.groups];
    }
    return mixt__device_judge_sums(t->device, &own);
}

mixt_status mixt__integrity_report(mixt__trainer *t)
{
    mixt__damage *told = &mixt__feed_result(&t->feed)->damage;
    return t->integrity.memory ? mixt__device_copy(t->device, told, t->integrity.damage, sizeof *told) : MIXT_OK;
}

/* ---- what was found ---- */

/** The running statistic with this element. */
static int32_t state_at(const mixt__params *p, int64_t element)
{
    for (int64_t i = 0; i < p->count; i++)
        if (p->state_offset[i] >= 0 && element >= p->state_offset[i] &&
            element < p->state_offset[i] + p->table[i].count)
            return (int32_t)i;
    return -1;
}

/** The parameter to name; -1: none. */
static int32_t param_of(const mixt__trainer *t, const mixt__damage *d)
{
    const mixt__params *p = t->params;
    mixt__still_block block;
    if (d->what < MIXT_SUMMED)
        return mixt__ranks_sharded(t) ? t->ranks.shards.own[d->which].param : p->segments[d->which].param;
    if (d->what == MIXT_DAMAGED_STATE)
        return state_at(p, d->which);
    bool known = d->what != MIXT_DAMAGED_CONTROL &&
                 mixt__device_download(t->device, &block, &t->integrity.blocks[d->which], sizeof block) == MIXT_OK;
    return known ? block.param : -1;
}

/** @param rank -1: there is one */
static void describe(mixt__trainer *t, const mixt__integrity_word *w, int rank)
{
    mixt__integrity_finding *f = &t->integrity.finding;
    char of[160] = "", on[32] = "";
    *f = (mixt__integrity_finding){
        .step = w->step, .rank = rank, .what = names[w->kind], .kind = (mixt__damaged)w->kind};
    snprintf(f->parameter, sizeof f->parameter, "%s", w->param >= 0 ? t->params->table[w->param].name : "");
    if (w->param >= 0)
        snprintf(of, sizeof of, " of '%s'", f->parameter);
    if (rank >= 0)
        snprintf(on, sizeof on, " on rank %d", rank);
    snprintf(f->text, sizeof f->text,
             "hardware: update %lld found the %s%s changed in memory%s since %s written: a bit has flipped, or a "
             "program wrote to the wrong place",
             (long long)w->step, f->what, of, on, w->kind == MIXT_DAMAGED_STATE ? "they were" : "it was");
    t->integrity.word = *w;
    t->integrity.found = true;
}

static int rank_of(const mixt__trainer *t)
{
    return t->ranks.group ? t->ranks.group->rank : -1;
}

mixt_status mixt__integrity_take_in(mixt__trainer *t, int64_t step, const mixt__damage *damage)
{
    mixt__integrity *g = &t->integrity;
    g->read = step;
    if (!g->memory || !damage->found || is_stale(t))
        return MIXT_OK;
    if (!g->found)
        describe(t, &(mixt__integrity_word){step, damage->what, param_of(t, damage)}, rank_of(t));
    return g->told ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s; resume from the last checkpoint", g->finding.text);
}

mixt_status mixt__integrity_look(mixt__trainer *t, int64_t step)
{
    mixt__damage damage = {0};
    if (t->integrity.memory && !t->integrity.stale)
        MIXT_TRY(mixt__device_download(t->device, &damage, t->integrity.damage, sizeof damage));
    return mixt__integrity_take_in(t, step, &damage);
}

/* ---- over ranks ---- */

mixt__integrity_word mixt__integrity_tell(const mixt__trainer *t)
{
    return t->integrity.found ? t->integrity.word : (mixt__integrity_word){0};
}

void mixt__integrity_hear(mixt__trainer *t, const mixt__integrity_word *words, size_t apart, int ranks, bool now)
{
    for (int rank = 0; rank < ranks && !t->integrity.known; rank++) {
        const mixt__integrity_word *w =
            (const mixt__integrity_word *)(const void *)((const char *)(const void *)words + (size_t)rank * apart);
        if (!w->step)
            continue;
        describe(t, w, rank);
        t->integrity.known = now ? t->integrity.read : t->attempts;
    }
}

const mixt__integrity_finding *mixt__trainer_damage(const mixt__trainer *t)
{
    const mixt__integrity *g = &t->integrity;
    bool known = !t->ranks.group || (g->known && g->read >= g->known);
    return g->found && known ? &g->finding : NULL;
}

void mixt__trainer_tell_damage(mixt__trainer *t)
{
    t->integrity.told = true;
}

/* ---- what no snapshot has ---- */

mixt_status mixt__integrity_keep_frozen(mixt__trainer *t, const char *folder)
{
    mixt__checkpoint_file unused[1];
    int64_t count = 0;
    if (!t->integrity.memory || !mixt__params_have_frozen(t->params))
        return MIXT_OK;
    if (mkdir(folder, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", folder, strerror(errno));
    return mixt__frozen_file_add(t->params, folder, &t->frozen_file, unused, &count);
}

mixt_status mixt__integrity_heal(mixt__trainer *t)
{
    int kind = (int)t->integrity.finding.kind;
    if (kind == MIXT_DAMAGED_FROZEN)
        return mixt__frozen_file_restore(t->params, &t->frozen_file);
    return kind == MIXT_DAMAGED_TEACHER ? t->teacher.load(t->teacher.user, t->params) : MIXT_OK;
}

/* ---- all of it ---- */

/** What was written last, on the host. */
static mixt_status download_sums(const mixt__trainer *t, mixt__segment_sums *sums)
{
    mixt__control control;
    MIXT_TRY(mixt__device_download(t->device, &control, t->control, sizeof control));
    return mixt__device_download(t->device, sums, t->integrity.sums[control.step & 1],
                                 (size_t)t->params->segment_count * sizeof *sums);
}

/** Puts what was written back, where reading it has found something else: it is found again whoever reads it. */
static mixt_status compare_sums(mixt__trainer *t, const mixt__segment_sums *then, const mixt__segment_sums *now)
{
    mixt__damage found = {0};
    for (int64_t s = 0; s < t->params->segment_count; s++)
        for (int i = 0; i < MIXT_SUMMED; i++)
            if (then[s].words[i] != now[s].words[i])
                found = found.found ? found : (mixt__damage){1, i, (int32_t)s};
    if (!found.found)
        return MIXT_OK;
    mixt__control control;
    MIXT_TRY(mixt__device_download(t->device, &control, t->control, sizeof control));
    MIXT_TRY(mixt__device_upload(t->device, t->integrity.sums[control.step & 1], then,
                                 (size_t)t->params->segment_count * sizeof *then));
    return mixt__integrity_take_in(t, t->attempts, &found);
}

static mixt_status verify_segments(mixt__trainer *t)
{
    size_t count = (size_t)t->params->segment_count;
    mixt__segment_sums *sums = mixt__alloc((2 * count + 1) * sizeof *sums);
    mixt_status status = sums ? download_sums(t, sums) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for sums");
    if (status == MIXT_OK)
        status = sum_segments(t);
    if (status == MIXT_OK)
        status = download_sums(t, sums + count);
    if (status == MIXT_OK)
        status = compare_sums(t, sums, sums + count);
    mixt__free(sums);
    return status;
}

static mixt_status damaged(const mixt__trainer *t)
{
    return mixt__fail(MIXT_ERROR_DATA, "%s: this state is not saved", t->integrity.finding.text);
}

/** Who goes on from a damaged control block goes on with other bits. */
static mixt_status verify_control(mixt__trainer *t)
{
    mixt__control control;
    MIXT_TRY(mixt__device_download(t->device, &control, t->control, sizeof control));
    mixt__control sealed = control;
    mixt__control_seal(&sealed);
    bool right = sealed.sum == control.sum;
    return right ? MIXT_OK : mixt__integrity_take_in(t, t->attempts, &(mixt__damage){1, MIXT_DAMAGED_CONTROL, -1});
}

mixt_status mixt__integrity_verify(mixt__trainer *t)
{
    mixt__integrity *g = &t->integrity;
    if (!g->memory)
        return MIXT_OK;
    MIXT_TRY(mixt__device_synchronize(t->device));
    MIXT_TRY(mixt__integrity_renew(t));
    MIXT_TRY(mixt__integrity_look(t, t->attempts)); // whether an update has found something that nobody heard of
    if (!g->found)
        MIXT_TRY(verify_control(t));
    if (!g->found && is_summed(t))
        MIXT_TRY(verify_segments(t));
    if (!g->found && t->update.statistics_count && !t->hand_gradients)
        MIXT_TRY(mixt__device_check_statistics(t->device, &t->update));
    if (!g->found && g->block_count)
        MIXT_TRY(mixt__device_sum_blocks(t->device, g->blocks, g->block_count, g->damage));
    MIXT_TRY(mixt__integrity_look(t, t->attempts));
    return g->found ? damaged(t) : MIXT_OK;
}

mixt_status mixt__integrity_words_read(mixt__trainer *t, mixt__integrity_words *words)
{
    *words = (mixt__integrity_words){0};
    if (!is_summed(t) || is_stale(t) || mixt__ranks_sharded(t)) // segments are of slices then
        return MIXT_OK;
    words->sums = mixt__alloc((size_t)(t->params->segment_count + 1) * sizeof *words->sums);
    if (!words->sums)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for sums");
    mixt_status status = download_sums(t, words->sums);
    if (status != MIXT_OK)
        mixt__integrity_words_free(words);
    return status;
}

bool mixt__integrity_words_of(const mixt__trainer *t, const mixt__integrity_words *words, int role, int32_t param,
                              uint64_t *sum)
{
    static const int summed[MIXT_PARAM_ROLES] = {[MIXT_PARAM_WEIGHT] = 1 + MIXT_SUMMED_WEIGHT,
                                                 [MIXT_PARAM_MOMENT1] = 1 + MIXT_SUMMED_MOMENT1,
                                                 [MIXT_PARAM_MOMENT2] = 1 + MIXT_SUMMED_MOMENT2};
    int32_t segment = t->params->segment_of[param];
    bool apart = t->params->codes.begin[0] && role != MIXT_PARAM_WEIGHT; // codes and scales have one sum
    if (!words->sums || segment < 0 || !summed[role] || apart)
        return false;
    *sum = words->sums[segment].words[summed[role] - 1];
    return true;
}

void mixt__integrity_words_free(mixt__integrity_words *words)
{
    mixt__free(words->sums);
    words->sums = NULL;
}

mixt_status mixt__trainer_put_control(mixt__trainer *t, mixt__control *control)
{
    mixt__control_seal(control);
    return mixt__device_upload(t->device, t->control, control, sizeof *control);
}
