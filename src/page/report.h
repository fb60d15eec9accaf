/* The page as one file, for those who have more to say of some runs than the runs do. */
#ifndef MIXT_PAGE_REPORT_H
#define MIXT_PAGE_REPORT_H

#include "mixt/page.h"

#include <jansson.h>

/** As mixt_page_write, with something above the runs.
 *  @param lead {"title": of the page, "verdict": text, "mood": "good", "bad" or "open", "lines": [text…], "parts":
 *  [{"title", "head": [text…], "rows": [[text, number or a cell of lead.h…]…], "lines", "commands": [text…], "text",
 *  "picture": an SVG image}…]}, where a part has what it needs of these; NULL: nothing. With it there may be no run */
mixt_status mixt__page_write_led(const char *const *runs, int64_t count, const json_t *lead, const char *path,
                                 bool overwrite);

#endif
