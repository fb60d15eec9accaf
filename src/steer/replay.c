/* Running the trainer over batches that it has seen. */
#include "steer/replay.h"

#include "policy/policy.h"
#include "steer/consensus.h"
#include "train/dist/rank0_first.h"
#include "train/engine.h"

mixt_status mixt__replay_from(mixt__replay *r, int64_t at)
{
    MIXT_TRY(mixt__snapshots_restore(r->ring, at));
    return r->fp32 ? mixt__trainer_drop_scale(r->ring->trainer) : MIXT_OK;
}

/** Batches may have been left out on the way. */
static mixt_status find_batch(void *user, int64_t update)
{
    const mixt__replay *r = user;
    const mixt__trace_row *row = mixt__trace_row_of(&r->ring->trace, update);
    if (row)
        mixt__trainer_seek(r->ring->trainer, row->batch);
    return MIXT_OK;
}

static mixt_status take(void *user, const mixt__made *made)
{
    mixt__replay *r = user;
    const mixt_step *step = &made->step;
    MIXT_TRY(mixt__trainer_stats_of(r->ring->trainer, step->step, &r->stats));
    MIXT_TRY(mixt__trace_mark_step(&r->ring->trace, r->ring->trainer, step->step, r->marks));
    r->updates++;
    r->row = (mixt__trace_row){.step = step->step, .loss = step->loss, .skipped = step->skipped};
    r->row.grad_norm = (float)step->grad_norm;
    r->row.lr = (float)step->lr;
    r->row.scale = (float)step->scale;
    r->row.batch = made->position;
    return MIXT_OK;
}

mixt_status mixt__replay_to(mixt__replay *r, int64_t step)
{
    mixt__engine engine = {.trainer = r->ring->trainer, .data = r->data, .at_once = true, .user = r};
    engine.before = find_batch;
    engine.made = take;
    return mixt__engine_make(&engine, step - mixt__trainer_steps(r->ring->trainer));
}

mixt_status mixt__replay_step(mixt__replay *r)
{
    return mixt__replay_to(r, mixt__trainer_steps(r->ring->trainer) + 1);
}

bool mixt__replay_same(const mixt__replay *r, int *rank)
{
    const mixt__trace *trace = &r->ring->trace;
    const mixt__trace_row *row = mixt__trace_row_of(trace, r->row.step);
    const mixt__trace_mark *marks = mixt__trace_marks_of(trace, r->row.step);
    int64_t others = 0;
    *rank = -1;
    for (int64_t i = trace->ranks - 1; marks && i >= 0; i--)
        if (marks[i].figures != r->marks[i].figures) {
            *rank = (int)i;
            others++;
        }
    *rank = others < trace->ranks ? *rank : -1;
    return !others && row &&
           mixt__trace_same(row, mixt__trace_stats_of(trace, row->step), &r->row, r->stats, trace->segments);
}

/** Bytes of a step's activations and workspace. */
static size_t bytes_of(const mixt__executable *step)
{
    return step->plan.arena_bytes + step->workspace_bytes;
}

/** Lets activations be computed again where FP32's would not fit. */
static mixt_status fit(mixt__trainer *t)
{
    mixt__executable *step;
    size_t room = mixt__device_available(mixt__trainer_device(t)) + bytes_of(mixt__trainer_compiled(t));
    MIXT_TRY(mixt__trainer_compile_step(t, NULL, &step));
    size_t need = bytes_of(step), workspace = step->workspace_bytes;
    mixt__executable_free(step);
    if (room > bytes_of(mixt__trainer_compiled(t)) && need > room && room > workspace)
        mixt__trainer_set_recompute(t, room - workspace);
    return MIXT_OK;
}

static mixt_status recompile(void *user)
{
    return mixt__trainer_recompile(user);
}

mixt_status mixt__replay_enter_fp32(mixt__replay *r)
{
    mixt__trainer *t = r->ring->trainer;
    r->settings = *mixt__trainer_settings_of(t);
    mixt__trainer_settings fp32 = r->settings;
    fp32.policy = mixt__policy_of(MIXT_DTYPE_FP32);
    fp32.scaling.enabled = fp32.scaling.dynamic = false;
    mixt__trainer_set(t, &fp32);
    mixt_status status = mixt__consensus_agree(t, fit(t));
    if (status == MIXT_OK) {
        mixt_status mine = mixt__rank0_first(mixt__ranks_group(t), mixt__trainer_device(t), recompile, t);
        r->fp32 = mine == MIXT_OK;
        status = mixt__consensus_agree(t, mine);
    }
    if (!r->fp32)
        mixt__trainer_set(t, &r->settings);
    return status;
}

mixt_status mixt__replay_leave_fp32(mixt__replay *r)
{
    mixt__trainer *t = r->ring->trainer;
    if (!r->fp32)
        return MIXT_OK;
    mixt__trainer_set(t, &r->settings);
    r->fp32 = false;
    return mixt__trainer_recompile(t); // what is timed was chosen when the run began
}
