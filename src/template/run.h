/* A rendering under way: its memory and steps, the scopes of its variables, what has been written. */
#ifndef MIXT_TEMPLATE_RUN_H
#define MIXT_TEMPLATE_RUN_H

#include "template/tree.h"
#include "template/template.h"
#include "template/value.h"

#include <time.h>

enum {
    MIXT_TPL_NESTING = 200,         // of what a template says inside one another, and of one chain of operators
    MIXT_TPL_DEPTH = 600,           // the same of a rendering, where macros call macros
    MIXT_TPL_OUTPUT_MAX = 12 << 20, // bytes written
    MIXT_TPL_HEAP_MAX = 24 << 20,   // bytes of a rendering's values
    MIXT_TPL_TREE_MAX = 12 << 20,   // bytes of a template
};

typedef struct mixt__tpl_variable {
    const char *name;
    size_t size;
    mixt__tpl_value value;
    struct mixt__tpl_variable *next;
} mixt__tpl_variable;

typedef struct mixt__tpl_scope {
    struct mixt__tpl_scope *outer;
    mixt__tpl_variable *first;
} mixt__tpl_scope;

/** What a statement ends with. */
typedef enum mixt__tpl_flow { MIXT_TPL_ON, MIXT_TPL_BREAK, MIXT_TPL_CONTINUE } mixt__tpl_flow;

typedef struct mixt__tpl_run {
    const mixt__template *read;
    mixt__tpl_heap heap;
    mixt__tpl_scope *scope;
    char *out; // what is written, that of captures behind it
    size_t size, room;
    int64_t steps; // left
    int depth, line;
    struct tm now;
    bool has_now;
} mixt__tpl_run;

struct mixt__template {
    mixt__tpl_heap heap;
    const char *name;
    const mixt__tpl_node *body;
};

/** Arguments of a call. */
typedef struct mixt__tpl_args {
    int64_t count;
    mixt__tpl_value *values;
    int64_t named;
    mixt__tpl_value *names, *named_values;
} mixt__tpl_args;

enum { MIXT_TPL_ARGS_MAX = 8 };

typedef mixt_status mixt__tpl_call_fn(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                                      mixt__tpl_value *result);

/** A function, a method, a filter or a test. */
typedef struct mixt__tpl_function {
    const char *name;
    mixt__tpl_call_fn *call; // NULL: Python or Jinja has it, and it is refused
} mixt__tpl_function;

typedef struct mixt__tpl_method {
    mixt__tpl_value self;
    const mixt__tpl_function *function;
} mixt__tpl_method;

typedef struct mixt__tpl_macro {
    const mixt__tpl_node *node;
    mixt__tpl_scope *scope; // where it was made
    bool caller;            // the body of a call block: its arguments are the block's
} mixt__tpl_macro;

typedef struct mixt__tpl_loop {
    const mixt__tpl_list *items;
    int64_t index, depth;
    mixt__tpl_value changed; // what loop.changed was last asked about
} mixt__tpl_loop;

// run.c

/** A failure at the line that is being evaluated. */
mixt_status mixt__tpl_fail_at(mixt__tpl_run *run, mixt_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Spends steps. */
mixt_status mixt__tpl_work(mixt__tpl_run *run, int64_t steps);
/** Spends steps for bytes that are copied or searched. */
mixt_status mixt__tpl_work_bytes(mixt__tpl_run *run, size_t bytes);
/** One deeper; every success is followed by mixt__tpl_leave. */
mixt_status mixt__tpl_enter(mixt__tpl_run *run);
void mixt__tpl_leave(mixt__tpl_run *run);
mixt_status mixt__tpl_write(mixt__tpl_run *run, const char *text, size_t size);
mixt_status mixt__tpl_write_word(mixt__tpl_run *run, const char *text);
/** What was written since the output had `from` bytes becomes a text. */
mixt_status mixt__tpl_capture(mixt__tpl_run *run, size_t from, mixt__tpl_value *text);
mixt_status mixt__tpl_scope_enter(mixt__tpl_run *run);
void mixt__tpl_scope_leave(mixt__tpl_run *run);
/** Sets a variable of the innermost scope. */
mixt_status mixt__tpl_set(mixt__tpl_run *run, const char *name, size_t size, mixt__tpl_value value);
/** A variable of this or an outer scope; NULL in *found where there is none. */
mixt_status mixt__tpl_find(mixt__tpl_run *run, const char *name, size_t size, const mixt__tpl_value **found);
/** An undefined value with the message of the error that using it is. */
mixt_status mixt__tpl_undefined(mixt__tpl_run *run, mixt__tpl_value *value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Fails where the value is undefined. */
mixt_status mixt__tpl_need(mixt__tpl_run *run, const mixt__tpl_value *value);

// evaluate.c

mixt_status mixt__tpl_evaluate(mixt__tpl_run *run, const mixt__tpl_node *node, mixt__tpl_value *value);
/** A filter node applied to `value` in place of what stands before its bar; NULL: to that. */
mixt_status mixt__tpl_filter(mixt__tpl_run *run, const mixt__tpl_node *node, const mixt__tpl_value *block,
                             mixt__tpl_value *value);

// access.c

mixt_status mixt__tpl_attribute(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *name,
                                mixt__tpl_value *value);
mixt_status mixt__tpl_item(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value *key,
                           mixt__tpl_value *value);
/** value[bounds[0]:bounds[1]:bounds[2]], NONE where one is left out. */
mixt_status mixt__tpl_slice(mixt__tpl_run *run, const mixt__tpl_value *object, const mixt__tpl_value bounds[3],
                            mixt__tpl_value *value);

// operators.c

mixt_status mixt__tpl_binary(mixt__tpl_run *run, mixt__tpl_op op, const mixt__tpl_value *a, const mixt__tpl_value *b,
                             mixt__tpl_value *value);
mixt_status mixt__tpl_negate(mixt__tpl_run *run, const mixt__tpl_value *a, mixt__tpl_value *value);
/** Two texts one after the other. */
mixt_status mixt__tpl_join_texts(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b,
                                 mixt__tpl_value *value);

// call.c

mixt_status mixt__tpl_call(mixt__tpl_run *run, const mixt__tpl_value *callee, const mixt__tpl_args *args,
                           mixt__tpl_value *value);
/** Arguments of a function by their names, "a,b,c": those not given are ABSENT. */
mixt_status mixt__tpl_bind(mixt__tpl_run *run, const char *what, const mixt__tpl_args *args, const char *names,
                           mixt__tpl_value values[MIXT_TPL_ARGS_MAX]);
/** The only names that are always there: functions of the environment. NULL: there is none of that name. */
const mixt__tpl_function *mixt__tpl_global(const char *name, size_t size);

// render.c

mixt_status mixt__tpl_body(mixt__tpl_run *run, const mixt__tpl_node *first, mixt__tpl_flow *flow);

// methods.c, text_methods.c, filters.c, tests.c: NULL where there is none of that name

const mixt__tpl_function *mixt__tpl_method_of(const mixt__tpl_value *object, const char *name, size_t size);
const mixt__tpl_function *mixt__tpl_text_method(const char *name, size_t size);
const mixt__tpl_function *mixt__tpl_filter_of(const char *name, size_t size);
const mixt__tpl_function *mixt__tpl_test_of(const char *name, size_t size);
/** The entry of a table that ends with one of no name. */
const mixt__tpl_function *mixt__tpl_function_of(const mixt__tpl_function *table, const char *name, size_t size);
/** Calls the test `name` as filters such as select do. */
mixt_status mixt__tpl_apply_test(mixt__tpl_run *run, const mixt__tpl_value *name, const mixt__tpl_value *value,
                                 const mixt__tpl_args *args, bool *holds);

// clock.c

/** strftime of the time that the rendering has, in English. */
mixt_status mixt__tpl_strftime(mixt__tpl_run *run, const mixt__tpl_value *format, mixt__tpl_value *text);

#endif
