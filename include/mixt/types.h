/* Which words do all other headers speak? Status codes, number formats, kinds of work, and how options are filled.
 *
 * Functions that can fail return mixt_status. The text of the newest failure on the calling thread is
 * mixt_error_text(): it names the file, layer, shape or value at fault and what to do about it.
 */
#ifndef MIXT_TYPES_H
#define MIXT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mixt/version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MIXT_STATUS_LIST(X)                                                                                            \
    X(OK, 0, "ok")                                                                                                     \
    X(ERROR_ARGUMENT, 1, "invalid argument")                                                                           \
    X(ERROR_SHAPE, 2, "shapes do not fit")                                                                             \
    X(ERROR_DTYPE, 3, "number format not possible here")                                                               \
    X(ERROR_CONFIG, 4, "invalid configuration")                                                                        \
    X(ERROR_FILE, 5, "file cannot be read or written")                                                                 \
    X(ERROR_FORMAT, 6, "file is damaged or of another kind")                                                           \
    X(ERROR_DATA, 7, "data not usable")                                                                                \
    X(ERROR_MEMORY, 8, "out of memory")                                                                                \
    X(ERROR_DEVICE, 9, "device failed or is missing")                                                                  \
    X(ERROR_UNSUPPORTED, 10, "not supported")                                                                          \
    X(ERROR_STATE, 11, "call not allowed in this state")                                                               \
    X(ERROR_INTERNAL, 12, "defect in mixt")                                                                            \
    X(END, 13, "no more data")

typedef enum mixt_status {
#define MIXT_STATUS_ENUM(name, number, text) MIXT_##name = number,
    MIXT_STATUS_LIST(MIXT_STATUS_ENUM)
#undef MIXT_STATUS_ENUM
} mixt_status;

/** The kind of failure in words ("out of memory"); never NULL. */
MIXT_API const char *mixt_status_text(mixt_status status);

/** What went wrong in the newest failed call on this thread; "" when nothing has failed yet. */
MIXT_API const char *mixt_error_text(void);

/** Frees a text that a function of mixt has given for it. NULL is allowed. */
MIXT_API void mixt_free(void *text);

/** Lets the compiler check the arguments of a function like printf: which argument is the format, which comes first. */
#ifdef __GNUC__
#define MIXT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define MIXT_PRINTF(text, first)
#endif

/**
 * Sets the calling thread's mixt_error_text and returns `status`: for callbacks, and for programs that report failures
 * of their own the way the library does, `return mixt_fail(MIXT_ERROR_DATA, "%s: has no labels", path);`.
 * @param status what kind of failure it is; MIXT_OK sets the text too.
 * @param format of printf; its arguments may point into mixt_error_text(). Text past 2047 bytes is cut.
 */
MIXT_API mixt_status mixt_fail(mixt_status status, const char *format, ...) MIXT_PRINTF(2, 3);

/** Number formats. TF32 is stored as FP32 whose low 13 mantissa bits are zero. */
typedef enum mixt_dtype {
    MIXT_DTYPE_NONE = 0,
    MIXT_DTYPE_FP32,
    MIXT_DTYPE_TF32,
    MIXT_DTYPE_FP16,
    MIXT_DTYPE_BF16,
    MIXT_DTYPE_FP8_E4M3,
    MIXT_DTYPE_FP8_E5M2,
    MIXT_DTYPE_INT8,
    MIXT_DTYPE_UINT8,
    MIXT_DTYPE_INT32,
    MIXT_DTYPE_INT64,
    MIXT_DTYPE_FP64,
    MIXT_DTYPE_NF4, /**< two numbers a byte; frozen weights alone are kept in it */
    MIXT_DTYPE_COUNT
} mixt_dtype;

/** Bytes of one element, of NF4 of two; 0 for MIXT_DTYPE_NONE. */
MIXT_API size_t mixt_dtype_size(mixt_dtype dtype);

/** "fp32", "bf16", "fp8_e4m3", …; "none" for anything else. */
MIXT_API const char *mixt_dtype_name(mixt_dtype dtype);

/** The format of a name as mixt_dtype_name gives it; MIXT_DTYPE_NONE when there is none. */
MIXT_API mixt_dtype mixt_dtype_parse(const char *name);

/** True for FP32, TF32, FP16, BF16, FP8 and FP64. */
MIXT_API bool mixt_dtype_is_float(mixt_dtype dtype);

#define MIXT_MAX_RANK 6

/** Kinds of work, to sum up what a step does. */
typedef enum mixt_work {
    MIXT_WORK_PRODUCTS,
    MIXT_WORK_ATTENTION,
    MIXT_WORK_CONVOLUTION,
    MIXT_WORK_RECURRENT,
    MIXT_WORK_NORMS,
    MIXT_WORK_POINTWISE,
    MIXT_WORK_LOSS,
    MIXT_WORK_OTHER, /**< embedding, pooling, sums, copies */
    MIXT_WORK_OPTIMIZER,
    MIXT_WORK_COUNT
} mixt_work;

/* ---- options ----
 *
 * What a function can do without stands in a struct of options, which begins with its own size. It is filled with all
 * defaults first, by MIXT_OPTIONS or by the function that is called as the struct is, with _default behind it:
 *
 *   mixt_trainer_options o = MIXT_OPTIONS(mixt_trainer_options, .lr = 0.1f); // C
 *
 *   mixt_trainer_options o;                                                  // C++, and where names are bound
 *   mixt_trainer_options_default(&o, sizeof o);
 *   o.lr = 0.1f;
 *
 * A program that was compiled with a smaller struct gets the defaults of what it does not know. A struct that was not
 * filled, its size 0, is refused, and so is one that sets what the library does not know yet. NULL for a struct means
 * all defaults. 0 means 0. Where 0 cannot be meant it is refused by name; of a count or a number of bytes it stands for
 * "not given", and the field says what holds then. NULL for a text or an array means that none is given. */

/** A number that the library is to choose, by what the option's own words say; nobody means this one. */
#define MIXT_AUTO (-2147483647 - 1)

#ifndef __cplusplus
/** A struct of options with its defaults but for the fields named: MIXT_OPTIONS(mixt_run_options, .signals = true).
 *  That one replaces the other is what compilers warn of with -Wextra, so they are told that it is meant. */
#define MIXT_OPTIONS(type, ...)                                                                                        \
    __extension__({                                                                                                    \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"")                           \
            type mixt_options_made = {MIXT_DEFAULTS_##type, __VA_ARGS__};                                              \
        _Pragma("GCC diagnostic pop") mixt_options_made;                                                               \
    })
/** The address of such a struct, which is there as long as the block around it. */
#define MIXT_OPTIONS_AT(type, ...) ((type[1]){MIXT_OPTIONS(type, __VA_ARGS__)})
/* Two that part a macro's last plain argument from the options behind it. */
#define MIXT_OPTIONS_FIRST(first, ...) (first)
#define MIXT_OPTIONS_REST(first, ...) __VA_ARGS__
/* What a function puts into `made`, as a value: NULL where it failed. */
#define MIXT_MADE(type, function, ...)                                                                                 \
    __extension__({                                                                                                    \
        type *type##_made = NULL;                                                                                      \
        (void)function(__VA_ARGS__, &type##_made);                                                                     \
        type##_made;                                                                                                   \
    })
#endif

#ifdef __cplusplus
}
#endif
#endif
