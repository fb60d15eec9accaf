/* Arithmetic, as Python does it with its int kept to 64 bits: what does not fit is refused. */
#include "template/run.h"

#include <math.h>
#include <string.h>

static mixt_status too_large(mixt__tpl_run *run)
{
    return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "a number that does not fit 64 bits");
}

mixt_status mixt__tpl_join_texts(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b,
                                 mixt__tpl_value *value)
{
    char *text = (char *)a->text;
    MIXT_TRY(mixt__tpl_work_bytes(run, a->size + b->size));
    if (!a->size || !b->size) {
        *value = a->size ? *a : *b;
        return MIXT_OK;
    }
    bool grown = mixt__tpl_grow_text(&run->heap, a->text + a->size, b->size);
    if (!grown) {
        MIXT_TRY(mixt__tpl_take_text(&run->heap, a->size + b->size, &text));
        memcpy(text, a->text, a->size);
    }
    memcpy(text + a->size, b->text, b->size);
    *value = mixt__tpl_text(text, a->size + b->size);
    return MIXT_OK;
}

static mixt_status power(mixt__tpl_run *run, const mixt__tpl_value *a, const mixt__tpl_value *b, mixt__tpl_value *value)
{
    if (a->kind == MIXT_TPL_FLOAT || b->kind == MIXT_TPL_FLOAT || b->whole < 0) {
        double x = mixt__tpl_number(a), y = mixt__tpl_number(b);
        if ((x == 0 && y < 0) || (x < 0 && y != floor(y)))
            return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "a power that has no value");
        *value = mixt__tpl_float(pow(x, y));
        return MIXT_OK;
    }
    int64_t result = 1, base = a->whole;
    for (int64_t left = b->whole; left > 0; left >>= 1) {
        if ((left & 1) && __builtin_mul_overflow(result, base, &result))
            return too_large(run);
        if (left > 1 && __builtin_mul_overflow(base, base, &base))
            return too_large(run);
    }
    *value = mixt__tpl_int(result);
    return MIXT_OK;
}

static mixt_status divide(mixt__tpl_run *run, mixt__tpl_op op, const mixt__tpl_value *a, const mixt__tpl_value *b,
                          mixt__tpl_value *value)
{
    double x = mixt__tpl_number(a), y = mixt__tpl_number(b);
    if (y == 0)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "division by zero");
    if (op == MIXT_TPL_OP_DIVIDE) {
        *value = mixt__tpl_float(x / y);
        return MIXT_OK;
    }
    if (a->kind == MIXT_TPL_FLOAT || b->kind == MIXT_TPL_FLOAT) {
        double rest = fmod(x, y);
        if (rest != 0 && (rest < 0) != (y < 0))
            rest += y;
        *value = mixt__tpl_float(op == MIXT_TPL_OP_REMAINDER ? rest : floor((x - rest) / y + 0.5));
        return MIXT_OK;
    }
    if (b->whole == -1) {
        if (a->whole == INT64_MIN)
            return too_large(run);
        *value = mixt__tpl_int(op == MIXT_TPL_OP_REMAINDER ? 0 : -a->whole);
        return MIXT_OK;
    }
    int64_t quotient = a->whole / b->whole, rest = a->whole % b->whole;
    if (rest && (rest < 0) != (b->whole < 0)) {
        quotient--;
        rest += b->whole;
    }
    *value = mixt__tpl_int(op == MIXT_TPL_OP_REMAINDER ? rest : quotient);
    return MIXT_OK;
}

static mixt_status arithmetic(mixt__tpl_run *run, mixt__tpl_op op, const mixt__tpl_value *a, const mixt__tpl_value *b,
                              mixt__tpl_value *value)
{
    int64_t whole;
    bool overflow;
    if (op == MIXT_TPL_OP_POWER)
        return power(run, a, b, value);
    if (op != MIXT_TPL_OP_ADD && op != MIXT_TPL_OP_SUBTRACT && op != MIXT_TPL_OP_MULTIPLY)
        return divide(run, op, a, b, value);
    if (a->kind == MIXT_TPL_FLOAT || b->kind == MIXT_TPL_FLOAT) {
        double x = mixt__tpl_number(a), y = mixt__tpl_number(b);
        *value = mixt__tpl_float(op == MIXT_TPL_OP_ADD ? x + y : op == MIXT_TPL_OP_SUBTRACT ? x - y : x * y);
        return MIXT_OK;
    }
    if (op == MIXT_TPL_OP_ADD)
        overflow = __builtin_add_overflow(a->whole, b->whole, &whole);
    else if (op == MIXT_TPL_OP_SUBTRACT)
        overflow = __builtin_sub_overflow(a->whole, b->whole, &whole);
    else
        overflow = __builtin_mul_overflow(a->whole, b->whole, &whole);
    *value = mixt__tpl_int(whole);
    return overflow ? too_large(run) : MIXT_OK;
}

/** A text or a list `times` times. */
static mixt_status repeat(mixt__tpl_run *run, const mixt__tpl_value *what, int64_t times, mixt__tpl_value *value)
{
    if (what->kind == MIXT_TPL_TEXT) {
        size_t mark = run->size;
        for (int64_t i = 0; i < times && what->size; i++)
            MIXT_TRY(mixt__tpl_write(run, what->text, what->size));
        return mixt__tpl_capture(run, mark, value);
    }
    MIXT_TRY(mixt__tpl_list_new(run, what->kind, 0, value));
    for (int64_t i = 0; i < times && what->list->count; i++)
        for (int64_t j = 0; j < what->list->count; j++)
            MIXT_TRY(mixt__tpl_list_add(run, value, what->list->items[j]));
    return MIXT_OK;
}

static bool sequence(const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_LIST || value->kind == MIXT_TPL_TUPLE ||
           (value->kind == MIXT_TPL_TEXT && !value->safe);
}

static bool whole_number(const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_INT || value->kind == MIXT_TPL_BOOL;
}

mixt_status mixt__tpl_binary(mixt__tpl_run *run, mixt__tpl_op op, const mixt__tpl_value *a, const mixt__tpl_value *b,
                             mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_need(run, a));
    MIXT_TRY(mixt__tpl_need(run, b));
    if (mixt__tpl_is_number(a) && mixt__tpl_is_number(b))
        return arithmetic(run, op, a, b, value);
    if (a->safe || b->safe)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "operators on a safe text are not known here");
    if (op == MIXT_TPL_OP_ADD && a->kind == b->kind && sequence(a)) {
        if (a->kind == MIXT_TPL_TEXT)
            return mixt__tpl_join_texts(run, a, b, value);
        MIXT_TRY(mixt__tpl_list_new(run, a->kind, a->list->count + b->list->count, value));
        for (int64_t i = 0; i < a->list->count + b->list->count; i++)
            MIXT_TRY(mixt__tpl_list_add(run, value,
                                        i < a->list->count ? a->list->items[i] : b->list->items[i - a->list->count]));
        return MIXT_OK;
    }
    if (op == MIXT_TPL_OP_MULTIPLY && sequence(a) && whole_number(b))
        return repeat(run, a, b->whole, value);
    if (op == MIXT_TPL_OP_MULTIPLY && sequence(b) && whole_number(a))
        return repeat(run, b, a->whole, value);
    if (op == MIXT_TPL_OP_REMAINDER && a->kind == MIXT_TPL_TEXT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "formatting a text by %% is not known here");
    if (op == MIXT_TPL_OP_ADD && a->kind == MIXT_TPL_TEXT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "can only concatenate str (not \"%s\") to str",
                                 mixt__tpl_type_name(b));
    return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "unsupported operand types for %s: '%s' and '%s'",
                             mixt__tpl_op_texts[op], mixt__tpl_type_name(a), mixt__tpl_type_name(b));
}

mixt_status mixt__tpl_negate(mixt__tpl_run *run, const mixt__tpl_value *a, mixt__tpl_value *value)
{
    MIXT_TRY(mixt__tpl_need(run, a));
    if (!mixt__tpl_is_number(a))
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "bad operand type for unary -: '%s'", mixt__tpl_type_name(a));
    if (a->kind != MIXT_TPL_FLOAT && a->whole == INT64_MIN)
        return too_large(run);
    *value = a->kind == MIXT_TPL_FLOAT ? mixt__tpl_float(-a->real) : mixt__tpl_int(-a->whole);
    return MIXT_OK;
}
