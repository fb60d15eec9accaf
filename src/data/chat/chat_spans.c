/* Answers in a rendered conversation: see chat_spans.h. */
#include "data/chat/chat_spans.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/chat/chat_forms.h"
#include "store/json.h"

#include <string.h>

/** A rendering, or none where the template refuses that part of a conversation. */
typedef struct rendering {
    char *text;
    int64_t size;
} rendering;

/** What one answer is found by. */
typedef struct search {
    const mixt_chat_template *chat;
    const json_t *messages, *others;
    const mixt__chat_spans *whole;
    size_t index;           // of the answer
    rendering before, upto; // the messages before it, with the generation prompt; those up to it
} search;

static void drop(rendering *r)
{
    mixt__free(r->text);
    *r = (rendering){0};
}

/** What a template refuses is none; want of memory is a failure. */
static mixt_status render(const mixt_chat_template *chat, const json_t *messages, const json_t *others, bool prompt,
                          rendering *r)
{
    size_t size = 0;
    mixt_status status = mixt__chat_render(chat, messages, others, prompt, &r->text, &size);
    r->size = (int64_t)size;
    if (status == MIXT_OK)
        return MIXT_OK;
    *r = (rendering){0};
    return status == MIXT_ERROR_MEMORY ? status : MIXT_OK;
}

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
}

/** The first `count` messages; number `replaced` of them in another form unless that is NULL. */
static json_t *first_of(const json_t *messages, size_t count, size_t replaced, json_t *with)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (mixt__json_add(list, json_incref(with && i == replaced ? with : json_array_get(messages, i))))
            return json_decref(list), NULL;
    return list;
}

static mixt_status render_first(const search *s, size_t count, bool prompt, rendering *r)
{
    json_t *list = first_of(s->messages, count, 0, NULL);
    mixt_status status = list ? render(s->chat, list, s->others, prompt, r) : no_memory();
    json_decref(list);
    return status;
}

/* ---- what texts have in common ---- */

static int64_t common_front(const char *a, int64_t a_size, const char *b, int64_t b_size)
{
    int64_t n = 0, most = a_size < b_size ? a_size : b_size;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

static int64_t common_back(const char *a, int64_t a_size, const char *b, int64_t b_size)
{
    int64_t n = 0, most = a_size < b_size ? a_size : b_size;
    while (n < most && a[a_size - 1 - n] == b[b_size - 1 - n])
        n++;
    return n;
}

static bool starts(const char *text, int64_t size, const rendering *r)
{
    return r->text && r->size <= size && !memcmp(text, r->text, (size_t)r->size);
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/** What of a text is different in another one: [begin, end), in whole characters. */
static mixt__chat_span difference(const char *text, int64_t size, const rendering *other)
{
    int64_t front = common_front(text, size, other->text, other->size);
    while (front > 0 && front < size && is_inside(text[front]))
        front--;
    int64_t back =
        common_back(text + front, size - front, other->text + front, other->size > front ? other->size - front : 0);
    while (back > 0 && is_inside(text[size - back]))
        back--;
    return (mixt__chat_span){front, size - back};
}

/* ---- thoughts ---- */

static json_t *told_not_to_think(const json_t *others)
{
    json_t *silent = json_object();
    if ((others && mixt__json_merge(silent, others)) || mixt__json_set(silent, "enable_thinking", json_false()))
        return json_decref(silent), NULL;
    return silent;
}

bool mixt__chat_can_be_silent(const mixt_chat_template *chat)
{
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", "x"), *silent = told_not_to_think(NULL);
    rendering usual = {0}, other = {0};
    bool can = messages && silent && render(chat, messages, NULL, true, &usual) == MIXT_OK &&
               render(chat, messages, silent, true, &other) == MIXT_OK && usual.text && other.text &&
               strcmp(usual.text, other.text) != 0;
    drop(&usual);
    drop(&other);
    json_decref(messages);
    json_decref(silent);
    return can;
}

/** Whether a message has thoughts of its own: in a member, or this very block in its content. */
static bool has_thoughts(const json_t *message, const char *block, int64_t size)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const json_t *content = json_object_get(message, "content");
    for (int i = 0; i < 3; i++)
        if (json_string_length(json_object_get(message, names[i])))
            return true;
    while (size > 0 && strchr(" \t\r\n", block[size - 1]))
        size--;
    while (size > 0 && strchr(" \t\r\n", *block)) {
        block++;
        size--;
    }
    const char *text = json_string_value(content);
    return text && memmem(text, json_string_length(content), block, (size_t)size);
}

/** Moves the beginning of an answer behind an empty block of thoughts that the template itself wrote there. */
static mixt_status skip_thoughts(const search *s, mixt__chat_span *span, int64_t *thoughts)
{
    rendering quiet = {0};
    if (json_object_get(s->others, "enable_thinking")) // the row has said itself what it wants
        return MIXT_OK;
    json_t *list = first_of(s->messages, s->index, 0, NULL), *silent = told_not_to_think(s->others);
    mixt_status status = list && silent ? render(s->chat, list, silent, true, &quiet) : no_memory();
    json_decref(list);
    json_decref(silent);
    if (quiet.text && quiet.size > s->before.size && quiet.size <= span->end &&
        starts(quiet.text, quiet.size, &s->before) && starts(s->whole->text, s->whole->size, &quiet) &&
        !has_thoughts(json_array_get(s->messages, s->index), quiet.text + s->before.size,
                      quiet.size - s->before.size)) {
        span->begin = quiet.size;
        ++*thoughts;
    }
    drop(&quiet);
    return status;
}

/* ---- answers that are found by their content ---- */

static const char MARK[] = "\xee\x80\x80"; // a character for private use: no data has it

/** The answer with other content; `bare`: without anything else that it had, calls of tools say. */
static json_t *other_answer(const json_t *message, bool bare)
{
    json_t *other = json_object();
    int failed = !bare && mixt__json_merge(other, message);
    failed |= mixt__json_set(other, "content", json_string(MARK));
    failed |= bare && mixt__json_set(other, "role", json_incref(json_object_get(message, "role")));
    if (failed)
        return json_decref(other), NULL;
    return other;
}

/** The first `count` messages with another answer. */
static mixt_status render_other(const search *s, size_t count, rendering *r)
{
    mixt_status status = MIXT_OK;
    for (int bare = 1; bare >= 0 && status == MIXT_OK && !r->text; bare--) {
        json_t *answer = other_answer(json_array_get(s->messages, s->index), bare);
        json_t *list = answer ? first_of(s->messages, count, s->index, answer) : NULL;
        status = list ? render(s->chat, list, s->others, false, r) : no_memory();
        json_decref(answer);
        json_decref(list);
    }
    return status;
}

static bool is_blank(const char *text, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", text[i]))
            return false;
    return true;
}

/** Adds the end of the turn as far as it is written as at the end of a conversation, markers whole or not at all, which
 *  is seen to when tokens are made; takes the beginning of the turn too where that is the same in both. */
static void widen(const search *s, const rendering *other, mixt__chat_span *span)
{
    const mixt__chat_spans *w = s->whole;
    mixt__chat_span last = difference(s->upto.text, s->upto.size, other);
    int64_t tail = s->upto.size - last.end, head = span->begin - s->before.size;
    int64_t same = common_front(w->text + span->end, w->size - span->end, s->upto.text + last.end, tail);
    if (same == tail || !is_blank(w->text + span->end, same))
        span->end += same;
    if (s->before.text && head > 0 && starts(w->text, w->size, &s->before) &&
        starts(s->upto.text, s->upto.size, &s->before) && last.begin - s->before.size == head &&
        !memcmp(w->text + s->before.size, s->upto.text + s->before.size, (size_t)head))
        span->begin = s->before.size;
}

static mixt_status find_by_content(search *s, mixt__chat_span *span)
{
    rendering other = {0}, last = {0};
    mixt_status status = render_other(s, json_array_size(s->messages), &other);
    if (status == MIXT_OK && !other.text)
        status = mixt__fail(MIXT_ERROR_DATA,
                            "message %zu: which tokens are this answer's cannot be told: the template writes it "
                            "otherwise in a longer conversation, and refuses another content in its place",
                            s->index + 1);
    if (status == MIXT_OK) {
        *span = difference(s->whole->text, s->whole->size, &other);
        if (s->upto.text)
            status = render_other(s, s->index + 1, &last);
        if (status == MIXT_OK && last.text)
            widen(s, &last, span);
    }
    drop(&other);
    drop(&last);
    return status;
}

/* ---- all answers ---- */

static mixt_status find_one(search *s, bool silent, mixt__chat_spans *spans, mixt__chat_span *span)
{
    bool end = s->index + 1 == json_array_size(s->messages);
    if (s->index)
        MIXT_TRY(render_first(s, s->index, true, &s->before));
    if (!end)
        MIXT_TRY(render_first(s, s->index + 1, false, &s->upto));
    if (end) {
        s->upto.text = mixt__strdup(spans->text);
        s->upto.size = spans->size;
        if (!s->upto.text)
            return no_memory();
    }
    if (starts(spans->text, spans->size, &s->upto) && starts(s->upto.text, s->upto.size, &s->before)) {
        *span = (mixt__chat_span){s->before.size, s->upto.size};
        return silent ? skip_thoughts(s, span, &spans->thoughts) : MIXT_OK;
    }
    spans->found++;
    return find_by_content(s, span);
}

static mixt_status add_span(mixt__chat_spans *spans, mixt__chat_span span)
{
    int64_t from = spans->count ? spans->span[spans->count - 1].end : 0;
    span.begin = span.begin < from ? from : span.begin;
    if (span.begin >= span.end)
        return MIXT_OK;
    if (!mixt__grow((void **)&spans->span, &spans->capacity, spans->count, sizeof *spans->span))
        return no_memory();
    spans->span[spans->count++] = span;
    return MIXT_OK;
}

static mixt_status find_all(const mixt_chat_template *chat, const json_t *messages, const json_t *others, bool last,
                            bool silent, mixt__chat_spans *spans)
{
    size_t count = json_array_size(messages), from = 0;
    for (size_t i = 0; last && i < count; i++)
        if (mixt__chat_is_answer(json_array_get(messages, i)))
            from = i;
    for (size_t i = from; i < count; i++) {
        search s = {.chat = chat, .messages = messages, .others = others, .whole = spans, .index = i};
        mixt__chat_span span = {0, 0};
        if (!mixt__chat_is_answer(json_array_get(messages, i)))
            continue;
        mixt_status status = find_one(&s, silent, spans, &span);
        drop(&s.before);
        drop(&s.upto);
        MIXT_TRY(status);
        MIXT_TRY(add_span(spans, span));
    }
    return MIXT_OK;
}

mixt_status mixt__chat_spans_find(const mixt_chat_template *chat, const json_t *messages, const json_t *others,
                                  bool last, bool silent, mixt__chat_spans *spans)
{
    size_t size = 0;
    *spans = (mixt__chat_spans){0};
    MIXT_TRY(mixt__chat_render(chat, messages, others, false, &spans->text, &size));
    spans->size = (int64_t)size;
    mixt_status status = find_all(chat, messages, others, last, silent, spans);
    if (status != MIXT_OK)
        mixt__chat_spans_free(spans);
    return status;
}

void mixt__chat_spans_free(mixt__chat_spans *spans)
{
    mixt__free(spans->text);
    mixt__free(spans->span);
    *spans = (mixt__chat_spans){0};
}
