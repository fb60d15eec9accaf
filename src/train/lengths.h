/* A training step for each length of the data's buckets (data/buckets.h).
 *
 * The trainer's own step is as long as the data says. Each bucket that is shorter has a step compiled for it, over the
 * same parameters, gradients and moments and in the same memory, which is large enough for the largest of them. Which
 * one runs is the batch's to say. Without buckets there is the trainer's own step, and nothing here costs anything.
 */
#ifndef MIXT_TRAIN_LENGTHS_H
#define MIXT_TRAIN_LENGTHS_H

#include "train/trainer.h"

typedef struct mixt__length_steps mixt__length_steps; // train/trainer_inside.h

/** Takes the shapes of the data's buckets, before compile. */
void mixt__lengths_take(mixt__trainer *t, const mixt_data *data);
/** Whether the data has the buckets that the trainer was compiled for. */
bool mixt__lengths_match(const mixt__trainer *t, const mixt_data *data);
/** The same shapes for another number of samples. */
void mixt__lengths_resize(mixt__trainer *t, int64_t batch);

/** Compiles the steps of all buckets but the last beside `whole`, the trainer's own step that they share memory with,
 * and makes room there.
 *  @param instrument values to look at; NULL: none */
mixt_status mixt__lengths_compile(mixt__trainer *t, const mixt__instrument *instrument, mixt__executable *whole,
                                  mixt__length_steps *steps);
void mixt__lengths_free(mixt__length_steps *steps);
/** After the trainer's own step was given its memory: the others run in it too. */
void mixt__lengths_attach(mixt__trainer *t);

/** Buckets of the data; 0: all batches are as long as each other. */
int mixt__lengths_count(const mixt__trainer *t);
/** The shape of a bucket's batch, and the plain step that it runs. */
const mixt__batch_spec *mixt__lengths_spec_of(const mixt__trainer *t, int bucket);
const mixt__executable *mixt__lengths_step_of(const mixt__trainer *t, int bucket);

/** The coming passes are of this bucket. */
void mixt__lengths_select(mixt__trainer *t, int bucket);
/** The same of batches that are as long as the data says. */
void mixt__lengths_select_whole(mixt__trainer *t);
/** The step that the coming pass runs, instrumented or not. */
mixt__executable *mixt__lengths_step(const mixt__trainer *t);
/** After a step, in its turn: keeps what it was of. */
void mixt__lengths_note(mixt__trainer *t);
/** Elements of a step's batches by those of the longest, of the newest step or the one before; 1 without buckets. */
double mixt__lengths_share(const mixt__trainer *t, int64_t step);
/** The shape of its batch. */
const mixt__batch_spec *mixt__lengths_spec(const mixt__trainer *t);

#endif
