/* Which checkpoint a run goes on from: the newest that is whole, and of several ranks the same one. */
#include "run/resume.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/** Whether ranks will meet that check a share of the bytes each: the launcher says so, before the transport is there.
 */
static mixt_ranks expected(const mixt_run *run, const mixt_run_options *options)
{
    mixt_ranks alone = {.size = 1}, found = mixt_ranks_find();
    bool several = options->ranks && !options->plan_ranks && found.size > 1 &&
                   strcmp(mixt__config_string(run->config, MIXT_KEY_DIST_TRANSPORT), "none");
    for (const char *const *s = options->settings; s && *s; s++)
        several = several && strncmp(*s, "dist.transport=", 15); // to be on the safe side
    return several ? found : alone;
}

/** One with everything that a run goes on from. Its bytes may be those that were written and yet not be that: builds of
 * mixt before this check could leave keys out where memory was short. */
static mixt_status open_whole(mixt_run *run, const mixt_run_options *options, const char *path)
{
    mixt__resume *r = &run->resume;
    mixt_ranks ranks = expected(run, options);
    mixt__loop_state state;
    MIXT_TRY(mixt__checkpoint_open_share(path, ranks.rank, ranks.size, &r->checkpoint));
    const json_t *scalars = r->checkpoint->scalars, *loop = json_object_get(json_object_get(scalars, "run"), "loop");
    mixt_status status = mixt__trainer_scalars_check(scalars);
    if (status == MIXT_OK && json_object_get(scalars, "run")) // else a trainer's alone, which is refused later
        status = mixt__loop_state_unpack(loop, &state);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt__checkpoint_close(r->checkpoint);
    r->checkpoint = NULL;
    return mixt__fail_context(status, "checkpoint %s", path);
}

/** What is damaged gives way to the one before it. What cannot be read now may be whole: nothing is decided then. */
static mixt_status open_newest(mixt_run *run, const mixt_run_options *options, const char *folder, const int64_t *steps,
                               int64_t count)
{
    mixt__resume *r = &run->resume;
    char path[MIXT_CHECKPOINT_PATH];
    for (int64_t i = 0; i < count && !r->checkpoint; i++) {
        mixt__checkpoint_path(folder, steps[i], path);
        if (options->before && steps[i] >= options->before)
            snprintf(r->newer, sizeof r->newer, "%s", path);
        if ((options->before && steps[i] >= options->before) || (r->below && steps[i] >= r->below))
            continue;
        mixt_status status = open_whole(run, options, path);
        if (status == MIXT_OK)
            return MIXT_OK;
        if (status != MIXT_ERROR_FORMAT)
            return mixt__fail_context(status,
                                      "%s cannot be read now, but it may be intact (nothing was changed; try again, or "
                                      "move it away to resume from the one before)",
                                      path);
        snprintf(r->damage, sizeof r->damage, "%s: not used%s", mixt_error_text(),
                 i + 1 < count ? "; trying the checkpoint before it" : "");
        mixt__run_note(run, true, "%s", r->damage);
    }
    return MIXT_OK;
}

mixt_status mixt__resume_find(mixt_run *run, const mixt_run_options *options)
{
    mixt__resume *r = &run->resume;
    char folder[1100], path[MIXT_CHECKPOINT_PATH];
    int64_t *steps, count;
    snprintf(folder, sizeof folder, "%s/checkpoints", r->run);
    if (!r->looking)
        MIXT_TRY(mixt__checkpoints_own(folder)); // it will be written and removed there
    MIXT_TRY(mixt__checkpoints_list(folder, &steps, &count));
    mixt_status status = open_newest(run, options, folder, steps, count);
    mixt__free(steps);
    MIXT_TRY(status);
    if (options->before)
        return MIXT_OK; // from the beginning, where there is none
    if (count && !r->checkpoint)
        return mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: none of its %lld checkpoints is complete: there is nothing to resume from; start a new run", r->run,
            (long long)count);
    snprintf(path, sizeof path, "%s/model.safetensors", r->run);
    struct stat info;
    if (!count && !stat(path, &info)) // to begin anew would be to lose them
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: has its final weights but no checkpoint to resume from (train.checkpoint_every); to "
                          "train them further, start a new run with init=%s (nothing was changed)",
                          r->run, path);
    return MIXT_OK;
}

/* ---- one for all ranks ---- */

/** What a rank has found. */
typedef struct found {
    int64_t step; // -1: no checkpoint
    char damage[sizeof((mixt__resume *)0)->damage];
} found;

/** From a checkpoint of update number `step` at the latest, as if later ones were not there. */
static mixt_status open_before(mixt_run *run, const mixt_run_options *options, int64_t step)
{
    char folder[sizeof run->resume.run];
    memcpy(folder, run->resume.run, sizeof folder);
    mixt__resume_close(&run->resume);
    mixt_config_free(run->config);
    run->config = NULL;
    run->resume.below = step + 1;
    MIXT_TRY(mixt__resume_open(run, folder, options));
    run->experiment.update = run->resume.state.steps;
    return MIXT_OK;
}

/** The oldest that a rank has found. */
static int least(const found *all, int ranks, bool *same)
{
    int rank = 0;
    *same = true;
    for (int i = 1; i < ranks; i++) {
        *same = *same && all[i].step == all[0].step;
        rank = all[i].step < all[rank].step ? i : rank;
    }
    return rank;
}

static mixt_status agree(mixt_run *run, const mixt_run_options *options, found *all)
{
    mixt__group *g = run->group;
    for (bool same = false; !same;) {
        const mixt__resume *r = &run->resume;
        found mine = {.step = r->checkpoint ? r->state.steps : -1};
        memcpy(mine.damage, r->damage, sizeof mine.damage);
        MIXT_TRY(mixt__group_gather(g, &mine, sizeof mine, all, MIXT_PATIENCE)); // one may have had more to read
        const found *oldest = &all[least(all, g->size, &same)];
        if (!same && oldest->step < 0)
            return mixt__fail(MIXT_ERROR_FILE, "%s: rank %d finds no checkpoint there, another that of step %lld",
                              r->run, (int)(oldest - all), (long long)(all == oldest ? all[1].step : all[0].step));
        if (!same && !oldest->damage[0])
            return mixt__fail(MIXT_ERROR_FILE,
                              "%s: rank %d finds no checkpoint newer than that of step %lld, another one that is: all "
                              "must see the same folder",
                              r->run, (int)(oldest - all), (long long)oldest->step);
        mixt_status status = MIXT_OK;
        if (mine.step != oldest->step) {
            mixt__run_note(run, true, "%s", oldest->damage);
            status = open_before(run, options, oldest->step);
        }
        if (!same)
            MIXT_TRY(mixt__group_agree(g, status));
    }
    return MIXT_OK;
}

mixt_status mixt__resume_agree(mixt_run *run, const mixt_run_options *options)
{
    if (!run->resume.run[0])
        return MIXT_OK;
    found *all = mixt__alloc((size_t)run->group->size * sizeof *all);
    mixt_status status = all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare checkpoints");
    status = mixt__group_agree(run->group, status);
    if (status == MIXT_OK)
        status = agree(run, options, all);
    mixt__free(all);
    return status;
}
