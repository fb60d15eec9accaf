/* inputs.json for every export; for language models the files that transformers' tokenizers read.
 *
 * Bytes as tokens are a byte-pair vocabulary of the 256 bytes without merges: transformers' GPT-2 tokenizer then gives
 * the tokens that the model was trained on.
 */
#include "run/open/export_inputs.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/text/gpt2_files.h"
#include "run/directory.h"
#include "run/open/inputs.h"
#include "store/file.h"
#include "store/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char TOKENIZER_CONFIG[] = "tokenizer_config.json";
static const char END_OF_TEXT[] = "<|endoftext|>";

static bool is_pieces(const mixt_tokenizer *t)
{
    return t->kind == &mixt__tokenizer_wordpiece || t->kind == &mixt__tokenizer_wordpiece_cased;
}

/** By its name: the one of SentencePiece has a record of its own. */
static bool is_json(const mixt_tokenizer *t)
{
    return !strcmp(t->kind->name, mixt__tokenizer_json.name);
}

static bool has_policy(const mixt__export_inputs *x)
{
    return !mixt__policy_is_word(mixt__config_string(x->config, MIXT_KEY_PRECISION));
}

/** Files of the model that a run began with, which say how conversations with it are written. */
static const char *const of_chats[] = {"chat_template.jinja", "generation_config.json"};

/** Whether the folder of the vocabulary has a file. */
static bool has_file(const mixt__export_inputs *x, const char *name)
{
    char path[4400];
    const char *vocab = mixt__config_string(x->config, MIXT_KEY_DATA_VOCAB);
    return *vocab && mixt__vocabulary_file(vocab, name, NULL, path, sizeof path);
}

const char *mixt__export_inputs_file(const mixt__export_inputs *x, int index)
{
    static const char *const of_pairs[] = {MIXT_INPUTS_FILE, TOKENIZER_CONFIG, "vocab.json", "merges.txt"};
    static const char *const of_pieces[] = {MIXT_INPUTS_FILE, TOKENIZER_CONFIG, "vocab.txt"};
    static const char *const of_json[] = {MIXT_INPUTS_FILE, TOKENIZER_CONFIG, "tokenizer.json"};
    bool pieces = x->tokenizer && is_pieces(x->tokenizer), json = x->tokenizer && is_json(x->tokenizer);
    int count = !x->inputs ? 0 : !x->tokenizer ? 1 : pieces || json ? 3 : 4;
    if (index < count)
        return pieces ? of_pieces[index] : json ? of_json[index] : of_pairs[index];
    if (count && has_policy(x) && index == count++)
        return MIXT_POLICY_FILE;
    for (size_t i = 0; x->tokenizer && i < sizeof of_chats / sizeof of_chats[0]; i++)
        if (has_file(x, of_chats[i]) && index == count++)
            return of_chats[i];
    return NULL;
}

/** The names of classes, where the run remembers them. */
static mixt_status take_labels(mixt__export_inputs *x, const json_t *names, mixt__name_facts *facts)
{
    size_t count = json_array_size(names);
    if (!count)
        return MIXT_OK;
    x->labels = mixt__alloc(count * sizeof *x->labels);
    if (!x->labels)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of classes");
    for (size_t i = 0; i < count; i++)
        x->labels[i] = json_string_value(json_array_get(names, i));
    facts->labels = x->labels;
    facts->label_count = (int64_t)count;
    return MIXT_OK;
}

mixt_status mixt__export_inputs_open(mixt__export_inputs *x, mixt__export_request *r)
{
    const json_t *data = json_object_get(x->inputs, "data");
    const char *target = json_string_value(json_object_get(data, "target"));
    const char *kind = json_string_value(json_object_get(data, "kind"));
    const char *vocab = mixt__config_string(x->config, MIXT_KEY_DATA_VOCAB);
    const mixt__zoo_entry *entry;
    bool texts = kind && !strcmp(kind, "labelled");
    if (!target || (strcmp(target, "tokens") && !texts))
        return MIXT_OK;
    MIXT_TRY(take_labels(x, json_object_get(data, "class_names"), &r->facts));
    MIXT_TRY(mixt__model_find(mixt__config_string(x->config, MIXT_KEY_MODEL), &entry));
    if (entry->uses & MIXT_USES_SEQ)
        r->positions = json_integer_value(json_object_get(x->inputs, "positions"));
    x->unknown = !*vocab && !texts && (!kind || strcmp(kind, "text")); // tokens that somebody else has made
    if (x->unknown)
        return MIXT_OK;
    MIXT_TRY(mixt_tokenizer_open(mixt__config_string(x->config, MIXT_KEY_DATA_TOKENIZER), vocab, &x->tokenizer));
    const mixt__special_tokens *special = &x->tokenizer->special;
    r->facts.last_token = special->end;
    r->facts.first_token = special->start >= 0 ? special->start : special->end; // GPT-2 has one token for both
    r->facts.pad_token = special->pad >= 0 || entry->uses & MIXT_USES_ROPE ? special->pad : 0;
    return MIXT_OK;
}

/* ---- tokenizers ---- */

/** Bytes as GPT-2's files print them: those of Latin-1 that print as themselves, the others from U+0100 on. */
static json_t *byte_vocabulary(void)
{
    json_t *tokens = json_object();
    unsigned extra = 256;
    for (unsigned byte = 0; tokens && byte < 256; byte++) {
        bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        unsigned code = prints ? byte : extra++;
        char text[3] = {(char)code, '\0', '\0'};
        if (code >= 128) {
            text[0] = (char)(0xc0 | code >> 6);
            text[1] = (char)(0x80 | (code & 0x3f));
        }
        if (mixt__json_set(tokens, text, json_integer(byte)))
            return json_decref(tokens), NULL;
    }
    return tokens;
}

/** transformers skips the first line, a version, and what stands behind the last end of a line. */
static mixt_status write_merges(const char *path, const void *lines, size_t bytes, bool overwrite)
{
    static const char version[] = "#version: 0.2\n";
    mixt__file_writer writer = {.fd = -1};
    bool has_version = bytes >= 8 && !memcmp(lines, "#version", 8);
    bool ended = !bytes || ((const char *)lines)[bytes - 1] == '\n';
    mixt_status status = mixt__file_writer_open(&writer, path, overwrite);
    if (status == MIXT_OK && !has_version)
        status = mixt__file_writer_append(&writer, version, sizeof version - 1);
    if (status == MIXT_OK && bytes)
        status = mixt__file_writer_append(&writer, lines, bytes);
    if (status == MIXT_OK && !ended)
        status = mixt__file_writer_append(&writer, "\n", 1);
    if (status == MIXT_OK)
        return mixt__file_writer_commit(&writer);
    mixt__file_writer_abandon(&writer);
    return status;
}

/** The path of an exported file. */
static const char *place(const mixt__export_request *r, const char *name, char path[4400])
{
    snprintf(path, 4400, "%s/%s", r->folder, name);
    return path;
}

static mixt_status write_pairs(const mixt__export_inputs *x, const mixt__export_request *r)
{
    char from[4400], to[4400];
    const char *vocab = mixt__config_string(x->config, MIXT_KEY_DATA_VOCAB);
    mixt__file_map map;
    if (x->tokenizer->kind == &mixt__tokenizer_bytes) {
        MIXT_TRY(mixt__run_json_write(place(r, "vocab.json", to), byte_vocabulary(), r->overwrite));
        return write_merges(place(r, "merges.txt", to), "", 0, r->overwrite);
    }
    if (!mixt__vocabulary_file(vocab, "encoder.json", "vocab.json", from, sizeof from))
        return mixt__fail(MIXT_ERROR_FILE, "%s: its encoder.json is gone", vocab);
    MIXT_TRY(mixt__file_copy(from, place(r, "vocab.json", to)));
    if (!mixt__vocabulary_file(vocab, "vocab.bpe", "merges.txt", from, sizeof from))
        return mixt__fail(MIXT_ERROR_FILE, "%s: its vocab.bpe is gone", vocab);
    MIXT_TRY(mixt__file_map_open(from, &map));
    mixt_status status = write_merges(place(r, "merges.txt", to), map.data, map.bytes, r->overwrite);
    mixt__file_map_close(&map);
    return status;
}

/** A vocabulary that is one file. */
static mixt_status write_file(const mixt__export_inputs *x, const mixt__export_request *r, const char *name)
{
    char from[4400], to[4400];
    const char *vocab = mixt__config_string(x->config, MIXT_KEY_DATA_VOCAB);
    if (!mixt__vocabulary_file(vocab, name, NULL, from, sizeof from))
        return mixt__fail(MIXT_ERROR_FILE, "%s: its %s is gone", vocab, name);
    return mixt__file_copy(from, place(r, name, to));
}

/** What transformers' AutoTokenizer reads. Without <|endoftext|> in the vocabulary there are no special tokens:
 *  transformers would number one past the model's table. */
static json_t *tokenizer_config(const mixt__export_inputs *x, const mixt__export_request *r)
{
    const mixt_tokenizer *t = x->tokenizer;
    static const char *const ends[] = {"bos_token", "eos_token", "unk_token"};
    const char *end = t->special.end >= 0 ? END_OF_TEXT : NULL;
    json_t *o = is_pieces(t) ? json_pack("{s:s, s:b}", "tokenizer_class", "BertTokenizer", "do_lower_case",
                                         t->kind == &mixt__tokenizer_wordpiece)
                : is_json(t) ? json_pack("{s:s}", "tokenizer_class", "PreTrainedTokenizerFast")
                             : json_pack("{s:s, s:b}", "tokenizer_class", "GPT2Tokenizer", "add_prefix_space", 0);
    if (r->positions) // a recurrent model has no limit
        mixt__json_set(o, "model_max_length", json_integer(r->positions));
    for (size_t i = 0; !is_pieces(t) && !is_json(t) && i < sizeof ends / sizeof ends[0]; i++)
        mixt__json_set(o, ends[i], end ? json_string(end) : json_null());
    return o;
}

/* ---- inputs ---- */

/** As the run has it, with the precision of now, which may have changed since the run began, and with how its data was
 *  cut, by which the parts that it was trained on are known again. */
static json_t *exported_inputs(const mixt__export_inputs *x)
{
    const char *precision = mixt__config_string(x->config, MIXT_KEY_PRECISION);
    json_t *inputs = mixt__json_copy(x->inputs);
    if (inputs && mixt__json_set_text(inputs, "precision", has_policy(x) ? MIXT_POLICY_FILE : precision))
        return json_decref(inputs), NULL;
    if (inputs && mixt__json_set(inputs, "cut", mixt__run_inputs_cut(x->config)))
        return json_decref(inputs), NULL;
    return inputs;
}

mixt_status mixt__export_inputs_write(const mixt__export_inputs *x, const mixt__export_request *r)
{
    char path[4400];
    const char *precision = mixt__config_string(x->config, MIXT_KEY_PRECISION);
    if (!x->inputs)
        return MIXT_OK;
    MIXT_TRY(mixt__run_json_write(place(r, MIXT_INPUTS_FILE, path), exported_inputs(x), r->overwrite));
    if (has_policy(x))
        MIXT_TRY(mixt__file_copy(precision, place(r, MIXT_POLICY_FILE, path)));
    if (!x->tokenizer)
        return MIXT_OK;
    MIXT_TRY(is_pieces(x->tokenizer) ? mixt__vocabulary_write(&x->tokenizer->vocabulary, r->folder)
             : is_json(x->tokenizer) ? write_file(x, r, "tokenizer.json")
                                     : write_pairs(x, r));
    for (size_t i = 0; i < sizeof of_chats / sizeof of_chats[0]; i++)
        if (has_file(x, of_chats[i]))
            MIXT_TRY(write_file(x, r, of_chats[i]));
    if (has_file(x, TOKENIZER_CONFIG))
        return write_file(x, r, TOKENIZER_CONFIG);
    return mixt__run_json_write(place(r, TOKENIZER_CONFIG, path), tokenizer_config(x, r), r->overwrite);
}

void mixt__export_inputs_close(mixt__export_inputs *x)
{
    mixt_tokenizer_close(x->tokenizer);
    mixt__free(x->labels);
    *x = (mixt__export_inputs){0};
}
