/* Whose business a checkpoint of several ranks is: everyone's, each its part, or rank 0's, to which all is brought. */
#include "train/dist/feedback.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

bool mixt__ranks_save_parts(const mixt__trainer *t)
{
    return t->ranks.save_parts && t->settings.ranks > 1 && (t->ranks.group || t->ranks.planned);
}

bool mixt__ranks_discrete(const mixt__trainer *t)
{
    return mixt__ranks_sharded(t) || (t->ranks.group && t->ranks.local.feedback);
}

mixt_status mixt__ranks_collect(mixt__trainer *t, const mixt__ranks_own *own, char *const *roles, float *feedback)
{
    if (mixt__ranks_sharded(t))
        MIXT_TRY(mixt__sharded_collect(t, own, roles));
    return t->ranks.local.feedback ? mixt__feedback_collect(t, own, feedback) : MIXT_OK;
}
