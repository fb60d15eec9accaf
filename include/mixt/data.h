/* Where do samples come from, and what does one look like? Data sets, and batches of them.
 *
 * The order of samples is a pure function of (seed, epoch), and a batch a pure function of (seed, batch number): it
 * does not depend on the precision policy, on threads or on what was read before, so a run resumes by number alone.
 */
#ifndef MIXT_DATA_H
#define MIXT_DATA_H

#include "mixt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_data mixt_data;

/** What a sample's target is. */
typedef enum mixt_target_kind {
    MIXT_TARGET_AUTO = 0, /**< only in options: decided from the data */
    MIXT_TARGET_CLASS,    /**< one INT32 in [0, classes) */
    MIXT_TARGET_VALUES,   /**< FP32 numbers to regress on */
    MIXT_TARGET_TOKENS,   /**< T INT32 tokens: the input, one step ahead; or what was hidden, -1 elsewhere */
    MIXT_TARGET_TEXT,     /**< what is said: INT32 letters from 1, and how many there are ("target.length") */
} mixt_target_kind;

/** What happens to input numbers on the way from the file to a batch. */
typedef enum mixt_normalise {
    MIXT_NORMALISE_STANDARD = 0, /**< bytes to [0, 1]; then subtract the mean, divide by the standard deviation */
    MIXT_NORMALISE_UNIT,         /**< bytes to [0, 1]; other numbers as they are */
    MIXT_NORMALISE_NONE,         /**< as stored: bytes become 0 to 255 */
} mixt_normalise;

/** How one target to regress on is learned; predictions are in its own units either way. */
typedef enum mixt_normalise_target {
    MIXT_NORMALISE_TARGET_AUTO = 0, /**< of files STANDARD where `normalise` is, else NONE; of a program's arrays NONE */
    MIXT_NORMALISE_TARGET_STANDARD, /**< minus the mean and over the deviation of the training part, inside the model */
    MIXT_NORMALISE_TARGET_NONE,     /**< as stored: the loss is of the target itself */
} mixt_normalise_target;

/** What becomes of a cell that has no value. */
typedef enum mixt_missing {
    MIXT_MISSING_ERROR = 0, /**< the set does not open; the message names the cell */
    MIXT_MISSING_MEAN,      /**< the mean of its column over the training part takes its place */
    MIXT_MISSING_ZERO,      /**< 0 does, before normalising */
    MIXT_MISSING_DROP,      /**< its row is left out */
    MIXT_MISSING_FILL, /**< the mean does, and a feature of 0 and 1 says where; rows without a target are left out */
} mixt_missing;

/** Which tokens of conversations are trained. */
typedef enum mixt_loss_on {
    MIXT_LOSS_ON_ASSISTANT = 0, /**< answers of the assistant, and completions */
    MIXT_LOSS_ON_ALL,           /**< all */
    MIXT_LOSS_ON_LAST,          /**< the last answer of each conversation, and completions */
    MIXT_LOSS_ON_PREFERENCE,    /**< pairs of answers, "chosen" and "rejected": which of them is better */
} mixt_loss_on;

/** How to open a data set. */
typedef struct mixt_data_options {
    size_t struct_size;
    const char *split; /**< "train", "val", "test" or "all" (a single file whole); default: "train", or what the
                            path ends in ("idx:DIR/test") */
    double val; /**< share of the training file kept for "val" where it has no file of its own; 0 or less: none; default
                   0.1 */
    double test;         /**< the same for "test"; default 0 */
    uint64_t seed;       /**< of shuffling and of generated samples; default 0 */
    uint64_t draw_seed;  /**< "digits:", "moving:": of generated samples alone; default MIXT_AUTO: `seed` */
    bool in_order;       /**< mixt_data_batch follows the file instead of shuffling every epoch */
    uint64_t order_seed; /**< of shuffling alone, and of where an epoch of a text begins; default MIXT_AUTO: `seed` */
    int64_t seq;         /**< text, tokens: tokens a sample, at least 1; labelled, chat, parallel: at most,
                              longer texts are cut, longer pairs left out;
                              default 256 */
    int64_t limit;       /**< use only the first N samples of the part; 0: all */
    int64_t samples;     /**< digits, random, audio, labelled without a path: how many to generate; 0 (default): 20000
                              train, 2000 val, 4000 test; audio: 2000, 400, 400; labelled: 4000, 400, 400 */
    int64_t classes;   /**< classes expected (a label past them is an error), random's classes, raw tokens' vocabulary;
                            0 (default): largest label + 1; random: 10, for tokens 256 */
    const char *shape; /**< sample shape without the batch, "28x28x1" (height, width, channels) or "784"; it must have
                            as many elements as the file's samples; random: what to generate; default: the file's */
    const char
        *labels;      /**< audio: file of transcripts, a line each: a recording's name or class, a tab, the text; npy,
                           npz: name of the array of labels, or a file of them, where neither names nor shapes tell
                           which it is; idx: file of labels, where it is not found by name; csv, labelled, images
                           in a table: column of the target, a name of the header or a number from 1; default: the last */
    const char *text; /**< labelled: column of the texts, a name of the header or a number from 1; default: as such
                         files   call it, else the first one that is not `labels` */
    mixt_target_kind target; /**< audio: TEXT makes transcripts the targets: those of `labels`, else the classes' names,
                                  letter by letter; csv, npy, npz: CLASS or VALUES instead of deciding from the training
                                part's numbers; an error where the targets of another kind are not of this sort */
    mixt_missing missing;    /**< csv: cells that are empty, NA, N/A, ?, null, None, - or NaN, and, unless ERROR, single
                                  words in a column of numbers; default MIXT_MISSING_FILL. Of words, missing is one
                                  more. A target is never filled in */
    const char *columns;     /**< csv: columns to predict from, names or numbers from 1, "age,sex,4"; default: all */
    const char *drop;        /**< csv: columns to leave out, likewise; default: none, but for what says nothing */
    mixt_normalise normalise; /**< default MIXT_NORMALISE_STANDARD; never touches labels or tokens. Of one target to
                                   regress on `normalise_target` says more */
    float mean, std;          /**< of all channels, in units after scaling to [0, 1]; std 0 (default): both computed
                                   from the training part, for each channel or feature (the last dimension) apart */
    const char *means, *stds; /**< the same for each channel, "0.485,0.456,0.406", both or neither */
    const mixt_data *like;    /**< take mean, std and classes from this open set (say, the training part) instead of
                                   reading the training file for them; borrowed during the call only */
    /* images (H, W, C); what is random is a function of (seed, epoch, sample) and happens in mixt_data_batch only:
     * mixt_data_read gives the middle of the image, never mirrored */
    int64_t crop; /**< side of the square a sample shows; 0 (default): the whole image; "images:": 224, "video:": 112 */
    int64_t pad;  /**< mean-coloured border that a random crop may reach into; default 0 */
    bool flip;    /**< mirror every other sample, at random */
    float min_area; /**< above 0: random crops of all sizes that cover at least this share of the image and have sides
                         of 3:4 to 4:3, resized to `crop`; 0: crops keep their scale */
    int64_t resize; /**< shorter side that the image is resized to before it is cropped, at least `crop`; 0: not;
                         "images:", "video:": crop × 8/7 */
    /* recordings; what is random as for images */
    int64_t rate; /**< samples a second that they are brought to, 100 to 768000; 0 (default): their own, which must
                       agree */
    int64_t mels; /**< mel bands of a frame, at most 512; 0 (default): 40 */
    double window, hop; /**< milliseconds that a frame looks at, and from one to the next, above 0; default 25 and 10 */
    double seconds; /**< of the longest sample, above 0: of what is longer the middle is heard, what is shorter is as
                         long as it is; default MIXT_AUTO: 1. With texts longer recordings are an error, and MIXT_AUTO
                         is as long as the longest recording of any part */
    double tail;    /**< seconds of silence behind a recording that are heard: a recurrent layer has then heard all
                         of it before it must have said it; default MIXT_AUTO: 0.5 with texts, else none */
    double shift;   /**< seconds by which a recording is moved at random: so much silence at most before it, or so
                         far from the middle of one that is cut; default 0 */
    double noise;   /**< white noise, at random up to so many times the recording's own loudness; default 0 */
    int64_t time_mask, mel_mask; /**< frames in a row, no more than half of a recording, and bands, that are hidden at
                                      random, at most; default 0 */
    const char *val_files, *test_files; /**< globs over names ("*_[0-4].wav", "CLASS/…" where classes are folders):
                                           files of these parts; default: shares */
    int64_t frames;                     /**< "moving:", "video:": frames of a clip; 0 (default): 16 */
    bool by_time; /**< ratings: the newest are held out, test behind val; default: val and test are drawn at random */
    /* what is known of users and items beside their ratings: inputs "user.features" and "item.features" */
    const char *users, *items; /**< ratings: files of features, or the names of files beside the ratings: what somebody
                                    is called, then numbers, categories with | between, or a title with its year,
                                    parted by "::" or as CSV; default: none */
    bool counts; /**< ratings: how many ratings a user and an item have in the training part is a feature of theirs */
    bool user_numbers, item_numbers; /**< ratings: what users, items are called is a number that says something of them
                                          (ids given by age), and its logarithm a feature of theirs; default: a name */
    bool times;  /**< ratings: when a rating was given is a feature of both its user and its item; and input "user.day",
                      which day of which user it is from (UTC), 0 where the training part has no rating of that day */
    int threads; /**< threads that make batches ahead of training; 0: one, and more while training waits for them */
    const char *tokenizer; /**< text: "bytes", "gpt2", "wordpiece" (lower case, no accents), "wordpiece-cased",
                                "json" (tokenizer.json);
                                default: by the files of `vocab`, bytes without one */
    const char *vocab;     /**< text, raw tokens: folder of the vocabulary: encoder.json and vocab.bpe, vocab.txt, or
                                tokenizer.json */
    double mask;           /**< text, tokens: share of tokens to hide and to predict, instead of the next token; the
                                vocabulary needs a [MASK]; default 0: none */
    const char *source_name, *target_name; /**< parallel: from which language to which, by the endings of its files
                                                ("en", "de"); of a file with both the columns, default "1" and "2" */
    int64_t vocab_size; /**< parallel, labelled without `vocab`: tokens of the vocabulary that is learned; 0 (default):
                             8000, 30000 */
    int64_t buckets; /**< sets whose samples have lengths: training pads batches to one of at most so many lengths, and
                          each update has samples of one; at most 8; 0 (default), 1: all are padded to the longest;
                          -1: 4 of parallel and labelled where that saves a tenth, else 1 */
    mixt_progress_fn *progress; /**< hears of a text that is tokenised, a vocabulary that is learned, in the thread that
                                     opens; default NULL: nobody does */
    void *user;                 /**< for it */
    const char *inputs; /**< npy, npz: name of the array of samples; default: by names (x, images, data …) and shapes.
                             images listed in a table: column of their files; default: the one that names some */
    const char *chat_template; /**< chat: file of the template that makes text of conversations, or a folder that has
                                    one; default: that of the folder `vocab`, where it has one */
    mixt_loss_on loss_on;      /**< chat: which tokens are trained; default MIXT_LOSS_ON_ASSISTANT */
    bool unpacked;             /**< chat: each sample has a row of a batch to itself; default: short ones share rows */
    bool no_check; /**< arrays and tables: samples far larger than all others, and labels in a row that do not fit, are
                        no warning; default false */
    const char *names; /**< what classes are called, from class 0 on: "cat,dog,horse", or a file of them, one a line;
                            default: as the data says */
    mixt_normalise_target normalise_target; /**< csv, npy, npz, images in a table, a program's own arrays: how one
                                                 target to regress on is learned; default
                                                 MIXT_NORMALISE_TARGET_AUTO. `like` comes before it */
} mixt_data_options;
MIXT_API void mixt_data_options_default(mixt_data_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_data_options                                                                                \
    .struct_size = sizeof(mixt_data_options), .val = 0.1, .tail = MIXT_AUTO, .seq = 256, .missing = MIXT_MISSING_FILL, \
    .draw_seed = (uint64_t)MIXT_AUTO, .order_seed = (uint64_t)MIXT_AUTO, .window = 25, .hop = 10, .seconds = MIXT_AUTO

/** An array that a data set offers: mixt_input and mixt_target ask for it by its name. */
typedef struct mixt_data_array {
    const char *name;            /**< "input", "user"; below 32 bytes */
    bool target;                 /**< what is to be predicted, not what it is predicted from */
    mixt_dtype dtype;            /**< FP32 or INT32 */
    int rank;                    /**< of one sample, without the batch dimension; 0: one number */
    int64_t dims[MIXT_MAX_RANK]; /**< of one sample */
    int64_t elements;            /**< product of the dims */
    int64_t ids;                 /**< INT32 that names things: one more than the largest; else 0 */
    const char *const *names;    /**< (ids) what they are called, where the set says so; else NULL */
} mixt_data_array;

/** One sample and how many there are. Strings and arrays belong to the data set. */
typedef struct mixt_data_info {
    const char *kind, *path, *split;   /**< "idx", "mnist", "train" */
    int64_t samples;                   /**< in this part */
    mixt_dtype input_dtype;            /**< FP32, or INT32 for tokens; of the first input, as are rank and dims */
    int input_rank;                    /**< without the batch dimension */
    int64_t input_dims[MIXT_MAX_RANK]; /**< (H, W, C), (frames, H, W, C), (F) or (T) */
    int64_t input_elements;            /**< product of the dims; of several inputs the sum */
    mixt_target_kind target;           /**< never AUTO; of the first target */
    mixt_dtype target_dtype;           /**< INT32 or FP32 */
    int64_t target_elements;           /**< 1 for a class, T for tokens; of several targets the sum */
    int array_count;                   /**< inputs and targets */
    const mixt_data_array *arrays;     /**< (array_count) inputs first */
    bool next_tokens;                  /**< each target is the token that comes next in the input */
    int64_t classes;                   /**< classes or vocabulary; 0 for MIXT_TARGET_VALUES */
    int64_t channels;                  /**< entries of mean and std: the last dimension; 0: never normalised */
    const float *mean, *std;           /**< what a batch was normalised with, after scaling to [0, 1] */
    const char *const *class_names;    /**< (classes) where the set names them, else NULL */
    double target_largest;             /**< VALUES of a set in memory: the largest magnitude; else 0 */
    double target_square;              /**< the same: the mean of their squares */
    double target_mean;                /**< ratings, values with a scale: their mean in the training part; else 0 */
    const char *warnings;              /**< what in the data may not be meant, a line each; NULL: nothing */
    const char *notes;                 /**< csv: what columns became, a line each; NULL: nothing */
    double target_scale; /**< VALUES with one each (`normalise_target`): models of the zoo learn (target - target_mean) / target_scale, and
                               their outputs are in the target's units; 0: as they are */
} mixt_data_info;

/**
 * Opens a data set.
 * @param spec "kind:path":
 *   - "digits:" drawn by mixt itself, 28x28x1, 10 classes;
 *   - "moving:" clips of a digit that moves left, right, up or down, drawn by mixt: 16 frames (option `frames`) of
 *     32x32x1, 40 classes; "moving:64x64": frames of another size;
 *   - "idx:DIR", "idx:DIR/train", "idx:IMAGES" the MNIST family, plain or .gz: DIR/train-images-idx3-ubyte and its
 *     like (t10k or test, val);
 *   - "cifar:DIR" CIFAR-10 (data_batch_*.bin, test_batch.bin) or CIFAR-100 (train.bin, test.bin), plain or .gz;
 *   - "images:DIR" pictures in class folders, DIR/train/CLASS/… (val, test) or DIR/CLASS/…: PPM, PGM, PNG, and JPEG
 *     where mixt was built with libjpeg (pictures of other kinds are an error); read when a batch needs them;
 *     "images:TABLE" or "images:DIR" pictures that a table (CSV, TSV) lists with their labels, words or numbers;
 *   - "audio:DIR" recordings of words (WAV), DIR/train/… (val, test) or DIR/…, in class folders or named CLASS_….wav:
 *     samples are log-mel features (frames, mels), read when a batch needs them; with transcripts.tsv or *.trans.txt
 *     there, or the option labels, targets are texts; "audio:" words spoken by mixt itself;
 *   - "video:DIR" clips in class folders, DIR/train/CLASS/CLIP/… (val, test) or DIR/CLASS/CLIP/…: a clip is a folder of
 *     pictures of one size, `frames` of which, evenly spread in the order of their names, are a sample;
 *   - "csv:FILE" or "csv:DIR" (train.csv, val.csv, test.csv), plain or .gz: the last column is the target, numbers or
 *     words (classes by name); separator , ; tab or space; a header line is recognised, and the same in all parts;
 *   - "ratings:FILE" what users think of items: lines of user::item::rating::time, or the same as CSV, with a header
 *     or without, time or none; "ratings:" drawn by mixt itself. Inputs "user" and "item", and "user.features" and
 *     "item.features" where `users`, `items`, `counts`, `user_numbers`, `item_numbers` or `times` ask for them, and
 *     "user.day" with `times`; target "rating";
 *   - "labelled:FILE" or "labelled:DIR" (train.tsv or train.csv, val or dev, test), plain or .gz: texts with a class
 *     each, a record of TSV or CSV (RFC 4180), with a header or without. Input "text", tokens of different lengths,
 * with "text.length" and "text.mask"; target "label". Without `vocab` words are learned from the training part;
 *     "labelled:" opinions that mixt writes itself;
 *   - "npy:IMAGES.npy", "npz:FILE.npz", or "npz:DIR" with such files: arrays of samples and of labels are known by
 *     their names, of files too (x and y, images and labels, x_train, y_test, …), else by their shapes; options
 *     `inputs` and `labels` name others;
 *   - "parallel:DIR" sentences and their translations: train.en and train.de (val, test), line by line, plain or .gz,
 *     with `source_name` and `target_name`; "parallel:FILE" both in one file with a tab between; "parallel:" sums in
 *     words, from English to German. Inputs "source", "source.length" and "previous", target "target": tokens of
 *     `vocab`, or of byte pairs learned from the training part and kept in the cache folder;
 *   - "text:FILE" or "text:DIR" (train.txt, …): windows of seq + 1 tokens: bytes, or those of `vocab`,
 *     made once and kept in the cache folder (MIXT_CACHE); "text:" sums in words that mixt writes itself;
 *   - "tokens:FILE" or "tokens:DIR" (train.tokens or train.bin, …): ready token files, mixt's own (mixt tokenize) or
 *     raw 16-bit tokens with `classes` or `vocab` given;
 *   - "random:", "random:224x224x3", "random:784", "random:tokens" synthetic, for benchmarks.
 *   Without "kind:" the kind is guessed from the path (MIXT_LOG=data says how).
 * @param options NULL for the defaults.
 * @param data set to the open set, or to NULL on failure; close it with mixt_data_close.
 * @return MIXT_ERROR_UNSUPPORTED when the set has no such part; MIXT_ERROR_FILE, _FORMAT or _DATA for what is wrong
 *   with a file; MIXT_ERROR_ARGUMENT, _CONFIG for what is wrong with spec or options.
 */
MIXT_API mixt_status mixt_data_open_with(const char *spec, const mixt_data_options *options, mixt_data **data);

#ifndef __cplusplus
/** mixt_data_open("idx:mnist", &data, .split = "test", .seed = 1): what is not named has its default. */
#define mixt_data_open(spec, ...)                                                                                      \
    mixt_data_open_with((spec), MIXT_OPTIONS_AT(mixt_data_options, MIXT_OPTIONS_REST(__VA_ARGS__, )),                  \
                        MIXT_OPTIONS_FIRST(__VA_ARGS__, 0))
#endif

/** A program's own arrays, row after row, samples first. Filled as options are: MIXT_OPTIONS(mixt_data_arrays, …). */
typedef struct mixt_data_arrays {
    size_t struct_size;
    const char *name;       /**< what messages call the set; default "memory" */
    int64_t samples;        /**< at least 1 */
    mixt_dtype input_dtype; /**< FP32 (default), UINT8 (scaled to [0, 1] as a file's bytes are), or INT32 tokens */
    int input_rank;         /**< dimensions of one sample, at least 1 */
    int64_t input_dims[MIXT_MAX_RANK]; /**< (F), (H, W, C), or (T) for tokens */
    const void *inputs;                /**< samples × product of input_dims; FP32 must be finite */
    mixt_target_kind target;           /**< CLASS, VALUES or TOKENS; required. FP32 and UINT8 inputs have no TOKENS */
    /** CLASS: one INT32 a sample, from 0; VALUES: FP32, NaN where a value is left out; TOKENS: INT32 (samples, T), -1
     *  where none is predicted. */
    const void *targets;
    int64_t target_elements; /**< VALUES: numbers a sample; default 1 */
    int64_t classes; /**< CLASS: how many; default: those of options.like, else the largest label + 1. Of tokens: the
                          size of the vocabulary; default: the largest token + 1 */
    const char *const *class_names; /**< `classes` texts, copied; default NULL: none */
    bool borrow; /**< the arrays are read where they are, by several threads, and must stay as they are until the set is
                      closed and no trainer reads it ahead any more; default: copied */
} mixt_data_arrays;
MIXT_API void mixt_data_arrays_default(mixt_data_arrays *arrays, size_t size);
#define MIXT_DEFAULTS_mixt_data_arrays                                                                                 \
    .struct_size = sizeof(mixt_data_arrays), .input_dtype = MIXT_DTYPE_FP32, .target_elements = 1

/**
 * A data set of a program's own arrays, for trainers, evaluation and the zoo as any other.
 * @param arrays read during the call only, but for what `borrow` says.
 * @param options NULL for the defaults. All samples belong to the set unless `split` is given: then `val` and `test`
 *   are shares of the arrays as of a file. Normalisation, augmentation, order and `like` are those of files; labels,
 *   tokenizer, vocab, mask, seq and samples mean nothing here.
 * @param data set to the open set, or to NULL on failure; close it with mixt_data_close.
 * @return MIXT_ERROR_ARGUMENT, _SHAPE, _DTYPE or _DATA with what is wrong and where.
 */
MIXT_API mixt_status mixt_data_from(const mixt_data_arrays *arrays, const mixt_data_options *options, mixt_data **data);

/** One named array of a program's own, a row a sample. Zeros are the defaults. */
typedef struct mixt_data_column {
    const char *name;            /**< by which a model asks for it; required, below 24 bytes */
    bool target;                 /**< a target; default: an input */
    mixt_dtype dtype;            /**< FP32 (default) or INT32 */
    int rank;                    /**< dimensions of one sample; default 0: one number */
    int64_t dims[MIXT_MAX_RANK]; /**< of one sample */
    const void *values; /**< samples × product of dims; FP32 inputs must be finite, a NaN among targets or a negative
                             label is left out of losses */
    int64_t ids;        /**< INT32: numbers must stay below it; default: the largest + 1 */
    /** (samples) how far each sample goes along its first dimension, from 0 to dims[0] (0 there: the longest); `values`
     *  then holds so much of each, one behind the other. A batch is padded: inputs with 0, targets with what does not
     *  count (-1, NaN). "NAME.length" goes with the array, and "NAME.mask" with an input: see mixt_input_lengths and
     *  mixt_input_mask. Default NULL: all are whole. */
    const int32_t *lengths;
} mixt_data_column;

/**
 * A data set of several named arrays, for models that ask for them by name.
 * @param name what messages call the set; NULL: "memory".
 * @param columns at least one input and one target, copied; names differ.
 * @param options as of mixt_data_from; what normalises or changes inputs means nothing here.
 * @param data set to the open set, or to NULL on failure; close it with mixt_data_close.
 */
MIXT_API mixt_status mixt_data_from_columns(const char *name, const mixt_data_column *columns, int column_count,
                                            int64_t samples, const mixt_data_options *options, mixt_data **data);

/** NULL is allowed. A trainer that still reads the set ahead keeps it until it is done. A set that a context or a run
 *  owns, or that is closed already, is left as it is: mixt_error_text says so. */
MIXT_API void mixt_data_close(mixt_data *data);

/** Never NULL; valid until the set is closed. No set, because opening it failed, has no samples. */
MIXT_API const mixt_data_info *mixt_data_describe(const mixt_data *data);

/** Bytes of a batch's inputs, and of its targets. Several lie one behind the other, in the order of arrays, each but
 *  the first at a multiple of 64 bytes, and end at one. */
MIXT_API size_t mixt_data_input_bytes(const mixt_data *data, int64_t batch);
MIXT_API size_t mixt_data_target_bytes(const mixt_data *data, int64_t batch);
/** The index of the array of this name; -1: there is none. */
MIXT_API int mixt_data_array_find(const mixt_data_info *info, const char *name);
/** Where array `index` begins among the batch's inputs or targets, in bytes. */
MIXT_API size_t mixt_data_array_at(const mixt_data *data, int64_t batch, int index);

/** Whole batches in an epoch: samples / batch, the rest of an epoch is left out. */
MIXT_API int64_t mixt_data_batches(const mixt_data *data, int64_t batch);

/**
 * Batch `number` (from 0, counted over all epochs) of a training run, shuffled anew each epoch. Any thread may call
 * it at any time; it takes no memory but, for "images:", that of the pictures while they are decoded.
 * @param batch samples a batch, 1 to the number of samples.
 * @param input room for mixt_data_input_bytes: batch × input_elements of input_dtype where there is one input.
 * @param target room for mixt_data_target_bytes, likewise.
 */
MIXT_API mixt_status mixt_data_batch(const mixt_data *data, int64_t batch, int64_t number, void *input, void *target);

/**
 * Samples first, first + 1, … in order, for evaluation. Any thread may call it at any time.
 * @param input, target room as for a batch of `count`, by which several arrays are placed.
 * @param valid set to the samples read: `count`, less in the last batch; what lies behind them is not touched.
 * @return MIXT_END when `first` is at or past the end.
 */
MIXT_API mixt_status mixt_data_read(const mixt_data *data, int64_t first, int64_t count, void *input, void *target,
                                    int64_t *valid);

/** mixt_data_batch with a counter inside the set: the next batch at each call. Not for several threads at once.
 *  MIXT_END where the counter has come to 2^63 - 1. */
MIXT_API mixt_status mixt_data_next(mixt_data *data, int64_t batch, void *input, void *target);
/** The number of the batch that mixt_data_next gives next; for resuming. */
MIXT_API void mixt_data_seek(mixt_data *data, int64_t number);

#ifdef __cplusplus
}
#endif
#endif
