/* What an oracle is: for one op, a way to make inputs from a problem line, and the expected outputs in FP64 with the
 * error that a right FP32 kernel may make.
 *
 * Oracles share no arithmetic with the library; they read its op records and attribute structs only. An output's
 * `slack` is a computed bound of the error before the last rounding to the output's format; the runner adds that
 * rounding.
 */
#ifndef MIXT_TESTS_ORACLE_H
#define MIXT_TESTS_ORACLE_H

#include "ops/attrs.h"
#include "ops/ops.h"

enum { MAX_TENSORS = 8, MAX_KEYS = 24 };

/** `name key=value key=value …`; every key must be asked for. */
typedef struct problem {
    char text[512], buffer[512];
    const char *op, *device; // device: the only one that it is for; NULL: any
    int count;
    const char *keys[MAX_KEYS], *values[MAX_KEYS];
    bool used[MAX_KEYS];
} problem;

typedef struct test_tensor {
    mixt_dtype dtype;
    mixt__shape shape;
    int64_t count;
    double *value;          // what the format can hold, for inputs; exact, for outputs
    double *slack;          // outputs only
    double *number, *scale; // of a pair: what is stored, and `scales` of them; else NULL
    int64_t scales;         // one, or one for each index of the first dimension
    mixt__scale_kind scale_kind;
} test_tensor;

typedef struct test_case {
    const mixt__op *op;
    problem *problem;
    mixt_dtype dtype;      // of the operands that follow the policy
    mixt_dtype arithmetic; // of matrix work
    bool rounds;           // operands of products may be rounded to the arithmetic's format: TF32 on Tensor Cores
    bool integers;         // inputs are small integers
    bool inexact;          // set by an oracle whose attributes make even small integers round
    bool unrounded;        // inputs are not rounded to their formats: for checking an oracle by differences
    uint64_t random;
    union {
        mixt__matmul_attrs matmul;
        mixt__conv3d_attrs conv3d; // its plane: conv2d
        mixt__pool_attrs pool;
        mixt__norm_attrs norm;
        mixt__embedding_attrs embedding;
        mixt__attention_attrs attention;
        mixt__rnn_attrs rnn;
        mixt__rotary_attrs rotary;
        mixt__rotary_table_attrs rotary_table;
        mixt__reduce_attrs reduce;
        mixt__extreme_attrs extreme;
        mixt__sample_attrs sample;
        mixt__cumsum_attrs cumsum;
        mixt__trilu_attrs trilu;
        mixt__reshape_attrs reshape;
        mixt__transpose_attrs transpose;
        mixt__slice_attrs slice;
        mixt__split_attrs split;
        mixt__concat_attrs concat;
        mixt__loss_attrs loss;
        mixt__head_attrs head;
        mixt__ctc_attrs ctc;
        mixt__kl_attrs kl;
        mixt__pointwise_attrs pointwise;
        mixt__scaled_cast_attrs scaled_cast;
        mixt__tensor_stats_attrs tensor_stats;
        mixt__tensor_error_attrs tensor_error;
    } attrs;
    int in_count, out_count;
    test_tensor in[MAX_TENSORS], out[MAX_TENSORS];
    test_tensor after[MAX_TENSORS]; // expected contents of an input that is written in place; value NULL: unchanged
    struct test_case *strict;       // the same for a candidate that keeps FP32 where TF32 is allowed; NULL: this one
    struct test_case *forward;      // of a gradient: the case it differentiates, with respect to its output 0
    int grad_of[MAX_TENSORS];       // of a gradient: which forward input output o belongs to; -1: to none
    int grad_dst;                   // of a gradient: which input is the gradient of the forward output 0
    uint32_t never_added;           // bit o: output o is no parameter's gradient in this form of the op
    bool zero_or_value;             // dropout: each element may also be 0
    double zero_share;              // of those, expected
    const char *error;              // the problem line does not make sense
    struct test_block *blocks;
} test_case;

typedef struct oracle {
    const char *op;
    void (*make)(test_case *c);   // attributes and inputs
    void (*expect)(test_case *c); // outputs, once their shapes are inferred
    bool exact_integers;          // with small integers as inputs, only the last rounding to the output's format rounds
    bool partly_tensor;           // a candidate may make some of its products on Tensor Cores without saying so
    bool (*self_check)(void);     // of formulas that no gradient op covers; NULL: none
} oracle;

extern const oracle *const oracle_list[];
const oracle *oracle_find(const char *op);

/* ---- problem lines (tests/ops/problem.c) ---- */
bool problem_parse(problem *p, const char *line);
mixt__shape problem_shape(test_case *c, const char *key); // "3x5x7", "scalar"
bool problem_has(test_case *c, const char *key);
int64_t problem_int(test_case *c, const char *key, int64_t otherwise);
double problem_real(test_case *c, const char *key, double otherwise);
const char *problem_text(test_case *c, const char *key, const char *otherwise);

/* ---- cases (tests/ops/case.c) ---- */
test_case *case_new(const char *op, problem *p, mixt_dtype dtype, uint64_t seed);
/** A case of another op inside `c` (its forward): same problem, format and random numbers. */
test_case *case_inner(test_case *c, const char *op);
void case_free(test_case *c);
void *case_alloc(test_case *c, size_t bytes);
double case_uniform(test_case *c, double low, double high);
/** Appends an input drawn from [-1, 1], or from small integers. */
test_tensor *case_input(test_case *c, mixt_dtype dtype, mixt__shape shape);
test_tensor *case_input_between(test_case *c, mixt_dtype dtype, mixt__shape shape, double low, double high);
/** Appends numbers of FP8 with one scale for all, a power of two. */
test_tensor *case_scaled(test_case *c, mixt_dtype dtype, mixt__shape shape);
/** Appends a pair: INT8 numbers with a scale for each row, some of which are 0. */
test_tensor *case_pair(test_case *c, mixt__shape shape);
/** Appends integers in [low, high). */
test_tensor *case_indices(test_case *c, mixt__shape shape, int64_t low, int64_t high);
/** Appends a copy of a tensor of the forward case, rounded to its format. */
test_tensor *case_copy(test_case *c, const test_tensor *from);
/** What input i must hold after the run: what it held, until `expect` says otherwise. */
test_tensor *case_after(test_case *c, int i);
/** Asks the op's record for the outputs and makes room for them. */
void case_infer(test_case *c);
/** Runs the oracle of the forward case: infer and expect. */
void case_run(test_case *c);

/* ---- formats (tests/oracle/number.c) ---- */
double number_round(double value, mixt_dtype dtype); // nearest-even; infinity past the range
double number_decode(const void *array, mixt_dtype dtype, int64_t index);
void number_encode(void *array, mixt_dtype dtype, int64_t index, double value); // exact values only
double number_roundoff(mixt_dtype dtype);                                       // half a unit in the last place of 1
double number_smallest(mixt_dtype dtype);                                       // positive subnormal
/** What an operand of a product may be off by before it is multiplied, relative to itself: 0, or TF32's roundoff. Where
 * a library multiplies, twice that: Tensor Cores leave out the bits that TF32 lacks, and libraries do not round first.
 */
double number_operand(const test_case *c);

/** Unit roundoff of FP32, in which kernels accumulate. */
#define U32 (1.0 / 16777216)
/** Error bound, in units of U32, of one call of a vectorised exp, log or tanh, relative to the result. */
#define U_MATHS 8.0

#endif
