/* What comparing and adopting share: names, folders, whether a folder is of the same work, and opening its runs. */
#ifndef MIXT_PROVE_PROVE_H
#define MIXT_PROVE_PROVE_H

#include "config/config.h"
#include "mixt/run.h"

/** Fails unless it is made of letters, digits, '.', '_' and '-', at most `longest` of them. */
mixt_status mixt__prove_check_name(const char *name, int longest);
/** Makes a folder that may be there already. */
mixt_status mixt__prove_make_folder(const char *path);
/** Fails: what lies in a folder is other work than was asked for, for `what` is `is` and was `was`. */
mixt_status mixt__prove_refuse(const char *folder, const char *what, const char *is, const char *was);
/** Says after a failure to read a folder's rows what can be done about damage; returns `status`. */
mixt_status mixt__prove_rows_advice(mixt_status status, const char *folder);
/** Fails where a configuration is another one than the file of a folder holds; `out` does not count.
 *  @param of behind the name of a key in the message: " of A" */
mixt_status mixt__prove_same_config(const char *folder, const char *path, const mixt_config *config, const char *of);
/** Fails where two runs saw other data, by the checksums that they wrote down; what is drawn with the seed of a run is
 *  not compared, nor what a run of an older version did not write down. @param a, @param b directories of runs */
mixt_status mixt__prove_same_data(const char *a, const char *b);
/** What to call a precision: a format's name, also where a policy file says no more than that one, else the name of the
 *  file without its folder and ending. Returns `name`. @param size of `name` */
const char *mixt__prove_precision(const char *precision, char *name, size_t size);
/** Opens the run of a folder anew, or where its newest checkpoint left it. What was ended before it had a configuration
 *  is nothing, and one that came to its end without its checkpoints is made again. @param options settings among them
 *  count for a new run only */
mixt_status mixt__prove_open_run(const mixt_config *config, const char *folder, const mixt_run_options *options,
                                 mixt_run **run);

#endif
