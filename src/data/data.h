/* Inside a data set: the record of a kind, the state that kinds share, and the steps of opening one.
 *
 * A kind is one const record (open, sample, close) in data.c's table. Kinds that hold rows in memory (idx, cifar, csv,
 * npy, digits) fill a mixt__table and share its splitting, normalising and sampling; text and tokens share windows.c.
 */
#ifndef MIXT_DATA_DATA_H
#define MIXT_DATA_DATA_H

#include "mixt/data.h"

#include "base/account.h"
#include "base/alloc.h"
#include "base/handles.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/status.h"

typedef enum mixt__part { MIXT_PART_TRAIN, MIXT_PART_VAL, MIXT_PART_TEST, MIXT_PART_ALL, MIXT_PART_COUNT } mixt__part;

extern const char *const mixt__part_names[MIXT_PART_COUNT];

/** Groups of options that not every kind has: setting one of another kind's is an error. */
typedef enum mixt__data_uses {
    MIXT_DATA_LABELS = 1 << 0,   // labels
    MIXT_DATA_WORDS = 1 << 1,    // tokenizer, vocab, mask
    MIXT_DATA_CELLS = 1 << 3,    // missing
    MIXT_DATA_AUDIO = 1 << 4,    // rate, mels, window, hop, seconds, shift, noise, masks, val_files, test_files
    MIXT_DATA_RATINGS = 1 << 7,  // by_time, users, items, counts, user_numbers, item_numbers, times
    MIXT_DATA_IMAGES = 1 << 2,   // crop, pad, flip, min_area, resize, means, stds
    MIXT_DATA_FRAMES = 1 << 5,   // frames
    MIXT_DATA_DRAWN = 1 << 6,    // draw_seed
    MIXT_DATA_PAIRS = 1 << 8,    // source_name, target_name, vocab_size, tokenizer, vocab
    MIXT_DATA_TEXTS = 1 << 9,    // text, vocab_size
    MIXT_DATA_NUMBERS = 1 << 10, // normalise
    MIXT_DATA_SHAPE = 1 << 11,   // shape
    MIXT_DATA_CLASSES = 1 << 12, // classes
    MIXT_DATA_SAMPLES = 1 << 13, // samples, where none is read: elsewhere there is a warning
    MIXT_DATA_COLUMNS = 1 << 15, // columns, drop
    MIXT_DATA_INPUTS = 1 << 16,  // inputs
    MIXT_DATA_CHAT = 1 << 17,    // chat_template, loss_on, unpacked
    MIXT_DATA_VALUES = 1 << 18,  // normalise_target
    MIXT_DATA_SEQ = 1 << 14,     // seq: has a default, so that it takes a configuration to know whether it was set
} mixt__data_uses;

typedef struct mixt__data_kind {
    const char *name;
    const char *what; // for error texts
    unsigned uses;    // mixt__data_uses
    /** Fills data->info and data->state from data->path and data->options. */
    mixt_status (*open)(mixt_data *data);
    /** Writes one sample. `epoch` is negative outside training. Pure, any thread; allocates only
     *  where an image is decoded or resized. */
    mixt_status (*sample)(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target);
    /** In its place where a set has several inputs or targets: each array at its own address, in the order of
     *  info.arrays, which `open` has filled, and as long as `as` says: the set's own info, or that of a bucket. */
    mixt_status (*arrays)(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                          char *const *at);
    /** How long array `array` of a sample is, of the set's first dimension of it; -1: all samples' are whole. NULL: no
     *  array has lengths. */
    int64_t (*length)(const mixt_data *data, int64_t index, int array);
    /** Frees data->state; also after an open that failed half way. */
    void (*close)(mixt_data *data);
    /** Block `index` of the memory that samples are made from, and its bytes; NULL: there is no more. A kind without it
     *  is known by its samples. */
    const void *(*raw)(const mixt_data *data, int index, size_t *bytes);
    int64_t least; // that a bucket is long: models that pool frames have something left
    bool bucketed; // by itself: no sample of a batch has a say in another's loss
    bool drawn;    // by mixt itself: there is no file, and what stands for its path may be empty
    bool draws;    // the same where it has no path
    bool slow;     // a sample takes a millisecond rather than a microsecond: mixt_data_read uses all threads
} mixt__data_kind;

/** A batch that is not as it should be, in tests: see train/faults.h. */
typedef struct mixt__data_fault {
    int64_t batch, number; // samples of a batch, and which one
    int64_t place;         // of the sample in it
    bool labels;           // every label is that of another class, one value is far off; else an input is NaN
} mixt__data_fault;
enum { MIXT_DATA_FAULTS_MAX = 16, MIXT_DATA_ARRAYS_MAX = 16, MIXT_LEFT_OUT_MAX = 64 };

/** A batch of training: `group` of them, one after the other, make an update, which matters where samples are in
 *  buckets. */
typedef struct mixt__data_which {
    int64_t batch, group, number;
} mixt__data_which;

/** Where the arrays of a batch lie, or those of its sample number `first` and on. */
typedef struct mixt__data_places {
    char *at[MIXT_DATA_ARRAYS_MAX];
} mixt__data_places;

struct mixt_data {
    mixt__handle handle;
    const mixt__data_kind *kind;
    mixt_data_options options; // strings live in the arena; `like` is valid only while opening
    mixt_data_info info;
    mixt__part part;
    const char *path;
    void *state;                         // of the kind
    const mixt_data_arrays *arrays;      // while a set of arrays is opened
    const struct mixt__columns *columns; // the same of named arrays
    const struct mixt__numpy_set *numpy; // of NumPy files: the arrays that were found, in the arena
    int64_t next;                        // batch number of mixt_data_next
    struct mixt__data_buckets *buckets; // of their lengths: data/buckets.h; NULL: all batches are as long as each other
    const float *fill; // (fill_count) for cells that are missing, an element of a row each, in the arena; NULL: none
    int64_t fill_count;
    const struct mixt__schema *schema; // of a table: what its columns become; NULL: they are what they are
    uint64_t order_before;             // seed of the order of epochs before `order_from`; 0 of them by default
    int64_t order_from;
    mixt__data_fault injected[MIXT_DATA_FAULTS_MAX]; // in tests
    int injected_count;
    int64_t left_out[MIXT_LEFT_OUT_MAX]; // samples in whose place others of their batches stand
    int left_out_count;
    int holders;                      // beside the owner: mixt_data_close leaves the set to the last of them
    struct mixt_tokenizer *tokenizer; // of kinds that keep it, held; NULL: none
    bool learned;                     // from the training part: nobody else has it
    mixt__arena arena;
    mixt__account *account; // of all that the set holds but for this struct
};

#define MIXT_DATA_KIND(name) extern const mixt__data_kind mixt__data_##name;
#include "data/kinds.def"
#undef MIXT_DATA_KIND

/** Streams of mixt__rng_key that belong to data. */
enum {
    MIXT_STREAM_ORDER = 0x64617400, // epoch permutations
    MIXT_STREAM_PARTS,              // which rows of a file are held out
    MIXT_STREAM_SHIFT,              // where a text epoch begins
    MIXT_STREAM_POOL,               // random's numbers
    MIXT_STREAM_DIGITS,             // one substream a part and sample
    MIXT_STREAM_AUGMENT,            // one key an epoch, of which one a sample
    MIXT_STREAM_MASK,               // which tokens a sample hides
    MIXT_STREAM_VOICE,              // one substream a part and word
    MIXT_STREAM_MOVING,             // of each part and clip: digit, motion, noise
    MIXT_STREAM_RATINGS,            // what users think of items
    MIXT_STREAM_PAIRS,              // of each part and pair: a number
    MIXT_STREAM_CAPTIONS,           // one substream a part and picture
    MIXT_STREAM_OPINIONS,           // one substream a part and text
    MIXT_STREAM_BUCKETS,            // the order of an epoch's updates, where samples are in buckets
    MIXT_STREAM_SUMS,               // the text that is drawn: of each line two numbers
};

// data.c

/** The kind of a name; NULL: none. */
const mixt__data_kind *mixt__data_kind_find(const char *name, size_t length);
/** What mixt_data_open_with would open, without opening it: its kind, and its path into `path`. */
mixt_status mixt__data_look(const char *spec, const mixt_data_options *options, const char **kind, char *path,
                            size_t room);

// guess.c

/** The kind that a path without prefix looks like; NULL when nothing fits. */
const mixt__data_kind *mixt__data_guess(mixt_data *data, const char *path);

// data.c

/** Refuses an option that was set and is of a group that the set's kind does not have. */
mixt_status mixt__data_check_use(const mixt_data *data, const char *name, unsigned group);
/** Whether a kind of this name is drawn by mixt itself: it needs no path, and what it has instead is none. */
bool mixt__data_is_drawn(const char *kind);
/** Whether mixt draws a set of this kind where no path is named. */
bool mixt__data_can_draw(const char *kind);

/** Opens a set of a kind that has no spec: of arrays or of named ones. */
mixt_status mixt__data_open_arrays(const mixt__data_kind *kind, const mixt_data_arrays *arrays,
                                   const mixt_data_options *options, mixt_data **data);
mixt_status mixt__data_open_columns(const mixt__data_kind *kind, const char *name, const struct mixt__columns *columns,
                                    const mixt_data_options *options, mixt_data **data);
/** Samples [first, first + count) of a batch; `places` are those of the first of them.
 *  @param as the set's own info, or that of the batch's bucket: how long they are made */
mixt_status mixt__data_batch_piece(const mixt_data *data, const mixt__data_which *which, const mixt_data_info *as,
                                   int64_t first, int64_t count, const mixt__data_places *places);
/** The places of sample `first` in the blocks of a batch. */
mixt__data_places mixt__data_places_of(const mixt_data *data, int64_t batch, int64_t first, void *input, void *target);
/** The same of samples that are as long as a bucket's. */
mixt__data_places mixt__data_places_as(const mixt_data_info *as, int64_t batch, int64_t first, void *input,
                                       void *target);
/** mixt_data_read of `count` samples into the blocks of a larger batch. */
mixt_status mixt__data_read_some(const mixt_data *data, int64_t first, int64_t count, int64_t batch, void *input,
                                 void *target, int64_t *valid);
/** Copies samples [begin, end) from one batch's blocks to the same places of another's. */
void mixt__data_copy_samples(const mixt_data *data, int64_t batch, int64_t begin, int64_t end, const void *input,
                             const void *target, void *to_input, void *to_target);

/** The sample that stands at `place` of a batch. */
int64_t mixt__data_sample_at(const mixt_data *data, const mixt__data_which *which, int64_t place);

/** The seed that samples are drawn from. */
uint64_t mixt__data_draw_seed(const mixt_data *data);
/** The seed of an epoch's order. */
uint64_t mixt__data_order_seed(const mixt_data *data, int64_t epoch);
/** Lets epochs before `from` have the order of another seed: nobody must read the set meanwhile. */
void mixt__data_order_before(mixt_data *data, uint64_t seed, int64_t from);

/** Keeps the set while threads read it; returns it. */
const mixt_data *mixt__data_hold(const mixt_data *data);
/** Ends a hold, or the owner's own; the last one frees the set. */
void mixt__data_drop(const mixt_data *data);

/** What an open set holds: bytes in memory, and bytes of files that are mapped, which are the system's page cache. */
size_t mixt__data_bytes(const mixt_data *data);
size_t mixt__data_mapped(const mixt_data *data);

/** Gives the set these faults in place of those that it had: nobody must read it meanwhile. */
void mixt__data_inject(const mixt_data *data, const mixt__data_fault *faults, int count);

/** From now on another sample of the same batch stands wherever one of these does: nobody must read the set meanwhile.
 *  @param count at most MIXT_LEFT_OUT_MAX */
void mixt__data_leave_out(const mixt_data *data, const int64_t *samples, int count);

// blocks.c

/** Describes the one input and the one target of a set that names no arrays; checks those that are named. */
mixt_status mixt__data_describe_arrays(mixt_data *data);

// fingerprint.c

/** A checksum by which a set is known again: of all it is made from where that is in memory and not huge, else of parts
 *  spread over it. 0 when it cannot be read. */
uint64_t mixt__data_fingerprint(const mixt_data *data);

// order.c

/** Element `index` of a pseudo-random permutation of [0, count) chosen by `key`: O(1), no memory. */
int64_t mixt__order_at(uint64_t key, int64_t count, int64_t index);

// file.c

/** A whole file, gunzipped where it is gzip; one NUL beyond `size`. */
typedef struct mixt__bytes {
    unsigned char *bytes;
    int64_t size;
} mixt__bytes;

mixt_status mixt__bytes_read(const char *path, mixt__bytes *bytes);
/** The same, but no more than `most` bytes and one: the size tells that there are more. */
mixt_status mixt__bytes_read_most(const char *path, int64_t most, mixt__bytes *bytes);
/** Bytes that a whole file has by its first ones; -1: they do not say. Where they are wrong, `size`: the rest of the
 *  file is not needed to refuse it. */
typedef int64_t mixt__promise(const unsigned char *bytes, int64_t size);
/** Reads what `promise` says of the first `head` bytes, and one more where the file is longer. */
mixt_status mixt__bytes_read_promised(const char *path, int64_t head, mixt__promise *promise, mixt__bytes *bytes);
void mixt__bytes_free(mixt__bytes *bytes);
/** Bytes of the byte order mark that some editors put in front of a text in UTF-8: 3, or 0. */
int64_t mixt__bytes_mark(const mixt__bytes *bytes);
bool mixt__path_is_directory(const char *path);
bool mixt__path_is_file(const char *path);
/** The file DIR/NAME or DIR/NAME.gz as a string of the data set; NULL when there is none, or no memory, which
 *  the arena remembers. */
const char *mixt__path_find(mixt_data *data, const char *directory, const char *name);
/** For kinds whose path is one file, or a folder of train, val and test files ending in `suffix`: the file that holds
 *  `part` alone, or NULL when there is none. A single file counts as the training file. */
const char *mixt__path_of_part(mixt_data *data, mixt__part part, const char *suffix);

/** For kinds whose path is a folder with folders train, val and test: that of `part`; NULL when there is none. */
const char *mixt__path_of_folder(mixt_data *data, mixt__part part);

// sniff.c

/** The kind that a file's first bytes tell; NULL: none that has a mark of its own, or the file cannot be read. */
const mixt__data_kind *mixt__sniff_kind(const char *path);
/** Refuses bytes that are no text: they hold a NUL, or more than a quarter is no UTF-8. `path` is for the message. */
mixt_status mixt__text_check(const char *path, const unsigned char *bytes, int64_t size);

// class_names.c

/** Gives classes the names that options.names says, or those of options.like where the data has none. */
mixt_status mixt__class_names_take(mixt_data *data);

// foreign.c

/** Refuses a file of a program whose files are not read here, with what converts it; any other passes. */
mixt_status mixt__other_format_check(const char *path);

// shape.c

/** "28x28x1" to dims; every dim at least 1, rank below MIXT_MAX_RANK (one is left for the batch). */
mixt_status mixt__shape_parse(const char *text, int *rank, int64_t dims[MIXT_MAX_RANK]);
/** Product of dims in *elements; false when it does not fit. */
bool mixt__shape_elements(int rank, const int64_t *dims, int64_t *elements);

// parts.c

/** Rows of a training file that each part takes. */
typedef struct mixt__shares {
    int64_t train, val, test;
} mixt__shares;

/** How `count` rows are shared out; has_val and has_test say that the part has a file of its own. */
/** Refuses samples of no tokens, in kinds that have some. */
mixt_status mixt__need_seq(const mixt_data *data);
mixt_status mixt__shares_of(const mixt_data *data, int64_t count, bool has_val, bool has_test, mixt__shares *shares);
/** The part that a row of a shared file belongs to: rows are chosen by a permutation that is the same for every run. */
mixt__part mixt__part_of_row(const mixt__shares *shares, int64_t row);
/** The failure for a part that is not there. */
mixt_status mixt__part_missing(const mixt_data *data);

// table.c

/** The input beside the features of a table whose columns have many words. */
#define MIXT_WORDS_INPUT "words"

/** The input beside tokens where several texts share a row: the place of each token in its own. */
#define MIXT_POSITIONS_INPUT "positions"
/** Of pairs of answers: the tokens that are scored, 1 and -1 for those of the chosen and the rejected answer, and how
 *  much likelier the reference finds the chosen one. */
#define MIXT_NEXT_INPUT "next"
#define MIXT_SIDE_INPUT "side"
#define MIXT_REFERENCE_INPUT "reference"

/** Rows in memory: inputs of one shape (UINT8 or FP32), and INT32 labels or FP32 values. */
typedef struct mixt__table {
    const char *path; // for messages; lives with the data set
    bool borrowed;    // nothing here is owned
    void *block;      // owned: what `input` points into
    const void *input;
    mixt_dtype dtype; // UINT8 or FP32
    int64_t rows;
    int rank;
    int64_t dims[MIXT_MAX_RANK];
    int32_t *labels; // owned; (rows), or NULL
    float *values;   // owned; (rows, value_count), or NULL
    int64_t value_count;
    int32_t *ids; // owned; (rows, embedded) numbers of words, as `schema` says; NULL: there are none
    const struct mixt__schema *schema; // of its columns, in the data set's memory; NULL: they are as they are
    int64_t classes;                   // number that the file itself states; 0: count them
    int64_t missing, cells;            // cells of numbers that are NaN until they are filled, of how many
    int64_t dropped;                   // rows of the file left out because a cell is missing
    bool whole;                        // FP32 made from integers of the file
    const char *const *class_names;    // (classes) in the data set's memory; NULL: the file does not name them
    const struct mixt__table *train;   // while a part is read: the training part's table, where known, to agree with
} mixt__table;

/** What a kind of table knows: which file holds a part, and how to read one. */
typedef struct mixt__table_reader {
    const char *(*find)(mixt_data *data, mixt__part part);
    mixt_status (*load)(mixt_data *data, const char *path, mixt__table *table);
} mixt__table_reader;

/** Opens data->part through a reader: finds its file or its share of the training file, checks labels, takes the
 *  statistics of the training rows. */
mixt_status mixt__table_open(mixt_data *data, const mixt__table_reader *reader);
/** Takes over a whole part that was made in memory (its owned blocks too, also on failure). */
mixt_status mixt__table_adopt(mixt_data *data, mixt__table *table, float mean, float std);
/** Elements of one row's input. */
int64_t mixt__table_elements(const mixt__table *table);
// Callbacks of the kinds that are tables.
mixt_status mixt__table_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target);
/** The same for sets that have the input "words", numbers of words, where their columns have many. */
mixt_status mixt__table_arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                               char *const *at);
const void *mixt__table_raw(const mixt_data *data, int index, size_t *bytes);
void mixt__table_close(mixt_data *data);
void mixt__table_free(mixt__table *table);

// ratings.c

/** ratings.dat or ratings.csv in a folder; NULL: neither is there. */
const char *mixt__ratings_file(mixt_data *data, const char *folder);
/** Writes a user and an item that he has not rated in the training part, with their features, as a sample's inputs.
 *  @param at where they go, in the order of info.arrays */
void mixt__ratings_pair(const mixt_data *data, int32_t user, int32_t item, char *const *at);

// labelled.c

/** Whether a folder has the files of labelled texts by a name that no other kind has: train.tsv. */
bool mixt__labelled_is_in(mixt_data *data, const char *folder);
/** Whether the first rows of a table are texts and labels: few columns, sentences in one of them. */
bool mixt__labelled_looks(const char *path);

// pairs.c, parallel_read.c

/** The file of a folder of pictures that says what is said of each. */
#define MIXT_CAPTIONS "captions.tsv"
/** Whether a folder has sentences in two languages: files of the training part for those that the options name, or two
 *  such as train.en and train.de. */
bool mixt__parallel_is_in(const mixt_data *data, const char *folder);

/** Two languages of a folder's training part, English first where it is one; false: it has no two. */
bool mixt__parallel_languages(const char *folder, char source[3], char target[3]);

// images.c

/** Whether the folder has folders with pictures in them. */
bool mixt__images_are_in(const char *folder);

// cifar.c

/** Whether a folder, or a file, is of records as CIFAR has them, under any names. */
bool mixt__cifar_is_in(mixt_data *data, const char *path);

// idx.c, npy.c, npz.c

/** Whether the folder has IDX images by a name that is known, of any part. */
bool mixt__idx_is_in(mixt_data *data, const char *folder);

/** Inputs alone, without labels. What the table owns is the caller's to free, also on failure. */
mixt_status mixt__idx_read_images(const char *path, mixt__table *table);
mixt_status mixt__npy_read_inputs(const char *path, mixt__table *table);
/** @param arena of names, which the table keeps */
mixt_status mixt__npz_read_inputs(mixt__arena *arena, const char *path, mixt__table *table);

// missing.c

/** Where the options ask for the mean: takes that of each element over `count` rows, or rows[0] to rows[count - 1] when
 *  `rows` is not NULL, for missing ones. */
mixt_status mixt__missing_learn(mixt_data *data, const mixt__table *table, const int64_t *rows, int64_t count);
/** The same from a set that was opened before; false: it has none for such rows. */
bool mixt__missing_copy(mixt_data *data, const mixt_data *like, const mixt__table *table);
/** Fills what is missing. */
void mixt__missing_fill(const mixt_data *data, mixt__table *table);
/** Tells what was filled or left out. */
mixt_status mixt__missing_warn(mixt_data *data, const mixt__table *table);

// statistics.c

/** Mean and standard deviation of each channel (the last dimension) over `count` rows, or rows[0] to rows[count - 1]
 *  when `rows` is not NULL, after bytes are scaled by 1/255. A constant channel gets 1 for its deviation. */
mixt_status mixt__table_statistics(const mixt__table *table, const int64_t *rows, int64_t count, float *mean,
                                   float *std);

/** Mean and standard deviation of the values of those rows, of one each; a deviation of 0: they are all the same, or
 * not finite, or there are several each. */
void mixt__table_value_scale(const mixt__table *table, const int64_t *rows, int64_t count, double *mean, double *std);

/** Numbers of the options `means` or `stds` (`name`), one for each of `channels` or one for all. */
mixt_status mixt__channel_numbers(const char *text, const char *name, int64_t channels, float *numbers);

// targets.c

/** @param one whether there is one target to regress on. Fails where what is asked of it is asked of other targets. */
mixt_status mixt__target_check(const mixt_data *data, bool values, int64_t elements, bool *one);
/** Sets how one target to regress on is learned, and tells it. @param mean, deviation of the training part; 0: it is the
 *  same everywhere. Not read where `like` says both. */
mixt_status mixt__target_learned(mixt_data *data, double mean, double deviation);

// warnings.c

/** Adds a line to info.warnings: something that may not be meant. */
mixt_status mixt__data_warn(mixt_data *data, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Adds a line to info.notes: what became of the data. */
mixt_status mixt__data_note(mixt_data *data, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Looks at a table that is ready: warns of a shape that may not be meant, measures its values. */
mixt_status mixt__table_warning(mixt_data *data, const mixt__table *table);
/** Warns of rows that do not look like the others (suspects.c). @param mean, std (channels) as samples are normalised
 */
mixt_status mixt__table_suspects(mixt_data *data, const mixt__table *table, const float *mean, const float *std);

// labels.c

/** Gives `table` its targets from `values` (one a row, taken over, also on failure): classes or values as `target`
 *  says; AUTO: as those of table->train are, decided by the numbers without it. `lines` names the line of each row in
 *  messages; NULL: its index. */
mixt_status mixt__table_take_targets(mixt_data *data, mixt__table *table, float *values, mixt_target_kind target,
                                     const int64_t *lines);

#endif
