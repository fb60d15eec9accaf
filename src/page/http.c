/* Looking its functions up. */
#ifdef MIXT_HAVE_MICROHTTPD
#include "page/http.h"

#include "base/status.h"

#include <dlfcn.h>
#include <string.h>

mixt__http mixt__http_functions;

mixt_status mixt__http_load(void)
{
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "no page can be served: %s (install libmicrohttpd12)", dlerror());
#define MIXT_HTTP_FIND(name)                                                                                           \
    {                                                                                                                  \
        void *found = dlsym(library, "MHD_" #name);                                                                    \
        if (!found)                                                                                                    \
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "this libmicrohttpd has no MHD_" #name);                         \
        memcpy(&mixt__http_functions.name, &found, sizeof found); /* no cast leads from data to functions */           \
    }
    MIXT_HTTP_LIST(MIXT_HTTP_FIND)
#undef MIXT_HTTP_FIND
    return MIXT_OK;
}
#endif
