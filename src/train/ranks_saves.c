/* Whose business a checkpoint of several ranks is: everyone's, each its part, or rank 0's, to which all is brought. */
#include "train/sharded.h"

bool mixt__ranks_save_parts(const mixt__trainer *t)
{
    return t->ranks.save_parts && t->settings.ranks > 1 && (t->ranks.group || t->ranks.planned);
}

bool mixt__ranks_apart(const mixt__trainer *t)
{
    return mixt__ranks_sharded(t) || (t->ranks.group && t->ranks.compressor.feedback);
}

mixt_status mixt__ranks_collect(mixt__trainer *t, const mixt__ranks_own *own, float *const arenas[3], float *feedback)
{
    mixt__group *g = t->ranks.group;
    if (mixt__ranks_sharded(t))
        MIXT_TRY(mixt__sharded_collect(t, own, arenas));
    if (!t->ranks.compressor.feedback)
        return MIXT_OK;
    for (int64_t rank = 0; rank <= g->size; rank++)
        g->cuts[rank] = rank * t->params->total;
    return mixt__group_collect_parts(g, own ? own->feedback : t->ranks.compressor.feedback, feedback, g->cuts);
}
