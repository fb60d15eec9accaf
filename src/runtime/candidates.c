/* Reading MIXT_CANDIDATE. */
#include "runtime/candidates.h"

#include "base/env.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

const char *mixt__candidate_forced(const char *op, char *name, size_t size)
{
    const char *text = mixt__env_get(MIXT_ENV_CANDIDATE);
    size_t op_length = strlen(op);
    while (*text) {
        size_t length = strcspn(text, ",");
        if (length > op_length + 1 && !strncmp(text, op, op_length) && text[op_length] == '=') {
            size_t n = length - op_length - 1;
            if (n >= size)
                n = size - 1;
            memcpy(name, text + op_length + 1, n);
            name[n] = '\0';
            return name;
        }
        text += length + (text[length] == ',');
    }
    return NULL;
}

/** One pair, which is changed on the way. */
static mixt_status check_pair(mixt__device *device, char *pair)
{
    char known[256] = "";
    char *kernel = strchr(pair, '=');
    if (!kernel)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "MIXT_CANDIDATE: '%s' is not of the form op=candidate, as in matmul=plain", pair);
    *kernel++ = '\0';
    const mixt__op *op = mixt__op_find(pair);
    const mixt__kernel *const *list = op ? device->backend->kernels(op) : NULL;
    if (!list)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "MIXT_CANDIDATE: %s has no op '%s'; 'mixt plan --explain' names them",
                          device->backend->name, pair);
    for (size_t used = 0; *list; list++) {
        if (!strcmp((*list)->name, kernel))
            return MIXT_OK;
        int more = snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*list)->name);
        used = used + (size_t)more < sizeof known ? used + (size_t)more : sizeof known - 1;
    }
    return mixt__fail(MIXT_ERROR_ARGUMENT, "MIXT_CANDIDATE: %s has no candidate '%s' for %s, only %s",
                      device->backend->name, kernel, pair, known);
}

mixt_status mixt__candidates_check(mixt__device *device)
{
    char pair[128];
    for (const char *text = mixt__env_get(MIXT_ENV_CANDIDATE); *text;) {
        size_t length = strcspn(text, ",");
        snprintf(pair, sizeof pair, "%.*s", (int)(length < sizeof pair ? length : sizeof pair), text);
        MIXT_TRY(check_pair(device, pair));
        text += length + (text[length] == ',');
    }
    return MIXT_OK;
}
