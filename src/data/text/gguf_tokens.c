/* From the files of a tokenizer to keys of GGUF.
 *
 * Tokens of byte-pair encoding stand as the files print them. Those of SentencePiece have scores there instead of
 * merges: here the rank of the first merge that makes a token, so that what is merged first here is so there.
 */
#include "data/text/gguf_tokens.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "data/text/tokenizer_json.h"
#include "store/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What a token is, by the numbers of GGUF. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

typedef struct token {
    const char *text; // of the parsed file, or of the arena; NULL: none has this id
    int64_t size;
    int type;
    double score;
} token;

typedef struct writer {
    const mixt__gguf_vocabulary *from;
    mixt__gguf_fields *fields;
    json_t *root, *about,
        *generation;    // tokenizer.json (or encoder.json), tokenizer_config.json, generation_config.json
    mixt__bytes merges; // of a GPT-2 vocabulary
    mixt__vocabulary vocabulary;
    mixt__json_tables tables;
    mixt__arena arena;
    token *tokens; // (rows)
    int64_t start; // the token that texts begin with; -1: none
} writer;

static mixt_status load(const char *folder, const char *name, const char *other, json_t **value)
{
    char path[4400];
    mixt__bytes bytes;
    if (!mixt__vocabulary_file(folder, name, other, path, sizeof path))
        return MIXT_OK;
    MIXT_TRY(mixt__bytes_read(path, &bytes));
    mixt_status status = mixt__json_parse(path, bytes.bytes, (size_t)bytes.size, 0, value);
    mixt__bytes_free(&bytes);
    return status;
}

/* ---- tokens ---- */

static mixt_status put(writer *w, int64_t id, const char *text, int64_t size, int type)
{
    if (id < 0 || id >= w->from->rows)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: token %lld, but the model's table has %lld rows: the tokenizer is not this model's",
                          w->from->folder, (long long)id, (long long)w->from->rows);
    w->tokens[id] = (token){.text = text, .size = size, .type = type};
    return MIXT_OK;
}

static bool is_byte(const char *text, size_t size)
{
    return size == 6 && !memcmp(text, "<0x", 3) && isxdigit((unsigned char)text[3]) &&
           isxdigit((unsigned char)text[4]) && text[5] == '>';
}

static mixt_status take_vocabulary(writer *w, json_t *vocabulary)
{
    bool sentence = w->tables.rule == MIXT_JSON_SENTENCE && w->root && json_object_get(w->root, "model");
    const char *unknown = json_string_value(json_object_get(json_object_get(w->root, "model"), "unk_token"));
    const char *key;
    size_t length;
    json_t *value;
    json_object_keylen_foreach(vocabulary, key, length, value)
    {
        int type = sentence && is_byte(key, length)               ? BYTE
                   : sentence && unknown && !strcmp(key, unknown) ? UNKNOWN
                   : !sentence && !strcmp(key, "<|endoftext|>")   ? CONTROL
                                                                  : NORMAL;
        MIXT_TRY(put(w, json_integer_value(value), key, (int64_t)length, type));
    }
    return MIXT_OK;
}

/** A token that is not SentencePiece's own stands with blanks as they are. */
static const char *with_blanks(writer *w, const char *text)
{
    char *made = mixt__arena_strdup(&w->arena, text);
    char *to = made;
    for (const char *c = made; made && *c;) {
        bool blank = !strncmp(c, MIXT_SENTENCE_BLANK, 3);
        *to++ = blank ? ' ' : *c;
        c += blank ? 3 : 1;
    }
    if (made)
        *to = '\0';
    return made;
}

static mixt_status take_added(writer *w)
{
    json_t *added = json_object_get(w->root, "added_tokens"), *one;
    size_t i;
    json_array_foreach(added, i, one)
    {
        const char *text = json_string_value(json_object_get(one, "content"));
        int64_t id = json_integer_value(json_object_get(one, "id"));
        bool special = json_is_true(json_object_get(one, "special"));
        if (text && !special && w->tables.rule == MIXT_JSON_SENTENCE)
            text = with_blanks(w, text);
        if (!text)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", w->from->folder);
        bool unknown = id >= 0 && id < w->from->rows && w->tokens[id].type == UNKNOWN;
        MIXT_TRY(put(w, id, text, (int64_t)strlen(text), unknown ? UNKNOWN : special ? CONTROL : USER));
        w->tokens[id].score = -1000;
    }
    return MIXT_OK;
}

/** Bytes as tokens: as GPT-2's files print them, and no merges. */
static mixt_status take_bytes(writer *w)
{
    unsigned extra = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        unsigned code = prints ? byte : extra++;
        const char *text =
            code < 128 ? mixt__arena_printf(&w->arena, "%c", (int)code)
                       : mixt__arena_printf(&w->arena, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 0x3f)));
        if (!text)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a vocabulary");
        MIXT_TRY(put(w, (int64_t)byte, text, (int64_t)strlen(text), NORMAL));
    }
    return MIXT_OK;
}

/* ---- merges ---- */

static const json_t *merges_of(const writer *w)
{
    return json_object_get(json_object_get(w->root, "model"), "merges");
}

/** The halves of a merge: a pair, or a text with a blank between. */
static bool split(const json_t *merge, const char **left, int64_t *left_size, const char **right)
{
    const char *text = json_string_value(merge), *blank = text ? strchr(text, ' ') : NULL;
    *left = text ? text : json_string_value(json_array_get(merge, 0));
    *right = text ? (blank ? blank + 1 : NULL) : json_string_value(json_array_get(merge, 1));
    *left_size = text ? (blank ? blank - text : 0) : *left ? (int64_t)strlen(*left) : 0;
    return *left && *right;
}

/** What merges make gets a score, the first the highest. The reader has found that they are merges. */
static mixt_status score(writer *w)
{
    const json_t *merges = merges_of(w);
    int64_t longest = w->vocabulary.longest;
    char *room = mixt__alloc_uninit((size_t)longest + 1);
    if (!room)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its merges", w->from->folder);
    for (size_t i = json_array_size(merges); i-- > 0;) { // the first one of a token counts
        const char *left, *right;
        int64_t size;
        if (!split(json_array_get(merges, i), &left, &size, &right) || size + (int64_t)strlen(right) > longest)
            continue;
        memcpy(room, left, (size_t)size);
        memcpy(room + size, right, strlen(right));
        int64_t id = mixt__vocabulary_find(&w->vocabulary, room, size + (int64_t)strlen(right));
        if (id >= 0)
            w->tokens[id].score = -(double)i;
    }
    mixt__free(room);
    return MIXT_OK;
}

/** Lines of merges.txt but for its version. @param add NULL: they are only counted */
static int64_t each_line(const writer *w, void (*add)(const writer *w, const char *line, int64_t size))
{
    const char *at = (const char *)w->merges.bytes, *end = at + w->merges.size;
    int64_t count = 0;
    while (at < end) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next : end;
        int64_t size = next - at - (next > at && next[-1] == '\r');
        if (size > 0 && (size < 8 || memcmp(at, "#version", 8))) {
            count++;
            if (add)
                add(w, at, size);
        }
        at = next + 1;
    }
    return count;
}

static void add_line(const writer *w, const char *line, int64_t size)
{
    mixt__gguf_add_text(w->fields, line, size);
}

static mixt_status put_merges(writer *w)
{
    static const char KEY[] = "tokenizer.ggml.merges";
    const json_t *merges = merges_of(w);
    if (!merges) {
        mixt__gguf_put_array(w->fields, KEY, MIXT_GGUF_STRING, each_line(w, NULL));
        each_line(w, add_line);
        return MIXT_OK;
    }
    mixt__gguf_put_array(w->fields, KEY, MIXT_GGUF_STRING, (int64_t)json_array_size(merges));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *left, *right;
        int64_t size;
        (void)split(json_array_get(merges, i), &left, &size, &right);
        char *text = mixt__arena_printf(&w->arena, "%.*s %s", (int)size, left, right);
        if (!text)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its merges", w->from->folder);
        mixt__gguf_add_text(w->fields, text, (int64_t)strlen(text));
    }
    return MIXT_OK;
}

/* ---- special tokens ---- */

static int64_t find(const writer *w, const char *text)
{
    for (int64_t i = w->from->rows; text && i-- > 0;)
        if (w->tokens[i].text && !strcmp(w->tokens[i].text, text))
            return i;
    return -1;
}

/** A special token by its name in tokenizer_config.json, or by its number in config.json. */
static int64_t special(const writer *w, const char *name)
{
    char key[32];
    const json_t *found = json_object_get(w->about, name);
    const char *text = json_string_value(json_is_object(found) ? json_object_get(found, "content") : found);
    int64_t id = find(w, text);
    if (id >= 0)
        return id;
    snprintf(key, sizeof key, "%s_id", name);
    const json_t *number = json_object_get(w->from->config, key);
    number = json_is_array(number) ? json_array_get(number, 0) : number;
    id = json_is_integer(number) ? json_integer_value(number) : -1;
    return id < w->from->rows ? id : -1;
}

/** The token that ends an answer, where generation stops at another one than the end of texts. */
static int64_t end_of_turn(const writer *w, int64_t end)
{
    const json_t *ends = json_object_get(w->generation, "eos_token_id"), *one;
    size_t i;
    json_array_foreach(ends, i, one)
    {
        int64_t id = json_integer_value(one);
        if (json_is_integer(one) && id != end && id >= 0 && id < w->from->rows)
            return id;
    }
    return -1;
}

static void put_id(writer *w, const char *key, int64_t id)
{
    if (id >= 0)
        mixt__gguf_put_uint(w->fields, key, (uint32_t)id);
}

static void put_special(writer *w)
{
    int64_t end = special(w, "eos_token");
    put_id(w, "tokenizer.ggml.bos_token_id", w->start >= 0 ? w->start : special(w, "bos_token"));
    put_id(w, "tokenizer.ggml.eos_token_id", end);
    put_id(w, "tokenizer.ggml.eot_token_id", end_of_turn(w, end));
    put_id(w, "tokenizer.ggml.unknown_token_id", w->tables.unknown);
    put_id(w, "tokenizer.ggml.padding_token_id", special(w, "pad_token"));
    mixt__gguf_put_bool(w->fields, "tokenizer.ggml.add_bos_token", w->start >= 0);
    mixt__gguf_put_bool(w->fields, "tokenizer.ggml.add_eos_token", false);
}

/* ---- the template ---- */

/** chat_template.jinja, or what tokenizer_config.json has: a text, or a list of some with names. */
static mixt_status put_template(writer *w)
{
    char path[4400];
    if (mixt__vocabulary_file(w->from->folder, "chat_template.jinja", NULL, path, sizeof path)) {
        mixt__bytes bytes;
        MIXT_TRY(mixt__bytes_read(path, &bytes));
        char *text = mixt__arena_printf(&w->arena, "%.*s", (int)bytes.size, (const char *)bytes.bytes);
        mixt__bytes_free(&bytes);
        if (!text)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for it", path);
        mixt__gguf_put_text(w->fields, "tokenizer.chat_template", text);
        return MIXT_OK;
    }
    const json_t *found = json_object_get(w->about, "chat_template");
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        const json_t *one = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && !strcmp(name, "default"))
            found = json_object_get(one, "template");
    }
    if (json_is_string(found))
        mixt__gguf_put_text(w->fields, "tokenizer.chat_template", json_string_value(found));
    return MIXT_OK;
}

/* ---- reading ---- */

static mixt_status read_json(writer *w)
{
    mixt__added_tokens added = {0};
    uint64_t print;
    mixt_status status = mixt__tokenizer_json_read(w->from->folder, &w->vocabulary, &w->tables, &added, &print);
    mixt__added_free(&added);
    MIXT_TRY(status);
    w->start = w->tables.start;
    MIXT_TRY(load(w->from->folder, "tokenizer.json", NULL, &w->root));
    MIXT_TRY(take_vocabulary(w, json_object_get(json_object_get(w->root, "model"), "vocab")));
    if (w->tables.rule == MIXT_JSON_SENTENCE)
        MIXT_TRY(score(w));
    return take_added(w);
}

static mixt_status read_pairs(writer *w)
{
    char path[4400];
    uint64_t print;
    w->tables.rule = MIXT_JSON_GPT2;
    MIXT_TRY(mixt__gpt2_read(w->from->folder, &w->vocabulary, &w->tables.bpe, &print));
    MIXT_TRY(load(w->from->folder, "encoder.json", "vocab.json", &w->root));
    if (mixt__vocabulary_file(w->from->folder, "vocab.bpe", "merges.txt", path, sizeof path))
        MIXT_TRY(mixt__bytes_read(path, &w->merges));
    return take_vocabulary(w, w->root);
}

static mixt_status read(writer *w)
{
    const mixt__gguf_vocabulary *from = w->from;
    w->start = w->tables.unknown = -1;
    w->tokens = mixt__alloc((size_t)from->rows * sizeof *w->tokens);
    if (!w->tokens)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", from->folder);
    if (!strcmp(from->kind, "bytes")) {
        w->tables.rule = MIXT_JSON_GPT2;
        return take_bytes(w);
    }
    if (strcmp(from->kind, "json") && strcmp(from->kind, "gpt2"))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: a tokenizer of kind %s cannot be written as GGUF", from->folder,
                          from->kind);
    MIXT_TRY(load(from->folder, "tokenizer_config.json", NULL, &w->about));
    MIXT_TRY(load(from->folder, "generation_config.json", NULL, &w->generation));
    return strcmp(from->kind, "json") ? read_pairs(w) : read_json(w);
}

/* ---- writing ---- */

/** What llama.cpp calls the rule by which text is cut; NULL: it has none that is the same. */
static const char *name_of_rule(const mixt__json_tables *t)
{
    switch (t->rule) {
    case MIXT_JSON_GPT2:
        return t->whole ? NULL : "gpt-2";
    case MIXT_JSON_DIGITS:
        return t->whole ? NULL : "smollm";
    case MIXT_JSON_LLAMA3:
        return t->digits == 3 ? (t->whole ? "llama-bpe" : "dbrx") : t->whole ? NULL : "qwen2";
    default:
        return "default";
    }
}

static mixt_status put_tokens(writer *w)
{
    mixt__gguf_put_array(w->fields, "tokenizer.ggml.tokens", MIXT_GGUF_STRING, w->from->rows);
    for (int64_t i = 0; i < w->from->rows; i++) {
        char padding[32];
        token *t = &w->tokens[i];
        if (t->text) {
            mixt__gguf_add_text(w->fields, t->text, t->size);
            continue;
        }
        t->type = UNUSED;
        snprintf(padding, sizeof padding, "[PAD%lld]", (long long)i);
        mixt__gguf_add_text(w->fields, padding, (int64_t)strlen(padding));
    }
    mixt__gguf_put_array(w->fields, "tokenizer.ggml.token_type", MIXT_GGUF_INT32, w->from->rows);
    for (int64_t i = 0; i < w->from->rows; i++)
        mixt__gguf_add_int(w->fields, w->tokens[i].type);
    if (w->tables.rule != MIXT_JSON_SENTENCE)
        return put_merges(w);
    mixt__gguf_put_array(w->fields, "tokenizer.ggml.scores", MIXT_GGUF_FLOAT32, w->from->rows);
    for (int64_t i = 0; i < w->from->rows; i++)
        mixt__gguf_add_float(w->fields, w->tokens[i].score);
    mixt__gguf_put_bool(w->fields, "tokenizer.ggml.add_space_prefix", w->tables.prefix);
    return MIXT_OK;
}

static mixt_status write_all(writer *w)
{
    MIXT_TRY(read(w));
    const char *rule = name_of_rule(&w->tables);
    if (!rule)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: GGUF has no name for the rule by which its tokenizer cuts text",
                          w->from->folder);
    mixt__gguf_put_text(w->fields, "tokenizer.ggml.model", w->tables.rule == MIXT_JSON_SENTENCE ? "llama" : "gpt2");
    mixt__gguf_put_text(w->fields, "tokenizer.ggml.pre", rule);
    MIXT_TRY(put_tokens(w));
    put_special(w);
    return put_template(w);
}

mixt_status mixt__gguf_tokens_put(const mixt__gguf_vocabulary *vocabulary, mixt__gguf_fields *fields)
{
    writer w = {.from = vocabulary, .fields = fields};
    mixt_status status = write_all(&w);
    json_decref(w.root);
    json_decref(w.about);
    json_decref(w.generation);
    mixt__bytes_free(&w.merges);
    mixt__bpe_free(&w.tables.bpe);
    mixt__vocabulary_free(&w.vocabulary);
    mixt__arena_free(&w.arena);
    mixt__free(w.tokens);
    return status;
}
