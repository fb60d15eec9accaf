/* A look into a step, printed: for people, and as JSON. */
#ifndef MIXT_CLI_DEBUG_PRINT_H
#define MIXT_CLI_DEBUG_PRINT_H

#include <mixt/debug.h>

#include <stdio.h>

/** @param layer a glob of the layers whose values are shown; NULL: a choice of all
 *  @param checkpoint where the run went on from; "": from its beginning */
void cli_debug_text(const mixt_debug *debug, const char *layer, const char *checkpoint, FILE *stream);
/** One object. @param layer as above; NULL: all values */
void cli_debug_json(const mixt_debug *debug, const char *layer, const char *checkpoint, FILE *stream);

#endif
