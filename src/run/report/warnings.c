/* Settings that make no sense: each is told as a warning before training begins, and the run goes on as it is set.
 *
 * What can be no run at all is refused where it is read (config, data, experiment), not here.
 */
#include "run/report/summary.h"

#include "data/text/inputs_text.h"
#include "run/open/teacher.h"
#include "train/integrity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t number(const mixt_run *run, mixt__config_key key)
{
    return mixt__config_int(run->config, key);
}

/** A run that is shorter than its settings say. */
static void warn_of_length(mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    int64_t steps = number(run, MIXT_KEY_TRAIN_STEPS), warmup = number(run, MIXT_KEY_TRAIN_WARMUP);
    if (steps > e->total_steps)
        mixt__run_note(run, true,
                       "warning: train.epochs=%lld ends the run after update %lld, before train.steps=%lld: set "
                       "train.epochs=0 to let train.steps decide",
                       (long long)number(run, MIXT_KEY_TRAIN_EPOCHS), (long long)e->total_steps, (long long)steps);
    if (warmup > e->total_steps)
        mixt__run_note(run, true,
                       "warning: train.warmup=%lld is longer than the run (%lld update%s): the learning rate never "
                       "reaches train.lr",
                       (long long)warmup, (long long)e->total_steps, e->total_steps == 1 ? "" : "s");
}

static void warn_of_rate(mixt_run *run)
{
    bool none = mixt__config_float(run->config, MIXT_KEY_TRAIN_LR) == 0 &&
                mixt__config_float(run->config, MIXT_KEY_TRAIN_MIN_LR) == 0;
    if (none) // a way to measure without learning: no warning where little is shown
        mixt__run_note(run, false, "warning: train.lr=0: no weight will change");
}

/** Targets that no model begins near: the loss starts at about the mean of their squares. */
static void warn_of_targets(mixt_run *run)
{
    const double huge = 1e6;
    const mixt_data_info *info = mixt_data_describe(run->experiment.train);
    mixt_dtype forward, backward;
    mixt_policy_default(mixt_trainer_policy(run->experiment.trainer), &forward, &backward);
    mixt_dtype narrow = mixt__format_narrow(forward)    ? forward
                        : mixt__format_narrow(backward) ? backward
                                                        : MIXT_DTYPE_NONE;
    if (info->target_scale > 0)
        return; // they are scaled
    if (narrow && info->target_largest > mixt__format_of(narrow)->max)
        mixt__run_note(run, true,
                       "warning: targets reach %.3g, beyond what %s holds (%g): scale them to about 1, or use "
                       "precision=bf16",
                       info->target_largest, mixt_dtype_name(narrow), mixt__format_of(narrow)->max);
    else if (info->target_square > huge)
        mixt__run_note(run, true,
                       "warning: targets reach %.3g: the first loss will be about %.1g, the mean of their squares; "
                       "scale them to about 1",
                       info->target_largest, info->target_square);
}

/** A model that need only copy its input learns nothing. */
static void warn_of_tokens(mixt_run *run)
{
    const mixt__zoo_entry *entry;
    const char *name = mixt__config_string(run->config, MIXT_KEY_MODEL);
    if (mixt__model_find(name, &entry) == MIXT_OK && entry->bidirectional &&
        mixt_data_describe(run->experiment.train)->next_tokens)
        mixt__run_note(
            run, true,
            "warning: %s sees all tokens of a sample, also the one to predict: hide some with data.mask=0.15", name);
}

/** Texts that a model has no outputs enough for: the loss leaves them out. */
static void warn_of_letters(mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    int64_t stride;
    mixt__ctc_too_short too_short;
    if (mixt__experiment_ctc_too_short(e, &too_short, &stride) == MIXT_OK && too_short.count)
        mixt__run_note(run, true,
                       "warning: %lld of %lld recordings have more letters than the model has outputs for them, one "
                       "every %lld frames, and are left out; the first is %s, which needs %lld and has %lld: a smaller "
                       "data.hop, a longer data.tail, or fewer channels",
                       (long long)too_short.count, (long long)mixt_data_describe(e->train)->samples, (long long)stride,
                       too_short.first, (long long)too_short.needed, (long long)too_short.outputs);
}

/** Settings of a distillation that nobody gives. */
static void warn_of_distillation(mixt_run *run)
{
    static const mixt__config_key keys[] = {MIXT_KEY_DISTILL_WEIGHT, MIXT_KEY_DISTILL_TEMPERATURE,
                                            MIXT_KEY_DISTILL_POLICY};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !run->experiment.distillation; i++) {
        const mixt_config_record *record = &mixt__config_table[keys[i]];
        const char *usual = record->type == MIXT_CONFIG_STRING ? "\"\"" : record->fallback; // as it is written
        char *value = mixt__config_text(run->config, keys[i]);
        if (value && strcmp(value, usual))
            mixt__run_note(run, true, "warning: %s=%s has no effect without distill.teacher", record->name, value);
        free(value);
    }
}

/** What there must be two of. */
static void warn_of_single(mixt_run *run)
{
    const mixt_data_info *info = mixt_data_describe(run->experiment.train);
    bool pairs = !strcmp(mixt__config_string(run->config, MIXT_KEY_MODEL), "pair");
    if (pairs && number(run, MIXT_KEY_TRAIN_BATCH) == 1)
        mixt__run_note(run, true,
                       "warning: train.batch=1: the loss compares the pairs of a batch, and there is only one");
    if (!pairs && info->target == MIXT_TARGET_CLASS && info->classes == 1)
        mixt__run_note(run, true, "warning: %s: all samples are of one class: there is nothing to learn",
                       *info->path ? info->path : info->kind);
}

/** A translation into the same language, and a size that a vocabulary has not. */
static void warn_of_languages(mixt_run *run)
{
    const char *from = mixt__config_string(run->config, MIXT_KEY_DATA_SOURCE),
               *into = mixt__config_string(run->config, MIXT_KEY_DATA_TARGET),
               *vocab = mixt__config_string(run->config, MIXT_KEY_DATA_VOCAB);
    const mixt_data_info *info = mixt_data_describe(run->experiment.train);
    int64_t size = number(run, MIXT_KEY_DATA_VOCAB_SIZE);
    int64_t tokens = mixt__are_texts(info) ? info->arrays[0].ids : info->classes;
    if (*from && !strcmp(from, into))
        mixt__run_note(run, true, "warning: data.source and data.target are both %s: there is nothing to translate",
                       from);
    if (*vocab && size && size != tokens)
        mixt__run_note(run, true,
                       "warning: data.vocab_size=%lld has no effect with data.vocab=%s, which has %lld tokens",
                       (long long)size, vocab, (long long)tokens);
}

/** What is checked on one kind of device and not on another. */
static void warn_of_integrity(mixt_run *run)
{
    const mixt__device *device = mixt__trainer_device(run->experiment.trainer->inner);
    if (mixt__config_bool(run->config, MIXT_KEY_INTEGRITY_SUMS) && !mixt__integrity_possible(device))
        mixt__run_note(
            run, false,
            "integrity.sums: not on %s: a bit that flips in its memory is found where training goes wrong by "
            "it, not at the next update",
            device->backend->name);
}

void mixt__warnings_tell(mixt_run *run)
{
    warn_of_integrity(run);
    warn_of_length(run);
    warn_of_rate(run);
    warn_of_targets(run);
    warn_of_tokens(run);
    warn_of_letters(run);
    warn_of_distillation(run);
    warn_of_single(run);
    warn_of_languages(run);
}

void mixt__warnings_tell_teacher(mixt_run *run)
{
    char warning[MIXT_WEIGHTS_WARNING];
    mixt__distillation_warning(run->experiment.distillation, warning);
    if (*warning)
        mixt__run_note(run, true, "warning: distill.teacher: %s", warning);
}

void mixt__warnings_tell_data(mixt_run *run, const mixt_data *data)
{
    const char *line = data ? mixt_data_describe(data)->warnings : NULL;
    while (line && *line) {
        int length = (int)strcspn(line, "\n");
        mixt__run_note(run, true, "warning: %.*s", length, line);
        line += length + (line[length] == '\n');
    }
}
