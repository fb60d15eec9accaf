/* Questions about a device by its name. */
#include "mixt/machine.h"

#include "api/api.h"
#include "machine/machine.h"

const char *mixt_device_auto(void)
{
    mixt__device *automatic;
    if (mixt__device_open("auto", 0, &automatic) != MIXT_OK)
        return "cpu";
    const char *name = automatic->backend->name;
    mixt__device_close(automatic);
    return name;
}

mixt_status mixt_precision_pick(const char *device, mixt_dtype *format, char **why)
{
    char words[MIXT_PICK_TEXT];
    mixt__device *opened;
    MIXT_TRY(mixt__need(format));
    if (why)
        *why = NULL;
    MIXT_TRY(mixt__device_open(device ? device : "auto", 0, &opened));
    mixt_status status = mixt__precision_pick(opened, format, words);
    mixt__device_close(opened);
    return status == MIXT_OK && why ? mixt__give_text(why, "%s", words) : status;
}
