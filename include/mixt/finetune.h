/* How do I fine-tune a model that somebody has? By a folder and a file of conversations: everything else has a sensible
 * value, and what comes out is a configuration like any other, which mixt_run_open_config trains.
 */
#ifndef MIXT_FINETUNE_H
#define MIXT_FINETUNE_H

#include "mixt/config.h"
#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_finetune_options {
    size_t struct_size;
    int64_t lora;       /**< rank of the adapters; default 16 */
    bool full;          /**< all weights are trained, without adapters */
    const char *base;   /**< "bf16" (default), "fp32", or a format of fewer bits that train.frozen knows, as "int8": in
                             which the frozen model is kept. With `full` the precision: "bf16" or "fp32" */
    const char *memory; /**< that the run may take, as in "24G"; default NULL: what is free */
    const char *out;    /**< directory of the run; default NULL: as training names them */
    const char *const *settings; /**< "key=value" that win over all else, ended by NULL; default NULL: none */
    mixt_progress_fn *progress;  /**< hears of texts that are tokenised; default NULL: nobody does */
    void *user;                  /**< for it */
    bool preference; /**< data are pairs of answers, "chosen" and "rejected": which is better is learned (DPO); default
                          false */
} mixt_finetune_options;
MIXT_API void mixt_finetune_options_default(mixt_finetune_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_finetune_options .struct_size = sizeof(mixt_finetune_options), .lora = 16

/**
 * The configuration that fine-tunes a model. Sizes, tokenizer and template are the folder's. Adapters beside all linear
 * layers, alpha twice the rank, or all weights; a cosine after a warm-up of 3% of the updates, three epochs; samples
 * packed into rows as long as the longest of them, 512 to 2048 tokens; one in twenty held out.
 * @param folder of Hugging Face: config.json, weights, a tokenizer, and a template where the data needs one.
 * @param data a file of conversations or instructions (data.kind=chat), which is read once to see how large it is.
 * @param options NULL: all defaults.
 * @param config the caller's, freed with mixt_config_free; NULL on failure. Nothing is written.
 */
MIXT_API mixt_status mixt_finetune_config(const char *folder, const char *data, const mixt_finetune_options *options,
                                          mixt_config **config);

#ifdef __cplusplus
}
#endif
#endif
