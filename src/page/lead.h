/* What stands above the runs of a page, in pieces of JSON that lead.js shows. */
#ifndef MIXT_PAGE_LEAD_H
#define MIXT_PAGE_LEAD_H

#include <jansson.h>

/** A number as people write it, for a table. @param unit "bytes" and "s" in a size that reads well, "%" times 100, any
 *  other as it is; "": none. One that is not finite is a dash. */
json_t *mixt__lead_number(double value, const char *unit);
/** A cell of a class of its own. @param mood "good", "bad", "open", "info" or "number" */
json_t *mixt__lead_word(const char *text, const char *mood);
/** The picture of an SVG file; an empty text where there is none. */
json_t *mixt__lead_picture(const char *path);
/** What a file says; an empty text where it cannot be read, or is no UTF-8. */
json_t *mixt__lead_file(const char *path);

#endif
