/* The teacher of an experiment: the trained model that distill.teacher names, opened, held against the data, and put
 * into the training step.
 *
 * It lives as long as the experiment: its file stays open, so that a step that is compiled anew can be given its
 * parameters again.
 */
#ifndef MIXT_RUN_TEACHER_H
#define MIXT_RUN_TEACHER_H

#include "run/open/experiment.h"
#include "store/weights.h"

/** Opens what the configuration names. @param distillation NULL where it names none */
mixt_status mixt__distillation_open(const mixt_config *config, mixt__distillation **distillation);
/** What the teacher's own samples were like, for a set that is to be like it; NULL: nobody knows. */
const mixt_data *mixt__distillation_facts(const mixt__distillation *distillation);
/** Holds the teacher against the experiment's data, opens its parameters, and makes it the teacher of `model`. */
mixt_status mixt__distillation_fit(mixt__experiment *e, mixt__model *model);
/** What is doubtful about the file of its weights, once it is fitted: a line for people; "": nothing. */
void mixt__distillation_warning(const mixt__distillation *distillation, char warning[MIXT_WEIGHTS_WARNING]);
/** Hands it to the trainer of that model: before it is compiled. */
void mixt__distillation_attach(mixt__distillation *distillation, mixt__trainer *trainer);
/** NULL is allowed. */
void mixt__distillation_close(mixt__distillation *distillation);

#endif
