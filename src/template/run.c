/* What every part of a rendering uses: steps, depth, output, scopes. */
#include "template/run.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

mixt_status mixt__tpl_fail_at(mixt__tpl_run *run, mixt_status status, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return mixt__tpl_syntax(run->read->name, run->line, status, "%s", text);
}

mixt_status mixt__tpl_work(mixt__tpl_run *run, int64_t steps)
{
    run->steps -= steps;
    return run->steps >= 0 ? MIXT_OK
                           : mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "the template does not end within %d steps",
                                               MIXT_TEMPLATE_STEPS);
}

mixt_status mixt__tpl_work_bytes(mixt__tpl_run *run, size_t bytes)
{
    return mixt__tpl_work(run, 1 + (int64_t)(bytes / 12));
}

mixt_status mixt__tpl_enter(mixt__tpl_run *run)
{
    if (run->depth >= MIXT_TPL_DEPTH)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "more than %d parts of the template inside one another",
                                 MIXT_TPL_DEPTH);
    MIXT_TRY(mixt__tpl_work(run, 1));
    run->depth++;
    return MIXT_OK;
}

void mixt__tpl_leave(mixt__tpl_run *run)
{
    run->depth--;
}

mixt_status mixt__tpl_write(mixt__tpl_run *run, const char *text, size_t size)
{
    MIXT_TRY(mixt__tpl_work_bytes(run, size));
    if (size > MIXT_TPL_OUTPUT_MAX - run->size)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "the template writes more than %d MiB",
                                 MIXT_TPL_OUTPUT_MAX >> 20);
    if (run->room - run->size < size) {
        size_t room = run->room < 4096 ? 4096 : run->room * 2;
        while (room - run->size < size)
            room *= 2;
        char *out = mixt__realloc(run->out, room);
        if (!out)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory to render a template");
        run->out = out;
        run->room = room;
    }
    if (size)
        memcpy(run->out + run->size, text, size);
    run->size += size;
    return MIXT_OK;
}

mixt_status mixt__tpl_write_word(mixt__tpl_run *run, const char *text)
{
    return mixt__tpl_write(run, text, strlen(text));
}

mixt_status mixt__tpl_capture(mixt__tpl_run *run, size_t from, mixt__tpl_value *text)
{
    char *copy;
    size_t size = run->size - from;
    run->size = from;
    MIXT_TRY(mixt__tpl_work_bytes(run, size));
    MIXT_TRY(mixt__tpl_take_text(&run->heap, size, &copy));
    if (size)
        memcpy(copy, run->out + from, size);
    *text = mixt__tpl_text(copy, size);
    return MIXT_OK;
}

mixt_status mixt__tpl_scope_enter(mixt__tpl_run *run)
{
    void *made;
    MIXT_TRY(mixt__tpl_take(&run->heap, sizeof(mixt__tpl_scope), &made));
    *(mixt__tpl_scope *)made = (mixt__tpl_scope){.outer = run->scope};
    run->scope = made;
    return MIXT_OK;
}

void mixt__tpl_scope_leave(mixt__tpl_run *run)
{
    run->scope = run->scope->outer;
}

/** A variable of one scope; NULL: it has none of that name. */
static mixt__tpl_variable *find_in(const mixt__tpl_scope *scope, const char *name, size_t size, int64_t *looked)
{
    for (mixt__tpl_variable *variable = scope->first; variable; variable = variable->next) {
        ++*looked;
        if (variable->size == size && !memcmp(variable->name, name, size))
            return variable;
    }
    return NULL;
}

mixt_status mixt__tpl_set(mixt__tpl_run *run, const char *name, size_t size, mixt__tpl_value value)
{
    int64_t looked = 0;
    mixt__tpl_variable *variable = find_in(run->scope, name, size, &looked);
    MIXT_TRY(mixt__tpl_work(run, looked / 8));
    if (!variable) {
        void *made;
        MIXT_TRY(mixt__tpl_take(&run->heap, sizeof *variable, &made));
        variable = made;
        *variable = (mixt__tpl_variable){.name = name, .size = size, .next = run->scope->first};
        run->scope->first = variable;
    }
    variable->value = value;
    return MIXT_OK;
}

mixt_status mixt__tpl_find(mixt__tpl_run *run, const char *name, size_t size, const mixt__tpl_value **found)
{
    int64_t looked = 0;
    *found = NULL;
    for (const mixt__tpl_scope *scope = run->scope; scope && !*found; scope = scope->outer) {
        mixt__tpl_variable *variable = find_in(scope, name, size, &looked);
        looked++;
        if (variable)
            *found = &variable->value;
    }
    return mixt__tpl_work(run, looked / 8);
}

mixt_status mixt__tpl_undefined(mixt__tpl_run *run, mixt__tpl_value *value, const char *format, ...)
{
    char text[256], *copy;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text);
    MIXT_TRY(mixt__tpl_take_text(&run->heap, size + 1, &copy));
    memcpy(copy, text, size + 1);
    *value = mixt__tpl_text(copy, size);
    value->kind = MIXT_TPL_UNDEFINED;
    return MIXT_OK;
}

mixt_status mixt__tpl_need(mixt__tpl_run *run, const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_UNDEFINED
               ? mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "%.*s", (int)value->size, value->text)
               : MIXT_OK;
}
