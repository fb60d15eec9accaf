/* From a configuration to data, model and trainer. */
#include "run/open/experiment.h"

#include "base/c_locale.h"
#include "data/buckets.h"
#include "data/facts.h"
#include "data/text/inputs_text.h"
#include "mixt/tokenizer.h"
#include "onnx/onnx.h"
#include "run/open/adapter.h"
#include "run/open/device_sums.h"
#include "run/open/lora.h"
#include "run/open/net_sizes.h"
#include "run/open/phases.h"
#include "run/open/policy.h"
#include "run/open/teacher.h"
#include "store/file.h"
#include "train/checkpoint.h"
#include "train/faults.h"
#include "train/dist/rank0_first.h"
#include "train/instrument.h"

#include <stdio.h>
#include <string.h>

static const char *text(const mixt__experiment *e, mixt__config_key key)
{
    return mixt__config_string(e->config, key);
}

enum { PACK_AUTO, PACK_ALWAYS, PACK_NEVER };     // words of data.pack
enum { SENTENCE_TOKENS = 64, SPEC_ROOM = 4200 }; // the first: at most, where the configuration does not say

static int64_t number(const mixt__experiment *e, mixt__config_key key)
{
    return mixt__config_int(e->config, key);
}

static float real(const mixt__experiment *e, mixt__config_key key)
{
    return (float)mixt__config_float(e->config, key);
}

/** "kind:path" as mixt_data_open_with takes it; digits when nothing is named. */
static mixt_status data_spec(const mixt__experiment *e, char *spec, size_t size)
{
    const char *kind = text(e, MIXT_KEY_DATA_KIND), *path = text(e, MIXT_KEY_DATA_PATH);
    bool automatic = !strcmp(kind, "auto");
    if (!automatic && !*path && !mixt__data_can_draw(kind))
        return mixt__fail(MIXT_ERROR_CONFIG, "data.kind is %s: set data.path=… to its file or folder", kind);
    int n = automatic && *path ? snprintf(spec, size, "%s", path)
                               : snprintf(spec, size, "%s:%s", automatic ? "digits" : kind, path);
    return n < (int)size ? MIXT_OK : mixt__fail(MIXT_ERROR_CONFIG, "data.path is longer than %zu bytes", size);
}

/** A key of 0 says nothing. */
static uint64_t seed_of(const mixt__experiment *e, mixt__config_key key)
{
    return number(e, key) ? (uint64_t)number(e, key) : (uint64_t)MIXT_AUTO;
}

static void take_length(const mixt__experiment *e, mixt__config_key key, double *length)
{
    double given = mixt__config_float(e->config, key);
    *length = given > 0 ? given : *length;
}

/** What does not depend on the part or the model. */
static void plain_options(const mixt__experiment *e, mixt_data_options *o)
{
    o->val = mixt__config_float(e->config, MIXT_KEY_DATA_VAL_FRACTION);
    o->test = mixt__config_float(e->config, MIXT_KEY_DATA_TEST_FRACTION);
    o->limit = number(e, MIXT_KEY_DATA_LIMIT);
    o->samples = number(e, MIXT_KEY_DATA_SAMPLES);
    o->in_order = mixt__config_bool(e->config, MIXT_KEY_DATA_IN_ORDER);
    o->order_seed = seed_of(e, MIXT_KEY_DATA_ORDER_SEED);
    o->classes = number(e, MIXT_KEY_DATA_CLASSES);
    o->shape = *text(e, MIXT_KEY_DATA_SHAPE) ? text(e, MIXT_KEY_DATA_SHAPE) : NULL;
    o->missing = (mixt_missing)mixt__config_choice(e->config, MIXT_KEY_DATA_MISSING);
    o->normalise = (mixt_normalise)mixt__config_choice(e->config, MIXT_KEY_DATA_NORMALISE);
    o->normalise_target = (mixt_normalise_target)mixt__config_choice(e->config, MIXT_KEY_DATA_NORMALISE_TARGET);
    o->labels = *text(e, MIXT_KEY_DATA_LABELS) ? text(e, MIXT_KEY_DATA_LABELS) : NULL;
    o->columns = *text(e, MIXT_KEY_DATA_COLUMNS) ? text(e, MIXT_KEY_DATA_COLUMNS) : NULL;
    o->drop = *text(e, MIXT_KEY_DATA_DROP) ? text(e, MIXT_KEY_DATA_DROP) : NULL;
    o->names = *text(e, MIXT_KEY_DATA_NAMES) ? text(e, MIXT_KEY_DATA_NAMES) : NULL;
    o->inputs = *text(e, MIXT_KEY_DATA_INPUTS) ? text(e, MIXT_KEY_DATA_INPUTS) : NULL;
    o->text = *text(e, MIXT_KEY_DATA_TEXT) ? text(e, MIXT_KEY_DATA_TEXT) : NULL;
    o->crop = number(e, MIXT_KEY_DATA_CROP);
    o->frames = number(e, MIXT_KEY_DATA_FRAMES);
    o->draw_seed = seed_of(e, MIXT_KEY_DATA_DRAW_SEED);
    o->pad = number(e, MIXT_KEY_DATA_PAD);
    o->flip = mixt__config_bool(e->config, MIXT_KEY_DATA_FLIP);
    o->min_area = real(e, MIXT_KEY_DATA_MIN_AREA);
    o->no_check = !mixt__config_bool(e->config, MIXT_KEY_DATA_CHECK);
    o->resize = number(e, MIXT_KEY_DATA_RESIZE);
    o->means = *text(e, MIXT_KEY_DATA_MEAN) ? text(e, MIXT_KEY_DATA_MEAN) : NULL;
    o->stds = *text(e, MIXT_KEY_DATA_STD) ? text(e, MIXT_KEY_DATA_STD) : NULL;
    o->threads = (int)number(e, MIXT_KEY_DATA_THREADS);
}

/** What recordings alone have. */
static void audio_options(const mixt__experiment *e, mixt_data_options *o)
{
    o->rate = number(e, MIXT_KEY_DATA_RATE);
    o->mels = number(e, MIXT_KEY_DATA_MELS);
    take_length(e, MIXT_KEY_DATA_WINDOW, &o->window);
    take_length(e, MIXT_KEY_DATA_HOP, &o->hop);
    take_length(e, MIXT_KEY_DATA_SECONDS, &o->seconds);
    double tail = mixt__config_float(e->config, MIXT_KEY_DATA_TAIL);
    o->tail = tail == -1 ? 0 : tail == 0 ? MIXT_AUTO : tail;
    o->shift = mixt__config_float(e->config, MIXT_KEY_DATA_SHIFT);
    o->noise = mixt__config_float(e->config, MIXT_KEY_DATA_NOISE);
    o->time_mask = number(e, MIXT_KEY_DATA_TIME_MASK);
    o->mel_mask = number(e, MIXT_KEY_DATA_MEL_MASK);
    o->val_files = *text(e, MIXT_KEY_DATA_VAL_FILES) ? text(e, MIXT_KEY_DATA_VAL_FILES) : NULL;
    o->test_files = *text(e, MIXT_KEY_DATA_TEST_FILES) ? text(e, MIXT_KEY_DATA_TEST_FILES) : NULL;
}

/** What ratings alone have. */
static void ratings_options(const mixt__experiment *e, mixt_data_options *o)
{
    o->by_time = mixt__config_choice(e->config, MIXT_KEY_DATA_SPLIT_BY) == 1; // random|time
    o->users = text(e, MIXT_KEY_DATA_USERS);
    o->items = text(e, MIXT_KEY_DATA_ITEMS);
    o->counts = mixt__config_bool(e->config, MIXT_KEY_DATA_COUNTS);
    int numbers = mixt__config_choice(e->config, MIXT_KEY_DATA_NUMBERS); // none|users|items|both
    o->user_numbers = numbers == 1 || numbers == 3;
    o->item_numbers = numbers == 2 || numbers == 3;
    o->times = mixt__config_bool(e->config, MIXT_KEY_DATA_TIMES);
}

/** Hands a set to the context; where that fails it is closed, and nobody must look at it any more. */
static mixt_status give_data(mixt__experiment *e, mixt_data **data)
{
    mixt_status status = mixt__context_take_data(e->context, *data);
    if (status != MIXT_OK)
        *data = NULL;
    return status;
}

/** A part of the data as mixt_data_open_with takes it. */
static mixt_status describe_part(const mixt__experiment *e, const char *split, char spec[SPEC_ROOM],
                                 mixt_data_options *options)
{
    const mixt__zoo_entry *entry;
    MIXT_TRY(mixt__model_find(text(e, MIXT_KEY_MODEL), &entry));
    MIXT_TRY(data_spec(e, spec, SPEC_ROOM));
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .split = split, .seed = (uint64_t)number(e, MIXT_KEY_SEED));
    o.like = e->train ? e->train : e->facts ? e->facts : mixt__distillation_facts(e->distillation);
    plain_options(e, &o);
    audio_options(e, &o);
    if (number(e, MIXT_KEY_DATA_SEQ) || entry->tokens)
        o.seq = number(e, MIXT_KEY_DATA_SEQ) ? number(e, MIXT_KEY_DATA_SEQ) : entry->tokens;
    else if (entry->input == MIXT_MODEL_SENTENCES)
        o.seq = SENTENCE_TOKENS;
    static const mixt_target_kind tasks[] = {MIXT_TARGET_AUTO, MIXT_TARGET_CLASS, MIXT_TARGET_VALUES, MIXT_TARGET_TEXT};
    o.target = tasks[mixt__config_choice(e->config, MIXT_KEY_DATA_TASK)]; // in the order of its words
    if (o.like && o.like == e->facts && mixt__data_is_facts(o.like))
        o.target = o.like->options.target; // as it was decided when the run was trained
    ratings_options(e, &o);
    o.tokenizer = text(e, MIXT_KEY_DATA_TOKENIZER);
    o.vocab = text(e, MIXT_KEY_DATA_VOCAB);
    o.vocab_size = number(e, MIXT_KEY_DATA_VOCAB_SIZE);
    o.source_name = text(e, MIXT_KEY_DATA_SOURCE);
    o.target_name = text(e, MIXT_KEY_DATA_TARGET);
    o.mask = mixt__config_float(e->config, MIXT_KEY_DATA_MASK);
    o.chat_template = text(e, MIXT_KEY_DATA_TEMPLATE);
    o.loss_on = (mixt_loss_on)mixt__config_choice(e->config, MIXT_KEY_DATA_LOSS_ON);
    int pack = mixt__config_choice(e->config, MIXT_KEY_DATA_PACK);
    o.unpacked = pack == PACK_NEVER || (pack == PACK_AUTO && !entry->packs);
    int64_t buckets = number(e, MIXT_KEY_DATA_BUCKETS);
    o.buckets = strcmp(split, "train") ? 0 : buckets ? buckets : -1; // other parts are not trained on
    if (!o.classes && (!strcmp(text(e, MIXT_KEY_DATA_KIND), "tokens") || !strncmp(spec, "tokens:", 7)))
        o.classes = number(e, MIXT_KEY_NET_VOCAB); // raw tokens do not say
    o.progress = e->teller.progress;
    o.user = e->teller.user;
    *options = o;
    return MIXT_OK;
}

mixt_status mixt__experiment_part(const mixt__experiment *e, const char *split, mixt_data **data)
{
    char spec[SPEC_ROOM];
    mixt_data_options o;
    MIXT_TRY(describe_part(e, split, spec, &o));
    return mixt_data_open_with(spec, &o, data);
}

mixt_status mixt__experiment_data(mixt__experiment *e, const char *split, mixt_data **data)
{
    mixt_status status = mixt__experiment_part(e, split, data);
    return status == MIXT_OK ? give_data(e, data) : status;
}

/** Whether the data is a file that can have no parts of its own; NumPy's arrays can, in it or beside it. */
static bool is_one_part(const mixt__experiment *e)
{
    const char *path = text(e, MIXT_KEY_DATA_PATH), *dot = strrchr(path, '.');
    size_t word = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789_"); // a kind may stand before
    bool arrays = !strncmp(text(e, MIXT_KEY_DATA_KIND), "np", 2) || (dot && !strncmp(dot, ".np", 3));
    return !arrays && mixt__path_is_file(path[word] == ':' ? path + word + 1 : path);
}

mixt_status mixt__experiment_has_part(const mixt__experiment *e, const char *split, bool *has)
{
    char spec[SPEC_ROOM];
    mixt_data_options o;
    mixt_data *data;
    *has = false;
    if (is_one_part(e)) // which need not be read to know
        return MIXT_OK;
    MIXT_TRY(describe_part(e, split, spec, &o));
    o.val = o.test = 0; // no share of the training file
    mixt_status status = mixt_data_open_with(spec, &o, &data);
    *has = status == MIXT_OK;
    mixt_data_close(data);
    return status == MIXT_ERROR_UNSUPPORTED ? MIXT_OK : status;
}

const uint64_t *mixt__experiment_sums(mixt__experiment *e)
{
    if (!e->summed) {
        e->sums[0] = e->train ? mixt__data_fingerprint(e->train) : 0;
        e->sums[1] = e->val ? mixt__data_fingerprint(e->val) : 0;
        e->summed = true;
    }
    return e->sums;
}

static mixt_status copy_list(const mixt__experiment *e, mixt__config_key key, int64_t *list, int64_t *count)
{
    const int64_t *values = mixt__config_ints(e->config, key, count);
    if (*count > MIXT_SIZES_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s has %lld entries: at most %d", mixt__config_table[key].name,
                          (long long)*count, MIXT_SIZES_MAX);
    for (int64_t i = 0; i < *count; i++)
        list[i] = values[i];
    return MIXT_OK;
}

mixt_status mixt__experiment_sizes(mixt__experiment *e)
{
    mixt__model_sizes *s = &e->sizes;
    MIXT_TRY(copy_list(e, MIXT_KEY_NET_HIDDEN, s->hidden, &s->hidden_count));
    MIXT_TRY(copy_list(e, MIXT_KEY_NET_CHANNELS, s->channels, &s->channel_count));
    MIXT_TRY(mixt__net_sizes_read(e->config, s));
    s->vocab = number(e, MIXT_KEY_NET_VOCAB);
    s->depth = number(e, MIXT_KEY_NET_DEPTH);
    s->classes = number(e, MIXT_KEY_NET_CLASSES);
    s->dropout = real(e, MIXT_KEY_NET_DROPOUT);
    s->norm = (mixt__model_norm)mixt__config_choice(e->config, MIXT_KEY_NET_NORM);
    s->shortcut = (mixt__model_shortcut)mixt__config_choice(e->config, MIXT_KEY_NET_SHORTCUT);
    s->zero_init = mixt__config_bool(e->config, MIXT_KEY_NET_ZERO_INIT);
    s->pool = (mixt__model_pool)mixt__config_choice(e->config, MIXT_KEY_NET_POOL);
    s->penalty = (float)mixt__config_float(e->config, MIXT_KEY_NET_PENALTY);
    s->onnx = e->onnx;
    s->onnx_loss = mixt__config_choice(e->config, MIXT_KEY_MODEL_LOSS);
    return MIXT_OK;
}

/** The file that the model is, where it is one. */
static mixt_status open_file(mixt__experiment *e)
{
    mixt__onnx_options options = {.head = number(e, MIXT_KEY_MODEL_HEAD), .output = text(e, MIXT_KEY_MODEL_OUTPUT)};
    options.logits = mixt__config_choice(e->config, MIXT_KEY_MODEL_LOSS) != 2; // of mse outputs count as they are
    if (mixt__onnx_is(text(e, MIXT_KEY_MODEL)))
        return e->onnx ? MIXT_OK : mixt__onnx_open(text(e, MIXT_KEY_MODEL), &options, &e->onnx);
    if (options.head || *options.output || mixt__config_choice(e->config, MIXT_KEY_MODEL_LOSS))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "model.head, model.output and model.loss are for a model from an ONNX file, and model is %s",
                          text(e, MIXT_KEY_MODEL));
    return MIXT_OK;
}

void mixt__experiment_settings(mixt__experiment *e, mixt_trainer_options *o)
{
    o->settings = mixt__policy_settings_set(e->phases.config ? e->phases.config : e->config, e->loss_scale);
}

static mixt_trainer_options trainer_options(mixt__experiment *e, const mixt_policy *policy)
{
    mixt_trainer_options o =
        MIXT_OPTIONS(mixt_trainer_options, .policy = policy, .optimizer = text(e, MIXT_KEY_TRAIN_OPTIMIZER));
    o.batch = number(e, MIXT_KEY_TRAIN_BATCH);
    o.accumulate = number(e, MIXT_KEY_TRAIN_ACCUMULATE);
    o.split = number(e, MIXT_KEY_TRAIN_SPLIT);
    o.ranks = e->ranks ? e->ranks : 1;
    o.recompute_budget = (size_t)number(e, MIXT_KEY_TRAIN_RECOMPUTE);
    o.eval_batch = number(e, MIXT_KEY_TRAIN_EVAL_BATCH);
    o.lr = real(e, MIXT_KEY_TRAIN_LR);
    o.momentum = real(e, MIXT_KEY_TRAIN_MOMENTUM);
    o.beta1 = real(e, MIXT_KEY_TRAIN_BETA1);
    o.beta2 = real(e, MIXT_KEY_TRAIN_BETA2);
    o.eps = real(e, MIXT_KEY_TRAIN_EPS);
    o.moments = text(e, MIXT_KEY_TRAIN_MOMENTS);
    o.weight_decay = real(e, MIXT_KEY_TRAIN_WEIGHT_DECAY);
    o.schedule = text(e, MIXT_KEY_TRAIN_SCHEDULE);
    o.min_lr = real(e, MIXT_KEY_TRAIN_MIN_LR);
    o.gamma = real(e, MIXT_KEY_TRAIN_GAMMA);
    o.warmup = number(e, MIXT_KEY_TRAIN_WARMUP);
    o.decay_steps = number(e, MIXT_KEY_TRAIN_DECAY_STEPS);
    o.total_steps = e->total_steps;
    mixt__experiment_settings(e, &o);
    o.seed = (uint64_t)number(e, MIXT_KEY_SEED);
    o.freeze = text(e, MIXT_KEY_TRAIN_FREEZE);
    o.frozen = text(e, MIXT_KEY_TRAIN_FROZEN);
    o.lr_groups = text(e, MIXT_KEY_TRAIN_LR_GROUPS);
    o.decay_groups = text(e, MIXT_KEY_TRAIN_DECAY_GROUPS);
    o.inject_overflow = number(e, MIXT_KEY_TRAIN_INJECT_OVERFLOW);
    o.faults = text(e, MIXT_KEY_FAULTS);
    o.no_integrity = !mixt__config_bool(e->config, MIXT_KEY_INTEGRITY_SUMS);
    o.integrity_every = number(e, MIXT_KEY_INTEGRITY_EVERY);
    return o;
}

/** Updates per epoch and in all: the smaller of what train.epochs and train.steps allow. */
static mixt_status count_steps(mixt__experiment *e)
{
    int64_t batch = number(e, MIXT_KEY_TRAIN_BATCH), accumulate = number(e, MIXT_KEY_TRAIN_ACCUMULATE);
    int64_t epochs = number(e, MIXT_KEY_TRAIN_EPOCHS), steps = number(e, MIXT_KEY_TRAIN_STEPS);
    int64_t batches = mixt__data_epoch_batches(e->facts, batch, accumulate);
    if (batches < accumulate)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "train.batch %lld times train.accumulate %lld is more than the %lld training samples",
                          (long long)batch, (long long)accumulate, (long long)mixt_data_describe(e->facts)->samples);
    e->steps_per_epoch = batches / accumulate;
    int64_t by_epochs = epochs;
    if (__builtin_mul_overflow(batches, epochs, &by_epochs))
        by_epochs = INT64_MAX; // for all practical purposes: train.steps decides, or Ctrl-C
    by_epochs /= accumulate;
    e->total_steps = !steps ? by_epochs : !by_epochs || steps < by_epochs ? steps : by_epochs;
    return MIXT_OK;
}

mixt_status mixt__experiment_open_train(mixt__experiment *e)
{
    if (e->train)
        return MIXT_OK;
    MIXT_TRY(mixt__experiment_data(e, "train", &e->train));
    e->facts = e->facts ? e->facts : e->train;
    return MIXT_OK;
}

static mixt_status open_data(mixt__experiment *e)
{
    mixt_status status = mixt__experiment_open_train(e);
    if (status == MIXT_ERROR_DATA && e->distillation)
        return mixt__fail_context(status, "distill.teacher=%s was trained on other data",
                                  text(e, MIXT_KEY_DISTILL_TEACHER));
    MIXT_TRY(status);
    status = mixt__experiment_data(e, "val", &e->val);
    if (status == MIXT_ERROR_UNSUPPORTED) { // no such part: train without validation
        e->val = NULL;
        return MIXT_OK;
    }
    return status;
}

static mixt_status take_choices(mixt__device *device, const char *path)
{
    mixt__file_map map;
    if (!device->backend->choose)
        return MIXT_OK;
    MIXT_TRY(mixt__file_map_open(path, &map));
    mixt__device_choose(device, (const char *)map.data, map.bytes);
    mixt__file_map_close(&map);
    return MIXT_OK;
}

static mixt_status open_context(mixt__experiment *e, const mixt_config *config)
{
    e->config = config;
    e->item = "samples";
    e->items_per_sample = 1;
    mixt_context_options options = MIXT_OPTIONS(mixt_context_options, .device = text(e, MIXT_KEY_DEVICE),
                                                .threads = (int)number(e, MIXT_KEY_THREADS));
    if (!options.threads)
        options.threads = e->threads;
    if (mixt_open_with(&options, &e->context) != MIXT_OK)
        return MIXT_ERROR_DEVICE;
    return e->choices ? take_choices(e->context->device, e->choices) : MIXT_OK;
}

mixt_status mixt__experiment_keep(const mixt__experiment *e, mixt_policy *policy)
{
    mixt_dtype keep = mixt_dtype_parse(text(e, MIXT_KEY_TRAIN_ACTIVATIONS)); // "policy" is no format
    if (keep == MIXT_DTYPE_NONE || policy->formats.keep != MIXT_DTYPE_NONE)
        return MIXT_OK;
    MIXT_TRY(mixt_policy_set_keep(policy, keep));
    policy->formats.keep_origin = "train.activations";
    return MIXT_OK;
}

/** The trainer under the policy that counts at the update that the experiment is opened for. */
static mixt_status make_trainer(mixt__experiment *e, const mixt__model *model)
{
    const mixt_policy *policy;
    mixt_policy *now;
    int64_t update = e->update > e->total_steps ? e->total_steps : e->update;
    MIXT_TRY(mixt__config_policy(e->config, &policy));
    MIXT_TRY(mixt__phases_take(e, policy, update, &now));
    mixt_trainer_options options = trainer_options(e, now);
    mixt_status status = mixt__trainer_open(e->context, model, &options, &e->trainer);
    mixt_policy_free(now);
    return status;
}

/** A fault that never comes would make a test pass that tests nothing. */
static mixt_status check_faults(const mixt__experiment *e)
{
    int64_t last = mixt__faults_last(text(e, MIXT_KEY_FAULTS));
    if (last <= e->total_steps || !e->total_steps)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "faults: '%s': update %lld never comes, the run makes %lld",
                      text(e, MIXT_KEY_FAULTS), (long long)last, (long long)e->total_steps);
}

static mixt_status compile(mixt__experiment *e)
{
    mixt_status status = mixt_trainer_compile(e->trainer, e->facts);
    if (!mixt__phases_too_little(e, status))
        return status;
    mixt__trainer_set_recompute(e->trainer->inner, mixt__trainer_recompute(e->trainer->inner)->least);
    return mixt_trainer_compile(e->trainer, e->facts);
}

/** How the trainer shares its updates with others. */
static mixt_status join_ranks(mixt__experiment *e)
{
    mixt__joining how = {.group = e->group, .planned = e->planned, .zero = (int)number(e, MIXT_KEY_DIST_ZERO)};
    how.format = mixt_dtype_parse(text(e, MIXT_KEY_DIST_REDUCE));
    how.check = number(e, MIXT_KEY_DIST_CHECK);
    how.bucket = number(e, MIXT_KEY_DIST_BUCKET) / (int64_t)sizeof(float);
    MIXT_TRY(mixt__compression_parse(text(e, MIXT_KEY_DIST_COMPRESS), &how.compression));
    if (how.compression.kind != MIXT_COMPRESS_NONE)
        MIXT_TRY(mixt__compress_after_parse(text(e, MIXT_KEY_DIST_COMPRESS_AFTER), &how.compression, e->total_steps,
                                            &how.compress_after));
    mixt__ranks_join_with(e->trainer->inner, &how);
    return MIXT_OK;
}

mixt_status mixt__experiment_ctc_too_short(const mixt__experiment *e, mixt__ctc_too_short *too_short, int64_t *stride)
{
    int64_t window;
    *too_short = (mixt__ctc_too_short){0};
    *stride = 0;
    if (!e->sizes.transcribes || !e->train)
        return MIXT_OK;
    mixt__speech_window(&e->sizes, &window, stride);
    return mixt__audio_ctc_too_short(e->train, window, *stride, too_short);
}

/** Letters need outputs: there is nothing to learn where no recording has enough of them. */
static mixt_status check_letters(const mixt__experiment *e)
{
    int64_t stride;
    mixt__ctc_too_short too_short;
    MIXT_TRY(mixt__experiment_ctc_too_short(e, &too_short, &stride));
    if (!too_short.count || too_short.count < mixt_data_describe(e->train)->samples)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "no recording has enough outputs for its letters: the first, %s, needs %lld and has %lld, one "
                      "every %lld frames: use %s, or more frames (a smaller data.hop, a longer data.tail)",
                      too_short.first, (long long)too_short.needed, (long long)too_short.outputs, (long long)stride,
                      e->sizes.hidden_count ? "net.channels instead of net.hidden" : "fewer net.channels");
}

/** Model and trainer for samples that are known. */
static mixt_status open_trainer(mixt__experiment *e)
{
    MIXT_TRY(count_steps(e));
    MIXT_TRY(open_file(e));
    MIXT_TRY(mixt__experiment_sizes(e));
    e->sizes.beta = real(e, MIXT_KEY_DPO_BETA);
    const mixt_data_info *info = mixt_data_describe(e->facts);
    mixt__model model;
    MIXT_TRY(mixt__zoo_model(text(e, MIXT_KEY_MODEL), info, &e->sizes, &model));
    MIXT_TRY(check_letters(e));
    if (e->train && number(e, MIXT_KEY_DATA_SEQ)) // which has a default: the set cannot tell whether it was asked for
        MIXT_TRY(mixt__data_check_use(e->train, "seq", MIXT_DATA_SEQ));
    if (e->train && mixt__config_choice(e->config, MIXT_KEY_DATA_PACK) != PACK_AUTO)
        MIXT_TRY(mixt__data_check_use(e->train, "pack", MIXT_DATA_CHAT));
    model.label_smoothing = real(e, MIXT_KEY_TRAIN_LABEL_SMOOTHING);
    if (model.label_smoothing > 0 && (info->target == MIXT_TARGET_VALUES || info->target == MIXT_TARGET_TEXT))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "train.label_smoothing is for classification, but the targets of %s are %s", info->path,
                          info->target == MIXT_TARGET_TEXT ? "texts" : "values");
    if (info->target == MIXT_TARGET_TOKENS && !mixt__data_bucket_count(e->facts)) { // else some have fewer
        e->item = "tokens";
        e->items_per_sample = info->target_elements;
    }
    MIXT_TRY(mixt__experiment_lora(e->config, &e->context->arena, &model.lora));
    if (e->distillation)
        MIXT_TRY(mixt__distillation_fit(e, &model));
    MIXT_TRY(make_trainer(e, &model));
    if (mixt__adapter_only(e->config))
        mixt__trainer_frozen_elsewhere(e->trainer->inner);
    if (e->distillation)
        mixt__distillation_attach(e->distillation, e->trainer->inner);
    MIXT_TRY(join_ranks(e));
    mixt__trainer_want_layers(e->trainer->inner, mixt__config_int(e->config, MIXT_KEY_WATCH_EVERY) > 0);
    return MIXT_OK;
}

/** Other data than the run's is made alike: its facts stand for the run's until the data is open. */
static mixt_status remember(mixt__experiment *e)
{
    if (!e->remembered)
        return MIXT_OK;
    MIXT_TRY(mixt__data_facts_unpack(json_object_get(e->remembered, "data"), &e->facts));
    MIXT_TRY(give_data(e, &e->facts));
    if (mixt__are_texts(mixt_data_describe(e->facts)))
        return mixt_tokenizer_open(text(e, MIXT_KEY_DATA_TOKENIZER), text(e, MIXT_KEY_DATA_VOCAB),
                                   &e->facts->tokenizer);
    return MIXT_OK;
}

/** All that compiling needs. */
static mixt_status open_parts(mixt__experiment *e, const mixt_config *config)
{
    MIXT_TRY(open_context(e, config));
    MIXT_TRY(mixt__distillation_open(config, &e->distillation));
    MIXT_TRY(remember(e));
    MIXT_TRY(open_data(e));
    e->remembered_facts = e->remembered ? e->facts : NULL;
    e->facts = e->train;
    return open_trainer(e);
}

static mixt_status compile_step(void *user)
{
    return compile(user);
}

mixt_status mixt__experiment_open(mixt__experiment *e, const mixt_config *config)
{
    mixt_status status = open_parts(e, config);
    if (e->group) {
        MIXT_TRY(mixt__group_agree(e->group, status));
        MIXT_TRY(mixt__group_same(e->group, "device", e->context->device->backend->name));
    }
    MIXT_TRY(status);
    MIXT_TRY(mixt__device_sums_join(e));
    MIXT_TRY(mixt__rank0_first(e->group, e->context->device, compile_step, e));
    return check_faults(e);
}

mixt_status mixt__experiment_open_without_data(mixt__experiment *e, const mixt_config *config, const json_t *inputs)
{
    MIXT_TRY(open_context(e, config));
    MIXT_TRY(mixt__data_facts_unpack(json_object_get(inputs, "data"), &e->facts));
    MIXT_TRY(give_data(e, &e->facts));
    if (mixt__are_texts(mixt_data_describe(e->facts)))
        MIXT_TRY(
            mixt_tokenizer_open(text(e, MIXT_KEY_DATA_TOKENIZER), text(e, MIXT_KEY_DATA_VOCAB), &e->facts->tokenizer));
    MIXT_TRY(open_trainer(e));
    MIXT_TRY(compile(e));
    return check_faults(e);
}

void mixt__experiment_close(mixt__experiment *e)
{
    mixt_close(e->context); // recorded steps have sums in them
    if (e->device_sums)
        e->device_sums->close(e->device_sums, !e->lost);
    mixt__distillation_close(e->distillation);
    mixt__phases_close(&e->phases);
    mixt__onnx_close(e->onnx);
    *e = (mixt__experiment){0};
}
