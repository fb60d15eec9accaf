/* Faults injected in nets of many kinds: the debugger names the op that made the first number that is not finite, its
 * layer and its pass, for every one of them.
 *
 * Nothing here tells the debugger where to look: weights, inputs, formats and loss scales are chosen so that exactly
 * one op, by its own arithmetic, cannot hold its result. Steps are compiled with fusion, as in training.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <mixt/mixt.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 8, F = 8, T = 8, SIDE = 6, CHANNELS = 2, VOCABULARY = 11, CLASSES = 4, SAMPLES = 16 };

typedef enum shape { POINTS, IMAGES, TOKENS } shape;

/** value = value * factor + plus */
typedef struct change {
    const char *param;
    float factor, plus;
} change;

typedef struct fault {
    const char *op, *layer; // that must be found
    bool backward;
    mixt_value (*net)(mixt_builder *b, mixt_value x);
    shape data;
    mixt_loss loss;
    const char *precision, *scale; // NULL: fp16; auto
    change changes[4];
    float inputs; // factor of the inputs; 0: 1
    bool same;    // every token is the same, and so is every target
} fault;

/* ---- nets ---- */

static mixt_value linear(mixt_builder *b, const char *name, mixt_value x)
{
    return mixt_linear(b, name, x, .features = F);
}

static mixt_value head(mixt_builder *b, mixt_value x)
{
    return mixt_linear(b, "head", x, .features = CLASSES);
}

static mixt_value mlp(mixt_builder *b, mixt_value x)
{
    x = mixt_relu(b, linear(b, "fc.0", x));
    x = mixt_relu(b, linear(b, "fc.1", x));
    return head(b, mixt_relu(b, linear(b, "fc.2", x)));
}

static mixt_value cnn(mixt_builder *b, mixt_value x) // (N, 6, 6, 2)
{
    x = mixt_relu(b, mixt_conv2d(b, "conv.0", x, .channels = 4, .kernel = 3, .pad = 1));
    x = mixt_max_pool(b, x, .size = 2);
    x = mixt_relu(b, mixt_conv2d(b, "conv.1", x, .channels = 4, .kernel = 3, .pad = 1));
    return head(b, mixt_flatten(b, x));
}

static mixt_value overlapping(mixt_builder *b, mixt_value x)
{
    x = mixt_conv2d(b, "conv.0", x, .channels = 4, .kernel = 3, .pad = 1);
    x = mixt_max_pool(b, x, .size = 3, .stride = 1);
    return head(b, mixt_sum(b, x, .axes = {1, 2}, .axis_count = 2));
}

static mixt_value normed(mixt_builder *b, mixt_value x)
{
    x = mixt_conv2d(b, "conv", x, .channels = 4, .kernel = 3, .pad = 1);
    x = mixt_relu(b, mixt_batch_norm(b, "bn", x));
    return head(b, mixt_flatten(b, x));
}

static mixt_value layer_normed(mixt_builder *b, mixt_value x)
{
    return head(b, mixt_layer_norm(b, "ln", linear(b, "fc", x)));
}

static mixt_value gpt(mixt_builder *b, mixt_value tokens) // (N, T)
{
    mixt_value x = mixt_embedding(b, "wte", tokens, .count = VOCABULARY, .features = F, .init = 0.5f), qkv[3];
    mixt_value y = mixt_layer_norm(b, "ln1", x);
    mixt_scope_push(b, "attn");
    qkv[0] = linear(b, "q", y);
    qkv[1] = linear(b, "k", y);
    qkv[2] = linear(b, "v", y);
    y = mixt_attention(b, qkv[0], qkv[1], qkv[2], .heads = 2, .causal = true);
    y = linear(b, "proj", y);
    mixt_scope_pop(b);
    mixt_scope_push(b, "residual");
    x = mixt_add(b, x, y);
    mixt_scope_pop(b);
    y = mixt_gelu(b, linear(b, "mlp.in", mixt_layer_norm(b, "ln2", x)));
    x = mixt_add(b, x, linear(b, "mlp.out", y));
    return mixt_linear(b, "head", mixt_layer_norm(b, "ln_f", x), .features = VOCABULARY);
}

static mixt_value bag(mixt_builder *b, mixt_value tokens)
{
    mixt_value x = mixt_embedding(b, "wte", tokens, .count = VOCABULARY, .features = F, .init = 0.5f);
    return mixt_linear(b, "head", x, .features = VOCABULARY);
}

static mixt_value shallow(mixt_builder *b, mixt_value x)
{
    return head(b, linear(b, "fc", x));
}

static mixt_value recurrent(mixt_builder *b, mixt_value tokens)
{
    mixt_value x = mixt_embedding(b, "wte", tokens, .count = VOCABULARY, .features = F, .init = 0.5f);
    x = mixt_lstm(b, "lstm", x, .features = F);
    return mixt_linear(b, "head", x, .features = VOCABULARY);
}

/** Two linear layers, one op on them in the layer "spot", and a head. */
#define ON_TWO(name, expression)                                                                                       \
    static mixt_value name(mixt_builder *b, mixt_value input)                                                          \
    {                                                                                                                  \
        mixt_value x = linear(b, "a", input), y = linear(b, "b", input);                                               \
        (void)y;                                                                                                       \
        mixt_scope_push(b, "spot");                                                                                    \
        x = expression;                                                                                                \
        mixt_scope_pop(b);                                                                                             \
        return head(b, x);                                                                                             \
    }
ON_TWO(added, mixt_add(b, x, y))
ON_TWO(subtracted, mixt_sub(b, x, y))
ON_TWO(multiplied, mixt_mul(b, x, y))
ON_TWO(divided, mixt_div(b, x, y))
ON_TWO(squared, mixt_square(b, x))
ON_TWO(raised, mixt_exp(b, x))
ON_TWO(logarithm, mixt_log(b, x))
ON_TWO(root, mixt_sqrt(b, x))
ON_TWO(stretched, mixt_affine(b, x, 1e5f, 0))
ON_TWO(dropped, mixt_dropout(b, x, 0.5f))
ON_TWO(summed, mixt_sum(b, x, .axes = {-1}, .axis_count = 1, .keep_dims = true))
ON_TWO(twice, mixt_mul(b, mixt_affine(b, x, 1, 0), mixt_affine(b, x, 1, 1)))
ON_TWO(in_fp32, mixt_affine(b, mixt_cast(b, x, MIXT_DTYPE_FP32), 1e5f, 0))
ON_TWO(paired, mixt_matmul(b, x, y, .trans_b = true))

/** A chain that is fused into one kernel: the fault is in the middle of it. */
ON_TWO(chain, mixt_affine(b, mixt_log(b, mixt_square(b, mixt_affine(b, x, 2, 0))), 3, 1))

/* ---- faults ---- */

static const fault faults[] = {
    // forward
    {"matmul", "fc.0", false, mlp, .changes = {{"fc.0.weight", 0, 60000}}},
    {"matmul", "fc.1", false, mlp, .changes = {{"fc.1.bias", 0, 70000}}},
    {"matmul", "fc.2", false, mlp, .changes = {{"fc.2.weight", 0, 60000}, {"fc.1.bias", 0, 2}}},
    {"conv2d", "conv.0", false, cnn, IMAGES, .changes = {{"conv.0.bias", 0, 70000}}},
    {"conv2d", "conv.1", false, cnn, IMAGES, .changes = {{"conv.0.bias", 0, 100}, {"conv.1.weight", 0, 1000}}},
    {"batch_norm", "bn", false, normed, IMAGES, .changes = {{"bn.weight", 0, 70000}}},
    {"layer_norm", "ln", false, layer_normed, .changes = {{"ln.bias", 0, 70000}}},
    {"layer_norm", "ln2", false, gpt, TOKENS, .changes = {{"ln2.weight", 0, 70000}}},
    {"matmul", "attn.v", false, gpt, TOKENS, .changes = {{"attn.v.bias", 0, 70000}}},
    {"add", "residual", false, gpt, TOKENS, .changes = {{"wte.weight", 1, 40000}, {"attn.proj.bias", 0, 40000}}},
    {"matmul", "lstm", false, recurrent, TOKENS, .changes = {{"lstm.weight_ih", 0, 60000}, {"wte.weight", 0, 1}}},
    {"add", "spot", false, added, .changes = {{"a.bias", 0, 40000}, {"b.bias", 0, 40000}}},
    {"sub", "spot", false, subtracted, .changes = {{"a.bias", 0, 40000}, {"b.bias", 0, -40000}}},
    {"mul", "spot", false, multiplied, .changes = {{"a.bias", 0, 300}, {"b.bias", 0, 300}}},
    {"div", "spot", false, divided, .precision = "fp32", .changes = {{"b.weight", 0, 0}, {"b.bias", 0, 0}}},
    {"square", "spot", false, squared, .changes = {{"a.bias", 0, 300}}},
    {"log", "spot", false, chain, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 0}}},
    {"exp", "spot", false, raised, .changes = {{"a.bias", 0, 15}}},
    {"log", "spot", false, logarithm, .precision = "bf16", .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 0}}},
    {"sqrt", "spot", false, root, .precision = "fp32", .changes = {{"a.bias", 0, -100}}},
    {"affine", "spot", false, stretched, .changes = {{"a.bias", 0, 10}}},
    {"dropout", "spot", false, dropped, .changes = {{"a.bias", 0, 50000}}},
    {"reduce", "spot", false, summed, .changes = {{"a.bias", 0, 20000}}},
    {"matmul", "spot", false, paired, .changes = {{"a.bias", 0, 300}, {"b.bias", 0, 300}}},
    // backward: what flows forward fits everywhere
    {"matmul", "head", true, mlp, .changes = {{"head.weight", 1000, 0}}},
    {"matmul", "fc.2", true, mlp,
     .changes = {{"fc.1.weight", 0, 0}, {"fc.1.bias", 0, 1e-3f}, {"fc.2.weight", 1000, 0}}},
    {"matmul", "fc.1", true, mlp,
     .changes = {{"fc.0.weight", 0, 0}, {"fc.0.bias", 0, 1e-3f}, {"fc.1.weight", 1000, 0}}},
    {"matmul", "head", true, cnn, IMAGES, .changes = {{"head.weight", 1000, 0}}},
    {"conv2d_grad_src", "conv.1", true, cnn, IMAGES,
     .changes = {{"conv.0.weight", 0, 0}, {"conv.0.bias", 0, 1e-3f}, {"conv.1.weight", 3000, 0}}},
    {"conv2d_grad_weight", "conv.0", true, cnn, IMAGES, .precision = "fp32", .scale = "1e10", .inputs = 1e32f,
     .changes = {{"conv.0.weight", 1e-32f, 0}}},
    {"pool_grad", "conv.0", true, overlapping, IMAGES, .changes = {{"head.weight", 8, 0}}},
    {"batch_norm_grad", "bn", true, normed, IMAGES, .changes = {{"conv.weight", 1e-4f, 0}, {"head.weight", 4, 0}}},
    {"layer_norm_grad", "ln", true, layer_normed, .changes = {{"fc.weight", 1e-4f, 0}, {"fc.bias", 0, 0}}},
    {"attention_grad", "attn", true, gpt, TOKENS,
     .changes = {{"attn.q.weight", 0, 0}, {"attn.q.bias", 0, 0}, {"attn.k.weight", 10000, 0}}},
    {"matmul", "attn.proj", true, gpt, TOKENS,
     .changes = {{"attn.v.weight", 0, 0}, {"attn.v.bias", 0, 1e-3f}, {"attn.proj.weight", 2000, 0}}},
    {"matmul", "mlp.out", true, gpt, TOKENS,
     .changes = {{"mlp.in.weight", 0, 0}, {"mlp.in.bias", 0, 1e-3f}, {"mlp.out.weight", 2000, 0}}},
    {"cross_entropy_grad", "loss", true, gpt, TOKENS, .scale = "16777216"},
    {"lstm_grad", "lstm", true, recurrent, TOKENS,
     .changes = {{"wte.weight", 0, 0}, {"lstm.bias", 0, 0}, {"lstm.weight_hh", 100000, 0}}},
    {"embedding_grad", "wte", true, bag, TOKENS, .precision = "fp32", .scale = "8e37", .same = true,
     .changes = {{"head.weight", 30, 0}}},
    {"matmul", "fc", true, shallow, .precision = "fp32", .scale = "1e10", .inputs = 1e32f,
     .changes = {{"fc.weight", 1e-32f, 0}}},
    {"reduce", "fc", true, shallow, .precision = "fp32", .scale = "8e37", .inputs = 1e-30f, .same = true,
     .changes = {{"head.weight", 60, 0}}},
    {"mse_grad", "loss", true, shallow, .loss = MIXT_LOSS_MSE, .precision = "fp32", .scale = "1e30",
     .changes = {{"head.bias", 0, 1e10f}}},
    {"mul", "spot", true, multiplied, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 1e-3f}, {"b.bias", 0, 50000}}},
    {"div", "spot", true, divided,
     .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 0}, {"b.weight", 0, 0}, {"b.bias", 0, 1e-3f}}},
    {"mul", "spot", true, raised, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 10}}},
    {"mul", "spot", true, squared, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 200}}},
    {"div", "spot", true, root, .precision = "fp32", .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 0}}},
    {"div", "spot", true, logarithm, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 1e-6f}}},
    {"affine", "spot", true, stretched, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 1e-3f}}},
    {"dropout", "spot", true, dropped, .changes = {{"head.weight", 12, 0}}},
    {"add", "spot", true, twice, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 10}}},
    {"cast", "spot", true, in_fp32, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 1e-3f}}},
    {"matmul", "spot", true, paired, .changes = {{"a.weight", 0, 0}, {"a.bias", 0, 1e-3f}, {"b.bias", 0, 50000}}},
};

/* ---- data ---- */

/** Numbers from -1 to 1 that look random. */
static float number(int64_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)(x % 20001) / 10000.0f - 1.0f;
}

/** What a fault's net is trained on. The arrays are the caller's, and read where they are. */
typedef struct set {
    float inputs[SAMPLES * SIDE * SIDE * CHANNELS], values[SAMPLES * CLASSES];
    int32_t tokens[SAMPLES * T], labels[SAMPLES * T];
    mixt_data *data;
} set;

static void open_data(const fault *f, set *s)
{
    mixt_data_arrays arrays = MIXT_OPTIONS(mixt_data_arrays, .samples = SAMPLES, .target = MIXT_TARGET_CLASS,
                                           .inputs = s->inputs, .borrow = true);
    for (int64_t i = 0; i < SAMPLES * SIDE * SIDE * CHANNELS; i++)
        s->inputs[i] = number(i) * (f->inputs != 0 ? f->inputs : 1);
    for (int64_t i = 0; i < SAMPLES * T; i++) {
        s->tokens[i] = f->same ? 3 : (int32_t)(i * 7 % VOCABULARY);
        s->labels[i] = f->same ? 1 : (int32_t)(i * 5 % (f->data == TOKENS ? VOCABULARY : CLASSES));
        s->values[i % (SAMPLES * CLASSES)] = number(i);
    }
    arrays.targets = s->labels;
    arrays.classes = CLASSES;
    arrays.input_rank = 1;
    arrays.input_dims[0] = F;
    if (f->data == IMAGES) {
        arrays.input_rank = 3;
        arrays.input_dims[0] = arrays.input_dims[1] = SIDE;
        arrays.input_dims[2] = CHANNELS;
    } else if (f->data == TOKENS) {
        arrays.input_dtype = MIXT_DTYPE_INT32;
        arrays.inputs = s->tokens;
        arrays.input_dims[0] = T;
        arrays.target = MIXT_TARGET_TOKENS;
        arrays.classes = VOCABULARY;
    } else if (f->loss == MIXT_LOSS_MSE) {
        arrays.target = MIXT_TARGET_VALUES;
        arrays.targets = s->values;
        arrays.target_elements = CLASSES;
        arrays.classes = 0;
    }
    const mixt_data_options options =
        MIXT_OPTIONS(mixt_data_options, .normalise = MIXT_NORMALISE_NONE, .val = -1, .in_order = true);
    if (mixt_data_from(&arrays, &options, &s->data) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
}

/* ---- looking ---- */

static void change_param(mixt_trainer *t, const change *c)
{
    mixt_param_info info;
    float values[1024];
    for (int64_t p = 0; p < mixt_trainer_param_count(t); p++) {
        assert_int_equal(mixt_trainer_param(t, p, &info), MIXT_OK);
        if (strcmp(info.name, c->param))
            continue;
        assert_true(info.count <= 1024);
        assert_int_equal(mixt_trainer_param_get(t, p, values), MIXT_OK);
        for (int64_t i = 0; i < info.count; i++)
            values[i] = values[i] * c->factor + c->plus;
        assert_int_equal(mixt_trainer_param_set(t, p, values), MIXT_OK);
        return;
    }
    fail_msg("no parameter %s", c->param);
}

static mixt_trainer *open_trainer(mixt_context *context, const fault *f, mixt_data *data)
{
    mixt_model *model = mixt_model_new(context, f->net, f->loss);
    mixt_trainer *t = mixt_trainer_new(model, .precision = f->precision ? f->precision : "fp16", .batch = N,
                                       .settings.loss_scale = f->scale, .optimizer = "sgd", .lr = 1e-30f);
    if (!t || mixt_trainer_compile(t, data) != MIXT_OK)
        fail_msg("%s: %s", f->layer, mixt_error_text());
    mixt_step step;
    assert_int_equal(mixt_trainer_step(t, data, &step), MIXT_OK); // weights are there, and are those it began with
    for (int i = 0; i < 4 && f->changes[i].param; i++)
        change_param(t, &f->changes[i]);
    return t;
}

/** A trainer about to make the step that fails. */
typedef struct scene {
    set *set;
    mixt_context *context;
    mixt_trainer *trainer;
} scene;

static scene open_scene(const fault *f)
{
    scene s = {.set = calloc(1, sizeof *s.set), .context = mixt_open(.device = "cpu", .threads = 1)};
    assert_non_null(s.set);
    open_data(f, s.set);
    s.trainer = open_trainer(s.context, f, s.set->data);
    return s;
}

static void close_scene(scene *s)
{
    mixt_close(s->context);
    mixt_data_close(s->set->data);
    free(s->set);
}

static mixt_debug *look(const scene *s, const mixt_debug_options *options)
{
    mixt_debug *d;
    if (mixt_debug_step_with(s->trainer, s->set->data, options, &d) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    return d;
}

/** Whether the debugger names op, layer and pass of one fault; else it says what it named. */
static bool finds(const fault *f, const mixt_debug_options *options, int *fused)
{
    scene s = open_scene(f);
    mixt_debug *d = look(&s, options);
    const mixt_debug_origin *o = mixt_debug_origin_of(d);
    bool right = o && o->cause == MIXT_DEBUG_CAUSE_OP && !strcmp(o->op, f->op) && !strcmp(o->layer, f->layer) &&
                 o->backward == f->backward && o->value.nan + o->value.inf > 0;
    for (int i = 0; right && i < o->input_count; i++)
        right = o->inputs[i].nan + o->inputs[i].inf == 0;
    if (!right)
        print_message("injected in %s of %s, %s: found %s of %s, %s (%s)\n", f->op, f->layer,
                      f->backward ? "backward" : "forward", o ? o->op : "nothing", o ? o->layer : "",
                      o && o->backward ? "backward" : "forward", o ? mixt_debug_cause_name(o->cause) : "");
    *fused += o && o->fused;
    mixt_debug_free(d);
    close_scene(&s);
    return right;
}

enum { FAULTS = sizeof faults / sizeof faults[0] };

static void test_all(void **state)
{
    (void)state;
    int found = 0, backward = 0, fused = 0;
    for (int i = 0; i < FAULTS; i++) {
        found += finds(&faults[i], NULL, &fused);
        backward += faults[i].backward;
    }
    assert_true(FAULTS >= 40 && 2 * backward >= FAULTS);
    assert_int_equal(found, FAULTS);
    assert_true(fused >= 5); // some of them hide in larger kernels
}

/** A look that makes no update finds them too, and leaves weights and the number of the step as they are. */
static void test_look(void **state)
{
    (void)state;
    const mixt_debug_options options = MIXT_OPTIONS(mixt_debug_options, .look = true);
    int found = 0, fused = 0;
    for (int i = 0; i < FAULTS; i += 5)
        found += !finds(&faults[i], &options, &fused);
    assert_int_equal(found, 0);
    scene s = open_scene(&(fault){.net = mlp});
    mixt_step step;
    mixt_debug *d = look(&s, &options);
    assert_int_equal(mixt_debug_describe(d).step.step, 2);
    mixt_debug_free(d);
    assert_int_equal(mixt_trainer_steps(s.trainer), 1);
    assert_int_equal(mixt_trainer_step(s.trainer, s.set->data, &step), MIXT_OK);
    assert_int_equal(step.step, 2);
    close_scene(&s);
}

/** A look sees the bits that the step then has, value by value, and nearly all of them have a partner in FP32. */
static void test_same_bits(void **state)
{
    (void)state;
    const fault nets[] = {{.net = cnn, .data = IMAGES}, {.net = gpt, .data = TOKENS}};
    for (int n = 0; n < 2; n++) {
        scene s = open_scene(&nets[n]);
        mixt_debug *before = look(&s, MIXT_OPTIONS_AT(mixt_debug_options, .look = true)), *d = look(&s, NULL);
        int64_t count = mixt_debug_describe(d).values, compared = 0;
        assert_int_equal(mixt_debug_describe(before).values, count);
        for (int64_t i = 0; i < count; i++) {
            const mixt_debug_value *a = mixt_debug_value_at(before, i), *b = mixt_debug_value_at(d, i);
            assert_string_equal(a->layer, b->layer);
            assert_string_equal(a->op, b->op);
            assert_true(a->count == b->count && a->zeros == b->zeros && a->min == b->min && a->max == b->max);
            assert_memory_equal(a->exponents, b->exponents, MIXT_DEBUG_EXPONENTS * sizeof *a->exponents);
            assert_true(!a->compared || a->error == b->error);
            compared += b->compared;
        }
        if (10 * compared < 9 * count)
            fail_msg("%lld of %lld values compared", (long long)compared, (long long)count);
        mixt_debug_free(before);
        mixt_debug_free(d);
        close_scene(&s);
    }
}

/** Who steers a run is told the layer to raise: the one that overflows in FP16, and none where FP32 does no better. */
static void test_blame(void **state)
{
    (void)state;
    const mixt_debug_options look = MIXT_OPTIONS(mixt_debug_options, .look = true);
    for (int i = 0; i < FAULTS; i++) {
        const fault *f = &faults[i];
        scene s = open_scene(f);
        mixt_debug *d;
        assert_int_equal(mixt_debug_step_with(s.trainer, s.set->data, &look, &d), MIXT_OK);
        const mixt_debug_layer *worst = mixt_debug_blamed_at(d, 0);
        bool blamed = worst && worst->blame > 0;
        bool low = !f->precision && f->net != chain; // the logarithm of 0 is no number in any format
        if (low && (!blamed || strcmp(worst->name, f->layer) || strcmp(worst->why, "overflow") ||
                    mixt_debug_origin_of(d)->backward != f->backward))
            fail_msg("%s of %s: %s is blamed", f->op, f->layer, blamed ? worst->name : "nothing");
        if (!low && blamed && !strcmp(worst->why, "overflow"))
            fail_msg("%s of %s: %s is blamed", f->op, f->layer, worst->name);
        mixt_debug_free(d);
        close_scene(&s);
    }
}

/** Nets without a fault have no origin, and nothing is said of them. */
static void test_healthy(void **state)
{
    (void)state;
    const fault nets[] = {{.layer = "mlp", .net = mlp},
                          {.layer = "cnn", .net = cnn, .data = IMAGES},
                          {.layer = "bn", .net = normed, .data = IMAGES},
                          {.layer = "gpt", .net = gpt, .data = TOKENS},
                          {.layer = "lstm", .net = recurrent, .data = TOKENS},
                          {.layer = "mlp in bf16", .net = mlp, .precision = "bf16"},
                          {.layer = "mlp in fp32", .net = mlp, .precision = "fp32"}};
    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++) {
        scene s = open_scene(&nets[i]);
        mixt_debug *d = look(&s, NULL);
        mixt_debug_info info = mixt_debug_describe(d);
        assert_null(mixt_debug_origin_of(d));
        assert_true(info.shadow && info.full_nonfinite == 0);
        assert_true(fabs(info.full_loss - info.step.loss) < 0.01 * info.step.loss);
        if (info.issues)
            fail_msg("%s: %s", nets[i].layer, mixt_debug_issue_at(d, 0)->text);
        mixt_debug_free(d);
        close_scene(&s);
    }
}

/* ---- what held the number before the step ---- */

static void expect_cause(mixt_trainer *t, mixt_data *data, mixt_debug_cause cause, const char *source, int64_t sample,
                         bool rounded, const char *words)
{
    mixt_debug *d;
    if (mixt_debug_step(t, data, &d) != MIXT_OK)
        fail_msg("%s", mixt_error_text());
    const mixt_debug_origin *o = mixt_debug_origin_of(d);
    assert_non_null(o);
    assert_int_equal(o->cause, cause);
    assert_string_equal(o->source, source);
    assert_int_equal(o->sample, sample);
    assert_int_equal(o->rounded, rounded);
    if (!strstr(mixt_debug_issue_at(d, 0)->text, words))
        fail_msg("expected \"%s\" in: %s", words, mixt_debug_issue_at(d, 0)->text);
    mixt_debug_free(d);
}

static void test_parameter(void **state)
{
    (void)state;
    const fault bad = {.net = mlp, .changes = {{"fc.1.bias", 1, NAN}}};
    const fault large = {.net = mlp, .changes = {{"fc.1.weight", 0, 1e6f}}};
    scene s = open_scene(&bad);
    expect_cause(s.trainer, s.set->data, MIXT_DEBUG_CAUSE_PARAMETER, "fc.1.bias", -1, false,
                 "parameter fc.1.bias holds NaN before the step");
    close_scene(&s);
    s = open_scene(&large);
    expect_cause(s.trainer, s.set->data, MIXT_DEBUG_CAUSE_PARAMETER, "fc.1.weight", -1, true, "too large for fp16");
    close_scene(&s);
}

/** A number of a sample or its target, put there after the set was opened, which checks them. */
static void check_data(float *number, float bad, const fault *f, set *s, mixt_debug_cause cause, int64_t sample,
                       bool rounded, const char *words)
{
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    open_data(f, s);
    *number = bad;
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, f->net, f->loss), .batch = N,
                                       .precision = f->precision ? f->precision : "fp16");
    expect_cause(t, s->data, cause, "", sample, rounded, words);
    mixt_close(context);
    mixt_data_close(s->data);
}

static void test_data(void **state)
{
    (void)state;
    set *s = calloc(1, sizeof *s);
    assert_non_null(s);
    const fault classes = {.net = mlp}, values = {.net = shallow, .loss = MIXT_LOSS_MSE};
    check_data(&s->inputs[5 * F + 2], NAN, &classes, s, MIXT_DEBUG_CAUSE_INPUT, 5, false, "sample 5");
    check_data(&s->inputs[3 * F], 1e6f, &classes, s, MIXT_DEBUG_CAUSE_INPUT, 3, true, "sample 3");
    check_data(&s->values[6 * CLASSES + 1], INFINITY, &values, s, MIXT_DEBUG_CAUSE_TARGET, 6, false, "sample 6");
    free(s);
}

static void test_scale(void **state)
{
    (void)state;
    set *s = calloc(1, sizeof *s);
    assert_non_null(s);
    open_data(&(fault){.net = mlp}, s);
    mixt_context *context = mixt_open(.device = "cpu", .threads = 1);
    mixt_trainer *t = mixt_trainer_new(mixt_model_new(context, mlp, MIXT_LOSS_CROSS_ENTROPY), .batch = N,
                                       .precision = "fp16", .inject_overflow = 1);
    expect_cause(t, s->data, MIXT_DEBUG_CAUSE_SCALE, "", -1, false, "loss scale");
    mixt_close(context);
    mixt_data_close(s->data);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),       cmocka_unit_test(test_look),    cmocka_unit_test(test_blame),
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_healthy), cmocka_unit_test(test_parameter),
        cmocka_unit_test(test_data),      cmocka_unit_test(test_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
