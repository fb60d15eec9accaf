/* The forms that rows of instruction data have, and what each says: a conversation, or texts. */
#ifndef MIXT_DATA_CHAT_FORMS_H
#define MIXT_DATA_CHAT_FORMS_H

#include "mixt/types.h"

#include <jansson.h>
#include <stdbool.h>

typedef enum mixt__chat_form {
    MIXT_CHAT_MESSAGES,     // {"messages": [{"role", "content"}]}
    MIXT_CHAT_COMPLETION,   // {"prompt": text, "completion": text}
    MIXT_CHAT_CONVERSATION, // the same with lists of messages
    MIXT_CHAT_TEXT,         // {"text": text}
    MIXT_CHAT_ALPACA,       // {"instruction", "input", "output"}
    MIXT_CHAT_SHAREGPT,     // {"conversations": [{"from", "value"}]}
    MIXT_CHAT_PREFERENCE,   // {"prompt": text, "chosen": text, "rejected": text}
    MIXT_CHAT_CHOICE,       // the same with lists of messages; without a prompt, it is what both begin with
    MIXT_CHAT_FORMS,
} mixt__chat_form;

/** How forms are called: "messages", "prompt_completion", … */
extern const char *const mixt__chat_form_names[MIXT_CHAT_FORMS];

/** What a row says. */
typedef struct mixt__chat_turns {
    mixt__chat_form form;
    json_t *messages;              // owned; roles and contents; NULL: a row of texts
    json_t *others;                // owned; what a template sees beside them, tools say
    size_t prompt;                 // CONVERSATION: so many of the messages are the prompt
    const char *text, *completion; // of texts, in the row; completion: NULL for TEXT
    size_t text_size, completion_size;
} mixt__chat_turns;

/** The form of a row; failures say what it lacks, without file and line. */
mixt_status mixt__chat_form_of(const json_t *row, mixt__chat_form *form);
/** Whether rows of a form are pairs of answers. */
static inline bool mixt__chat_form_pairs(mixt__chat_form form)
{
    return form == MIXT_CHAT_PREFERENCE || form == MIXT_CHAT_CHOICE;
}
/** What a row of this form says; checks roles and contents. The row must live as long as `turns`.
 *  @param rejected of a pair that answer; else the chosen one. Both are rows of the form that one answer has */
mixt_status mixt__chat_turns_of(const json_t *row, mixt__chat_form form, bool rejected, mixt__chat_turns *turns);
void mixt__chat_turns_free(mixt__chat_turns *turns);

/** Whether a message is the assistant's. */
bool mixt__chat_is_answer(const json_t *message);

#endif
