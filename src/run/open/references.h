/* Scores of the reference, where preferences are learned: how much likelier the model that a run begins with, its
 * adapters off, finds the chosen answer of each pair. They are made once, before the first update, and kept in
 * reference.safetensors of the run directory with their checksum, so that the reference needs no memory in training.
 */
#ifndef MIXT_RUN_REFERENCES_H
#define MIXT_RUN_REFERENCES_H

#include "run/run.h"

#define MIXT_REFERENCES_FILE "reference.safetensors"

/** Gives the data of a run that is about to be trained their scores: makes and keeps them, or reads them where it is
 *  resumed. Nothing where the data are not pairs. */
mixt_status mixt__references_take(mixt_run *run);
/** The same for a part that a trained run is evaluated on. */
mixt_status mixt__references_for(mixt_run *run, const char *split, mixt_data *data);

#endif
