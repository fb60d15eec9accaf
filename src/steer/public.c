/* Snapshots and diagnosis for those who make their own loop. */
#include "steer/diagnosis.h"

#include "api/api.h"

enum { EVERY_MAX = 100000 };

struct mixt_snapshots {
    mixt__handle handle;
    mixt_trainer *trainer;
    mixt_data *data;
    mixt__snapshots ring;
    mixt__diagnosis_words words; // of its newest diagnosis
};

static mixt_status make(mixt_snapshots *s, int64_t every)
{
    if (every < 1 || every > EVERY_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "snapshots every %lld updates: must be from 1 to %d", (long long)every,
                          EVERY_MAX);
    if (!mixt__trainer_compiled(s->trainer->inner))
        return mixt__fail(MIXT_ERROR_STATE, "compile the trainer first: mixt_trainer_compile(trainer, data)");
    MIXT_TRY(mixt__trainer_allocate(s->trainer->inner));
    MIXT_TRY(mixt__snapshots_open(&s->ring, s->trainer->inner, every));
    mixt_status status = mixt__snapshots_restart(&s->ring);
    if (status != MIXT_OK)
        mixt__snapshots_close(&s->ring);
    return status;
}

mixt_status mixt_snapshots_new(mixt_trainer *trainer, mixt_data *data, int64_t every, mixt_snapshots **snapshots)
{
    MIXT_TRY(mixt__need(snapshots));
    *snapshots = NULL;
    MIXT_TRY(mixt__need_made(trainer, "trainer"));
    MIXT_TRY(mixt__context_note(trainer->context, mixt__need_made(data, "data")));
    mixt_snapshots *s = mixt__alloc(sizeof *s);
    if (!s)
        return mixt__context_note(trainer->context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for snapshots"));
    s->trainer = trainer;
    s->data = data;
    mixt_status status = make(s, every);
    if (status != MIXT_OK) {
        mixt__free(s);
        return mixt__context_note(trainer->context, status);
    }
    mixt__handle_add(&s->handle, s, "snapshots", NULL);
    *snapshots = s;
    return MIXT_OK;
}

void mixt_snapshots_free(mixt_snapshots *s)
{
    if (!s || mixt__need_open(s, "snapshots") != MIXT_OK)
        return;
    mixt__handle_remove(s);
    mixt__snapshots_close(&s->ring);
    mixt__free(s);
}

mixt_status mixt_snapshots_note(mixt_snapshots *s, const mixt_step *step, bool calm)
{
    MIXT_TRY(mixt__need_open(s, "snapshots"));
    MIXT_TRY(mixt__need_in(s->trainer->context, step));
    mixt_status status = mixt__snapshots_add(&s->ring, step);
    if (status == MIXT_OK && calm && step->step % s->ring.every == 0 &&
        step->step == mixt__trainer_steps(s->trainer->inner))
        status = mixt__snapshots_take(&s->ring);
    return mixt__context_note(s->trainer->context, status);
}

mixt_status mixt_snapshots_diagnose(mixt_snapshots *s, mixt_cause symptom, mixt_diagnosis *diagnosis)
{
    MIXT_TRY(mixt__need_open(s, "snapshots"));
    MIXT_TRY(mixt__need_in(s->trainer->context, diagnosis));
    mixt__diagnose_request request = {.ring = &s->ring, .data = s->data, .symptom = symptom, .words = &s->words};
    return mixt__context_note(s->trainer->context, mixt__diagnose(&request, diagnosis));
}
