/* Reading tokenizer.json, the file of Hugging Face's tokenizers: byte-pair encoding over bytes with the rules of GPT-2
 * or Llama 3, and over characters with bytes to fall back to, as SentencePiece has it; and BERT's WordPiece.
 *
 * A file that asks for anything else is refused with what that is: tokens that are nearly right would ruin a model
 * without a word.
 */
#include "data/text/tokenizer_json.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "data/hash.h"
#include "store/json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 1 << 28 };

typedef struct reader {
    const char *path;
    const json_t *root, *model;
    mixt__vocabulary *vocabulary;
    mixt__json_tables *tables;
    mixt__added_tokens *added;
    mixt__arena arena;
} reader;

static mixt_status refuse(const reader *r, const char *what, const char *value)
{
    return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: %s '%.120s' is not supported", r->path, what, value ? value : "");
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* ---- how text is cut ---- */

static const char gpt2_rule[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char llama3_rule[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                                  "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
static const char digits_rule[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
                                  "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static mixt_status read_split(const reader *r, const json_t *split)
{
    const char *rule = text_of(json_object_get(split, "pattern"), "Regex");
    r->tables->rule = !strcmp(rule, gpt2_rule) ? MIXT_JSON_GPT2 : MIXT_JSON_LLAMA3;
    r->tables->digits = !strcmp(rule, llama3_rule) ? 3 : 1;
    bool known = !strcmp(rule, gpt2_rule) || !strcmp(rule, llama3_rule) || !strcmp(rule, digits_rule);
    if (!known || json_is_true(json_object_get(split, "invert")))
        return refuse(r, "its rule to cut text,", rule);
    return strcmp(text_of(split, "behavior"), "Isolated")
               ? refuse(r, "what it does where it cuts,", text_of(split, "behavior"))
               : MIXT_OK;
}

/** ByteLevel. @param own whether it cuts text by a rule of its own, GPT-2's */
static mixt_status read_level(const reader *r, const json_t *level, bool own)
{
    if (strcmp(text_of(level, "type"), "ByteLevel") || own == json_is_false(json_object_get(level, "use_regex")))
        return refuse(r, "its pre_tokenizer,", text_of(level, "type"));
    if (json_is_true(json_object_get(level, "add_prefix_space")))
        return refuse(r, "its pre_tokenizer,", "ByteLevel with add_prefix_space");
    return MIXT_OK;
}

/** Over bytes, with or without a rule in front. */
static mixt_status read_byte_level(const reader *r, const json_t *pre)
{
    const json_t *steps = json_object_get(pre, "pretokenizers"), *level = pre;
    if (!strcmp(text_of(pre, "type"), "Sequence")) {
        level = json_array_get(steps, 1);
        const json_t *digits = json_array_get(steps, 0);
        if (json_array_size(steps) == 2 && !strcmp(text_of(digits, "type"), "Digits")) {
            r->tables->rule =
                json_is_true(json_object_get(digits, "individual_digits")) ? MIXT_JSON_DIGITS : MIXT_JSON_GPT2;
            return r->tables->rule == MIXT_JSON_DIGITS ? read_level(r, level, true)
                                                       : refuse(r, "its pre_tokenizer,", "Digits in groups");
        }
        if (json_array_size(steps) != 2 || strcmp(text_of(json_array_get(steps, 0), "type"), "Split"))
            return refuse(r, "its pre_tokenizer,", "Sequence");
        MIXT_TRY(read_split(r, json_array_get(steps, 0)));
    }
    return read_level(r, level, level == pre);
}

/** A normalizer that writes blanks as U+2581. */
static bool is_replace(const json_t *step)
{
    return !strcmp(text_of(step, "type"), "Replace") &&
           !strcmp(text_of(json_object_get(step, "pattern"), "String"), " ") &&
           !strcmp(text_of(step, "content"), MIXT_SENTENCE_BLANK);
}

/** Llama 2's own way: a normalizer that puts a blank in front and replaces all. */
static bool is_sentence_normalizer(const json_t *normalizer, bool *prefix)
{
    const json_t *steps = json_object_get(normalizer, "normalizers");
    *prefix = false;
    if (is_replace(normalizer)) // Gemma's
        return true;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const char *type = text_of(step, "type");
        if (!strcmp(type, "Prepend") && !strcmp(text_of(step, "prepend"), MIXT_SENTENCE_BLANK))
            *prefix = true;
        else if (!is_replace(step))
            return false;
    }
    return !strcmp(text_of(normalizer, "type"), "Sequence") && json_array_size(steps) > 0;
}

static mixt_status read_sentence(const reader *r, const json_t *pre, const json_t *normalizer)
{
    r->tables->rule = MIXT_JSON_SENTENCE;
    bool idle = !strcmp(text_of(pre, "type"), "Split") && is_replace(normalizer) &&
                !strcmp(text_of(json_object_get(pre, "pattern"), "String"), " "); // no blanks are left to cut at
    if (json_is_object(pre) && !idle) {                                           // Metaspace: later files' way
        const char *scheme = text_of(pre, "prepend_scheme");
        if (strcmp(text_of(pre, "type"), "Metaspace") || strcmp(text_of(pre, "replacement"), MIXT_SENTENCE_BLANK) ||
            !json_is_false(json_object_get(pre, "split")))
            return refuse(r, "its pre_tokenizer,", text_of(pre, "type"));
        r->tables->prefix = strcmp(scheme, "never") != 0;
        r->tables->prefix_first = !strcmp(scheme, "first");
        r->tables->prefix_lone = true;
        return json_is_object(normalizer) ? refuse(r, "its normalizer,", text_of(normalizer, "type")) : MIXT_OK;
    }
    r->tables->replaced = true;
    return is_sentence_normalizer(normalizer, &r->tables->prefix)
               ? MIXT_OK
               : refuse(r, "its normalizer,", text_of(normalizer, "type"));
}

static mixt_status read_rule(const reader *r)
{
    const json_t *pre = json_object_get(r->root, "pre_tokenizer"), *normalizer = json_object_get(r->root, "normalizer");
    if (strcmp(text_of(r->model, "type"), "BPE") && json_object_get(r->model, "type"))
        return refuse(r, "its model,", text_of(r->model, "type"));
    if (json_is_number(json_object_get(r->model, "dropout")))
        return refuse(r, "its model,", "BPE with dropout");
    if (json_is_true(json_object_get(r->model, "byte_fallback")))
        return read_sentence(r, pre, normalizer);
    r->tables->compose = !strcmp(text_of(normalizer, "type"), "NFC");
    if (json_is_object(normalizer) && !r->tables->compose)
        return refuse(r, "its normalizer,", text_of(normalizer, "type"));
    r->tables->whole = json_is_true(json_object_get(r->model, "ignore_merges"));
    return read_byte_level(r, pre);
}

/* ---- tokens ---- */

static mixt_status put_token(reader *r, mixt__span *tokens, int64_t count, const char *text, size_t length, int64_t id,
                             bool bytes)
{
    if (id < 0 || id >= count || !length)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: token '%.40s' has id %lld: there are %lld tokens", r->path, text,
                          (long long)id, (long long)count);
    if (tokens[id].bytes && (tokens[id].size != (int64_t)length || memcmp(tokens[id].bytes, text, length)) && !bytes)
        return MIXT_OK; // an added token may repeat one of the vocabulary, printed otherwise
    unsigned char *own = mixt__arena_alloc(&r->arena, length + 1);
    if (!own)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", r->path);
    memcpy(own, text, length);
    tokens[id] = (mixt__span){own, bytes ? mixt__gpt2_unprint(text, (int64_t)length, own) : (int64_t)length};
    return MIXT_OK;
}

static mixt_status check_tokens(const reader *r, mixt__span *tokens, int64_t count)
{
    int64_t twice = 0;
    for (int64_t i = 0; i < count; i++)
        if (!tokens[i].bytes)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: id %lld has no token", r->path, (long long)i);
    mixt_status status = mixt__vocabulary_make(r->vocabulary, tokens, count, &twice);
    if (status != MIXT_ERROR_FORMAT)
        return status;
    return mixt__fail(status, "%s: token %lld is there twice", r->path, (long long)twice);
}

/** Keeps a token that may be written out in a text. */
static mixt_status keep_added(const reader *r, const json_t *token)
{
    mixt__added_token made = {.left = json_is_true(json_object_get(token, "lstrip")),
                              .right = json_is_true(json_object_get(token, "rstrip")),
                              .word = json_is_true(json_object_get(token, "single_word")),
                              .normal = json_is_true(json_object_get(token, "normalized")),
                              .id = (uint32_t)json_integer_value(json_object_get(token, "id"))};
    const char *text = text_of(token, "content");
    char *own = NULL;
    if (made.normal && r->tables->replaced) { // the normalizer has been at it
        const char *blank = r->tables->prefix ? MIXT_SENTENCE_BLANK : "";
        if (strchr(text, ' ') || asprintf(&own, "%s%s", blank, text) < 0)
            return refuse(r, "its added token", text);
    }
    made.text = (unsigned char *)(own ? own : text);
    made.size = (int64_t)strlen((const char *)made.text);
    mixt_status status = made.size ? mixt__added_put(r->added, &made) : MIXT_OK;
    free(own);
    return status;
}

static mixt_status read_tokens(reader *r)
{
    json_t *vocab = json_object_get(r->model, "vocab"), *added = json_object_get(r->root, "added_tokens"), *value;
    const char *key;
    size_t length, i;
    int64_t count = (int64_t)json_object_size(vocab);
    json_array_foreach(added, i, value)
    {
        int64_t id = json_integer_value(json_object_get(value, "id"));
        count = id >= count ? id + 1 : count;
    }
    if (!json_is_object(vocab) || count < 1 || count > MIXT_VOCABULARY_MAX)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: has no vocabulary (model.vocab)", r->path);
    mixt__span *tokens = mixt__alloc((size_t)count * sizeof *tokens);
    mixt_status status = tokens ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", r->path);
    json_object_keylen_foreach(vocab, key, length, value)
    {
        if (status == MIXT_OK)
            status = put_token(r, tokens, count, key, length, json_is_integer(value) ? json_integer_value(value) : -1,
                               r->tables->rule != MIXT_JSON_SENTENCE);
    }
    json_array_foreach(added, i, value)
    {
        const json_t *id = json_object_get(value, "id");
        const char *text = text_of(value, "content");
        if (status == MIXT_OK)
            status = put_token(r, tokens, count, text, strlen(text), json_is_integer(id) ? json_integer_value(id) : -1,
                               false);
        if (status == MIXT_OK && r->added)
            status = keep_added(r, value);
    }
    if (status == MIXT_OK)
        status = check_tokens(r, tokens, count);
    mixt__free(tokens);
    return status;
}

/* ---- merges ---- */

/** A half of a merge as the vocabulary has it; -1: it is no token. */
static int64_t half(const reader *r, const char *text, int64_t size, unsigned char *room, int64_t *bytes)
{
    if (r->tables->rule == MIXT_JSON_SENTENCE)
        memcpy(room, text, (size_t)size);
    *bytes = r->tables->rule == MIXT_JSON_SENTENCE ? size : mixt__gpt2_unprint(text, size, room);
    return mixt__vocabulary_find(r->vocabulary, room, *bytes);
}

static mixt_status add_merge(const reader *r, const json_t *merge, int64_t number, unsigned char *room)
{
    const char *left = json_string_value(json_is_array(merge) ? json_array_get(merge, 0) : merge), *right = NULL;
    const char *blank = left && !json_is_array(merge) ? strchr(left, ' ') : NULL;
    int64_t left_size = left ? (int64_t)strlen(left) : 0, first_bytes, second_bytes;
    if (json_is_array(merge))
        right = json_string_value(json_array_get(merge, 1));
    else if (blank) {
        right = blank + 1;
        left_size = blank - left;
    }
    if (!left || !right || !left_size || !*right)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: merge %lld is not of two tokens", r->path, (long long)number);
    int64_t first = half(r, left, left_size, room, &first_bytes);
    int64_t second = half(r, right, (int64_t)strlen(right), room + first_bytes, &second_bytes);
    int64_t both = mixt__vocabulary_find(r->vocabulary, room, first_bytes + second_bytes);
    if (first < 0 || second < 0 || both < 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: merge %lld ('%.*s' and '%.30s') names or makes no token", r->path,
                          (long long)number, (int)(left_size < 30 ? left_size : 30), left, right);
    if (!mixt__bpe_add(&r->tables->bpe, (uint32_t)first, (uint32_t)second, (uint32_t)number, (uint32_t)both,
                       mixt__vocabulary_at(r->vocabulary, both)))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: merge %lld is there twice", r->path, (long long)number);
    return MIXT_OK;
}

static mixt_status read_merges(const reader *r, int64_t file_bytes)
{
    const json_t *merges = json_object_get(r->model, "merges");
    int64_t count = (int64_t)json_array_size(merges);
    if (!json_is_array(merges))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: has no merges (model.merges)", r->path);
    MIXT_TRY(mixt__bpe_init(&r->tables->bpe, count + 1));
    unsigned char *room = mixt__alloc_uninit((size_t)file_bytes + 16);
    mixt_status status = room ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", r->path);
    for (int64_t i = 0; status == MIXT_OK && i < count; i++)
        status = add_merge(r, json_array_get(merges, (size_t)i), i, room);
    mixt__free(room);
    return status;
}

/* ---- the rest ---- */

/** Tokens of single bytes: each there, over bytes; where characters fall back to them, as far as they are. */
static mixt_status find_bytes(const reader *r)
{
    mixt__json_tables *t = r->tables;
    for (int i = 0; i < 256; i++) {
        char name[8];
        unsigned char byte = (unsigned char)i;
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        t->bytes[i] = t->rule == MIXT_JSON_SENTENCE ? mixt__vocabulary_find(r->vocabulary, name, 6)
                                                    : mixt__vocabulary_find(r->vocabulary, &byte, 1);
        if (t->bytes[i] < 0 && t->rule != MIXT_JSON_SENTENCE)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: byte %d has no token", r->path, i);
        t->bpe.byte_ids[i] = (uint32_t)t->bytes[i];
    }
    return MIXT_OK;
}

/** Whether a blank only ever begins a token, or follows other blanks. */
static bool keeps_words(const mixt__vocabulary *v)
{
    for (int64_t id = 0; id < v->count; id++) {
        mixt__span token = mixt__vocabulary_at(v, id);
        for (int64_t i = 3; i + 3 <= token.size; i++)
            if (!memcmp(token.bytes + i, MIXT_SENTENCE_BLANK, 3) && memcmp(token.bytes + i - 3, MIXT_SENTENCE_BLANK, 3))
                return false;
        // One or two bytes in front of a blank are a character too.
        for (int64_t i = 1; i < 3 && i + 3 <= token.size; i++)
            if (!memcmp(token.bytes + i, MIXT_SENTENCE_BLANK, 3))
                return false;
    }
    return true;
}

static int64_t token_of(const reader *r, const char *text)
{
    return *text ? mixt__vocabulary_find(r->vocabulary, text, (int64_t)strlen(text)) : -1;
}

/** What the template of a single text begins with. */
static int64_t start_of(const reader *r)
{
    const json_t *post = json_object_get(r->root, "post_processor"), *steps = json_object_get(post, "processors");
    for (size_t i = 0; i < json_array_size(steps); i++)
        if (!strcmp(text_of(json_array_get(steps, i), "type"), "TemplateProcessing"))
            post = json_array_get(steps, i);
    const json_t *first = json_array_get(json_object_get(post, "single"), 0);
    return token_of(r, text_of(json_object_get(first, "SpecialToken"), "id"));
}

static mixt_status read_all(reader *r, int64_t bytes)
{
    static const char *const ends[] = {"</s>", "<|end_of_text|>", "<|endoftext|>"};
    mixt__json_tables *t = r->tables;
    MIXT_TRY(read_rule(r));
    MIXT_TRY(read_tokens(r));
    MIXT_TRY(read_merges(r, bytes));
    MIXT_TRY(find_bytes(r));
    t->words = t->rule == MIXT_JSON_SENTENCE && keeps_words(r->vocabulary);
    t->unknown = token_of(r, text_of(r->model, "unk_token"));
    t->start = start_of(r);
    t->end = -1;
    for (size_t i = 0; t->end < 0 && i < sizeof ends / sizeof ends[0]; i++)
        t->end = token_of(r, ends[i]);
    return MIXT_OK;
}

/* ---- the file ---- */

static mixt_status load(const char *folder, char *path, size_t room, mixt__bytes *file, json_t **root)
{
    *root = NULL;
    if (!mixt__vocabulary_file(folder, "tokenizer.json", NULL, path, room))
        return mixt__fail(MIXT_ERROR_FILE, "%s: has no tokenizer.json", folder);
    MIXT_TRY(mixt__bytes_read_most(path, FILE_MAX, file));
    mixt_status status = mixt__json_parse(path, file->bytes, (size_t)file->size, JSON_REJECT_DUPLICATES, root);
    if (status != MIXT_OK)
        mixt__bytes_free(file);
    return status;
}

mixt_status mixt__tokenizer_json_read(const char *folder, mixt__vocabulary *vocabulary, mixt__json_tables *tables,
                                      mixt__added_tokens *added, uint64_t *fingerprint)
{
    char path[4200];
    mixt__bytes file = {0};
    json_t *root;
    MIXT_TRY(load(folder, path, sizeof path, &file, &root));
    reader r = {.path = path, .vocabulary = vocabulary, .tables = tables, .added = added, .root = root};
    r.model = json_object_get(root, "model");
    mixt_status status = read_all(&r, file.size);
    *fingerprint = mixt__hash_bytes(1, file.bytes, file.size);
    json_decref(root);
    mixt__arena_free(&r.arena);
    mixt__bytes_free(&file);
    return status;
}

/* ---- WordPiece ---- */

/** BERT's own settings, or what is not known here. Accents go with capitals unless the file says otherwise. */
static mixt_status read_pieces(reader *r, bool *fold)
{
    const json_t *normalizer = json_object_get(r->root, "normalizer"), *pre = json_object_get(r->root, "pre_tokenizer");
    const json_t *accents = json_object_get(normalizer, "strip_accents");
    const json_t *longest = json_object_get(r->model, "max_input_chars_per_word");
    *fold = json_is_true(json_object_get(normalizer, "lowercase"));
    if (strcmp(text_of(normalizer, "type"), "BertNormalizer"))
        return refuse(r, "its normalizer,", text_of(normalizer, "type"));
    if (json_is_boolean(accents) && json_is_true(accents) != *fold)
        return refuse(r, "its normalizer,", "BertNormalizer with strip_accents other than lowercase");
    if (json_is_false(json_object_get(normalizer, "clean_text")) ||
        json_is_false(json_object_get(normalizer, "handle_chinese_chars")))
        return refuse(r, "its normalizer,", "BertNormalizer without clean_text or handle_chinese_chars");
    if (strcmp(text_of(pre, "type"), "BertPreTokenizer"))
        return refuse(r, "its pre_tokenizer,", text_of(pre, "type"));
    if (strcmp(text_of(r->model, "continuing_subword_prefix"), "##") ||
        strcmp(text_of(r->model, "unk_token"), "[UNK]") || (longest && json_integer_value(longest) != 100))
        return refuse(r, "its model,", "WordPiece with other marks than BERT's");
    return read_tokens(r);
}

mixt_status mixt__tokenizer_json_pieces(const char *folder, mixt__vocabulary *vocabulary, bool *fold)
{
    char path[4200];
    mixt__bytes file = {0};
    mixt__json_tables tables = {.rule = MIXT_JSON_SENTENCE}; // tokens are plain text
    json_t *root;
    MIXT_TRY(load(folder, path, sizeof path, &file, &root));
    reader r = {.path = path, .vocabulary = vocabulary, .tables = &tables, .root = root};
    r.model = json_object_get(root, "model");
    mixt_status status = strcmp(text_of(r.model, "type"), "WordPiece") ? MIXT_END : read_pieces(&r, fold);
    json_decref(root);
    mixt__arena_free(&r.arena);
    mixt__bytes_free(&file);
    return status;
}
