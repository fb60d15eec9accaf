/* The loop's own state, as checkpoints and good states have it. */
#include "run/loop_inside.h"

#include "base/threads.h"

#include <math.h>

bool mixt__loop_out_of_patience(const mixt__loop *l)
{
    int64_t limit = mixt__config_int(l->run->config, MIXT_KEY_TRAIN_EARLY_STOP);
    return limit && l->since_best >= limit;
}

mixt__loop_state mixt__loop_state_of(const mixt__loop *l)
{
    const mixt_run_result *r = l->result;
    const mixt_step *last = &l->run->last;
    mixt__loop_state s = {
        .window = l->window, .usual = l->usual, .steps = r->steps, .samples = r->samples, .skipped = r->skipped};
    s.course = l->course;
    s.validations = r->validations;
    s.since_best = l->since_best;
    s.best_step = r->best_step;
    s.stuck = l->stuck;
    s.metrics_bytes = mixt__rows_length(&l->run->dir.metrics);
    s.events_bytes = mixt__rows_length(&l->run->dir.events);
    s.layers_bytes = mixt__rows_length(&l->run->dir.layers);
    s.pending = l->pending;
    s.epoch = last->epoch - 1;
    s.lr = last->lr;
    s.scale = last->scale;
    s.grad_norm = last->grad_norm;
    s.loss = r->loss;
    s.accuracy = r->accuracy;
    s.val_step = r->val_step;
    s.val_loss = r->val_loss;
    s.val_accuracy = r->val_accuracy;
    s.best_val_loss = r->best_val_loss;
    s.kept_val_loss = l->kept_loss;
    s.seconds = mixt__time_now() - l->run->started;
    s.step_seconds = r->step_seconds;
    s.energy = r->energy;
    return s;
}

void mixt__loop_go_on(mixt__loop *l, const mixt__loop_state *s)
{
    mixt_run_result *r = l->result;
    l->window = s->window;
    l->usual = s->usual;
    l->course = s->course;
    l->since_best = s->since_best;
    l->stuck = s->stuck;
    l->run->started -= s->seconds;
    l->issued = r->steps = s->steps;
    r->samples = s->samples;
    r->skipped = s->skipped;
    r->validations = s->validations;
    r->best_step = s->best_step;
    r->loss = s->loss;
    r->accuracy = s->accuracy;
    r->val_step = s->val_step;
    r->val_loss = s->val_loss;
    r->val_accuracy = s->val_accuracy;
    r->best_val_loss = s->best_val_loss;
    l->kept_loss = s->kept_val_loss;
    r->step_seconds = s->step_seconds;
    r->energy = s->energy;
    if (!isnan(s->energy))
        l->energy_start -= s->energy;
    r->stopped_early = mixt__loop_out_of_patience(l);
    l->pending = s->pending;
    l->run->last = (mixt_step){.step = s->steps, .epoch = s->epoch + 1, .lr = s->lr, .scale = s->scale};
    l->run->last.loss = s->loss;
    l->run->last.accuracy = s->accuracy;
    l->run->last.margin = NAN;
    l->run->last.grad_norm = s->grad_norm;
    l->stop = !l->pending && (r->stopped_early || r->steps >= l->e->total_steps);
}
