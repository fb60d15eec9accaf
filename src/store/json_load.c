/* Reading JSON where memory may be short.
 *
 * jansson's lexer does not look at whether its buffer could grow: what was lost then is a wrong token, or a failed
 * assertion that ends the process. So while a thread reads a document here, an allocation that fails leaves jansson at
 * once, by a jump, and what it has allocated for the document until then is freed. jansson's functions of allocation
 * are the whole process's: outside of a document they pass on to those that were there.
 */
#include "store/json.h"

#include "base/status.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/** What the document that a thread is reading holds. */
typedef struct reading {
    jmp_buf out;
    void **blocks; // in the order in which they came
    size_t count, room;
} reading;

static _Thread_local reading *current;
static json_malloc_t outer_malloc;
static json_free_t outer_free;

static bool keep(reading *r, void *block)
{
    if (r->count == r->room) {
        size_t room = r->room * 2 + 64;
        void **blocks = realloc(r->blocks, room * sizeof *blocks);
        if (!blocks)
            return false;
        r->blocks = blocks;
        r->room = room;
    }
    r->blocks[r->count++] = block;
    return true;
}

static void *allocate(size_t bytes)
{
    reading *r = current;
    void *block = outer_malloc(bytes);
    if (!r || (block && keep(r, block)))
        return block;
    outer_free(block);
    longjmp(r->out, 1);
}

/** The youngest first: a lexer's buffers come and go. */
static void forget(reading *r, const void *block)
{
    for (size_t i = r->count; i-- > 0;)
        if (r->blocks[i] == block) {
            r->blocks[i] = r->blocks[--r->count];
            return;
        }
}

static void release(void *block)
{
    if (current && block)
        forget(current, block);
    outer_free(block);
}

/** Once, and again where the program has set others since. */
static void take_over(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    json_malloc_t now_malloc;
    json_free_t now_free;
    pthread_mutex_lock(&lock);
    json_get_alloc_funcs(&now_malloc, &now_free);
    if (now_malloc != allocate) {
        outer_malloc = now_malloc;
        outer_free = now_free;
        json_set_alloc_funcs(allocate, release);
    }
    pthread_mutex_unlock(&lock);
}

json_t *mixt__json_load(const void *text, size_t bytes, size_t flags, json_error_t *error)
{
    reading r = {.blocks = NULL};
    json_t *volatile value = NULL;
    take_over();
    if (!setjmp(r.out)) {
        current = &r;
        value = json_loadb(text, bytes, flags, error);
    } else {
        for (size_t i = 0; i < r.count; i++)
            outer_free(r.blocks[i]);
        *error = (json_error_t){.line = -1, .column = -1, .source = "", .text = "no memory to read it"};
        error->text[JSON_ERROR_TEXT_LENGTH - 1] = json_error_out_of_memory;
    }
    current = NULL;
    free(r.blocks);
    return value;
}

mixt_status mixt__json_parse(const char *path, const void *text, size_t bytes, size_t flags, json_t **value)
{
    json_error_t error;
    *value = mixt__json_load(text ? text : "", bytes, flags, &error);
    if (*value)
        return MIXT_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    return mixt__fail(MIXT_ERROR_FORMAT, "%s:%d:%d: not valid JSON: %s", path, error.line, error.column, error.text);
}

mixt_status mixt__json_row(const char *text, json_t **row)
{
    json_error_t error;
    *row = mixt__json_load(text, strlen(text), 0, &error);
    return *row || json_error_code(&error) != json_error_out_of_memory
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read a row");
}
