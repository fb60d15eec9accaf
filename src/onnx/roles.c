/* Which initializers are parameters, which running statistics, which constants: by what uses them and by their names.
 */
#include "onnx/onnx.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/** Inputs of an op that are weights, a bit each; those of `named` are where the initializer has a name of its own. */
typedef struct weight_slots {
    const char *op;
    unsigned weights, named, statistics;
} weight_slots;

static const weight_slots slots[] = {
    {"Conv", 6, 0, 0},
    {"ConvTranspose", 6, 0, 0},
    {"Gemm", 7, 0, 0},
    {"MatMul", 3, 0, 0},
    {"FusedMatMul", 3, 0, 0},
    {"Einsum", 7, 0, 0},
    {"BatchNormalization", 6, 0, 24},
    {"LayerNormalization", 6, 0, 0},
    {"SkipLayerNormalization", 28, 0, 0},
    {"InstanceNormalization", 6, 0, 0},
    {"GroupNormalization", 6, 0, 0},
    {"RMSNormalization", 2, 0, 0},
    {"SimplifiedLayerNormalization", 2, 0, 0},
    {"LSTM", 14, 0, 0},
    {"GRU", 14, 0, 0},
    {"RNN", 14, 0, 0},
    {"PRelu", 2, 0, 0},
    {"Gather", 1, 0, 0},
    {"BiasGelu", 2, 0, 0},
    {"DequantizeLinear", 0, 0, 0},
    {"Add", 0, 3, 0},
    {"Sub", 0, 3, 0},
    {"Mul", 0, 3, 0},
    {"Div", 0, 3, 0},
    {"Concat", 0, ~0u, 0},
};

static const char *const carriers[] = {"Transpose", "Identity",  "Cast",   "Reshape",
                                       "Squeeze",   "Unsqueeze", "Expand", "Slice"};

/** Whether a name was made by an exporter for a number that it folded. */
static bool is_anonymous(mixt__wire_span name)
{
    static const char *const begins[] = {"val_", "onnx::", "/", "_", "const", "Const", "c_", "ortshared_"};
    char text[64];
    mixt__onnx_text(name, text, sizeof text);
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (!strncmp(text, begins[i], strlen(begins[i])))
            return true;
    return strstr(text, "onstant") != NULL || strspn(text, "0123456789") == strlen(text);
}

/** Whether numbers are no weights: masks, or none that training could begin with. */
static bool is_mask(const mixt__onnx_tensor *t)
{
    enum { LOOK = 4096 };
    mixt__onnx_tensor first = *t;
    float values[LOOK];
    first.count = t->count < LOOK ? t->count : LOOK;
    if (!t->data.at || mixt__onnx_tensor_floats(&first, values) != MIXT_OK)
        return false;
    for (int64_t i = 0; i < first.count; i++)
        if (!isfinite(values[i]) || fabsf(values[i]) >= 9999)
            return true;
    return false;
}

static bool is_data(const mixt__onnx_file *f, int32_t value)
{
    return value && f->values[value].input && f->values[value].initializer < 0;
}

/** What one use says. */
static mixt__onnx_role role_in(const mixt__onnx_file *f, const mixt__onnx_node *n, int k, const mixt__onnx_tensor *t)
{
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        const weight_slots *s = &slots[i];
        unsigned bit = 1u << (k < 31 ? k : 31);
        if (!mixt__wire_is(n->op, s->op))
            continue;
        if (s->statistics & bit)
            return MIXT_ONNX_STATISTIC;
        if (s->weights & bit)
            return MIXT_ONNX_PARAMETER;
        bool apart = n->in_count == 2 && is_data(f, n->in[1 - k]); // means and scales of the data
        if (s->named & bit && t->count > 1 && !apart && !is_anonymous(t->name) && !is_mask(t))
            return MIXT_ONNX_PARAMETER;
    }
    return MIXT_ONNX_CONSTANT;
}

static bool carries(const mixt__onnx_node *n)
{
    for (size_t i = 0; i < sizeof carriers / sizeof carriers[0]; i++)
        if (mixt__wire_is(n->op, carriers[i]))
            return true;
    return false;
}

/** Whether a node gives an initializer another name: exporters write equal tensors once, and copies of it so. They are
 *  parameters of their own: PyTorch's shared ones have one name. */
static bool renames(const mixt__onnx_node *n)
{
    return mixt__wire_is(n->op, "Identity") && n->in_count == 1 && n->out_count == 1 && n->out[0];
}

/** Where the values of a node's inputs come from: those of initializers, or of copies of them. */
static mixt_status look_at(mixt__onnx *o, const mixt__onnx_node *n, int32_t *owner)
{
    mixt__onnx_file *f = o->file;
    mixt__onnx_tensor t;
    for (int k = 0; k < n->in_count; k++) {
        int32_t from = owner[n->in[k]];
        if (!from)
            continue;
        if (renames(n)) {
            owner[n->out[0]] = n->out[0];
            o->sources[n->out[0]] = o->sources[from];
        } else if (carries(n) && k == 0 && n->out_count > 0) {
            owner[n->out[0]] = n->out[0] ? from : 0;
        } else {
            MIXT_TRY(mixt__onnx_tensor_read(f, f->initializers[o->sources[from]], &t));
            t.name = f->values[from].name;
            mixt__onnx_role role = mixt__onnx_type_is_float(t.type) ? role_in(f, n, k, &t) : MIXT_ONNX_CONSTANT;
            if (role > o->roles[from])
                o->roles[from] = role;
        }
    }
    return MIXT_OK;
}

mixt_status mixt__onnx_find_roles(mixt__onnx *o)
{
    mixt__onnx_file *f = o->file;
    o->roles = mixt__arena_alloc(&o->arena, (size_t)(f->value_count + 1) * sizeof *o->roles);
    o->sources = mixt__arena_alloc(&o->arena, (size_t)(f->value_count + 1) * sizeof *o->sources);
    int32_t *owner = mixt__alloc((size_t)f->value_count * sizeof *owner); // the value whose name it has; 0: none
    bool room = o->roles && o->sources && owner;
    mixt_status status = room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read an ONNX file");
    for (int64_t v = 0; status == MIXT_OK && v < f->value_count; v++) {
        o->sources[v] = f->values[v].initializer;
        owner[v] = o->sources[v] >= 0 ? (int32_t)v : 0;
    }
    for (int64_t i = 0; status == MIXT_OK && i < f->node_count; i++)
        status = look_at(o, &f->nodes[i], owner);
    mixt__free(owner);
    return status;
}
