/* Tests, what may stand behind "is": functions that say yes or no. */
#include "template/run.h"
#include "template/text.h"

#define TEST(name, holds)                                                                                              \
    static mixt_status name(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,               \
                            mixt__tpl_value *result)                                                                   \
    {                                                                                                                  \
        mixt__tpl_value none[MIXT_TPL_ARGS_MAX];                                                                       \
        MIXT_TRY(mixt__tpl_bind(run, "test " #name, args, "", none));                                                  \
        *result = mixt__tpl_bool(holds);                                                                               \
        return MIXT_OK;                                                                                                \
    }

static bool iterates(const mixt__tpl_value *value)
{
    return value->kind == MIXT_TPL_UNDEFINED || value->kind == MIXT_TPL_TEXT || value->kind == MIXT_TPL_DICT ||
           value->kind == MIXT_TPL_LOOP || mixt__tpl_has_list(value);
}

TEST(defined, self->kind != MIXT_TPL_UNDEFINED)
TEST(undefined, self->kind == MIXT_TPL_UNDEFINED)
TEST(none_test, self->kind == MIXT_TPL_NONE)
TEST(boolean, self->kind == MIXT_TPL_BOOL)
TEST(is_true, self->kind == MIXT_TPL_BOOL && self->whole)
TEST(is_false, self->kind == MIXT_TPL_BOOL && !self->whole)
TEST(integer, self->kind == MIXT_TPL_INT)
TEST(is_float, self->kind == MIXT_TPL_FLOAT)
TEST(number, mixt__tpl_is_number(self))
TEST(string, self->kind == MIXT_TPL_TEXT)
TEST(mapping, self->kind == MIXT_TPL_DICT)
TEST(iterable, iterates(self))
TEST(sequence, iterates(self) && self->kind != MIXT_TPL_ONCE && self->kind != MIXT_TPL_LOOP)
TEST(callable, self->kind >= MIXT_TPL_MACRO && self->kind <= MIXT_TPL_FUNCTION)
TEST(escaped, self->safe)

/** Whether letters are of one case, by the rule that there is at least one. */
static mixt_status in_case(mixt__tpl_run *run, const mixt__tpl_value *self, char first, mixt__tpl_value *result)
{
    bool some = false, other = false;
    mixt__tpl_value text;
    MIXT_TRY(mixt__tpl_string(run, self, &text));
    MIXT_TRY(mixt__tpl_work_bytes(run, text.size));
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.text[i];
        if (c >= 0x80)
            return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "upper and lower case are known of ASCII only here");
        some |= c >= first && c < first + 26;
        other |= (c ^ 0x20) >= first && (c ^ 0x20) < first + 26;
    }
    *result = mixt__tpl_bool(some && !other);
    return MIXT_OK;
}

static mixt_status is_lower(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    (void)args;
    return in_case(run, self, 'a', result);
}

static mixt_status is_upper(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                            mixt__tpl_value *result)
{
    (void)args;
    return in_case(run, self, 'A', result);
}

/** The one argument of a test. */
static mixt_status other_of(mixt__tpl_run *run, const mixt__tpl_args *args, mixt__tpl_value *other)
{
    *other = mixt__tpl_none();
    if (args->count != 1 || args->named)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "this test needs one value to compare with");
    *other = args->values[0];
    return MIXT_OK;
}

static mixt_status equals(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                          mixt__tpl_value *result)
{
    mixt__tpl_value other;
    bool equal;
    MIXT_TRY(other_of(run, args, &other));
    MIXT_TRY(mixt__tpl_equal(run, self, &other, &equal));
    *result = mixt__tpl_bool(equal);
    return MIXT_OK;
}

static mixt_status differs(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                           mixt__tpl_value *result)
{
    MIXT_TRY(equals(run, self, args, result));
    result->whole = !result->whole;
    return MIXT_OK;
}

static mixt_status same_as(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                           mixt__tpl_value *result)
{
    mixt__tpl_value other;
    MIXT_TRY(other_of(run, args, &other));
    if (self->kind == other.kind && self->kind != MIXT_TPL_NONE && self->kind != MIXT_TPL_BOOL)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "sameas is known of true, false and none only here");
    *result = mixt__tpl_bool(self->kind == other.kind && (self->kind == MIXT_TPL_NONE || self->whole == other.whole));
    return MIXT_OK;
}

static mixt_status is_in(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                         mixt__tpl_value *result)
{
    mixt__tpl_value other;
    bool in;
    MIXT_TRY(other_of(run, args, &other));
    MIXT_TRY(mixt__tpl_contains(run, &other, self, &in));
    *result = mixt__tpl_bool(in);
    return MIXT_OK;
}

#define ORDER(name, sign, holds)                                                                                       \
    static mixt_status name(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,               \
                            mixt__tpl_value *result)                                                                   \
    {                                                                                                                  \
        mixt__tpl_value other;                                                                                         \
        int order;                                                                                                     \
        MIXT_TRY(other_of(run, args, &other));                                                                         \
        MIXT_TRY(mixt__tpl_order(run, self, &other, sign, &order));                                                    \
        *result = mixt__tpl_bool(holds);                                                                               \
        return MIXT_OK;                                                                                                \
    }

ORDER(less, "<", order < 0)
ORDER(at_most, "<=", order <= 0)
ORDER(more, ">", order > 0)
ORDER(at_least, ">=", order >= 0)

/** value % divisor == rest */
static mixt_status has_rest(mixt__tpl_run *run, const mixt__tpl_value *self, int64_t divisor, int64_t rest,
                            mixt__tpl_value *result)
{
    mixt__tpl_value by = mixt__tpl_int(divisor), left, wanted = mixt__tpl_int(rest);
    bool equal;
    MIXT_TRY(mixt__tpl_binary(run, MIXT_TPL_OP_REMAINDER, self, &by, &left));
    MIXT_TRY(mixt__tpl_equal(run, &left, &wanted, &equal));
    *result = mixt__tpl_bool(equal);
    return MIXT_OK;
}

static mixt_status odd(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                       mixt__tpl_value *result)
{
    (void)args;
    return has_rest(run, self, 2, 1, result);
}

static mixt_status even(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                        mixt__tpl_value *result)
{
    (void)args;
    return has_rest(run, self, 2, 0, result);
}

static mixt_status divisibleby(mixt__tpl_run *run, const mixt__tpl_value *self, const mixt__tpl_args *args,
                               mixt__tpl_value *result)
{
    mixt__tpl_value other;
    MIXT_TRY(other_of(run, args, &other));
    if (other.kind != MIXT_TPL_INT)
        return mixt__tpl_fail_at(run, MIXT_ERROR_DATA, "divisibleby needs a number");
    return has_rest(run, self, other.whole, 0, result);
}

const mixt__tpl_function *mixt__tpl_test_of(const char *name, size_t size)
{
    static const mixt__tpl_function table[] = {
        {"defined", defined},
        {"undefined", undefined},
        {"none", none_test},
        {"boolean", boolean},
        {"true", is_true},
        {"false", is_false},
        {"integer", integer},
        {"float", is_float},
        {"number", number},
        {"string", string},
        {"mapping", mapping},
        {"iterable", iterable},
        {"sequence", sequence},
        {"callable", callable},
        {"escaped", escaped},
        {"lower", is_lower},
        {"upper", is_upper},
        {"eq", equals},
        {"equalto", equals},
        {"ne", differs},
        {"sameas", same_as},
        {"in", is_in},
        {"lt", less},
        {"lessthan", less},
        {"le", at_most},
        {"gt", more},
        {"greaterthan", more},
        {"ge", at_least},
        {"odd", odd},
        {"even", even},
        {"divisibleby", divisibleby},
        {"==", equals},
        {"!=", differs},
        {"<", less},
        {"<=", at_most},
        {">", more},
        {">=", at_least},
        {0},
    };
    return mixt__tpl_function_of(table, name, size);
}

mixt_status mixt__tpl_apply_test(mixt__tpl_run *run, const mixt__tpl_value *name, const mixt__tpl_value *value,
                                 const mixt__tpl_args *args, bool *holds)
{
    mixt__tpl_value result;
    MIXT_TRY(mixt__tpl_need(run, name));
    const mixt__tpl_function *test = name->kind == MIXT_TPL_TEXT ? mixt__tpl_test_of(name->text, name->size) : NULL;
    if (!test)
        return mixt__tpl_fail_at(run, MIXT_ERROR_UNSUPPORTED, "test '%.*s' is not known here",
                                 name->kind == MIXT_TPL_TEXT ? (int)name->size : 1,
                                 name->kind == MIXT_TPL_TEXT ? name->text : "?");
    MIXT_TRY(test->call(run, value, args, &result));
    *holds = mixt__tpl_truth(&result);
    return MIXT_OK;
}
