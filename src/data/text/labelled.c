/* Labelled text: a text and its class a record, of CSV or TSV files (labelled_rows.c).
 *
 * A sample is the input "text", tokens of different lengths that are padded, with "text.length" and "text.mask" beside
 * them, and the target "label". Labels that are whole numbers from 0 are classes as they are; words get numbers by
 * their alphabet. Without a vocabulary one of words is learned from the training part. What other parts are held
 * against comes from the training part: the set `like`, or the training file read for it. Without a path mixt writes
 * texts itself (opinions.c).
 */
#include "data/text/labelled.h"

#include "data/columns.h"
#include "data/table/csv_text.h"
#include "data/text/inputs_text.h"
#include "data/text/words_learn.h"

#include <math.h>
#include <string.h>

enum { LEARNED_MOST = 30000, SHOWN = 40, DRAWN = 4000 }; // tokens that are learned; texts written for training

/** What the training part decides for all. */
typedef struct reference {
    mixt__class_words words;
    bool worded;     // classes are words
    int64_t classes; // of numbers
    int64_t longest; // tokens of a sample
} reference;

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its texts", data->kind->name, data->path);
}

/* ---- tokens ---- */

mixt_status mixt__text_tokens(const mixt_tokenizer *t, void *worker, mixt__span text, int64_t most,
                              mixt__tokens *tokens, bool *cut)
{
    bool framed = t->special.start >= 0 && t->special.end >= 0 && most >= 3;
    int64_t begin = tokens->count;
    if (framed) {
        MIXT_TRY(mixt__tokens_reserve(tokens, 1));
        tokens->ids[tokens->count++] = (uint32_t)t->special.start;
    }
    MIXT_TRY(t->kind->encode(t, worker, text.bytes, text.size, tokens));
    *cut = tokens->count - begin > most - framed;
    tokens->count = *cut ? begin + most - framed : tokens->count;
    if (framed) {
        MIXT_TRY(mixt__tokens_reserve(tokens, 1));
        tokens->ids[tokens->count++] = (uint32_t)t->special.end;
    }
    return MIXT_OK;
}

/** The tokens of all rows, one text behind the other, and where each begins. */
static mixt_status encode_rows(mixt_data *data, const mixt__text_rows *rows, int64_t most, mixt__tokens *tokens,
                               int64_t *begin)
{
    const mixt_tokenizer *t = data->tokenizer;
    void *worker = NULL;
    int64_t cuts = 0;
    mixt_status status = t->kind->worker_new ? t->kind->worker_new(t, &worker) : MIXT_OK;
    for (int64_t i = 0; i < rows->count && status == MIXT_OK; i++) {
        bool cut = false;
        status = mixt__text_tokens(t, worker, rows->row[i].text, most, tokens, &cut);
        begin[i + 1] = tokens->count;
        cuts += cut;
        if (status == MIXT_OK && begin[i + 1] == begin[i])
            status = mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %d: a text without a single token", rows->path,
                                (long long)rows->row[i].line, rows->text_column);
    }
    if (t->kind->worker_free && worker)
        t->kind->worker_free(worker);
    if (status == MIXT_OK && cuts)
        status = mixt__data_warn(data, "%s: %lld of %lld texts have more than %lld tokens and are truncated (data.seq)",
                                 rows->path, (long long)cuts, (long long)rows->count, (long long)most);
    return status;
}

/** Learns the words of the training part. */
static mixt_status learn(mixt_data *data, const mixt__text_rows *train)
{
    bool fold = !data->options.tokenizer || strcmp(data->options.tokenizer, "wordpiece-cased") != 0;
    mixt__word_counts counts = {0};
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < train->count && status == MIXT_OK; i++)
        status = mixt__word_counts_add(&counts, train->row[i].text.bytes, train->row[i].text.size, fold);
    if (status == MIXT_OK)
        status = mixt__words_learn(&counts, data->options.vocab_size ? data->options.vocab_size : LEARNED_MOST, fold,
                                   &data->tokenizer);
    mixt__word_counts_free(&counts);
    data->learned = status == MIXT_OK;
    return status;
}

static bool is_given(const char *text)
{
    return text && *text && strcmp(text, "auto") != 0;
}

/** The tokenizer of the options, the one of the set that this one is like, or a learned one. */
static mixt_status take_tokenizer(mixt_data *data, const mixt__text_rows *train)
{
    const mixt_data_options *o = &data->options;
    bool words = is_given(o->tokenizer) && !strncmp(o->tokenizer, "wordpiece", 9);
    if (o->mask > 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: data.mask hides tokens of plain text, not of labelled one",
                          data->kind->name, data->path);
    if (is_given(o->vocab) || (is_given(o->tokenizer) && !words))
        return mixt_tokenizer_open(o->tokenizer, o->vocab, &data->tokenizer);
    if (o->like && o->like->tokenizer) {
        data->tokenizer = mixt__tokenizer_hold(o->like->tokenizer);
        return MIXT_OK;
    }
    return learn(data, train);
}

/* ---- labels ---- */

/** A whole number from 0 that may be a class; -1: it is none. */
static int64_t number_of(mixt__span label)
{
    mixt__csv_field field = {.text = (const char *)label.bytes, .length = label.size};
    double value;
    return mixt__csv_plain_number(&field, &value) && value >= 0 && value < MIXT_CLASS_WORDS && value == floor(value)
               ? (int64_t)value
               : -1;
}

static mixt_status bad_label(const mixt__text_rows *rows, int64_t row, const char *wrong)
{
    mixt__span label = rows->row[row].label;
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %d: label '%.*s' is %s", rows->path,
                      (long long)rows->row[row].line, rows->label_column,
                      (int)(label.size < SHOWN ? label.size : SHOWN), label.bytes, wrong);
}

/** Which classes there are, from the training file. */
static mixt_status learn_classes(mixt_data *data, const mixt__text_rows *train, reference *r)
{
    for (int64_t i = 0; i < train->count && !r->worded; i++) {
        int64_t number = number_of(train->row[i].label);
        r->worded = number < 0;
        r->classes = number >= r->classes ? number + 1 : r->classes;
    }
    for (int64_t i = 0; i < train->count && r->worded; i++) {
        mixt__span label = train->row[i].label;
        if (mixt__class_words_number(data, &r->words, (const char *)label.bytes, label.size) < 0)
            return bad_label(train, i, "one class too many (at most 1000 different words); is it the right column?");
    }
    if (r->worded) {
        int64_t numbers[MIXT_CLASS_WORDS];
        mixt__class_words_sort(&r->words, numbers);
    }
    r->words.given = true;
    return MIXT_OK;
}

/** The same from a set that is known. */
static mixt_status take_classes(mixt_data *data, const mixt_data *like, reference *r)
{
    mixt__table none = {0};
    MIXT_TRY(mixt__class_words_start(data, &none, &r->words));
    r->worded = like->info.class_names != NULL;
    r->classes = like->info.classes;
    return MIXT_OK;
}

static mixt_status label_of(mixt_data *data, const mixt__text_rows *rows, int64_t row, reference *r, int32_t *class)
{
    mixt__span label = rows->row[row].label;
    int64_t number =
        r->worded ? mixt__class_words_number(data, &r->words, (const char *)label.bytes, label.size) : number_of(label);
    if (number < 0)
        return bad_label(rows, row,
                         r->worded ? "not a class of the training part" : "not a class: expected a number from 0");
    if (!r->worded && number >= r->classes)
        return bad_label(rows, row, "past the classes that there are");
    *class = (int32_t)number;
    return MIXT_OK;
}

/* ---- parts ---- */

static const char *find(mixt_data *data, mixt__part part)
{
    static const char *const names[][3] = {[MIXT_PART_TRAIN] = {"train"},
                                           [MIXT_PART_VAL] = {"val", "dev", "valid"},
                                           [MIXT_PART_TEST] = {"test"},
                                           [MIXT_PART_ALL] = {"train"}};
    static const char *const endings[] = {".tsv", ".csv"};
    if (!mixt__path_is_directory(data->path))
        return part == MIXT_PART_TRAIN || part == MIXT_PART_ALL ? data->path : NULL;
    for (int i = 0; i < 3 && names[part][i]; i++)
        for (int k = 0; k < 2; k++) {
            const char *name = mixt__arena_printf(&data->arena, "%s%s", names[part][i], endings[k]);
            const char *path = name ? mixt__path_find(data, data->path, name) : NULL;
            if (path)
                return path;
        }
    return NULL;
}

bool mixt__labelled_is_in(mixt_data *data, const char *folder)
{
    return mixt__path_find(data, folder, "train.tsv") != NULL;
}

/** The rows of one part of a file that is shared out, in the same bytes. */
static mixt_status view_of(const mixt_data *data, const mixt__text_rows *rows, const mixt__shares *shares,
                           mixt__part part, mixt__text_rows *view)
{
    *view = *rows;
    view->file = (mixt__bytes){0}; // theirs
    view->row = mixt__alloc_uninit((size_t)(rows->count + 1) * sizeof *view->row);
    view->count = 0;
    if (!view->row)
        return no_memory(data);
    for (int64_t i = 0; i < rows->count; i++)
        if (part == MIXT_PART_ALL || mixt__part_of_row(shares, i) == part)
            view->row[view->count++] = rows->row[i];
    return MIXT_OK;
}

/* ---- opening ---- */

/** Texts longer than all of training's would have places that nothing was learned for. */
static int64_t longest_of(const int64_t *begin, int64_t count)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < count; i++)
        longest = begin[i + 1] - begin[i] > longest ? begin[i + 1] - begin[i] : longest;
    return longest;
}

/** Columns of rows whose tokens and labels are known; takes both over. */
static mixt_status make_columns(mixt_data *data, const reference *r, int64_t rows, int32_t *labels, int64_t *begin,
                                mixt__tokens *tokens)
{
    mixt__columns c = {.rows = rows, .count = 4};
    const mixt_data_array text = {.name = "text",
                                  .dtype = MIXT_DTYPE_INT32,
                                  .rank = 1,
                                  .dims = {r->longest},
                                  .elements = r->longest,
                                  .ids = data->tokenizer->size};
    c.column[0] = (mixt__column){.array = text, .values = tokens->ids, .begin = begin};
    c.column[1].array =
        (mixt_data_array){.name = "text.length", .dtype = MIXT_DTYPE_INT32, .elements = 1, .ids = r->longest + 1};
    c.column[1].source = MIXT_COLUMN_LENGTH;
    c.column[2].array = (mixt_data_array){
        .name = "text.mask", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {r->longest}, .elements = r->longest};
    c.column[2].source = MIXT_COLUMN_MASK;
    c.column[3].array = (mixt_data_array){.name = "label",
                                          .target = true,
                                          .dtype = MIXT_DTYPE_INT32,
                                          .elements = 1,
                                          .ids = r->worded ? r->words.count : r->classes};
    c.column[3].values = labels;
    data->info.samples = rows;
    return mixt__columns_adopt(data, &c);
}

static mixt_status name_classes(mixt_data *data, const reference *r)
{
    if (!r->worded)
        return MIXT_OK;
    const char **names = mixt__arena_alloc(&data->arena, (size_t)r->words.count * sizeof *names);
    if (!names)
        return no_memory(data);
    memcpy(names, r->words.names, (size_t)r->words.count * sizeof *names);
    data->info.class_names = names;
    return MIXT_OK;
}

/** Tokens and labels of the part's rows. */
static mixt_status take_rows(mixt_data *data, const mixt__text_rows *rows, reference *r, bool is_train)
{
    mixt__tokens tokens = {0};
    int64_t *begin = mixt__alloc((size_t)(rows->count + 1) * sizeof *begin);
    int32_t *labels = mixt__alloc((size_t)(rows->count + 1) * sizeof *labels);
    mixt_status status = begin && labels ? MIXT_OK : no_memory(data);
    for (int64_t i = 0; i < rows->count && status == MIXT_OK; i++)
        status = label_of(data, rows, i, r, &labels[i]);
    if (status == MIXT_OK)
        status = encode_rows(data, rows, r->longest, &tokens, begin);
    if (status == MIXT_OK && is_train)
        r->longest = longest_of(begin, rows->count);
    if (status == MIXT_OK)
        status = name_classes(data, r);
    if (status == MIXT_OK)
        return make_columns(data, r, rows->count, labels, begin, &tokens);
    mixt__free(begin);
    mixt__free(labels);
    mixt__tokens_free(&tokens);
    return status;
}

/** The longest sample of the training part, cut as options.seq says. */
static mixt_status measure(mixt_data *data, const mixt__text_rows *train, reference *r)
{
    mixt__tokens tokens = {0};
    int64_t *begin = mixt__alloc((size_t)(train->count + 1) * sizeof *begin);
    mixt_status status = begin ? encode_rows(data, train, r->longest, &tokens, begin) : no_memory(data);
    if (status == MIXT_OK)
        r->longest = longest_of(begin, train->count);
    mixt__free(begin);
    mixt__tokens_free(&tokens);
    return status;
}

/** Files and rows while a set is opened. */
typedef struct opening {
    mixt__text_rows train, own; // the training file; the part's own, where it has one
    mixt__text_rows learned;    // rows of the training part
    mixt__text_rows mine;       // rows of the part in the training file
} opening;

/** What a set that is like this one must be, to be followed. */
static bool is_known(const mixt_data *like)
{
    return like && mixt__are_texts(&like->info);
}

/** Texts of the part, and of training's where nothing is known of it. */
static mixt_status write_files(mixt_data *data, opening *o)
{
    static const int64_t counts[] = {DRAWN, DRAWN / 10, DRAWN / 10, DRAWN};
    mixt__part part = data->part;
    int64_t own = data->options.samples ? data->options.samples : counts[part];
    if (own > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "labelled: %lld texts to write: %d at most", (long long)own, INT32_MAX);
    MIXT_TRY(mixt__opinions_write(data, own, &o->own));
    data->part = MIXT_PART_TRAIN;
    mixt_status status = mixt__opinions_write(data, data->options.samples ? own : DRAWN, &o->train);
    data->part = part;
    MIXT_TRY(status);
    return view_of(data, &o->train, NULL, MIXT_PART_ALL, &o->learned);
}

static mixt_status read_files(mixt_data *data, opening *o)
{
    const char *train = find(data, MIXT_PART_TRAIN);
    bool folder = mixt__path_is_directory(data->path),
         rest = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *own = rest ? find(data, data->part) : NULL;
    mixt__part learners = data->part == MIXT_PART_ALL ? MIXT_PART_ALL : MIXT_PART_TRAIN;
    mixt__shares shares;
    if (own)
        MIXT_TRY(mixt__text_rows_read(data, own, &o->own));
    if (own && is_known(data->options.like))
        return MIXT_OK;
    if (!train)
        return mixt__part_missing(data);
    MIXT_TRY(mixt__text_rows_read(data, train, &o->train));
    MIXT_TRY(mixt__shares_of(data, o->train.count, folder && find(data, MIXT_PART_VAL),
                             folder && find(data, MIXT_PART_TEST), &shares));
    MIXT_TRY(view_of(data, &o->train, &shares, learners, &o->learned));
    if (own)
        return MIXT_OK;
    MIXT_TRY(view_of(data, &o->train, &shares, data->part, &o->mine));
    return o->mine.count ? MIXT_OK : mixt__part_missing(data);
}

static mixt_status open_rows(mixt_data *data, opening *o)
{
    const mixt_data *like = is_known(data->options.like) ? data->options.like : NULL;
    const mixt__text_rows *rows = o->own.count ? &o->own : &o->mine;
    bool teaches = data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL;
    reference r = {.longest = data->options.seq};
    MIXT_TRY(like ? take_classes(data, like, &r) : learn_classes(data, &o->train, &r));
    if (data->options.classes && data->options.classes < r.classes)
        return mixt__fail(MIXT_ERROR_CONFIG, "labelled:%s: has %lld classes, not %lld", data->path,
                          (long long)r.classes, (long long)data->options.classes);
    if (!r.worded && data->options.classes > r.classes)
        r.classes = data->options.classes;
    MIXT_TRY(take_tokenizer(data, &o->learned));
    if (like)
        r.longest = like->info.arrays[0].dims[0];
    else if (!teaches)
        MIXT_TRY(measure(data, &o->learned, &r));
    return take_rows(data, rows, &r, teaches && !like);
}

static mixt_status open(mixt_data *data)
{
    opening o = {0};
    MIXT_TRY(mixt__need_seq(data));
    mixt_status status = *data->path ? read_files(data, &o) : write_files(data, &o);
    if (status == MIXT_OK)
        status = open_rows(data, &o);
    mixt__text_rows_free(&o.train);
    mixt__text_rows_free(&o.own);
    mixt__text_rows_free(&o.learned);
    mixt__text_rows_free(&o.mine);
    return status;
}

const mixt__data_kind mixt__data_labelled = {
    .name = "labelled",
    .what = "texts with a class each",
    .uses =
        MIXT_DATA_LABELS | MIXT_DATA_WORDS | MIXT_DATA_TEXTS | MIXT_DATA_CLASSES | MIXT_DATA_SAMPLES | MIXT_DATA_SEQ,
    .open = open,
    .arrays = mixt__columns_arrays,
    .length = mixt__columns_length,
    .bucketed = true,
    .close = mixt__columns_close,
    .raw = mixt__columns_raw,
    .draws = true,
};
