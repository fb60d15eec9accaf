/* Which part of a rendered conversation is the assistant's: found by rendering parts of the conversation, not by what a
 * template says of itself.
 *
 * An answer is what stands between the rendering of the messages before it, with the generation prompt, and that of the
 * messages up to it. Where a template writes an answer otherwise once more messages follow (thoughts dropped, another
 * end), these renderings are no prefix of the whole. Then the answer is what changes when its content does, and the end
 * of the turn as far as that is written as in the last one.
 *
 * What a template writes by itself when it is told not to think (an empty block of thoughts) is not the answer's.
 */
#ifndef MIXT_DATA_CHAT_SPANS_H
#define MIXT_DATA_CHAT_SPANS_H

#include "data/chat/chat_template.h"

/** Bytes [begin, end) of a rendering. */
typedef struct mixt__chat_span {
    int64_t begin, end;
} mixt__chat_span;

typedef struct mixt__chat_spans {
    char *text; // of the whole conversation; owned
    int64_t size;
    mixt__chat_span *span; // owned; in ascending order
    int64_t count, capacity;
    int64_t thoughts; // answers before which the template wrote an empty block of thoughts
    int64_t found;    // answers that had to be found by their content
} mixt__chat_spans;

/** Renders a conversation and finds its answers.
 *  @param last only the last one
 *  @param silent whether the template knows enable_thinking: mixt__chat_can_be_silent */
mixt_status mixt__chat_spans_find(const mixt_chat_template *chat, const json_t *messages, const json_t *others,
                                  bool last, bool silent, mixt__chat_spans *spans);
void mixt__chat_spans_free(mixt__chat_spans *spans);

/** Whether the template writes something else in front of an answer where enable_thinking is false. */
bool mixt__chat_can_be_silent(const mixt_chat_template *chat);

#endif
