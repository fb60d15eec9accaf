/* Numbers and names for JSON, and a line of it. */
#include "cli/json.h"

#include "cli/support.h"

#include <math.h>
#include <stdlib.h>

static void *allocate(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        cli_output_lose(); // jansson goes on without what it has no memory for
    return block;
}

void cli_json_watch(void)
{
    json_set_alloc_funcs(allocate, free);
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

mixt_status cli_json_name(const char *name)
{
    json_t *text = json_string(name);
    bool good = text != NULL;
    json_decref(text);
    return good ? MIXT_OK : mixt_fail(MIXT_ERROR_ARGUMENT, "%s: is not UTF-8: --json cannot give it back", name);
}
