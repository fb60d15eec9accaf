/* Tensors of a model family under the names and in the layouts of another program.
 *
 * A family is a table of rules, each a pair of name patterns with a layout between them; a plan applies the table to
 * the tensors that a model has here. Writing and reading both follow the plan, so what goes out comes back. Not here:
 * files (weights.h) and models.
 */
#ifndef MIXT_STORE_NAMES_H
#define MIXT_STORE_NAMES_H

#include "base/alloc.h"
#include "store/tensor.h"

/** The table of positions of every model here that has one. */
#define MIXT_POSITIONS_TENSOR "wpe.weight"

/** How a tensor here (in front) lies there (behind). */
typedef enum mixt__layout {
    MIXT_LAYOUT_SAME,
    MIXT_LAYOUT_TRANSPOSED, // (out, in) → (in, out)
    MIXT_LAYOUT_CHANNELS,   // (O, H, W, C) → (O, C, H, W); other ranks as they are
    MIXT_LAYOUT_FEATURES,   // (O, H·W·C) → (O, C·H·W): a linear layer on a flattened image
    MIXT_LAYOUT_COUNTER,    // nothing → one INT64 of 0, beside the tensor here
} mixt__layout;

/** In patterns '#' stands for a number and '*' for a word without a dot: the n-th of one is the n-th of the other. A
 *  layout moves tensors of its own rank; others (a layer's bias) are the same on both sides. */
typedef struct mixt__name_rule {
    const char *here, *there;
    mixt__layout layout;
    int part, parts;  // there are the rows of this part of the tensor here; parts 0: all of it
    bool heads;       // parts are the heads of queries, then of keys and of values, which may be fewer; else all equal
    int64_t channels; // FEATURES: C
    bool vocabulary;  // rows are tokens: here there may be more of them, to fill a block
    bool positions;   // rows are places in a text: here there may be more of them, which never learned
} mixt__name_rule;

enum { MIXT_NAME_DIVISORS_MAX = 256 };

/** Divisors of the frequencies of rotary positions. */
typedef struct mixt__name_divisors {
    int64_t count;
    double of[MIXT_NAME_DIVISORS_MAX];
} mixt__name_divisors;

typedef struct mixt__name_pair {
    const char *first, *second;
} mixt__name_pair;

/** Sizes of a model that config.json tells and shapes alone may not. */
typedef struct mixt__name_facts {
    int64_t layers, width, inner, heads, vocab, positions, types, classes;
    int64_t channels;                           // of an image
    int64_t first_token, last_token, pad_token; // that begin a text, end it, fill it up; negative: there is none
    int64_t kv_heads, head_dim;                 // of keys and values; numbers of a head
    double eps;                                 // of norms
    double rope_theta, rope_factor, rope_low, rope_high, rope_original; // rotary positions, as graph.h has them
    double rope_local, rope_magnitude;         // theta of layers with a window; of cosines and sines, 0: 1
    int64_t rope_dim;                          // numbers of a head that turn; 0: all
    mixt__name_divisors rope_short, rope_long; // up to rope_original tokens, and in longer texts
    int64_t window, full_every, nope_every;    // tokens that attention sees, 0: all; layers without a window, without
                                               // positions: every n-th, 0: none
    double softcap, logit_cap, query_scale;    // of scores, of logits, 0: none; scores are divided by its root
    bool tied;                                 // the output head is the embedding
    char architecture[32];
    bool fits;                 // the other program's own model of that name takes the tensors
    const char *const *labels; // (label_count) names of the classes, the caller's; NULL: they have none
    int64_t label_count;
    mixt_dtype dtype;
} mixt__name_facts;

/** Entries of config.json that are made of several facts, or of one for each layer: names_rope.c, names_layers.c. */
typedef enum mixt__name_special {
    MIXT_FIELD_PLAIN,
    MIXT_FIELD_ROPE,        // the object that scales frequencies
    MIXT_FIELD_ROPE_SHARE,  // of a head that turns
    MIXT_FIELD_POSITIONS,   // a list of 1 and 0
    MIXT_FIELD_LAYER_TYPES, // a list of words
    MIXT_FIELD_USES_WINDOW, // whether any layer has one
} mixt__name_special;

/** One entry of config.json: a fact by its place in mixt__name_facts, or a constant that the model has here. */
typedef struct mixt__name_field {
    const char *key;
    size_t fact; // offsetof(mixt__name_facts, …) + 1: a text, a bool, a double, or an int64_t, null where negative; 0:
                 // a constant
    const char *json;     // the constant as JSON
    const char *fallback; // what a file without it means, as JSON; NULL: what the model has here
    bool free;            // another value there does not change what the model computes
    bool none;            // 0 is null there
    mixt__name_special special;
} mixt__name_field;

/** How config.json says which layers have a window. */
typedef enum mixt__name_windows {
    MIXT_WINDOWS_NONE,    // none have
    MIXT_WINDOWS_ALL,     // all, where sliding_window is a number
    MIXT_WINDOWS_USED,    // the same, where use_sliding_window is true
    MIXT_WINDOWS_PATTERN, // all but each full_every-th: layer_types
} mixt__name_windows;

/** What a program's own model of a name has otherwise than the tensors here. */
typedef struct mixt__name_differs {
    char text[160]; // "": nothing, it takes them
} mixt__name_differs;

typedef struct mixt__names {
    const char *family;       // "gpt2"
    const char *type;         // model_type of config.json; NULL: the family's name
    const char *architecture; // that config.json must name, where other families have the same type; NULL: any
    const char *prefix;       // a file may leave this beginning of names away; "": none
    const mixt__name_rule *rules;
    const mixt__name_pair *aliases; // ends of names: as written, as a file may say instead
    const mixt__name_pair *tied;    // names there: the first, if present, must hold what the second holds
    const char *const *ignored;     // globs over names there: known, of no use here
    const mixt__name_field *fields; // of config.json
    bool rotary;                    // which has rotary positions too
    bool labels;                    // and names of classes
    const char *const *known;       // further keys of config.json that are understood; NULL: any key may be there
    double rope_theta, rope_local;  // where config.json is silent; 0: 10000, and no positions of their own
    bool partial, no_positions;     // it may turn a part of each head; may have layers without positions
    mixt__name_windows windows;
    int64_t full_every; // of PATTERN, where config.json is silent
    /** Whether the program builds a model of these tensors from config.json alone; NULL: it always does. */
    mixt__name_differs (*differs)(const mixt__file_tensor *here, int64_t count, const char *architecture);
} mixt__names;

/** The family of a name; NULL: there is none. */
const mixt__names *mixt__names_find(const char *family);

/** The layer that a tensor there belongs to, counted from 0; -1: to none of those that the family counts. */
int64_t mixt__names_layer(const mixt__names *names, const char *there);
/** The tensor here that one there is, or is a part of; NULL: no rule knows it, or no memory.
 *  @param rule receives the rule */
const char *mixt__names_here(const mixt__names *names, const char *there, mixt__arena *arena,
                             const mixt__name_rule **rule);
/** What config.json calls the number of layers; "": it does not tell. */
const char *mixt__names_layers_key(const mixt__names *names);

typedef struct mixt__name_entry {
    const mixt__name_rule *rule;
    int64_t here;            // index of the tensor here
    int64_t first, rows;     // its rows
    mixt__file_tensor there; // without data
} mixt__name_entry;

typedef struct mixt__name_plan {
    const mixt__names *names; // NULL: all as it is
    int64_t heads, kv_heads;  // 0: not known
    const mixt__file_tensor *here;
    int64_t here_count;
    mixt__name_entry *entries;
    int64_t count, capacity;
    mixt__arena arena;
} mixt__name_plan;

/** Finds what each tensor here is there; fails on one that no rule knows.
 *  @param facts heads and kv_heads count, of tensors that hold queries, keys and values; NULL: width tells
 *  @param names NULL: the same names and layouts on both sides; only positions are left out
 *  @param here borrowed as long as the plan lives
 *  @param vocab tokens that count: rows of vocabulary tensors past it are left out; 0: all of them
 *  @param positions the same for tables of positions */
mixt_status mixt__name_plan_make(mixt__name_plan *plan, const mixt__names *names, const mixt__name_facts *facts,
                                 const mixt__file_tensor *here, int64_t count, int64_t vocab, int64_t positions);
void mixt__name_plan_free(mixt__name_plan *plan);

/** Values of an entry from the layout here to the one there, and back. `here` is the whole tensor. */
void mixt__name_to_there(const mixt__name_plan *plan, const mixt__name_entry *entry, const float *here, float *there);
void mixt__name_from_there(const mixt__name_plan *plan, const mixt__name_entry *entry, const float *there, float *here);

/** config.json of a model; NULL when the family has none or memory ran out. Caller frees with free(). */
char *mixt__names_config(const mixt__names *names, const mixt__name_facts *facts);
/** The family that a config.json is of, and its sizes: what it does not say is as transformers takes it. Fails on a
 * model that is none of the families, or has parts that the model here has not. */
mixt_status mixt__names_read_config(const char *path, const mixt__names **names, mixt__name_facts *facts);
/** The names of classes in a config.json (id2label). @param labels (count), in the arena; NULL: it has none, or not for
 *  each of them. */
mixt_status mixt__names_read_labels(const char *path, int64_t count, mixt__arena *arena, const char *const **labels);
/** Fails when a config.json speaks of another model than the facts. The number of tokens may differ. */
mixt_status mixt__names_check_config(const mixt__names *names, const mixt__name_facts *facts, const char *path);

#endif
