/* How do weights get from one format to another, and from a run to other programs? As files.
 *
 * Everything that is written is put in its place whole or not at all.
 */
#ifndef MIXT_WEIGHTS_H
#define MIXT_WEIGHTS_H

#include "mixt/num.h"
#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a conversion did beyond rounding, in values. */
typedef struct mixt_convert_report {
    int64_t kept;       /**< tensors as they were, for they hold no floating-point numbers */
    int64_t overflowed; /**< past the range of the format: infinite or NaN now */
    int64_t clamped;    /**< past the range: the nearest end of it now */
    int64_t vanished;   /**< not 0, too small for a floating-point format: 0 now */
    int64_t nan_lost;   /**< NaN that an integer format does not have: 0 now */
} mixt_convert_report;

/**
 * Converts an .npy array, or the floating-point tensors of a .safetensors file (others and the metadata are kept as
 * they are). Either kind of file gives either kind, as long as a .npy destination gets one tensor only and a format
 * that .npy has.
 * @param src file to read; its kind is known from the name.
 * @param dst file to write; may be `src` itself, with `overwrite`.
 * @param dtype format of the numbers in `dst`.
 * @param options NULL for the defaults. Stochastic rounding draws other bits for each tensor. A scale where neither
 *   the source nor `dtype` has a format with one is refused.
 * @param overwrite replaces a file that is there; else that is an error.
 * @param report may be NULL.
 */
MIXT_API mixt_status mixt_convert_file(const char *src, const char *dst, mixt_dtype dtype,
                                       const mixt_convert_options *options, bool overwrite,
                                       mixt_convert_report *report);

/** How to export a run's weights. */
typedef struct mixt_export_options {
    size_t struct_size;
    const char *weights; /**< "final" (default), "best", "last", or the number of a checkpoint */
    const char *folder;  /**< to write to, made if it is not there; never the run's own; default: RUN/export */
    mixt_dtype dtype;    /**< FP32 (default), FP16 or BF16; a weight that FP16 cannot hold is an error */
    int64_t vocab;       /**< gpt, bert_mlm: tokens that are real, the rest is padding and left out; 0: as the run's
                              configuration or data says */
    bool overwrite;      /**< replaces files that are there; else that is an error */
    /** Hears of a text that is tokenised, where only the data knows the vocabulary; default NULL: nobody does. */
    mixt_progress_fn *progress;
    void *user;      /**< for it */
    bool not_finite; /**< writes weights that are not finite too; else they are an error */
    /** Of a run with adapters, one of the two: merged writes W + scale · B A in the place of each layer's weight,
     * adapter writes PEFT's two files and nothing else. Default: such a run is refused. */
    bool merged, adapter;
} mixt_export_options;
MIXT_API void mixt_export_options_default(mixt_export_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_export_options .struct_size = sizeof(mixt_export_options)

/** What was written. After a failure it holds what was known by then. */
typedef struct mixt_export_report {
    char *folder; /**< for mixt_free */
    int64_t tensors;
    const char *model; /**< name in the zoo; NULL: not known */
    bool renamed;      /**< names, layouts and config.json are another program's; else the tensors keep mixt's names */
    char *differs; /**< why none of the other program's own models takes the tensors as it is, in words, for mixt_free;
                        NULL: one does */
    bool tokens_unknown; /**< a language model on ready tokens without data.vocab: no tokenizer lies beside it */
    /** Of merged weights: the largest difference between logits with adapters and merged, both in the run's precision
     * on one text, and the largest of those logits; NAN: they were not compared. */
    double difference, largest;
} mixt_export_report;

/**
 * Writes model.safetensors, and config.json where there is one, for other programs: gpt and bert_mlm in the names and
 * layouts of Hugging Face transformers (from_pretrained takes the folder), resnet and vgg in torchvision's
 * (load_state_dict takes the tensors). Other models keep mixt's own names. The key init of a configuration is the way
 * back. Beside them: inputs.json (shape, mean, std and classes of the inputs, task, precision), policy.yaml where the
 * run has one, and for language models the tokenizer's files as transformers reads them. Tables of positions have
 * those that were trained, or begun with, under any names. The run's data is not needed.
 * @param run folder of a run: see mixt/run.h.
 * @param options NULL: all defaults.
 * @param report may be NULL. Its texts are the caller's, also after a failure.
 */
MIXT_API mixt_status mixt_run_export(const char *run, const mixt_export_options *options, mixt_export_report *report);

/** How to write a GGUF file. */
typedef struct mixt_gguf_options {
    size_t struct_size;
    const char *type;    /**< "f32", "f16", "bf16" (default), "q8_0" or "q4_0": of the matrices; vectors are F32 */
    const char *weights; /**< of a run: "final" (default), "best", "last", or the number of a checkpoint */
    const char *file;    /**< to write; default: model-TYPE.gguf in RUN/export, or in the folder */
    int64_t vocab;       /**< of a run: tokens that are real, as in mixt_export_options; 0: as it says */
    bool overwrite;      /**< replaces a file that is there; else that is an error */
    mixt_progress_fn *progress; /**< as in mixt_export_options */
    void *user;                 /**< for it */
} mixt_gguf_options;
MIXT_API void mixt_gguf_options_default(mixt_gguf_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_gguf_options .struct_size = sizeof(mixt_gguf_options)

/** What was written. After a failure it holds what was known by then. */
typedef struct mixt_gguf_report {
    char *file; /**< for mixt_free */
    int64_t tensors, bytes;
    const char *architecture; /**< in the words of GGUF */
    char *note;               /**< what the file cannot say of the model, in words, for mixt_free; NULL: nothing */
} mixt_gguf_report;

/**
 * Writes a language model as one GGUF file, for llama.cpp: weights, tokenizer and template of conversations. Q8_0 and
 * Q4_0 are ggml's own blocks; of Q4_0, the output head (or the embedding that is it) stays in Q8_0. What GGUF's
 * architecture would compute otherwise is refused by name.
 * Of a run whose weights are adapters the adapter alone is written (adapter-TYPE.gguf), which llama.cpp puts beside the
 * model.
 * @param run folder of a run, or a Hugging Face folder with config.json, weights and a tokenizer.
 * @param options NULL: all defaults.
 * @param report may be NULL. Its texts are the caller's, also after a failure.
 */
MIXT_API mixt_status mixt_gguf_write(const char *run, const mixt_gguf_options *options, mixt_gguf_report *report);

/** How to write an ONNX file. */
typedef struct mixt_onnx_write_options {
    size_t struct_size;
    const char *weights; /**< "final" (default), "best", "last", or the number of a checkpoint */
    const char *file;    /**< to write; default: RUN/export.onnx */
    bool overwrite;      /**< replaces a file that is there; else that is an error */
} mixt_onnx_write_options;
MIXT_API void mixt_onnx_write_options_default(mixt_onnx_write_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_onnx_write_options .struct_size = sizeof(mixt_onnx_write_options)

/** What was written. After a failure it holds what was known by then. */
typedef struct mixt_onnx_report {
    char *file; /**< for mixt_free */
    int64_t nodes, tensors, bytes;
} mixt_onnx_report;

/**
 * Writes the model of a run, as it predicts, as an ONNX file of opset 20 with FP32 weights, for onnxruntime and others.
 * The number of samples is left open; images are (N, C, H, W). Nodes and weights have the names of mixt's layers. The
 * metadata says the model (mixt.model), how inputs were normalised (mixt.mean, mixt.std) and the names of classes
 * (mixt.classes, a JSON array).
 * @param run folder of a run; its data is not needed.
 * @param options NULL: all defaults.
 * @param report may be NULL. Its text is the caller's, also after a failure.
 * @return MIXT_ERROR_UNSUPPORTED with the names of all layers that cannot be written; nothing is written then.
 */
MIXT_API mixt_status mixt_onnx_write(const char *run, const mixt_onnx_write_options *options, mixt_onnx_report *report);

#ifdef __cplusplus
}
#endif
#endif
