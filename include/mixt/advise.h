/* Advice before the training: which precision, loss scaling, clipping, batch and recomputation a configuration should
 * take on this machine or on one that is not at hand, and what holds its step back.
 *
 *   mixt_advice *advice;
 *   if (mixt_advise(config, &advice, .machine = "a100", .lose = 0.005) == MIXT_OK)
 *       puts(mixt_advice_choice(advice)->why);
 *   mixt_advice_free(advice);
 *
 * Memory is planned, to the byte. Times on this machine are measured in a short trial; those of an assumed machine come
 * from its profile and the FLOPs and bytes of each op, and say so ("modelled").
 */
#ifndef MIXT_ADVISE_H
#define MIXT_ADVISE_H

#include "mixt/config.h"
#include "mixt/plan.h"
#include "mixt/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- machines ---- */

/** A machine as a file describes it: a profile of profiles/, or one of your own. */
typedef struct mixt_machine mixt_machine;

typedef struct mixt_machine_info {
    const char *name;  /**< "h200" */
    const char *title; /**< "NVIDIA H200 SXM, 141 GB" */
    const char *kind;  /**< "gpu" or "cpu" */
    int capability;    /**< of a GPU: 10 × major + minor; 0 on a CPU */
    int cores;         /**< multiprocessors of a GPU, cores of a CPU */
    size_t memory;     /**< bytes */
    size_t reserved;   /**< of those, what driver and libraries take, or the system */
    double bytes_s;    /**< bytes a second of that memory at most */
    double launch;     /**< seconds that an op costs beside its work */
    double price;      /**< of an hour; NaN: not known */
    double flops[MIXT_DTYPE_COUNT];                  /**< a second at most, products in this format; 0: no units */
    double reach[MIXT_DTYPE_COUNT][MIXT_WORK_COUNT]; /**< share of `flops` that such work reaches */
    double reach_bytes[MIXT_WORK_COUNT];             /**< share of `bytes_s` that such work reaches */
} mixt_machine_info;

/** How many profiles are built in. */
int mixt_machine_count(void);
/** The name of one of them; NULL past the last. @param index from 0. */
const char *mixt_machine_name(int index);
/**
 * Opens a profile.
 * @param name one that is built in, one NAME.yaml of the folder MIXT_PROFILES, or the path of a file.
 * @param machine set to NULL on failure; free it with mixt_machine_free. Messages name file, line and column.
 */
mixt_status mixt_machine_open(const char *name, mixt_machine **machine);
/** NULL is allowed. */
void mixt_machine_free(mixt_machine *machine);
/** What it is; NULL where there is no such machine. Valid until it is freed. */
const mixt_machine_info *mixt_machine_describe(const mixt_machine *machine);
/** Where a figure comes from. @param figure a key of the file: "bandwidth". NULL: no such figure. */
const char *mixt_machine_source(const mixt_machine *machine, const char *figure);

#ifdef __cplusplus
}
#endif
#endif
