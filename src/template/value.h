/* Values of a template, as Python has them: what they are, how they compare, what stands in them.
 *
 * Values never change, but for namespaces: so texts and lists are shared, never copied.
 */
#ifndef MIXT_TEMPLATE_VALUE_H
#define MIXT_TEMPLATE_VALUE_H

#include "template/heap.h"

#include <jansson.h>

typedef enum mixt__tpl_kind {
    MIXT_TPL_UNDEFINED, // text: why, the message of an error
    MIXT_TPL_NONE,
    MIXT_TPL_BOOL,
    MIXT_TPL_INT,
    MIXT_TPL_FLOAT,
    MIXT_TPL_TEXT,
    MIXT_TPL_LIST,
    MIXT_TPL_TUPLE,
    MIXT_TPL_ONCE, // what a generator gives: can be gone through a single time
    MIXT_TPL_VIEW, // what range() and items() give: has a length
    MIXT_TPL_DICT,
    MIXT_TPL_NAMESPACE,
    MIXT_TPL_LOOP,
    MIXT_TPL_MACRO,
    MIXT_TPL_METHOD,
    MIXT_TPL_FUNCTION,
    MIXT_TPL_ABSENT, // an argument that was not given; no value of a template
} mixt__tpl_kind;

typedef struct mixt__tpl_value {
    mixt__tpl_kind kind;
    bool safe; // a text that counts as escaped
    union {
        int64_t whole; // BOOL, INT
        double real;
        const char *text;
        struct mixt__tpl_list *list;     // LIST, TUPLE, ONCE, VIEW
        struct mixt__tpl_dict *dict;     // DICT, NAMESPACE
        struct mixt__tpl_loop *loop;     // LOOP
        struct mixt__tpl_macro *macro;   // MACRO
        struct mixt__tpl_method *method; // METHOD
        const struct mixt__tpl_function *function;
    };
    size_t size; // bytes of `text`
} mixt__tpl_value;

typedef struct mixt__tpl_list {
    mixt__tpl_value *items;
    int64_t count, room;
    bool used; // ONCE: gone through
} mixt__tpl_list;

typedef struct mixt__tpl_pair {
    mixt__tpl_value key, value;
} mixt__tpl_pair;

typedef struct mixt__tpl_dict {
    mixt__tpl_pair *pairs; // in the order in which they came
    int64_t count, room;
} mixt__tpl_dict;

struct mixt__tpl_run;

// value.c

mixt__tpl_value mixt__tpl_none(void);
mixt__tpl_value mixt__tpl_bool(bool value);
mixt__tpl_value mixt__tpl_int(int64_t value);
mixt__tpl_value mixt__tpl_float(double value);
/** Borrows the text. */
mixt__tpl_value mixt__tpl_text(const char *text, size_t size);
/** A literal, or one that lives as long. */
mixt__tpl_value mixt__tpl_word(const char *text);

bool mixt__tpl_is_text(const mixt__tpl_value *value, const char *text);
bool mixt__tpl_is_number(const mixt__tpl_value *value);
double mixt__tpl_number(const mixt__tpl_value *value);
/** Whether it has items: LIST, TUPLE, ONCE, VIEW. */
bool mixt__tpl_has_list(const mixt__tpl_value *value);
bool mixt__tpl_truth(const mixt__tpl_value *value);
/** Python's name of its type, for messages. */
const char *mixt__tpl_type_name(const mixt__tpl_value *value);

mixt_status mixt__tpl_list_new(struct mixt__tpl_run *run, mixt__tpl_kind kind, int64_t room, mixt__tpl_value *list);
mixt_status mixt__tpl_list_add(struct mixt__tpl_run *run, mixt__tpl_value *list, mixt__tpl_value item);
mixt_status mixt__tpl_dict_new(struct mixt__tpl_run *run, mixt__tpl_kind kind, int64_t room, mixt__tpl_value *dict);
/** Adds or replaces. */
mixt_status mixt__tpl_dict_put(struct mixt__tpl_run *run, mixt__tpl_value *dict, mixt__tpl_value key,
                               mixt__tpl_value value);
/** The value of a key; NULL in *found where there is none. */
mixt_status mixt__tpl_dict_get(struct mixt__tpl_run *run, const mixt__tpl_value *dict, const mixt__tpl_value *key,
                               const mixt__tpl_value **found);

/** A value made of JSON, whose texts it borrows. */
mixt_status mixt__tpl_from_json(struct mixt__tpl_run *run, const json_t *json, mixt__tpl_value *value);

// compare.c

mixt_status mixt__tpl_equal(struct mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b, bool *equal);
/** -1, 0 or 1; fails where they have no order. `sign` is the operator, for the message. */
mixt_status mixt__tpl_order(struct mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b,
                            const char *sign, int *order);
mixt_status mixt__tpl_contains(struct mixt__tpl_run *run, const mixt__tpl_value *all, const mixt__tpl_value *item,
                               bool *in);
/** Items of anything that can be gone through: of a dict its keys, of a text its characters. Borrowed where it can be.
 */
mixt_status mixt__tpl_items(struct mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_list **items);
mixt_status mixt__tpl_length(struct mixt__tpl_run *run, const mixt__tpl_value *value, int64_t *length);

// print.c

/** Appends str(value) to the output. */
mixt_status mixt__tpl_print(struct mixt__tpl_run *run, const mixt__tpl_value *value);
/** str(value) as a value. */
mixt_status mixt__tpl_string(struct mixt__tpl_run *run, const mixt__tpl_value *value, mixt__tpl_value *text);

// json_print.c

typedef struct mixt__tpl_json {
    bool ascii, sort;
    const mixt__tpl_value *indent;     // NULL: on one line
    const mixt__tpl_value *item, *key; // separators
} mixt__tpl_json;

/** Appends json.dumps(value) to the output. */
mixt_status mixt__tpl_print_json(struct mixt__tpl_run *run, const mixt__tpl_value *value, const mixt__tpl_json *how);

#endif
