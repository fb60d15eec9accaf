/* Training some parameters and not others, or not all alike. */
#ifndef MIXT_TRAIN_FINETUNE_H
#define MIXT_TRAIN_FINETUNE_H

#include "model/model.h"
#include "runtime/params.h"

/** Marks the parameters that a list of globs names (base/globs.h; NULL: none) as frozen. A batch norm whose running
 * mean is among them normalises with its running statistics, and does not change them. Fails when a glob matches
 * nothing or nothing is left to train. Of a model with adapters (model/lora.h) all is frozen but for these and what is
 * trained beside, and a list is refused.
 * @param format that they are kept in where all that reads them takes it with its scales: weights of linear layers and
 * of embeddings, and it fails when none of them is one. NONE: the format in which each is read */
mixt_status mixt__freeze(mixt__graph *graph, const char *list, mixt_dtype format);

/** Fails, naming it, where an adapter, or what is trained beside, would stay as it is: nothing writes its gradient. */
mixt_status mixt__adapters_check(const mixt__graph *graph);

/** Sets factors of the learning rate and weight decays of segments; a decay only where there is one at all. */
mixt_status mixt__groups_apply(mixt__params *params, const char *lr_groups, const char *decay_groups);

/** Gives parameters the values that the model's file says, over what was drawn. */
mixt_status mixt__trainer_begin_with(mixt__params *params, const mixt__model *model);

#endif
