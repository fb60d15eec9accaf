/* Rows to samples: rounds of rows that all threads encode, and then the samples in the file's order. */
#include "data/chat/chat_set.h"

#include "base/threads.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

enum { ROUND = 512 };

/** A row that was encoded. */
typedef struct encoded {
    mixt__tokens tokens, rejected; // rejected: the other answer of a pair
    mixt_status status;
} encoded;

typedef struct round_state {
    const mixt__chat_codec *codec;
    const mixt__chat_rows *rows;
    const int64_t *chosen; // of this round
    mixt__chat_form form;  // of the file's first row
    mixt__account *account;
    encoded *row;
    void **workers; // one a thread
    mixt__chat_tally *tallies;
    pthread_mutex_t lock;
    int64_t bad; // the first row that failed, and why; -1: none
    char error[2048];
} round_state;

static bool are_alike(const mixt__tokens *a, const mixt__tokens *b)
{
    return a->count && a->count == b->count && !memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids);
}

static mixt_status encode_value(round_state *r, int64_t index, const json_t *value, int thread)
{
    mixt__chat_form form;
    mixt__chat_turns turns;
    MIXT_TRY(mixt__chat_form_of(value, &form));
    if (form != r->form)
        return mixt__fail(MIXT_ERROR_DATA, "is of the form %s, but line %lld of %s: one file, one form",
                          mixt__chat_form_names[form], (long long)r->rows->row[0].line, mixt__chat_form_names[r->form]);
    for (int rejected = 0; rejected <= mixt__chat_form_pairs(form); rejected++) {
        mixt__tokens *to = rejected ? &r->row[index].rejected : &r->row[index].tokens;
        MIXT_TRY(mixt__chat_turns_of(value, form, rejected, &turns));
        mixt_status status = mixt__chat_encode(r->codec, r->workers[thread], &turns, to, &r->tallies[thread]);
        mixt__chat_turns_free(&turns);
        MIXT_TRY(status);
    }
    r->tallies[thread].alike += are_alike(&r->row[index].tokens, &r->row[index].rejected);
    return MIXT_OK;
}

static mixt_status encode_row(round_state *r, int64_t index, int thread)
{
    const mixt__tokenizer_kind *kind = r->codec->tokenizer->kind;
    json_t *value;
    if (!r->workers[thread] && kind->worker_new)
        MIXT_TRY(kind->worker_new(r->codec->tokenizer, &r->workers[thread]));
    MIXT_TRY(mixt__chat_row_parse(r->rows, r->chosen[index], &value));
    mixt_status status = encode_value(r, index, value, thread);
    json_decref(value);
    return status == MIXT_OK || status == MIXT_ERROR_CONFIG
               ? status
               : mixt__fail_context(status, "%s: line %lld", r->rows->path,
                                    (long long)r->rows->row[r->chosen[index]].line);
}

static void encode_some(void *argument, int64_t begin, int64_t end, int thread)
{
    round_state *r = argument;
    mixt__account *before = mixt__account_use(r->account);
    for (int64_t i = begin; i < end; i++) {
        r->row[i].tokens.count = r->row[i].rejected.count = 0;
        r->row[i].status = encode_row(r, i, thread);
        if (r->row[i].status == MIXT_OK)
            continue;
        pthread_mutex_lock(&r->lock);
        if (r->bad < 0 || i < r->bad) {
            r->bad = i;
            snprintf(r->error, sizeof r->error, "%s", mixt_error_text()); // this thread's text is not the caller's
        }
        pthread_mutex_unlock(&r->lock);
        break; // an earlier row of another thread may still fail; later ones of this thread do not matter
    }
    mixt__account_use(before);
}

static mixt_status no_memory(const mixt__chat_rows *rows)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its samples", rows->path);
}

/** Trained tokens of a sample: the first has nothing before it that could predict it. */
static int64_t count_trained(const uint32_t *ids, int64_t count)
{
    int64_t trained = 0;
    for (int64_t i = 1; i < count; i++)
        trained += (ids[i] & MIXT_CHAT_TRAINED) != 0;
    return trained;
}

/** Whether tokens have some to train once they are cut, which is counted where not. */
static bool has_trained(mixt__chat_set *set, const mixt__tokens *tokens, int64_t most)
{
    int64_t kept = tokens->count > most ? most : tokens->count;
    if (count_trained(tokens->ids, kept))
        return true;
    set->untrained++;
    set->lost += kept < tokens->count && count_trained(tokens->ids, tokens->count);
    return false;
}

/** Takes a text's tokens over into the set. */
static mixt_status take_text(mixt__chat_set *set, const mixt__chat_rows *rows, int64_t row, const mixt__tokens *tokens,
                             int64_t most)
{
    int64_t kept = tokens->count > most ? most : tokens->count;
    if (!mixt__grow((void **)&set->sample, &set->capacity, set->count, sizeof *set->sample))
        return no_memory(rows);
    MIXT_TRY(mixt__tokens_reserve(&set->tokens, kept));
    memcpy(set->tokens.ids + set->tokens.count, tokens->ids, (size_t)kept * sizeof *tokens->ids);
    set->sample[set->count++] =
        (mixt__chat_sample){.begin = set->tokens.count,
                            .line = rows->row[row].line,
                            .count = (int32_t)kept,
                            .whole = (int32_t)(tokens->count < INT32_MAX ? tokens->count : INT32_MAX)};
    set->tokens.count += kept;
    set->trained += count_trained(tokens->ids, kept);
    set->cut += kept < tokens->count;
    return MIXT_OK;
}

/** Takes a row over, of a pair both answers or none. */
static mixt_status take(mixt__chat_set *set, const mixt__chat_rows *rows, int64_t row, const encoded *e, int64_t most)
{
    set->rows++;
    if (!has_trained(set, &e->tokens, most) || (set->pairs && !has_trained(set, &e->rejected, most)))
        return MIXT_OK;
    MIXT_TRY(take_text(set, rows, row, &e->tokens, most));
    return set->pairs ? take_text(set, rows, row, &e->rejected, most) : MIXT_OK;
}

static mixt_status tell(mixt__teller teller, const char *path, int64_t done, int64_t total)
{
    mixt_progress p = mixt__progress(MIXT_PROGRESS_DATA, "tokenising");
    p.what = path;
    p.unit = "rows";
    p.done = done;
    p.total = total;
    return mixt__tell(teller, &p);
}

static mixt_status run_rounds(round_state *r, const int64_t *chosen, int64_t count, int64_t most, mixt__teller teller,
                              mixt__chat_set *set)
{
    for (int64_t at = 0; at < count;) {
        int64_t some = count - at < ROUND ? count - at : ROUND;
        r->chosen = chosen + at;
        r->bad = -1;
        mixt__parallel(some, 1, encode_some, r);
        if (r->bad >= 0) {
            mixt__error_set(r->error);
            return r->row[r->bad].status;
        }
        for (int64_t i = 0; i < some; i++)
            MIXT_TRY(take(set, r->rows, r->chosen[i], &r->row[i], most));
        at += some;
        MIXT_TRY(tell(teller, r->rows->path, at, count));
    }
    return MIXT_OK;
}

/** The form that all rows must have: that of the file's first one. */
static mixt_status first_form(const mixt__chat_rows *rows, mixt__chat_form *form)
{
    json_t *value;
    MIXT_TRY(mixt__chat_row_parse(rows, 0, &value));
    mixt_status status = mixt__chat_form_of(value, form);
    json_decref(value);
    return status == MIXT_OK ? status
                             : mixt__fail_context(status, "%s: line %lld", rows->path, (long long)rows->row[0].line);
}

/** Pairs of answers are learned by another loss, which is asked for, and only they are. */
static mixt_status check_pairs(const mixt__chat_codec *codec, const mixt__chat_rows *rows, mixt__chat_form form)
{
    bool asked = codec->loss_on == MIXT_LOSS_ON_PREFERENCE;
    if (asked == mixt__chat_form_pairs(form))
        return MIXT_OK;
    if (asked)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld is of the form %s: preferences are learned of rows with \"prompt\", "
                          "\"chosen\" and \"rejected\"",
                          rows->path, (long long)rows->row[0].line, mixt__chat_form_names[form]);
    return mixt__fail(MIXT_ERROR_DATA,
                      "%s: line %lld is a pair of answers, \"chosen\" and \"rejected\": learn which is better with "
                      "data.loss_on=preference (mixt finetune --preference), or keep the chosen one, as \"messages\" "
                      "or \"prompt\" and \"completion\"",
                      rows->path, (long long)rows->row[0].line);
}

mixt_status mixt__chat_set_make(const mixt__chat_codec *codec, const mixt__chat_rows *rows, const int64_t *chosen,
                                int64_t count, int64_t most, mixt__teller teller, mixt__chat_set *set)
{
    int threads = mixt__threads_count();
    round_state r = {.codec = codec, .rows = rows, .account = mixt__account_now()};
    *set = (mixt__chat_set){0};
    MIXT_TRY(first_form(rows, &set->form));
    MIXT_TRY(check_pairs(codec, rows, set->form));
    set->pairs = mixt__chat_form_pairs(set->form);
    r.form = set->form;
    r.row = mixt__alloc(ROUND * sizeof *r.row);
    r.workers = mixt__alloc((size_t)threads * sizeof *r.workers);
    r.tallies = mixt__alloc((size_t)threads * sizeof *r.tallies);
    pthread_mutex_init(&r.lock, NULL);
    mixt_status status =
        r.row && r.workers && r.tallies ? run_rounds(&r, chosen, count, most, teller, set) : no_memory(rows);
    for (int i = 0; i < threads && r.workers && r.tallies; i++) {
        set->tally.thoughts += r.tallies[i].thoughts;
        set->tally.found += r.tallies[i].found;
        set->tally.alike += r.tallies[i].alike;
        if (r.workers[i])
            codec->tokenizer->kind->worker_free(r.workers[i]);
    }
    for (int64_t i = 0; r.row && i < ROUND; i++)
        mixt__tokens_free(&r.row[i].tokens), mixt__tokens_free(&r.row[i].rejected);
    pthread_mutex_destroy(&r.lock);
    mixt__free(r.row);
    mixt__free(r.workers);
    mixt__free(r.tallies);
    if (status != MIXT_OK)
        mixt__chat_set_free(set);
    return status;
}

void mixt__chat_set_free(mixt__chat_set *set)
{
    mixt__tokens_free(&set->tokens);
    mixt__free(set->sample);
    *set = (mixt__chat_set){0};
}
