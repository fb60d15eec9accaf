/* A machine as a profile describes it, opened; and the one at hand in the same words. */
#ifndef MIXT_MACHINE_MACHINE_H
#define MIXT_MACHINE_MACHINE_H

#include "base/handles.h"
#include "backend/backend.h"
#include "mixt/advise.h"

enum { MIXT_MACHINE_SOURCES = 16 };

struct mixt_machine {
    mixt__handle handle;
    mixt_machine_info info;
    struct {
        const char *figure, *text;
    } sources[MIXT_MACHINE_SOURCES];
    int source_count;
    mixt__arena arena; // of the texts
};

/** Reads a profile from a text; `name` is what messages call it. */
mixt_status mixt__machine_parse(const char *text, size_t size, const char *name, mixt_machine **machine);

/** The machine at hand in the words of a profile: a GPU by what it says of itself, a CPU by the built-in profile of its
 *  instruction set, scaled to the cores in use. What kernels reach is the built-in profile's. */
mixt_status mixt__machine_here(mixt__device *device, mixt_machine **machine);

enum { MIXT_PICK_TEXT = 160 };
/** What mixt_precision_pick answers, for a device that is open. */
mixt_status mixt__precision_pick(mixt__device *device, mixt_dtype *format, char why[MIXT_PICK_TEXT]);

/** Whether the machine multiplies in this format. */
bool mixt__machine_has(const mixt_machine *machine, mixt_dtype format);

#endif
