/* What was measured, for the files of this folder: verify.c trains, lines.c turns measurements into verdicts. */
#ifndef MIXT_VERIFY_VERIFY_H
#define MIXT_VERIFY_VERIFY_H

#include "base/handles.h"
#include "config/config.h"
#include "mixt/verify.h"

/** What a file of a verification says that it is. */
#define MIXT_VERIFY_KIND "mixt verify"

struct mixt_verification {
    mixt__handle handle;
    mixt_config *config; // a copy; precision and seed are those of the newest run
    int64_t seeds, first_seed;
    char *precision, *model;
    mixt_verify_run (*runs)[MIXT_VERIFY_SIDES]; // by seed
    bool classes;                               // accuracy counts; else the loss
    bool validated;                             // there is a validation part
    bool host, fp16;                            // on the CPU; the policy may use FP16
    mixt_verify_line lines[MIXT_VERIFY_LINES];
};

/** Fills in the lines from the runs. */
void mixt__verify_judge(mixt_verification *v);

#endif
