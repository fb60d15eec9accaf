/* Policies that keep some layers in FP32: those that a lower format does not make faster, and those that cannot bear
 * it. */
#ifndef MIXT_CHOOSE_BY_LAYER_H
#define MIXT_CHOOSE_BY_LAYER_H

#include "choose/advice.h"

/**
 * The low format but for layers whose ops take as long in it as in FP32, casts included, by the model.
 * @param policy set to NULL where there are no such layers, or no others.
 * @param layers how many stay in FP32.
 */
mixt_status mixt__by_layer_faster(const mixt_advice *advice, mixt_run *run, const mixt__contender *fp32,
                                  const mixt__contender *low, mixt_policy **policy, int64_t *layers);

/** The same for layers that the sensitivity analysis, at the weights that training begins with, wants in FP32. */
mixt_status mixt__by_layer_bearable(mixt_run *run, const mixt__contender *fp32, const mixt__contender *low,
                                    mixt_policy **policy, int64_t *layers);

#endif
