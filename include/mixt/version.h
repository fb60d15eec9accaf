/* Which mixt is this? Of these headers by macros, at compile time; of the library that is linked by functions.
 *
 * Within one minor version what is compiled runs with every later library: options structs carry their size
 * (mixt/types.h), no function goes or changes.
 */
#ifndef MIXT_VERSION_H
#define MIXT_VERSION_H

#define MIXT_VERSION_MAJOR 0
#define MIXT_VERSION_MINOR 1
#define MIXT_VERSION_PATCH 0

#define MIXT_VERSION_QUOTE_(text) #text
#define MIXT_VERSION_QUOTE(text) MIXT_VERSION_QUOTE_(text)
/** "0.1.0" */
#define MIXT_VERSION                                                                                                   \
    MIXT_VERSION_QUOTE(MIXT_VERSION_MAJOR)                                                                             \
    "." MIXT_VERSION_QUOTE(MIXT_VERSION_MINOR) "." MIXT_VERSION_QUOTE(MIXT_VERSION_PATCH)
/** 0.1.0 is 100: two digits for each part, to be compared by < and >. */
#define MIXT_VERSION_NUMBER (MIXT_VERSION_MAJOR * 10000 + MIXT_VERSION_MINOR * 100 + MIXT_VERSION_PATCH)

/** What the shared library exports; everything else in it is hidden. */
#ifdef __GNUC__
#define MIXT_API __attribute__((visibility("default")))
#else
#define MIXT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** MIXT_VERSION of the library that is linked. */
MIXT_API const char *mixt_version(void);
/** MIXT_VERSION_NUMBER of the library that is linked. */
MIXT_API int mixt_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
