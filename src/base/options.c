/* Structs of options that begin with their size: the caller's over the library's. */
#include "base/options.h"

#include "mixt/version.h"

#include <string.h>

// No struct of options comes near it: a larger size is memory that nobody has filled.
enum { SIZE_MAX_SOUND = 1 << 16 };

static bool is_zero(const unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i])
            return false;
    return true;
}

mixt_status mixt__options_lay(const char *type, void *own, size_t size, const void *given)
{
    size_t has;
    if (!given)
        return MIXT_OK;
    memcpy(&has, given, sizeof has);
    if (has < sizeof has || has > SIZE_MAX_SOUND)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%s: its struct_size is %zu: initialise it with MIXT_OPTIONS or %s_default(&o, sizeof o)",
                          type, has, type);
    if (has > size && !is_zero(given, size, has))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: sets an option that mixt %s does not know: the program was compiled with a newer one",
                          type, MIXT_VERSION);
    memcpy(own, given, has < size ? has : size);
    memcpy(own, &size, sizeof size);
    return MIXT_OK;
}

void mixt__options_fill(void *options, size_t size, const void *own, size_t own_size)
{
    if (!options || size < sizeof size)
        return;
    memset(options, 0, size);
    memcpy(options, own, size < own_size ? size : own_size);
    memcpy(options, &size, sizeof size);
}
