/* A trainer that makes updates together with others, over what the caller has. */
#include "api/api.h"

#include "mixt/ranks.h"

enum { BUCKET = 1 << 20 }; // elements that are under way at once: dist.bucket of a run

static mixt_status join(mixt__trainer *t, const mixt_communicator *c, double seconds)
{
    mixt__group *group = mixt__ranks_group(t);
    if (mixt__trainer_compiled(t) || group)
        return mixt__fail(MIXT_ERROR_STATE,
                          group ? "the trainer has joined others already"
                                : "join before the trainer is compiled: its memory is allocated already");
    if (!c->exchange || c->size < 2 || c->rank < 0 || c->rank >= c->size)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "a communicator needs an exchange, two ranks or more, and a rank among "
                          "them; this has rank %d of %d",
                          c->rank, c->size);
    if (c->size != mixt__trainer_settings_of(t)->ranks)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the communicator has %d ranks, the trainer is made for %lld", c->size,
                          (long long)mixt__trainer_settings_of(t)->ranks);
    if (!(seconds > 0))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%g seconds: must be above 0", seconds);
    MIXT_TRY(mixt__group_open_own(c, seconds, &group));
    mixt__ranks_join_take(t, group, BUCKET);
    return MIXT_OK;
}

mixt_status mixt_trainer_join(mixt_trainer *t, const mixt_communicator *communicator, double seconds)
{
    MIXT_TRY(mixt__need_made(t, "trainer"));
    MIXT_TRY(mixt__need_in(t->context, communicator));
    return mixt__context_note(t->context, join(t->inner, communicator, seconds));
}
