/* What methods of texts and filters share. */
#ifndef MIXT_TEMPLATE_TEXT_METHODS_H
#define MIXT_TEMPLATE_TEXT_METHODS_H

#include "template/run.h"

typedef enum mixt__tpl_case {
    MIXT_TPL_UPPER,
    MIXT_TPL_LOWER,
    MIXT_TPL_CAPITALIZE, // the first letter
    MIXT_TPL_TITLE       // that of each word
} mixt__tpl_case;

/** A text in another case. Letters beyond ASCII that have one are refused: their rules are not known here. */
mixt_status mixt__tpl_change_case(mixt__tpl_run *run, const mixt__tpl_value *text, mixt__tpl_case to,
                                  mixt__tpl_value *result);
/** @param most how many are replaced; negative: all */
mixt_status mixt__tpl_replace(mixt__tpl_run *run, const mixt__tpl_value *text, const mixt__tpl_value *old,
                              const mixt__tpl_value *new, int64_t most, mixt__tpl_value *result);
/** str.splitlines. */
mixt_status mixt__tpl_lines(mixt__tpl_run *run, const mixt__tpl_value *text, bool keep_ends, mixt__tpl_value *list);

#endif
