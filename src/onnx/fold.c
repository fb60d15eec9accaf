/* Nodes whose inputs are known, computed while the graph is built: arithmetic on shapes, positions, masks. */
#include "onnx/fold.h"

#include <math.h>
#include <string.h>

/* ---- elementwise ---- */

static double divide(double a, double b, bool whole)
{
    if (!whole)
        return a / b;
    return b == 0 ? 0 : trunc(a / b);
}

/** Python's remainder, or C's with fmod. */
static double remainder_of(double a, double b, bool c_like)
{
    if (b == 0)
        return 0;
    double r = fmod(a, b);
    return !c_like && r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static const char *const binaries[] = {
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
    "And", "Or",  "Xor"};
enum {
    ADD,
    SUB,
    MUL,
    DIV,
    POW,
    MOD,
    MAX,
    MIN,
    EQUAL,
    LESS,
    GREATER,
    LESS_EQUAL,
    GREATER_EQUAL,
    AND,
    OR,
    XOR,
    BINARIES
};

static double apply(int op, double a, double b, bool whole, bool c_like)
{
    switch (op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case MUL:
        return a * b;
    case DIV:
        return divide(a, b, whole);
    case POW:
        return pow(a, b);
    case MOD:
        return remainder_of(a, b, c_like);
    case MAX:
        return a > b ? a : b;
    case MIN:
        return a < b ? a : b;
    case EQUAL:
        return a == b;
    case LESS:
        return a < b;
    case GREATER:
        return a > b;
    case LESS_EQUAL:
        return a <= b;
    case GREATER_EQUAL:
        return a >= b;
    case AND:
        return a != 0 && b != 0;
    case OR:
        return a != 0 || b != 0;
    default:
        return (a != 0) != (b != 0);
    }
}

/** The shape that shapes broadcast to; false: they do not. */
static bool broadcast(const mixt__item *const *in, int count, int *rank, int64_t dims[MIXT_ONNX_RANK])
{
    *rank = 0;
    for (int k = 0; k < count; k++)
        *rank = in[k]->rank > *rank ? in[k]->rank : *rank;
    for (int i = 0; i < *rank; i++) {
        dims[i] = 1;
        for (int k = 0; k < count; k++) {
            int at = i - (*rank - in[k]->rank);
            int64_t dim = at >= 0 ? in[k]->dims[at] : 1;
            if (dim != 1 && dims[i] != 1 && dim != dims[i])
                return false;
            dims[i] = dim != 1 ? dim : dims[i];
        }
    }
    return true;
}

/** Steps of an operand along the dimensions of what it is broadcast to. */
static void steps_of(const mixt__item *item, int rank, int64_t steps[MIXT_ONNX_RANK])
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        int at = i - (rank - item->rank);
        steps[i] = at >= 0 && item->dims[at] != 1 ? stride : 0;
        stride *= at >= 0 ? item->dims[at] : 1;
    }
}

static int find(const char *const *names, int count, mixt__wire_span op)
{
    int i = 0;
    while (i < count && !mixt__wire_is(op, names[i]))
        i++;
    return i;
}

/** As a number of its type would have been stored. */
static double stored(mixt__onnx_type type, double value)
{
    if (type == MIXT_ONNX_BOOL)
        return value != 0;
    if (type == MIXT_ONNX_DOUBLE)
        return value;
    return mixt__onnx_type_is_float(type) ? (double)(float)value : trunc(value);
}

static mixt_status fold_binary(mixt__import *m, const mixt__onnx_node *n, int op)
{
    mixt__item *a = mixt__import_in(m, n, 0), *b = mixt__import_in(m, n, 1);
    int rank;
    int64_t dims[MIXT_ONNX_RANK], steps[2][MIXT_ONNX_RANK];
    double *out;
    if (n->in_count != 2 || !a || !b || !broadcast((const mixt__item *const[]){a, b}, 2, &rank, dims))
        return mixt__import_refuse(m, "operands do not fit");
    const double *x = mixt__item_numbers(m, a), *y = mixt__item_numbers(m, b);
    bool whole = !mixt__onnx_type_is_float(a->type), c_like = mixt__onnx_int(n, "fmod", 0) != 0;
    mixt__onnx_type type = op >= EQUAL ? MIXT_ONNX_BOOL : a->type;
    if (!x || !y)
        return MIXT_ERROR_MEMORY;
    steps_of(a, rank, steps[0]);
    steps_of(b, rank, steps[1]);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), type, rank, dims, &out));
    mixt__walk w = mixt__walk_start(rank, dims);
    for (int64_t i = 0; mixt__walk_more(&w); mixt__walk_next(&w), i++)
        out[i] = stored(type, apply(op, x[mixt__walk_at(&w, steps[0])], y[mixt__walk_at(&w, steps[1])], whole, c_like));
    return MIXT_OK;
}

static mixt_status fold_where(mixt__import *m, const mixt__onnx_node *n)
{
    mixt__item *in[3];
    int rank;
    int64_t dims[MIXT_ONNX_RANK], steps[3][MIXT_ONNX_RANK];
    const double *from[3];
    double *out;
    for (int k = 0; k < 3; k++)
        if (!(in[k] = mixt__import_in(m, n, k)) || !(from[k] = mixt__item_numbers(m, in[k])))
            return mixt__import_refuse(m, "three inputs are needed");
    if (!broadcast((const mixt__item *const *)in, 3, &rank, dims))
        return mixt__import_refuse(m, "operands do not fit");
    for (int k = 0; k < 3; k++)
        steps_of(in[k], rank, steps[k]);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), in[1]->type, rank, dims, &out));
    mixt__walk w = mixt__walk_start(rank, dims);
    for (int64_t i = 0; mixt__walk_more(&w); mixt__walk_next(&w), i++) {
        int k = from[0][mixt__walk_at(&w, steps[0])] != 0 ? 1 : 2;
        out[i] = from[k][mixt__walk_at(&w, steps[k])];
    }
    return MIXT_OK;
}

static const char *const unaries[] = {"Neg",   "Abs",  "Sqrt",    "Exp",      "Log",        "Floor", "Ceil",
                                      "Round", "Not",  "Cast",    "Identity", "Reciprocal", "Erf",   "Sin",
                                      "Cos",   "Tanh", "Sigmoid", "Sign",     "CastLike",   "Relu"};
enum {
    NEG,
    ABS,
    SQRT,
    EXP,
    LOG,
    FLOOR,
    CEIL,
    ROUND,
    NOT,
    CAST,
    IDENTITY,
    RECIPROCAL,
    ERF,
    SIN,
    COS,
    TANH,
    SIGMOID,
    SIGN,
    CAST_LIKE,
    RELU,
    UNARIES
};

static double apply_one(int op, double x)
{
    switch (op) {
    case NEG:
        return -x;
    case ABS:
        return fabs(x);
    case SQRT:
        return sqrt(x);
    case EXP:
        return exp(x);
    case LOG:
        return log(x);
    case FLOOR:
        return floor(x);
    case CEIL:
        return ceil(x);
    case ROUND:
        return nearbyint(x);
    case NOT:
        return x == 0;
    case RECIPROCAL:
        return 1 / x;
    case ERF:
        return erf(x);
    case SIN:
        return sin(x);
    case COS:
        return cos(x);
    case TANH:
        return tanh(x);
    case SIGMOID:
        return 1 / (1 + exp(-x));
    case SIGN:
        return (double)((x > 0) - (x < 0));
    case RELU:
        return x > 0 ? x : 0;
    default:
        return x;
    }
}

static mixt_status fold_unary(mixt__import *m, const mixt__onnx_node *n, int op)
{
    mixt__item *a = mixt__import_in(m, n, 0), *like = mixt__import_in(m, n, 1);
    const double *x = a ? mixt__item_numbers(m, a) : NULL;
    double *out;
    if (!x)
        return mixt__import_refuse(m, "an input is needed");
    mixt__onnx_type type = op == NOT                 ? MIXT_ONNX_BOOL
                           : op == CAST              ? (mixt__onnx_type)mixt__onnx_int(n, "to", 0)
                           : op == CAST_LIKE && like ? like->type
                                                     : a->type;
    if (!mixt__onnx_type_bits(type))
        return mixt__import_refuse(m, "a cast to %s", mixt__onnx_type_name(type));
    int64_t count = mixt__item_count(a);
    MIXT_TRY(mixt__item_constant(m, mixt__import_out(m, n, 0), type, a->rank, a->dims, &out));
    for (int64_t i = 0; i < count; i++)
        out[i] = stored(type, apply_one(op, x[i]));
    return MIXT_OK;
}

/* ---- reductions ---- */

static const char *const reductions[] = {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean"};
enum { SUM, PROD, MOST, LEAST, MEAN, REDUCTIONS };

static double join(int op, double a, double b)
{
    return op == PROD ? a * b : op == MOST ? (b > a ? b : a) : op == LEAST ? (b < a ? b : a) : a + b;
}

static mixt_status fold_reduction(mixt__import *m, const mixt__onnx_node *n, int op)
{
    mixt__item *a = mixt__import_in(m, n, 0), *result = mixt__import_out(m, n, 0);
    int64_t axes[MIXT_ONNX_RANK], dims[MIXT_ONNX_RANK], kept[MIXT_ONNX_RANK], steps[MIXT_ONNX_RANK], stride = 1;
    const double *x = a ? mixt__item_numbers(m, a) : NULL;
    double *out;
    unsigned mask = 0;
    int axis_count = mixt__import_list(m, n, "axes", 1, axes, MIXT_ONNX_RANK), rank = 0;
    bool keep = mixt__onnx_int(n, "keepdims", 1) != 0;
    if (!x || mixt__item_count(a) < 1 || axis_count > MIXT_ONNX_RANK)
        return mixt__import_refuse(m, "nothing to reduce");
    for (int i = 0; i < axis_count; i++)
        if (mixt__import_axis(axes[i], a->rank) >= 0)
            mask |= 1u << mixt__import_axis(axes[i], a->rank);
    if (axis_count <= 0 && !mixt__onnx_int(n, "noop_with_empty_axes", 0))
        mask = (1u << a->rank) - 1;
    for (int i = 0; i < a->rank; i++) {
        dims[i] = mask >> i & 1 ? 1 : a->dims[i];
        if (keep || !(mask >> i & 1))
            kept[rank++] = dims[i];
    }
    for (int i = a->rank - 1; i >= 0; stride *= dims[i--])
        steps[i] = mask >> i & 1 ? 0 : stride;
    mixt__item from = *a;
    MIXT_TRY(mixt__item_constant(m, result, from.type, rank, kept, &out));
    int64_t count = mixt__item_count(result), all = mixt__item_count(&from);
    bool *begun = mixt__arena_alloc(&m->arena, (size_t)count + 1);
    if (!begun)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a constant");
    mixt__walk w = mixt__walk_start(from.rank, from.dims);
    for (int64_t i = 0; mixt__walk_more(&w); mixt__walk_next(&w), i++) {
        int64_t at = mixt__walk_at(&w, steps);
        out[at] = begun[at] ? join(op, out[at], x[i]) : x[i];
        begun[at] = true;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = stored(from.type, op == MEAN ? out[i] * (double)count / (double)all : out[i]);
    return MIXT_OK;
}

bool mixt__onnx_folds(const mixt__onnx_node *n)
{
    return !n->domain.bytes && (find(binaries, BINARIES, n->op) < BINARIES || find(unaries, UNARIES, n->op) < UNARIES ||
                                find(reductions, REDUCTIONS, n->op) < REDUCTIONS || mixt__wire_is(n->op, "Where") ||
                                mixt__onnx_folds_shape(n->op));
}

mixt_status mixt__onnx_fold(mixt__import *m, const mixt__onnx_node *n)
{
    int op;
    if (n->domain.bytes || n->out_count < 1)
        return MIXT_ERROR_UNSUPPORTED;
    if ((op = find(binaries, BINARIES, n->op)) < BINARIES)
        return fold_binary(m, n, op);
    if ((op = find(unaries, UNARIES, n->op)) < UNARIES)
        return fold_unary(m, n, op);
    if ((op = find(reductions, REDUCTIONS, n->op)) < REDUCTIONS)
        return fold_reduction(m, n, op);
    if (mixt__wire_is(n->op, "Where"))
        return fold_where(m, n);
    return mixt__onnx_fold_shape(m, n);
}
