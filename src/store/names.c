/* Matching names against rules, and moving values between layouts.
 *
 * Every layout is a stack of transposes: `outer` matrices of `rows` × `cols` here are `cols` × `rows` there. So one
 * loop serves all layouts, and the way back is the same loop with rows and columns exchanged.
 */
#include "store/names.h"

#include "base/status.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WILDCARDS_MAX = 4, NAME_MAX_BYTES = 512 };

/** What the wildcards stood for, as text. */
typedef struct wildcards {
    const char *at[WILDCARDS_MAX];
    int length[WILDCARDS_MAX];
    int count;
} wildcards;

static bool matches(const char *pattern, const char *name, wildcards *found)
{
    found->count = 0;
    for (; *pattern; pattern++) {
        if (*pattern != '#' && *pattern != '*') {
            if (*pattern != *name++)
                return false;
            continue;
        }
        int length = 0;
        while (*pattern == '#' ? isdigit((unsigned char)name[length]) != 0 : name[length] && name[length] != '.')
            length++;
        if (!length || found->count == WILDCARDS_MAX)
            return false;
        found->at[found->count] = name;
        found->length[found->count++] = length;
        name += length;
    }
    return !*name;
}

/** The pattern with its numbers filled in; NULL: no memory, or a name beyond all reason. */
static const char *filled(mixt__arena *arena, const char *pattern, const wildcards *found)
{
    char text[NAME_MAX_BYTES];
    size_t used = 0;
    for (int next = 0; *pattern; pattern++) {
        bool wild = (*pattern == '#' || *pattern == '*') && next < found->count;
        const char *from = wild ? found->at[next] : pattern;
        size_t length = wild ? (size_t)found->length[next++] : 1;
        if (used + length >= sizeof text)
            return NULL;
        memcpy(text + used, from, length);
        used += length;
    }
    text[used] = '\0';
    return mixt__arena_strdup(arena, text);
}

/* ---- shapes and layouts ---- */

static int64_t row_elements(const mixt__file_tensor *tensor)
{
    int64_t count = 1;
    for (int i = 1; i < tensor->rank; i++)
        count *= tensor->dims[i];
    return count;
}

static void shape_there(mixt__name_entry *e, const mixt__file_tensor *here)
{
    mixt__file_tensor *there = &e->there;
    there->dtype = MIXT_DTYPE_FP32;
    there->rank = here->rank;
    memcpy(there->dims, here->dims, sizeof there->dims);
    if (here->rank)
        there->dims[0] = e->rows;
    if (e->rule->layout == MIXT_LAYOUT_TRANSPOSED && here->rank == 2) {
        there->dims[0] = here->dims[1];
        there->dims[1] = e->rows;
    } else if (e->rule->layout == MIXT_LAYOUT_CHANNELS && here->rank == 4) {
        there->dims[1] = here->dims[3];
        there->dims[2] = here->dims[1];
        there->dims[3] = here->dims[2];
    } else if (e->rule->layout == MIXT_LAYOUT_COUNTER) {
        there->dtype = MIXT_DTYPE_INT64;
        there->rank = 0;
    }
}

typedef struct stack {
    int64_t outer, rows, cols; // as they lie here
} stack;

/** How the values of an entry lie; one row of everything where both sides agree. */
static stack stack_of(const mixt__name_entry *e, const mixt__file_tensor *here)
{
    int64_t inside = row_elements(here);
    mixt__layout layout = e->rule->layout;
    if (layout == MIXT_LAYOUT_TRANSPOSED && here->rank == 2)
        return (stack){1, e->rows, inside};
    if (layout == MIXT_LAYOUT_CHANNELS && here->rank == 4 && here->dims[3])
        return (stack){e->rows, here->dims[1] * here->dims[2], here->dims[3]};
    if (layout == MIXT_LAYOUT_FEATURES && here->rank == 2 && inside % e->rule->channels == 0)
        return (stack){e->rows, inside / e->rule->channels, e->rule->channels};
    return (stack){1, 1, e->rows * inside};
}

/** dst (outer, cols, rows) from src (outer, rows, cols), in blocks that stay in the first-level cache. */
static void transpose(int64_t outer, int64_t rows, int64_t cols, const float *src, float *dst)
{
    enum { BLOCK = 32 };
    for (int64_t o = 0; o < outer; o++, src += rows * cols, dst += rows * cols)
        for (int64_t r0 = 0; r0 < rows; r0 += BLOCK)
            for (int64_t c0 = 0; c0 < cols; c0 += BLOCK)
                for (int64_t r = r0; r < rows && r < r0 + BLOCK; r++)
                    for (int64_t c = c0; c < cols && c < c0 + BLOCK; c++)
                        dst[c * rows + r] = src[r * cols + c];
}

void mixt__name_to_there(const mixt__name_plan *plan, const mixt__name_entry *e, const float *here, float *there)
{
    const mixt__file_tensor *tensor = &plan->here[e->here];
    stack s = stack_of(e, tensor);
    transpose(s.outer, s.rows, s.cols, here + e->first * row_elements(tensor), there);
}

void mixt__name_from_there(const mixt__name_plan *plan, const mixt__name_entry *e, const float *there, float *here)
{
    const mixt__file_tensor *tensor = &plan->here[e->here];
    stack s = stack_of(e, tensor);
    transpose(s.outer, s.cols, s.rows, there, here + e->first * row_elements(tensor));
}

/* ---- layers ---- */

int64_t mixt__names_layer(const mixt__names *names, const char *there)
{
    size_t prefix = strlen(names->prefix);
    for (const mixt__name_rule *rule = names->rules; rule->here; rule++) {
        const char *stem = rule->there;
        if (strncmp(rule->here, "h.#.", 4))
            continue;
        if (!strncmp(stem, names->prefix, prefix) && strncmp(there, names->prefix, prefix)) // the file leaves it away
            stem += prefix;
        size_t length = strcspn(stem, "#");
        size_t digits = strncmp(there, stem, length) ? 0 : strspn(there + length, "0123456789");
        if (digits && digits < 10 && there[length + digits] == '.')
            return strtoll(there + length, NULL, 10);
    }
    return -1;
}

const char *mixt__names_here(const mixt__names *names, const char *there, mixt__arena *arena,
                             const mixt__name_rule **rule)
{
    wildcards found;
    for (const mixt__name_rule *r = names->rules; r->here; r++)
        if (matches(r->there, there, &found)) {
            *rule = r;
            return filled(arena, r->here, &found);
        }
    return NULL;
}

/* ---- plans ---- */

/** Rows of queries in a tensor with those of keys and values behind; where nobody knows the heads, as many as it has
 *  columns. */
static int64_t query_rows(const mixt__name_plan *plan, const mixt__file_tensor *here)
{
    if (!plan->heads)
        return row_elements(here);
    int64_t all = plan->heads + 2 * plan->kv_heads, rows = here->rank ? here->dims[0] : 0;
    return rows % all ? -1 : rows / all * plan->heads;
}

static mixt_status add_entry(mixt__name_plan *plan, int64_t index, const mixt__name_rule *rule, const wildcards *found,
                             int64_t vocab, int64_t positions)
{
    const mixt__file_tensor *here = &plan->here[index];
    mixt__name_entry e = {.rule = rule, .here = index, .rows = here->rank ? here->dims[0] : 1};
    if (rule->parts) {
        int64_t first = rule->heads ? query_rows(plan, here) : 0; // rows of a first part that is unlike the others
        int64_t rest = e.rows - first, others = rule->parts - (rule->heads ? 1 : 0);
        if (rest <= 0 || rest % others || (rule->heads && first <= 0))
            return mixt__fail(MIXT_ERROR_SHAPE, "tensor '%s' of shape %s cannot be cut into %d parts", here->name,
                              mixt__dims_print(here->rank, here->dims).text, rule->parts);
        e.rows = rule->heads && !rule->part ? first : rest / others;
        e.first = rule->heads && rule->part ? first + (rule->part - 1) * e.rows : rule->part * e.rows;
    }
    if (rule->vocabulary && vocab && vocab < e.rows)
        e.rows = vocab;
    if (rule->positions && positions && positions < e.rows)
        e.rows = positions;
    e.there.name = filled(&plan->arena, rule->there, found);
    if (!e.there.name || !mixt__grow((void **)&plan->entries, &plan->capacity, plan->count, sizeof e))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of %lld tensors", (long long)plan->here_count);
    shape_there(&e, here);
    plan->entries[plan->count++] = e;
    return MIXT_OK;
}

static mixt_status plan_tensor(mixt__name_plan *plan, int64_t index, int64_t vocab, int64_t positions)
{
    static const mixt__name_rule same = {.layout = MIXT_LAYOUT_SAME, .there = "*"};
    static const mixt__name_rule places = {.layout = MIXT_LAYOUT_SAME, .there = "*", .positions = true};
    const char *name = plan->here[index].name;
    wildcards found = {.count = 0};
    if (!plan->names) {
        bool table = !strcmp(name, MIXT_POSITIONS_TENSOR);
        found = (wildcards){.at = {name}, .length = {(int)strlen(name)}, .count = 1};
        return add_entry(plan, index, table ? &places : &same, &found, vocab, positions);
    }
    int64_t before = plan->count;
    for (const mixt__name_rule *rule = plan->names->rules; rule->here; rule++)
        if (matches(rule->here, name, &found))
            MIXT_TRY(add_entry(plan, index, rule, &found, vocab, positions));
    if (plan->count > before)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "tensor '%s' does not exist in the names of %s: this is another model",
                      name, plan->names->family);
}

mixt_status mixt__name_plan_make(mixt__name_plan *plan, const mixt__names *names, const mixt__name_facts *facts,
                                 const mixt__file_tensor *here, int64_t count, int64_t vocab, int64_t positions)
{
    *plan = (mixt__name_plan){.names = names, .here = here, .here_count = count};
    if (facts && facts->kv_heads) {
        plan->heads = facts->heads;
        plan->kv_heads = facts->kv_heads;
    }
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; status == MIXT_OK && i < count; i++)
        status = plan_tensor(plan, i, vocab, positions);
    if (status != MIXT_OK)
        mixt__name_plan_free(plan);
    return status;
}

void mixt__name_plan_free(mixt__name_plan *plan)
{
    mixt__free(plan->entries);
    mixt__arena_free(&plan->arena);
    *plan = (mixt__name_plan){0};
}
