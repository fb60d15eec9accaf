/* The template with its places filled. */
#include "page/parts.h"

#include "mixt/monitor.h"

#include "base/status.h"
#include "page.inc"
#include "store/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define PUT_PART(part) put(user, (const char *)(part), sizeof(part) - 1)

/** What to do about each cause: the page knows causes by their names. */
static mixt_status put_remedies(mixt__page_put *put, void *user)
{
    static const char open[] = "<script type=\"application/json\" id=\"remedies\">", close[] = "</script>\n";
    json_t *remedies = json_object();
    for (int c = 0; c < MIXT_CAUSE_COUNT; c++)
        mixt__json_set_text(remedies, mixt_cause_name((mixt_cause)c), mixt_cause_remedy((mixt_cause)c));
    char *text = mixt__json_dumps(remedies, JSON_COMPACT);
    json_decref(remedies);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a page");
    PUT_PART(open);
    put(user, text, strlen(text));
    PUT_PART(close);
    free(text);
    return MIXT_OK;
}

mixt_status mixt__page_print(mixt__page_put *put, void *user, void (*data)(void *user))
{
    for (const char *at = (const char *)page_html; *at;) {
        size_t line = strcspn(at, "\n");
        if (!strncmp(at, "@style@", 7)) {
            PUT_PART(page_css);
        } else if (!strncmp(at, "@data@", 6)) {
            MIXT_TRY(put_remedies(put, user));
            data(user);
        } else if (!strncmp(at, "@script@", 8)) {
            PUT_PART(chart_js);
            PUT_PART(heat_js);
            PUT_PART(lead_js);
            PUT_PART(predictions_js);
            PUT_PART(page_js);
        } else {
            put(user, at, line);
            put(user, "\n", 1);
        }
        at += line + (at[line] == '\n');
    }
    return MIXT_OK;
}

static void put_stream(void *user, const char *data, size_t bytes)
{
    fwrite(data, 1, bytes, user);
}

static void put_no_data(void *user)
{
    fputs("<script type=\"application/json\" id=\"data\" data-live=\"yes\">[]</script>\n", user);
}

mixt_status mixt__page_print_live(FILE *stream)
{
    return mixt__page_print(put_stream, stream, put_no_data);
}
