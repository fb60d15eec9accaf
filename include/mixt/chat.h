/* How do conversations become text, and which of it is trained? By the template that comes with a model: Jinja, of
 * which what chat templates use is known here; anything else is refused by name and line. A template is untrusted
 * input: a rendering has a bounded number of steps and bytes. And how does one talk to a model? A message in, the
 * answer out as it is made.
 */
#ifndef MIXT_CHAT_H
#define MIXT_CHAT_H

#include "mixt/data.h"
#include "mixt/generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_chat_template mixt_chat_template;

/**
 * Reads a chat template.
 * @param path a file of Jinja; or a tokenizer_config.json, or a folder that has one or a chat_template.jinja: its
 *   bos_token and eos_token are then those of renderings.
 * @param chat set to the template, or to NULL on failure; free it with mixt_chat_template_free. It is read-only: any
 *   number of threads may use it at once.
 */
MIXT_API mixt_status mixt_chat_template_read(const char *path, mixt_chat_template **chat);
/** NULL is allowed. */
MIXT_API void mixt_chat_template_free(mixt_chat_template *chat);

typedef struct mixt_chat_render_options {
    size_t struct_size;
    bool generation_prompt; /**< ends with what the assistant's answer begins with; default false */
    const char *bos, *eos;  /**< what the template knows as bos_token and eos_token; default NULL: those of the folder,
                                 undefined where there are none */
} mixt_chat_render_options;
MIXT_API void mixt_chat_render_options_default(mixt_chat_render_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_chat_render_options .struct_size = sizeof(mixt_chat_render_options)

/**
 * The text of a conversation.
 * @param messages JSON: an array of messages, or an object with "messages" whose other members the template sees too
 *   ("tools", "documents", "enable_thinking").
 * @param name of the messages' file, for failures; NULL: "messages".
 * @param options NULL: the defaults.
 * @param text set to `size` bytes and a zero behind them, freed with mixt_free; NULL on failure.
 * @param size may be NULL.
 * @return MIXT_ERROR_DATA where the template refuses the conversation: mixt_error_text is the template's own message.
 */
MIXT_API mixt_status mixt_chat_render(const mixt_chat_template *chat, const char *messages, const char *name,
                                      const mixt_chat_render_options *options, char **text, int64_t *size);
/** The same of messages in a file; `text` is freed with mixt_free. */
MIXT_API mixt_status mixt_chat_render_file(const mixt_chat_template *chat, const char *path,
                                           const mixt_chat_render_options *options, char **text, int64_t *size);

/* ---- sets of conversations and instructions ---- */

/** What a set of kind chat ("chat:FILE.jsonl") holds. Texts belong to the set. */
typedef struct mixt_chat_info {
    const char *form;          /**< of its rows: "messages", "prompt_completion", "conversational_prompt_completion",
                                    "text", "alpaca", "sharegpt" */
    const char *chat_template; /**< file that the template was read from; NULL: there is none */
    int64_t rows;              /**< of the part */
    int64_t samples;           /**< rows with something to train */
    int64_t tokens;            /**< of all samples, once cut */
    int64_t trained_tokens;    /**< of those the ones that count in a loss: never the first of a sample */
    int64_t cut;               /**< rows that had more tokens than data.seq and one */
    int64_t untrained;         /**< rows left out, for want of anything to train */
    int64_t lost;              /**< those of them that lost all of it by the cut */
    int64_t shortest, median, longest; /**< tokens of a sample, before it is cut */
} mixt_chat_info;
/** @param info set to what belongs to the set; NULL on failure: the set is of another kind */
MIXT_API mixt_status mixt_chat_describe(const mixt_data *data, const mixt_chat_info **info);

/** One sample of such a set: a row of the file, however rows of batches are packed. */
typedef struct mixt_chat_sample {
    int64_t line;  /**< of the file, from 1 */
    int64_t count; /**< tokens */
    int64_t whole; /**< tokens before it was cut */
} mixt_chat_sample;
/**
 * @param index from 0, below mixt_chat_info.samples
 * @param tokens room for `count` of them; NULL: they are not wanted
 * @param trained the same: whether each counts in a loss
 */
MIXT_API mixt_status mixt_chat_read(const mixt_data *data, int64_t index, mixt_chat_sample *sample, int32_t *tokens,
                                    bool *trained);
/** The set's tokenizer, valid until it is closed; NULL: it has none. */
MIXT_API const mixt_tokenizer *mixt_data_tokenizer(const mixt_data *data);

/* ---- talking to a model ---- */

/** A model, its template, and what was said so far. */
typedef struct mixt_chat mixt_chat;

typedef struct mixt_chat_options {
    size_t struct_size;
    const char *weights;       /**< of a run: as in mixt_generator_load; default NULL: "final" */
    const char *adapter;       /**< beside the weights of a Hugging Face folder: a folder with adapter_model.safetensors
                                    and adapter_config.json, of mixt or PEFT; default NULL: none */
    const char *chat_template; /**< a file of Jinja; default NULL: that of the folder */
    const char *system;        /**< what the conversation begins with, as the system's message; default NULL: nothing */
    const char *variables;     /**< JSON object of what the template sees beside messages; default NULL */
    const char *stop;          /**< a text that ends an answer, beside the template's own ends; default NULL */
    int64_t most;              /**< tokens of an answer; default 1024 */
    mixt_sampling sampling;    /**< default: the most probable token */
    int64_t context; /**< tokens that are looked back at, the model's positions at most; default 0: data.seq of
                          a run, of a folder its positions, 2048 at most */
} mixt_chat_options;
MIXT_API void mixt_chat_options_default(mixt_chat_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_chat_options .struct_size = sizeof(mixt_chat_options), .most = 1024

/**
 * Begins a conversation with the language model of a run or of a Hugging Face folder.
 * @param folder as in mixt_generator_load; it must have a tokenizer, and a template unless the options name one.
 * @param options NULL: all defaults; copied.
 * @param chat set to NULL on failure; close it with mixt_chat_close before the context.
 */
MIXT_API mixt_status mixt_chat_open(mixt_context *context, const char *folder, const mixt_chat_options *options,
                                    mixt_chat **chat);
/** NULL is allowed. */
MIXT_API void mixt_chat_close(mixt_chat *chat);
/** As mixt_generator_warning: about the weights of its folder. */
MIXT_API const char *mixt_chat_warning(const mixt_chat *chat);

/** Says something to the model, which then answers. Where the conversation has become longer than the model's context,
 *  its oldest messages are dropped, the system's not. On failure, as where the template refuses the message, the
 *  conversation is as it was.
 *  @param message `size` bytes of UTF-8. */
MIXT_API mixt_status mixt_chat_ask(mixt_chat *chat, const char *message, int64_t size);
/**
 * Makes the next token of the answer.
 * @param text set to what there is of it that can be shown, whole characters; valid until the next call.
 * @param size may be 0: a token may end within a character, or text be held back that may be the beginning of a stop.
 * @param more false: the answer has ended, and is part of the conversation now.
 */
MIXT_API mixt_status mixt_chat_next(mixt_chat *chat, const char **text, int64_t *size, bool *more);
/** Ends the answer where it is: as it stands it is part of the conversation. */
MIXT_API mixt_status mixt_chat_cut(mixt_chat *chat);
/** Forgets what was said, but for the system's message. */
MIXT_API mixt_status mixt_chat_reset(mixt_chat *chat);

/** How a conversation stands. */
typedef struct mixt_chat_state {
    int64_t messages; /**< in the conversation, the system's among them */
    int64_t dropped;  /**< messages that the last question has dropped from it */
    int64_t prompt;   /**< tokens that the model was asked with */
    int64_t reread;   /**< of which it had to read so many, the others it remembered */
    int64_t tokens;   /**< of the answer so far */
    int64_t context;  /**< tokens that fit */
    const char *end; /**< "end" (the template's), "stop", "length", "context" or "cut"; NULL: there is no answer yet, or
                          it goes on */
} mixt_chat_state;
MIXT_API mixt_chat_state mixt_chat_state_get(const mixt_chat *chat);

#ifdef __cplusplus
}
#endif
#endif
