/* From a run directory to a trainer and a loop that go on where its newest whole checkpoint was made. */
#include "run/resume.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/status.h"
#include "run/saves.h"
#include "run/auto/precision.h"
#include "run/report/history.h"
#include "run/open/adapter.h"
#include "run/open/inputs.h"
#include "policy/policy.h"
#include "run/order.h"
#include "run/open/phases.h"
#include "run/open/policy.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** How a key may differ from the run's. */
typedef enum change {
    CHANGE_NEVER,
    CHANGE_FREE,
    CHANGE_BITS,  // the run goes on, other bits come out
    CHANGE_ASKED, // the same, where the options allow it by name
} change;

/** Keys that are not listed may not change, but for whole groups below. */
static const struct {
    mixt__config_key key;
    change change;
} rules[] = {
    {MIXT_KEY_OUT, CHANGE_FREE},
    {MIXT_KEY_TRAIN_STEPS, CHANGE_FREE},
    {MIXT_KEY_TRAIN_EPOCHS, CHANGE_FREE},
    {MIXT_KEY_TRAIN_CHECKPOINT_EVERY, CHANGE_FREE},
    {MIXT_KEY_TRAIN_CHECKPOINT_MINUTES, CHANGE_FREE},
    {MIXT_KEY_TRAIN_KEEP, CHANGE_FREE},
    {MIXT_KEY_TRAIN_LOG_EVERY, CHANGE_FREE},
    {MIXT_KEY_TRAIN_VALIDATE_EVERY, CHANGE_FREE},
    {MIXT_KEY_TRAIN_TENSORBOARD, CHANGE_FREE},
    {MIXT_KEY_TRAIN_EARLY_STOP, CHANGE_FREE},
    {MIXT_KEY_DATA_THREADS, CHANGE_FREE},
    {MIXT_KEY_TRAIN_RECOMPUTE, CHANGE_FREE},
    {MIXT_KEY_TRAIN_MEMORY, CHANGE_FREE},
    {MIXT_KEY_TRAIN_MEMORY_MAY, CHANGE_FREE},
    {MIXT_KEY_DATA_PATH, CHANGE_FREE}, // as of the next ones, checksums say whether it is the same
    {MIXT_KEY_DATA_LABELS, CHANGE_FREE},
    {MIXT_KEY_DATA_VOCAB, CHANGE_FREE},
    {MIXT_KEY_DATA_USERS, CHANGE_FREE},
    {MIXT_KEY_DATA_ITEMS, CHANGE_FREE},
    {MIXT_KEY_DISTILL_TEACHER, CHANGE_FREE}, // its checksum says whether it is the same
    {MIXT_KEY_DIST_TRANSPORT, CHANGE_FREE},
    {MIXT_KEY_DIST_BUCKET, CHANGE_FREE},
    {MIXT_KEY_DIST_ZERO, CHANGE_FREE},
    {MIXT_KEY_DIST_TIMEOUT, CHANGE_FREE},
    {MIXT_KEY_DIST_CHECK, CHANGE_FREE},
    {MIXT_KEY_INTEGRITY_SUMS, CHANGE_FREE},
    {MIXT_KEY_INTEGRITY_EVERY, CHANGE_FREE},
    {MIXT_KEY_DIST_RANKS, CHANGE_BITS},
    {MIXT_KEY_DIST_REDUCE, CHANGE_BITS},
    {MIXT_KEY_DIST_COMPRESS, CHANGE_BITS},
    {MIXT_KEY_DIST_COMPRESS_AFTER, CHANGE_BITS},
    {MIXT_KEY_DEVICE, CHANGE_BITS},
    {MIXT_KEY_THREADS, CHANGE_BITS},
    {MIXT_KEY_PRECISION, CHANGE_ASKED},
    {MIXT_KEY_DATA_ORDER_SEED, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_LR, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_MIN_LR, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_SCHEDULE, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_WARMUP, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_DECAY_STEPS, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_GAMMA, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_WEIGHT_DECAY, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_MOMENTUM, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_BETA1, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_BETA2, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_EPS, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_MOMENTS, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_FROZEN, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_LR_GROUPS, CHANGE_ASKED},
    {MIXT_KEY_TRAIN_DECAY_GROUPS, CHANGE_ASKED},
};

static change change_of(mixt__config_key key)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].key == key)
            return rules[i].change;
    if (mixt__policy_decides(key))
        return CHANGE_ASKED;
    const char *name = mixt__config_table[key].name; // what only looks on may change
    if (!strncmp(name, "verify.", 7) || !strncmp(name, "watch.", 6))
        return CHANGE_FREE;
    return !strncmp(name, "auto.", 5) ? CHANGE_BITS : CHANGE_NEVER;
}

static json_t *value_text(const mixt_config *config, mixt__config_key key)
{
    char *text = mixt__config_text(config, key);
    json_t *value = text ? mixt__json_string(text) : NULL;
    free(text);
    return value;
}

/** A policy that lies beside the run has the run's path in its name, which may have moved; what is in it is compared
 * with the trainer's settings. */
static bool own_policy(const mixt_config *config)
{
    const char *name = strrchr(mixt__config_string(config, MIXT_KEY_PRECISION), '/');
    return name && !strcmp(name + 1, MIXT_POLICY_FILE);
}

/** Whether `allow`, names separated by commas, has this one. */
static bool allowed(const char *allow, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = allow ? allow : ""; *at; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        if (!strncmp(at, name, length) && (!at[length] || strchr(", ", at[length])))
            return true;
    }
    return false;
}

/** Names that cannot be allowed are slips of the pen, or a wish that would silently not come true. */
static mixt_status check_allow(const char *allow)
{
    char name[96];
    for (const char *at = allow ? allow : ""; *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ", "), at);
        mixt__config_key key = mixt__config_find(name);
        if (*name && strcmp(name, "data") && (key == MIXT_KEY_COUNT || change_of(key) != CHANGE_ASKED))
            return mixt__fail(MIXT_ERROR_ARGUMENT,
                              "'%s' cannot change at a resume: precision, the learning rate and its schedule, weight "
                              "decay, clipping, loss scaling, the optimizer's settings, the order of samples and the "
                              "samples themselves (data) can, as in train.lr,train.beta2,data.order_seed",
                              name);
    }
    return MIXT_OK;
}

/** What differs between two configurations, as {"key": {"from": …, "to": …}}. */
static json_t *find_changes(const mixt_config *before, const mixt_config *now)
{
    json_t *changes = json_object();
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        json_t *from = value_text(before, (mixt__config_key)key), *to = value_text(now, (mixt__config_key)key);
        bool same = json_equal(from, to) || (key == MIXT_KEY_PRECISION && own_policy(before) && own_policy(now)) ||
                    (key == MIXT_KEY_MODEL && mixt__run_has_own_graph(before, now));
        if (!same)
            mixt__json_set(changes, mixt__config_table[key].name, json_pack("{s:O, s:O}", "from", from, "to", to));
        json_decref(from);
        json_decref(to);
    }
    return changes;
}

/** Refuses what may not change, with old and new values. */
static mixt_status check_changes(const mixt__resume *r, const json_t *changes, const char *allow)
{
    char refused[1200] = "", hint[600] = "", *end = hint;
    size_t used = 0;
    const char *name;
    json_t *change;
    json_object_foreach((json_t *)changes, name, change)
    {
        enum change kind = change_of(mixt__config_find(name));
        if (kind == CHANGE_FREE || kind == CHANGE_BITS || (kind == CHANGE_ASKED && allowed(allow, name)))
            continue;
        if (kind == CHANGE_ASKED && hint + sizeof hint - end > 64)
            end += snprintf(end, 64, "%s%s", *hint ? "," : "; --allow ", name);
        if (used < sizeof refused)
            used += (size_t)snprintf(refused + used, sizeof refused - used, "%s%s: %s -> %s", used ? ", " : "", name,
                                     json_string_value(json_object_get(change, "from")),
                                     json_string_value(json_object_get(change, "to")));
    }
    if (!*refused)
        return MIXT_OK;
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "%s cannot resume with other settings (then -> now): %s. Only train.steps, train.epochs, train.early_stop, "
        "out, device, threads, data.threads, train.memory, train.recompute and how often to log, validate and save may "
        "change%s%s; start a new run for the rest (nothing was changed)",
        r->run, refused, hint, *hint ? " would allow the settings that it names" : "");
}

/** The run's configuration as it was when the checkpoint was made. Its policy lies beside it, where it had one: that of
 * the run's directory may be of a later update. */
static mixt_status load_before(const mixt__resume *r, mixt_config *before)
{
    char path[MIXT_CHECKPOINT_PATH + 64], setting[MIXT_CHECKPOINT_PATH + 128];
    snprintf(path, sizeof path, "%s/config.yaml", r->checkpoint ? r->checkpoint->folder : r->run);
    MIXT_TRY(mixt_config_load(before, path));
    MIXT_TRY(mixt__run_settle_config(before));
    snprintf(path, sizeof path, "%s/%s", r->checkpoint ? r->checkpoint->folder : r->run, MIXT_POLICY_FILE);
    snprintf(setting, sizeof setting, "precision=%s", path);
    return own_policy(before) && !access(path, F_OK) ? mixt_config_set(before, setting, path) : MIXT_OK;
}

/** A run goes on under the policy of its checkpoint. */
static mixt_status take_policy(mixt_run *run)
{
    mixt_config *before;
    if (!run->resume.checkpoint)
        return MIXT_OK;
    MIXT_TRY(mixt_config_new(&before));
    mixt_status status = load_before(&run->resume, before);
    if (status == MIXT_OK && (!own_policy(before) || !access(mixt__config_string(before, MIXT_KEY_PRECISION), F_OK)))
        status = mixt__run_return_policy(run->config, before); // else the run was moved, and has it
    if (status == MIXT_OK && mixt__config_bool(run->config, MIXT_KEY_AUTO_STEER))
        status = mixt__run_return_decided(run->config, before);
    mixt_config_free(before);
    return status;
}

/** The number of CPU threads is part of the bits: what "all cores" meant then is kept. */
static mixt_status keep_threads(const mixt__resume *r, mixt_config *config)
{
    int64_t threads;
    char setting[64];
    const json_t *run = r->checkpoint ? json_object_get(r->checkpoint->scalars, "run") : NULL;
    if (!run || mixt__config_int(config, MIXT_KEY_THREADS))
        return MIXT_OK;
    MIXT_TRY(mixt__json_get_int(run, "threads", 0, 1024, &threads));
    snprintf(setting, sizeof setting, "threads=%lld", (long long)threads);
    return threads ? mixt_config_set(config, setting, "checkpoint") : MIXT_OK;
}

/** The caller's settings over the run's own. */
static mixt_status apply_settings(mixt__resume *r, const char *const *settings, mixt_config *config)
{
    for (; settings && *settings; settings++) {
        if (!strcmp(*settings, "precision=auto") && mixt__config_bool(config, MIXT_KEY_AUTO_STEER))
            continue; // it has chosen, and goes on with what came of it
        MIXT_TRY(mixt_config_set(config, *settings, "setting"));
        r->device_given |= !strncmp(*settings, "device=", 7);
        if (!strncmp(*settings, "out=", 4))
            snprintf(r->out, sizeof r->out, "%s", mixt__config_string(config, MIXT_KEY_OUT));
    }
    return MIXT_OK;
}

/** Whether both name the same file or folder, one perhaps from where mixt was called. */
static bool same_place(const char *a, const char *b)
{
    const char *colon_a = strchr(a, ':'), *colon_b = strchr(b, ':'); // data.path: a kind may stand before
    if (colon_a && colon_b && colon_a - a == colon_b - b && !strncmp(a, b, (size_t)(colon_a - a))) {
        a = colon_a + 1;
        b = colon_b + 1;
    }
    return mixt__same_file(a, b);
}

/** The run's own names of files stay, where a setting names the same ones in another way. */
static mixt_status keep_names(const mixt_config *before, mixt_config *now)
{
    static const mixt__config_key keys[] = {MIXT_KEY_INIT,         MIXT_KEY_DATA_PATH,  MIXT_KEY_DATA_LABELS,
                                            MIXT_KEY_DATA_VOCAB,   MIXT_KEY_DATA_USERS, MIXT_KEY_DATA_ITEMS,
                                            MIXT_KEY_DATA_TEMPLATE};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *was = mixt__config_string(before, keys[i]), *is = mixt__config_string(now, keys[i]);
        char setting[9000];
        if (!strcmp(was, is) || !same_place(was, is))
            continue;
        snprintf(setting, sizeof setting, "%s=%s", mixt__config_table[keys[i]].name, was);
        MIXT_TRY(mixt_config_set(now, setting, mixt__config_origin(now, keys[i])));
    }
    return MIXT_OK;
}

/** Whether the threads are those of the checkpoint, which an earlier resume wrote down. */
static bool threads_kept(const mixt__resume *r, const mixt_config *config)
{
    const json_t *run = r->checkpoint ? json_object_get(r->checkpoint->scalars, "run") : NULL;
    return run && json_integer_value(json_object_get(run, "threads")) == mixt__config_int(config, MIXT_KEY_THREADS);
}

/** What the settings ask for against what the run was begun with. */
static mixt_status check_config(mixt_run *run, const char *allow)
{
    mixt_config *before;
    MIXT_TRY(check_allow(allow));
    MIXT_TRY(mixt_config_check(run->config));
    MIXT_TRY(mixt_config_new(&before));
    mixt_status status = load_before(&run->resume, before);
    if (status == MIXT_OK)
        status = keep_names(before, run->config);
    if (status == MIXT_OK) {
        run->resume.changes = find_changes(before, run->config);
        if (threads_kept(&run->resume, run->config))
            json_object_del(run->resume.changes, mixt__config_table[MIXT_KEY_THREADS].name);
        status = check_changes(&run->resume, run->resume.changes, allow);
        if (status == MIXT_OK && json_object_get(run->resume.changes, mixt__config_table[MIXT_KEY_PRECISION].name))
            status = mixt__run_change_policy(run->config, before);
    }
    mixt_config_free(before);
    return status;
}

static mixt_status read_state(mixt__resume *r, mixt_config *config)
{
    r->state = mixt__loop_state_start();
    if (!r->checkpoint)
        return MIXT_OK;
    const json_t *run = json_object_get(r->checkpoint->scalars, "run");
    mixt_status status = mixt__loop_state_unpack(json_object_get(run, "loop"), &r->state);
    if (status == MIXT_OK)
        status = keep_threads(r, config);
    return status == MIXT_OK ? MIXT_OK : mixt__fail_context(status, "checkpoint %s", r->checkpoint->folder);
}

/** The algorithms that the run chose are the experiment's from the beginning. */
static mixt_status find_choices(mixt_run *run)
{
    char path[MIXT_CHECKPOINT_PATH + 64];
    mixt__resume *r = &run->resume;
    snprintf(path, sizeof path, "%s/%s", r->checkpoint ? r->checkpoint->folder : r->newer, MIXT_CHOICES_FILE);
    mixt__free(r->choices);
    r->choices = NULL;
    if ((r->checkpoint || *r->newer) && !access(path, F_OK)) {
        r->choices = mixt__strdup(path);
        if (!r->choices)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a run");
    }
    run->experiment.choices = r->choices;
    return MIXT_OK;
}

mixt_status mixt__resume_open(mixt_run *run, const char *folder, const mixt_run_options *options)
{
    mixt__resume *r = &run->resume;
    if (snprintf(r->run, sizeof r->run, "%s", folder) >= (int)sizeof r->run)
        return mixt__fail(MIXT_ERROR_FILE, "%.40s…: the run directory's path is longer than %zu bytes", folder,
                          sizeof r->run - 1);
    for (size_t end = strlen(r->run); end > 1 && r->run[end - 1] == '/'; end--)
        r->run[end - 1] = '\0';
    MIXT_TRY(mixt_run_folder_config(r->run, &run->config));
    r->looking = options->before > 0;
    MIXT_TRY(mixt__resume_find(run, options));
    MIXT_TRY(take_policy(run));
    MIXT_TRY(apply_settings(r, options->settings, run->config));
    MIXT_TRY(mixt__auto_precision_take(run));
    MIXT_TRY(check_config(run, options->allow));
    MIXT_TRY(read_state(r, run->config));
    r->data_allowed = allowed(options->allow, "data");
    MIXT_TRY(mixt__resume_data_allow(run));
    return find_choices(run);
}

/** Ranks that made the checkpoint. */
static int64_t ranks_then(const mixt__checkpoint *checkpoint)
{
    const json_t *run = json_object_get(checkpoint->scalars, "run");
    int64_t ranks = json_integer_value(json_object_get(run, "ranks"));
    return ranks > 0 ? ranks : 1; // a version that knew of none does not say
}

/** Device and data must be those of the checkpoint; what only changes the bits is said. */
static mixt_status check_conditions(mixt_run *run, const json_t *before, const json_t *now)
{
    const mixt__resume *r = &run->resume;
    const char *device = json_string_value(json_object_get(before, "device"));
    MIXT_TRY(mixt__resume_data_check(run, json_string_value(json_object_get(before, "data")),
                                     json_string_value(json_object_get(now, "data"))));
    const json_t *base = json_object_get(now, "base"), *base_then = json_object_get(before, "base");
    if (base && base_then && !json_equal(base_then, base))
        return mixt__fail(
            MIXT_ERROR_DATA, "%s cannot resume: init=%s is not what the run began with (checksum %s -> %s)", r->run,
            mixt__config_string(run->config, MIXT_KEY_INIT), json_string_value(json_object_get(before, "base")),
            json_string_value(json_object_get(now, "base")));
    bool moved = !json_equal(json_object_get(before, "device"), json_object_get(now, "device"));
    if (moved && !r->device_given)
        return mixt__fail(MIXT_ERROR_DEVICE,
                          "%s was trained on %s, which is not the device here: give device=%s to resume with it; the "
                          "bits will then differ from an uninterrupted run",
                          r->run, device ? device : "another device",
                          json_string_value(json_object_get(now, "device")));
    if (!json_equal(json_object_get(before, "threads"), json_object_get(now, "threads")) ||
        !json_equal(json_object_get(before, "instructions"), json_object_get(now, "instructions")) || moved)
        mixt__run_note(run, true,
                       "%s resumes with another device, number of threads or instruction set: the bits will differ "
                       "from an uninterrupted run",
                       r->run);
    int64_t then = ranks_then(r->checkpoint), ranks = run->experiment.ranks;
    if (then != ranks)
        mixt__run_note(run, true,
                       "%s resumes with %lld rank%s instead of %lld: the bits will differ from an uninterrupted run",
                       r->run, (long long)ranks, ranks == 1 ? "" : "s", (long long)then);
    return MIXT_OK;
}

/** What was allowed to change, by the trainer's names, which are those of the keys without their section. */
static void allowed_settings(const json_t *changes, bool ranks, const char *names[MIXT_KEY_COUNT + 2])
{
    const char *key;
    json_t *change;
    if (ranks)
        *names++ = "ranks";
    json_object_foreach((json_t *)changes, key, change) if (change_of(mixt__config_find(key)) == CHANGE_ASKED)
    {
        const char *dot = strchr(key, '.');
        *names++ = dot ? dot + 1 : key;
    }
    *names = NULL;
}

mixt_status mixt__resume_restore_from(mixt_run *run, const mixt__checkpoint *checkpoint)
{
    const char *may_differ[MIXT_KEY_COUNT + 2];
    allowed_settings(run->resume.changes, ranks_then(checkpoint) != run->experiment.ranks, may_differ);
    return mixt__trainer_restore(run->experiment.trainer->inner, checkpoint, *may_differ ? may_differ : NULL);
}

/** A good state that a run went back to may lie where one phase ends: it is of the one that begins. */
static mixt_status restore_newest(mixt_run *run)
{
    mixt__experiment *e = &run->experiment;
    int64_t next = run->resume.state.steps + 1;
    mixt_status status = mixt__resume_restore_from(run, run->resume.checkpoint);
    if (status == MIXT_OK || !mixt__phases_due(e, next))
        return status;
    MIXT_TRY(mixt__phases_enter(e, mixt__policy_phase_at(e->phases.policy, next)));
    return mixt__resume_restore_from(run, run->resume.checkpoint);
}

static mixt_status restore_state(mixt_run *run)
{
    const json_t *before = json_object_get(run->resume.checkpoint->scalars, "run");
    json_t *now = mixt__run_conditions(&run->experiment);
    mixt_status status = check_conditions(run, before, now);
    json_decref(now);
    if (status == MIXT_OK)
        status = restore_newest(run);
    return status == MIXT_OK ? mixt__run_order_restore(run, json_object_get(before, "order")) : status;
}

mixt_status mixt__resume_restore(mixt_run *run)
{
    const mixt__resume *r = &run->resume;
    if (run->experiment.total_steps < r->state.steps)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s has done %lld updates, but train.steps and train.epochs allow only %lld: raise them",
                          r->run, (long long)r->state.steps, (long long)run->experiment.total_steps);
    if (r->checkpoint && mixt__adapter_only(run->config))
        MIXT_TRY(mixt__experiment_base(&run->experiment));
    return r->checkpoint ? restore_state(run) : mixt__resume_data_begun(run);
}

/** Checkpoints newer than the one used are damaged: out of the way of those to come, but kept for a look. */
static void set_aside(const mixt__resume *r)
{
    char folder[1100], from[MIXT_CHECKPOINT_PATH], to[MIXT_CHECKPOINT_PATH];
    int64_t *steps, count;
    snprintf(folder, sizeof folder, "%s/checkpoints", r->run);
    if (mixt__checkpoints_list(folder, &steps, &count) != MIXT_OK)
        return;
    for (int64_t i = 0; i < count && steps[i] > r->state.steps; i++) {
        snprintf(to, sizeof to, "%s/damaged-%08lld", folder, (long long)steps[i]);
        (void)rename(mixt__checkpoint_path(folder, steps[i], from), to); // where that fails, a later save replaces it
    }
    mixt__free(steps);
}

static bool take_checkpoint(const mixt__resume *r, const mixt__run_dir *dir, int64_t step)
{
    char from[MIXT_CHECKPOINT_PATH], to[MIXT_CHECKPOINT_PATH], folder[1100];
    snprintf(folder, sizeof folder, "%s/checkpoints", r->run);
    mixt__checkpoint_path(folder, step, from);
    snprintf(folder, sizeof folder, "%s/checkpoints", dir->path);
    mkdir(folder, 0777);
    return mixt__checkpoint_share(from, mixt__checkpoint_path(folder, step, to)) == MIXT_OK;
}

/** The best checkpoint, which the new run may never beat, and the one that it goes on from go along. Where that fails
 * it has none of its own until it saves one. */
static void take_checkpoints(mixt__resume *r, const mixt__run_dir *dir)
{
    if (r->state.best_step >= 0 && !take_checkpoint(r, dir, r->state.best_step)) {
        r->state.best_step = -1;
        r->state.kept_val_loss = NAN;
    }
    if (r->state.best_step != r->state.steps)
        (void)take_checkpoint(r, dir, r->state.steps);
    const json_t *run = json_object_get(r->checkpoint->scalars, "run");
    static const char *const names[] = {"good", "older"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *good = json_object_get(json_object_get(run, "auto"), names[i]);
        if (json_is_integer(good) && json_integer_value(good) >= 0 && json_integer_value(good) != r->state.steps)
            (void)take_checkpoint(r, dir, json_integer_value(good)); // where that fails, it goes back to a later one
    }
}

/** The first `keep` bytes of the old directory's file of rows, to go on with in the new one. */
static mixt_status copy_rows(mixt_run *run, mixt__rows *rows, const char *name, int64_t keep)
{
    char path[1200], piece[65536];
    int64_t left = keep;
    mixt__rows_close(rows);
    snprintf(path, sizeof path, "%s/%s", run->resume.run, name);
    FILE *from = mixt__file_open_stream(path);
    bool good = from || errno == ENOENT;
    int fd = mixt__file_open_write(mixt__run_dir_file(&run->dir, name, path), O_WRONLY | O_CREAT | O_TRUNC);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "wb");
    size_t got;
    good = good && to;
    while (good && from && left > 0 &&
           (got = fread(piece, 1, left < (int64_t)sizeof piece ? (size_t)left : sizeof piece, from)) > 0) {
        good = fwrite(piece, 1, got, to) == got;
        left -= (int64_t)got;
    }
    good = good && !(from && ferror(from)); // else rows would be gone without a word
    if (from)
        fclose(from);
    if (to ? fclose(to) : fd >= 0 && close(fd))
        good = false;
    return good ? mixt__rows_open(rows, path, keep)
                : mixt__fail(MIXT_ERROR_FILE, "%s: the rows of %s cannot be copied", path, run->resume.run);
}

/** A new directory that begins with the rows of the old one. */
static mixt_status fork_run(mixt_run *run)
{
    mixt__resume *r = &run->resume;
    MIXT_TRY(mixt__run_dir_create(&run->dir, run->config, mixt_data_describe(run->experiment.train)->kind));
    if (r->checkpoint)
        take_checkpoints(r, &run->dir);
    MIXT_TRY(copy_rows(run, &run->dir.metrics, "metrics.jsonl", r->state.metrics_bytes));
    MIXT_TRY(copy_rows(run, &run->dir.events, "events.jsonl", r->state.events_bytes));
    if (r->state.layers_bytes)
        MIXT_TRY(copy_rows(run, &run->dir.layers, "layers.jsonl", r->state.layers_bytes));
    return mixt__run_dir_begun(&run->dir);
}

/** Asking for longer must not do nothing in silence. Steps that epochs cut off are told at every start. */
static void note_limit(mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    int64_t epochs = mixt__config_int(run->config, MIXT_KEY_TRAIN_EPOCHS);
    bool asked = json_object_get(run->resume.changes, mixt__config_table[MIXT_KEY_TRAIN_EPOCHS].name);
    if (asked && epochs > e->total_steps / e->steps_per_epoch)
        mixt__run_note(run, true,
                       "warning: train.steps=%lld ends the run after update %lld, before train.epochs=%lld: set "
                       "train.steps=0 to let train.epochs decide",
                       (long long)mixt__config_int(run->config, MIXT_KEY_TRAIN_STEPS), (long long)e->total_steps,
                       (long long)epochs);
    if (run->resume.state.steps >= e->total_steps)
        mixt__run_note(run, false,
                       "%s has done all of its %lld updates: to continue give a larger train.epochs=… or train.steps=…",
                       run->resume.run, (long long)e->total_steps);
}

mixt_status mixt__resume_directory(mixt_run *run)
{
    mixt__resume *r = &run->resume;
    if (r->out[0] && !mixt__same_file(r->out, r->run)) {
        MIXT_TRY(fork_run(run));
    } else {
        MIXT_TRY(mixt__run_dir_reopen(&run->dir, r->run, run->config, mixt_data_describe(run->experiment.train)->kind,
                                      r->state.metrics_bytes, r->state.events_bytes));
        set_aside(r);
    }
    char weights[1200];
    snprintf(weights, sizeof weights, "%s/model.safetensors", r->run);
    run->experiment.positions = mixt__run_inputs_positions(weights, run->experiment.sizes.seq);
    MIXT_TRY(mixt__run_inputs_write(run->dir.path, &run->experiment)); // a run of an older mixt has none
    json_t *row = json_pack("{s:s, s:I, s:s, s:O}", "event", "resumed", "step", (json_int_t)r->state.steps, "from",
                            r->checkpoint ? r->checkpoint->folder : r->run, "changes", r->changes);
    mixt__history_add(run, row);
    if (r->checkpoint)
        mixt__run_note(run, false, "%s resumes from %s", r->run, r->checkpoint->folder);
    else
        mixt__run_note(run, false, "%s has no checkpoint yet and starts again", r->run);
    note_limit(run);
    return MIXT_OK;
}

void mixt__resume_close(mixt__resume *r)
{
    mixt__checkpoint_close(r->checkpoint);
    json_decref(r->changes);
    json_decref(r->inputs);
    mixt__free(r->choices);
    *r = (mixt__resume){0};
}
