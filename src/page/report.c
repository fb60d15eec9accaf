/* The page as one file. */
#include "page/report.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/status.h"
#include "page/parts.h"
#include "page/run_data.h"
#include "store/file.h"
#include "store/json.h"

#include <stdlib.h>
#include <string.h>

typedef struct page {
    mixt__file_writer file;
    const mixt__run_data *runs;
    int64_t count;
    const json_t *lead; // NULL: none
    mixt_status status; // of the first write that failed
} page;

static void put(void *user, const char *data, size_t bytes)
{
    page *p = user;
    if (p->status == MIXT_OK)
        p->status = mixt__file_writer_append(&p->file, data, bytes);
}

static void put_text(page *p, const char *text)
{
    put(p, text, strlen(text));
}

/** JSON inside a script: no "<" may end it. */
static void put_json(page *p, const json_t *value)
{
    char *text = mixt__json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (!text) {
        p->status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a page");
        return;
    }
    for (const char *at = text, *next; *at; at = next) {
        size_t plain = strcspn(at, "<");
        put(p, at, plain);
        if (at[plain])
            put_text(p, "\\u003c");
        next = at + plain + (at[plain] != '\0');
    }
    free(text);
}

static void put_base64(page *p, const unsigned char *data, size_t bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[4096];
    size_t used = 0;
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i < 3 ? bytes - i : 3;
        uint32_t group = (uint32_t)data[i] << 16 | (uint32_t)(left > 1 ? data[i + 1] : 0) << 8 |
                         (uint32_t)(left > 2 ? data[i + 2] : 0);
        for (size_t k = 0; k < 4; k++)
            text[used++] = k <= left ? letters[group >> (18 - 6 * k) & 63] : '=';
        if (used == sizeof text) {
            put(p, text, used);
            used = 0;
        }
    }
    put(p, text, used);
}

/** Steps and times as they are; all else in the four bytes that a chart has use for. */
static void put_column(page *p, int64_t run, const char *name, const double *values, int64_t count)
{
    char head[256];
    bool wide = !strcmp(name, "step") || !strcmp(name, "time") || !strcmp(name, "epoch");
    float *narrow = wide ? NULL : mixt__alloc((size_t)count * sizeof *narrow + 1);
    if (!wide && !narrow) {
        p->status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a page");
        return;
    }
    for (int64_t i = 0; narrow && i < count; i++)
        narrow[i] = (float)values[i];
    snprintf(head, sizeof head, "<script type=\"text/plain\" data-run=\"%lld\" data-column=\"%.64s\">", (long long)run,
             name);
    put_text(p, head);
    if (wide)
        put_base64(p, (const unsigned char *)values, (size_t)count * sizeof *values);
    else
        put_base64(p, (const unsigned char *)narrow, (size_t)count * sizeof *narrow);
    put_text(p, "</script>\n");
    mixt__free(narrow);
}

/** Names come from files: only those that need no care inside a page. */
static bool plain_name(const char *name)
{
    return !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")];
}

static void put_layers(page *p, int64_t run)
{
    char head[96];
    if (!json_array_size(p->runs[run].layers))
        return;
    snprintf(head, sizeof head, "<script type=\"application/json\" data-layers=\"%lld\">", (long long)run);
    put_text(p, head);
    put_json(p, p->runs[run].layers);
    put_text(p, "</script>\n");
}

static void put_runs(void *user)
{
    page *p = user;
    json_t *list = json_array();
    for (int64_t r = 0; r < p->count; r++)
        mixt__json_add(list, json_incref(p->runs[r].about));
    if (p->lead) {
        put_text(p, "<script type=\"application/json\" id=\"lead-data\">");
        put_json(p, p->lead);
        put_text(p, "</script>\n");
    }
    put_text(p, "<script type=\"application/json\" id=\"data\">");
    put_json(p, list);
    put_text(p, "</script>\n");
    json_decref(list);
    for (int64_t r = 0; r < p->count; r++)
        put_layers(p, r);
    for (int64_t r = 0; r < p->count; r++)
        for (int64_t i = 0; mixt_metrics_name(p->runs[r].metrics, i); i++) {
            const char *name = mixt_metrics_name(p->runs[r].metrics, i);
            if (plain_name(name))
                put_column(p, r, name, mixt_metrics_column(p->runs[r].metrics, name),
                           mixt_metrics_describe(p->runs[r].metrics).rows);
        }
}

static mixt_status write_page(const mixt__run_data *runs, int64_t count, const json_t *lead, const char *path,
                              bool overwrite)
{
    page p = {.runs = runs, .count = count, .lead = lead};
    MIXT_TRY(mixt__file_writer_open(&p.file, path, overwrite));
    mixt_status made = mixt__page_print(put, &p, put_runs);
    p.status = p.status == MIXT_OK ? made : p.status;
    if (p.status == MIXT_OK)
        return mixt__file_writer_commit(&p.file);
    mixt__file_writer_abandon(&p.file);
    return p.status;
}

mixt_status mixt__page_write_led(const char *const *runs, int64_t count, const json_t *lead, const char *path,
                                 bool overwrite)
{
    MIXT_TRY(mixt__need(runs));
    MIXT_TRY(mixt__need(path));
    if ((count < 1 && !lead) || count < 0 || count > MIXT_PAGE_RUNS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a page shows 1 to %d runs, not %lld", MIXT_PAGE_RUNS_MAX,
                          (long long)count);
    mixt__run_data *data = mixt__alloc((size_t)(count + 1) * sizeof *data);
    mixt_status status =
        data ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a page of %lld runs", (long long)count);
    for (int64_t r = 0; r < count && status == MIXT_OK; r++)
        status = runs[r] ? mixt__run_data_read(runs[r], &data[r])
                         : mixt__fail(MIXT_ERROR_ARGUMENT, "run %lld of a page is NULL", (long long)r);
    if (status == MIXT_OK)
        status = write_page(data, count, lead, path, overwrite);
    for (int64_t r = 0; data && r < count; r++)
        mixt__run_data_free(&data[r]);
    mixt__free(data);
    return status;
}

mixt_status mixt_page_write(const char *const *runs, int64_t count, const char *path, const mixt_page_options *options)
{
    mixt_page_options o = MIXT_OPTIONS(mixt_page_options);
    MIXT_TRY(mixt__options(mixt_page_options, &o, options));
    return mixt__page_write_led(runs, count, NULL, path, o.overwrite);
}
