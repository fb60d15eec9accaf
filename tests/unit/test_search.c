/* The search for a policy: layers that are fragile by construction are found and kept in FP32, nothing is lost when it
 * stops, what does not fit is refused. Costs are bytes: nothing here depends on time.
 *
 * The injected model is a convolutional net with batch norms. Scaling the weights of a convolution changes nothing in
 * FP32: the norm behind it divides by the scale again. In FP16 the output of one convolution overflows, and with the
 * fixed loss scale the gradient of another's output becomes 0, so that nothing below it learns.
 */
#include "search_fixture.h"

static const char injected_yaml[] =
    "model: convnet\nthreads: 1\ndevice: cpu\nseed: 3\n"
    "net: {channels: [8, 8, 8, 6], norm: batch}\n"
    "data: {kind: digits, limit: 1024, val_fraction: 0.25}\n"
    "train: {batch: 32, epochs: 0, steps: 400, lr: 0.003, loss_scale: 0.00390625, freeze: fc}\n";

/* ---- the injected model ---- */

/** Multiplies a parameter by a power of two: exact in FP32. */
static void scale(mixt_trainer *trainer, const char *name, float factor)
{
    mixt_param_info info;
    for (int64_t i = 0; i < mixt_trainer_param_count(trainer); i++) {
        must(mixt_trainer_param(trainer, i, &info));
        if (strcmp(info.name, name))
            continue;
        float *values = malloc((size_t)info.count * sizeof *values);
        must(mixt_trainer_param_get(trainer, i, values));
        for (int64_t k = 0; k < info.count; k++)
            values[k] *= factor;
        must(mixt_trainer_param_set(trainer, i, values));
        free(values);
        return;
    }
    fail_msg("no parameter %s", name);
}

/** conv2 overflows, the gradient of conv4's output vanishes. What is above conv4 stays as it is, so that nothing else
 *  can make up for layers that do not learn. */
static mixt_config *injected(void)
{
    mixt_config *config = config_of(injected_yaml);
    mixt_run *run;
    set(config, "precision=%s", "fp32");
    must(mixt_run_open_config(config, NULL, &run));
    mixt_trainer *trainer = mixt_run_trainer(run);
    must(mixt_trainer_save(trainer, temp_path("drawn.safetensors"))); // draws them
    scale(trainer, "conv2.weight", 0x1p20f);
    scale(trainer, "conv4.weight", 0x1p13f);
    must(mixt_trainer_save(trainer, temp_path("injected.safetensors")));
    mixt_run_close(run);
    set(config, "init=%s", temp_path("injected.safetensors"));
    return config;
}

/** The rule of a layer in a policy's file; FP32's and others' formats by name, "" without a rule. */
static const char *rule_of(const char *path, const char *layer)
{
    const char *found = "";
    mixt_policy *policy;
    mixt_policy_rule rule;
    must(mixt_policy_load(path, &policy));
    for (int64_t i = 0; i < mixt_policy_count(policy); i++) {
        must(mixt_policy_get(policy, i, &rule));
        if (!strcmp(rule.layer, layer))
            found = mixt_dtype_name(rule.forward);
    }
    mixt_policy_free(policy);
    return found;
}

static int64_t rules_of(const char *path)
{
    mixt_policy *policy;
    must(mixt_policy_load(path, &policy));
    int64_t count = mixt_policy_count(policy);
    assert_string_equal(mixt_policy_made_by(policy), "mixt search");
    mixt_policy_free(policy);
    return count;
}

static mixt_search_options injected_options(const char *file)
{
    mixt_search_options o =
        MIXT_OPTIONS(mixt_search_options, .lose = 0.02, .goal = MIXT_SEARCH_MEMORY, .formats = "fp16");
    o.steps = 20;
    o.trials = 2;
    o.write = temp_path(file);
    return o;
}

/** The last row of a policy in candidates.jsonl; an object for json_decref, NULL: it was not tried. */
static json_t *row_of(const char *folder, const char *policy)
{
    char path[600], line[4096];
    json_t *found = NULL;
    snprintf(path, sizeof path, "%s/candidates.jsonl", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *row = json_loads(line, 0, NULL);
        const char *name = json_string_value(json_object_get(row, "policy"));
        if (name && !strcmp(name, policy)) {
            json_decref(found);
            found = json_incref(row);
        }
        json_decref(row);
    }
    fclose(file);
    return found;
}

static void check_injected(const mixt_search_options *o, const mixt_search_info *i)
{
    assert_string_equal(rule_of(o->write, "conv2"), "fp32");
    assert_string_equal(rule_of(o->write, "conv4"), "fp32");
    assert_int_equal(rules_of(o->write), 2);
    assert_true(i->complete && !i->stopped && i->lower);
    assert_int_equal(i->safe.verdict, MIXT_VERDICT_YES); // on pairs that the search has not seen
    assert_true(i->safe.high < o->lose && i->safe.margin == o->lose && i->safe.updates == o->steps);
    assert_true(i->safe.evidence == MIXT_EVIDENCE_PAIRED && i->safe.pairs >= MIXT_STATS_PAIRS_MIN);
    assert_true(i->worth.claim == MIXT_CLAIM_SMALLER && i->worth.verdict == MIXT_VERDICT_YES);
    assert_true(i->memory < i->fp32_memory);
}

static void test_injected(void **state)
{
    (void)state;
    mixt_config *config = injected();
    mixt_search_result *found;
    mixt_search_options o = injected_options("injected.yaml");
    must(mixt_search_with(config, &o, &found));
    mixt_search_info i = mixt_search_describe(found);
    check_injected(&o, &i);
    assert_string_equal(i.line, "fp16; conv2, conv4: fp32");
    json_t *low = row_of(i.folder, "fp16"), *half = row_of(i.folder, "fp16; conv2: fp32");
    assert_true(json_is_null(json_object_get(low, "loss_change"))); // diverged
    assert_true(json_number_value(json_object_get(half, "loss_change")) > 2 * o.lose);
    json_decref(low);
    json_decref(half);
    bool chosen = false;
    const mixt_search_point *before = NULL, *p;
    for (int64_t k = 0; (p = mixt_search_front(found, k)); k++) {
        assert_true(!before || p->memory >= before->memory);
        chosen = chosen || (p->chosen && p->safe.verdict == MIXT_VERDICT_YES && p->memory == i.memory);
        before = p;
    }
    assert_true(chosen);
    mixt_search_free(found);
    mixt_config_free(config);
}

static int planted_seeds = 1; // the program's argument says how many

/** A layer whose output leaves FP16's range, at a place that the seed draws: it and nothing else stays in FP32. */
static void test_planted(void **state)
{
    (void)state;
    for (int seed = 1; seed <= planted_seeds; seed++) {
        char layer[20], name[40], line[40], file[40];
        mixt_search_result *found;
        mixt_run *run;
        mixt__rng rng = mixt__rng_start(mixt__rng_key((uint64_t)seed, 32, 0));
        mixt_config *config = config_of(injected_yaml);
        set(config, "precision=%s", "fp32");
        set(config, "train.loss_scale=%s", "auto");
        set(config, "data.draw_seed=%s", "4242");
        snprintf(layer, sizeof layer, "conv%d", 2 + (int)mixt__rng_below(&rng, 3)); // with conv1 nothing is saved
        snprintf(name, sizeof name, "%s.weight", layer);
        snprintf(file, sizeof file, "planted-%d.safetensors", seed);
        must(mixt_run_open_config(config, NULL, &run));
        must(mixt_trainer_save(mixt_run_trainer(run), temp_path("drawn.safetensors"))); // draws them
        scale(mixt_run_trainer(run), name, 0x1p20f);
        must(mixt_trainer_save(mixt_run_trainer(run), temp_path(file)));
        mixt_run_close(run);
        set(config, "init=%s", temp_path(file));
        snprintf(file, sizeof file, "planted-%d.yaml", seed);
        mixt_search_options o = injected_options(file);
        must(mixt_search_with(config, &o, &found));
        snprintf(line, sizeof line, "fp16; %s: fp32", layer);
        assert_string_equal(mixt_search_describe(found).line, line);
        assert_int_equal(mixt_search_describe(found).safe.verdict, MIXT_VERDICT_YES);
        mixt_search_free(found);
        mixt_config_free(config);
    }
}

/* ---- late in training ---- */

enum { SCALED_AT = 20, STOPPED_AT = 40 };

/** Late in the run conv2's output leaves FP16's range, which in FP32 changes nothing: the norm behind it divides. */
static mixt_status scale_late(void *user, mixt_run *run, const mixt_event *e)
{
    (void)user;
    if (e->kind != MIXT_EVENT_STEP)
        return MIXT_OK;
    if (e->step->step == SCALED_AT)
        scale(mixt_run_trainer(run), "conv2.weight", 0x1p20f);
    if (e->step->step == STOPPED_AT)
        mixt_run_ask_stop(run);
    return MIXT_OK;
}

/** A layer that bears FP16 at the beginning and not later is found from a checkpoint of the run, and only from there.
 */
static void test_late(void **state)
{
    (void)state;
    mixt_config *config = config_of(injected_yaml);
    char folder[600];
    const char *const settings[] = {folder, NULL};
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = scale_late);
    mixt_run_result result;
    mixt_search_result *found;
    mixt_run *run;
    set(config, "precision=%s", "fp32");
    set(config, "train.loss_scale=%s", "auto");
    snprintf(folder, sizeof folder, "out=%s", temp_path("late"));
    must(mixt_run_open_config(config, &options, &run));
    must(mixt_run_train(run, &result));
    mixt_run_close(run);
    mixt_search_options o = injected_options("early.yaml");
    must(mixt_search_with(config, &o, &found));
    assert_string_equal(mixt_search_describe(found).line, "fp16");
    mixt_search_free(found);
    o = injected_options("late.yaml");
    o.folder = folder + strlen("out=");
    must(mixt_search_with(config, &o, &found));
    assert_string_equal(mixt_search_describe(found).line, "fp16; conv2: fp32");
    assert_int_equal(mixt_search_describe(found).safe.verdict, MIXT_VERDICT_YES);
    mixt_search_free(found);
    o.steps = 400 - STOPPED_AT + 1; // more than are left
    assert_int_equal(mixt_search_with(config, &o, &found), MIXT_ERROR_ARGUMENT);
    set(config, "train.steps=%s", "12");
    o.steps = 0;
    o.write = temp_path("over.yaml");
    assert_int_equal(mixt_search_with(config, &o, &found), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "no checkpoint leaves 8"));
    mixt_config_free(config);
}

/* ---- stopping and going on ---- */

typedef struct stopper {
    int64_t updates, tried, stop_at;
} stopper;

static bool stop_later(void *user, const mixt_progress *p)
{
    stopper *s = user;
    s->updates += p->kind == MIXT_PROGRESS_STEP;
    s->tried += p->kind == MIXT_PROGRESS_PART && strstr(p->text, "tried ") == p->text;
    assert_true(*p->task && p->seconds <= p->budget && (p->kind != MIXT_PROGRESS_STEP || strstr(p->text, "(fp32 ")));
    return s->updates < s->stop_at;
}

/** Stopped again and again, a search comes to the same end with the same figures, and measures nothing twice. */
static void test_going_on(void **state)
{
    (void)state;
    mixt_config *config = injected();
    mixt_search_result *found;
    mixt_search_info i = {0};
    mixt_search_options o = injected_options("again.yaml");
    stopper s = {0};
    int64_t calls = 0, updates = 0, tried = 0;
    o.progress = stop_later;
    o.user = &s;
    for (; !i.complete; calls++) {
        s = (stopper){.stop_at = 90}; // in the middle of a trial
        must(mixt_search_with(config, &o, &found));
        i = mixt_search_describe(found);
        assert_true(i.stopped != i.complete);
        (void)rules_of(o.write); // a policy at every moment
        mixt_search_free(found);
        updates += s.updates;
        tried += s.tried;
        assert_true(calls < 40);
    }
    assert_true(calls > 3 && updates > 3 * 90 && tried > 0 && tried <= i.tried);
    check_injected(&o, &i);
    s = (stopper){.stop_at = 1}; // nothing is left to do
    must(mixt_search_with(config, &o, &found));
    assert_int_equal(s.updates, 0);
    assert_true(mixt_search_describe(found).complete);
    assert_true(mixt_search_describe(found).safe.value == i.safe.value);
    mixt_search_free(found);

    json_t *here = row_of(temp_path("again.yaml.search"), "fp16; conv2, conv4: fp32");
    json_t *there = row_of(temp_path("injected.yaml.search"), "fp16; conv2, conv4: fp32"); // of one that never stopped
    assert_true(json_equal(json_object_get(here, "losses"), json_object_get(there, "losses")));
    assert_true(json_array_size(json_object_get(here, "fresh")) >= MIXT_STATS_PAIRS_MIN);
    assert_true(json_equal(json_object_get(here, "fresh"), json_object_get(there, "fresh")));
    assert_true(json_equal(json_object_get(here, "fresh_fp32"), json_object_get(there, "fresh_fp32")));
    json_decref(here);
    json_decref(there);
    mixt_config_free(config);
}

/* ---- small searches ---- */

/** What lies there is of another search: said with what differs, left as it is. */
static void test_other_search(void **state)
{
    (void)state;
    mixt_search_options o = small_options("other.yaml"), other = o;
    struct stat before, after;
    search_small(&o, small_yaml);
    assert_int_equal(stat(temp_path("other.yaml.search/candidates.jsonl"), &before), 0);
    other.lose = 0.25;
    refused(&other, small_yaml, MIXT_ERROR_STATE, "lose is 0.25, was 0.5");
    other = o;
    other.trials = 3;
    refused(&other, small_yaml, MIXT_ERROR_STATE, "trials is 3, was 2");
    mixt_config *config = config_of(small_yaml);
    mixt_search_result *found;
    set(config, "train.lr=%s", "0.5");
    assert_int_equal(mixt_search_with(config, &o, &found), MIXT_ERROR_STATE);
    assert_non_null(strstr(mixt_error_text(), "train.lr is 0.5, was 0.001"));
    assert_int_equal(stat(temp_path("other.yaml.search/candidates.jsonl"), &after), 0);
    assert_true(before.st_size == after.st_size);
    set(config, "train.lr=%s", "0.001"); // what does not count
    set(config, "precision=%s", "fp16");
    set(config, "out=%s", "elsewhere");
    must(mixt_search_with(config, &o, &found));
    mixt_search_free(found);
    set(config, "train.lr=%s", "0.5");
    o.fresh = true;
    must(mixt_search_with(config, &o, &found));
    mixt_search_free(found);
    mixt_config_free(config);
}

/** Figures that nobody can have written are not believed. */
static void test_absurd_rows(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{\"fact\":\"steps\",\"value\":-5}",
        "{\"fact\":\"fresh_steps\",\"value\":1e300}",
        "{\"fact\":\"steps\",\"value\":9223372036854775807}",
        "{\"fact\":\"sensitivity_bf16\",\"value\":7}",
        "{\"candidate\":\"bb\",\"memory\":-1,\"ms\":\"fast\",\"losses\":{},\"fresh\":[null,\"x\"]}",
        "{\"candidate\":\"bb\",\"memory\":1,\"losses\":[1,1],\"finalist\":99,\"looks\":[6,3,1e300],\"fresh\":[1,1,1],"
        "\"fresh_fp32\":[1,0,null]}",
        "{\"candidate\":\"bb\",\"memory\":1,\"losses\":[1,1],\"finalist\":1,\"looks\":[2,900],\"fresh\":[1,1,1],"
        "\"fresh_fp32\":[1,0,null]}",
        "{\"candidate\":\"b\",\"memory\":1}",
        "{\"candidate\":\"zz\",\"memory\":1}",
        "[]",
        "7",
        "{\"candidate\":\"ff\",\"losses\":[0,-1,null]}",
    };
    mixt_config *config = config_of(wide_yaml);
    mixt_search_options o = small_options("absurd.yaml");
    mixt_search_result *found;
    char write[512]; // a path of temp_path is good for eight calls
    snprintf(write, sizeof write, "%s", o.write);
    o.write = write;
    o.steps = 0;
    o.formats = "bf16";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        must(mixt_search_with(config, &o, &found));
        mixt_search_free(found);
        FILE *file = fopen(temp_path("absurd.yaml.search/candidates.jsonl"), "a");
        assert_non_null(file);
        fprintf(file, "%s\n", rows[i]);
        fclose(file);
    }
    if (mixt_search_with(config, &o, &found) != MIXT_OK) // FP32 itself cannot have lost: that is said
        assert_non_null(strstr(mixt_error_text(), ": it cannot measure anything"));
    (void)rules_of(o.write);
    mixt_search_free(found);
    mixt_config_free(config);
}

/** A row that a kill has cut short is dropped, a damaged one passed over. */
static void test_damaged_rows(void **state)
{
    (void)state;
    mixt_search_options o = small_options("damaged.yaml");
    size_t bytes, again;
    search_small(&o, small_yaml);
    const char *path = temp_path("damaged.yaml.search/candidates.jsonl");
    unsigned char *rows = temp_read(path, &bytes);
    assert_non_null(rows);
    const char *second = memchr(rows, '\n', bytes);
    assert_non_null(second);
    memset(rows + (second - (char *)rows) + 2, '#', 9);
    assert_true(temp_write(path, rows, bytes - 7));
    free(rows);
    search_small(&o, small_yaml);
    rows = temp_read(path, &again);
    assert_non_null(rows);
    assert_true(again > bytes - 7 && rows[again - 1] == '\n');
    free(rows);
}

/** Which format a file has for all layers. */
static mixt_dtype default_of(const char *path)
{
    mixt_policy *policy;
    mixt_dtype forward;
    must(mixt_policy_load(path, &policy));
    mixt_policy_default(policy, &forward, NULL);
    mixt_policy_free(policy);
    return forward;
}

/** A row as the search would have written it: screened as FP32, then judged on six fresh pairs. @param change of the
 *  loss in every pair, more or less */
static void add_judged(const char *folder, const char *levels, const char *policy, int finalist, double change)
{
    char path[600];
    json_t *row = row_of(folder, policy), *fresh = json_array(), *fp32 = json_array();
    snprintf(path, sizeof path, "%s/candidates.jsonl", folder);
    FILE *file = fopen(path, "a");
    assert_true(row && file);
    for (int i = 0; i < MIXT_STATS_PAIRS_MIN; i++) {
        json_array_append_new(fresh, json_real(1 + change * (1 + 0.1 * (i % 3))));
        json_array_append_new(fp32, json_real(1));
    }
    json_t *made = json_pack("{s:s, s:s, s:O, s:[f, f], s:i, s:[i], s:o, s:o}", "candidate", levels, "policy", policy,
                             "memory", json_object_get(row, "memory"), "losses", 1.0, 1.0, "finalist", finalist,
                             "looks", (int)MIXT_STATS_PAIRS_MIN, "fresh", fresh, "fresh_fp32", fp32);
    json_dumpf(made, file, JSON_COMPACT);
    fputc('\n', file);
    fclose(file);
    json_decref(row);
    json_decref(made);
}

/** What fresh pairs show to lose is out; the search goes on without it. */
static void test_final_word(void **state)
{
    (void)state;
    mixt_search_options o = small_options("final.yaml");
    char folder[512];
    o.formats = "bf16,fp16";
    snprintf(folder, sizeof folder, "%s", temp_path("final.yaml.search"));
    search_small(&o, wide_yaml);
    assert_int_equal(default_of(o.write), MIXT_DTYPE_BF16);
    add_judged(folder, "bb", "bf16", 1, 90);
    search_small(&o, wide_yaml);
    assert_int_equal(default_of(o.write), MIXT_DTYPE_FP16);
    add_judged(folder, "hh", "fp16", 2, 90);
    mixt_config *config = config_of(wide_yaml);
    mixt_search_result *found;
    must(mixt_search_with(config, &o, &found));
    mixt_search_info i = mixt_search_describe(found);
    assert_true(!i.lower || rules_of(o.write) > 0); // not for all layers any more
    assert_true(!strcmp(i.refused, "fp16") && i.refused_safe.verdict == MIXT_VERDICT_NO && i.finalists >= 2);
    assert_true(i.refused_safe.low > o.lose && i.refused_safe.pairs == MIXT_STATS_PAIRS_MIN);
    mixt_search_free(found);
    mixt_config_free(config);
}

/** A policy whose fresh pairs scatter is offered as undecided, and says how many more would tell. */
static void test_undecided(void **state)
{
    (void)state;
    mixt_search_options o = small_options("open.yaml");
    o.formats = "bf16";
    o.pairs = MIXT_STATS_PAIRS_MIN;
    search_small(&o, wide_yaml);
    json_t *row = row_of(temp_path("open.yaml.search"), "bf16");
    FILE *file = fopen(temp_path("open.yaml.search/candidates.jsonl"), "a");
    assert_true(row && file);
    fprintf(file,
            "{\"candidate\":\"bb\",\"memory\":%lld,\"losses\":[1,1],\"finalist\":1,\"looks\":[6],"
            "\"fresh\":[2.2,0.9,1.4,0.6,1.9,1.0],\"fresh_fp32\":[1,1,1,1,1,1]}\n",
            (long long)json_integer_value(json_object_get(row, "memory")));
    fclose(file);
    json_decref(row);
    mixt_config *config = config_of(wide_yaml);
    mixt_search_result *found;
    must(mixt_search_with(config, &o, &found));
    mixt_search_info i = mixt_search_describe(found);
    assert_true(i.lower && i.complete && i.safe.verdict == MIXT_VERDICT_UNDECIDED);
    assert_true(fabs(i.safe.value - 2.0 / 6) < 1e-9 && i.safe.low < 0 && i.safe.high > o.lose && i.safe.needs > 0);
    assert_string_equal(i.line, "bf16");
    mixt_search_free(found);
    o.pairs = 9; // more are asked for
    must(mixt_search_with(config, &o, &found));
    assert_int_equal(mixt_search_describe(found).safe.pairs, 9);
    mixt_search_free(found);
    mixt_config_free(config);
}

/** Files that no search made are not replaced, nor a found policy whose folder is gone. */
static void test_files(void **state)
{
    (void)state;
    mixt_search_options o = small_options("mine.yaml");
    static const char mine[] = "default: bf16\n";
    size_t bytes;
    assert_true(temp_write(o.write, mine, sizeof mine - 1));
    refused(&o, small_yaml, MIXT_ERROR_FILE, ": exists already and is not of a search: choose another file,");
    unsigned char *file = temp_read(o.write, &bytes);
    assert_true(bytes == sizeof mine - 1 && !memcmp(file, mine, bytes));
    free(file);
    o.fresh = true;
    search_small(&o, small_yaml);
    (void)rules_of(o.write);
    o = small_options("gone.yaml");
    search_small(&o, small_yaml);
    assert_int_equal(rename(temp_path("gone.yaml.search"), temp_path("moved")), 0);
    refused(&o, small_yaml, MIXT_ERROR_FILE, "is missing");
    o = small_options("no/such/folder.yaml");
    refused(&o, small_yaml, MIXT_ERROR_FILE, "folder.yaml");
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        double lose, budget;
        const char *formats;
        int64_t steps, trials;
        const char *word;
    } bad[] = {{-0.1, 0, NULL, 0, 2, "lose -0.1"}, {1.5, 0, NULL, 0, 2, "lose 1.5"},
               {NAN, 0, NULL, 0, 2, "lose"},       {0, 0, NULL, 0, 2, "lose 0"},
               {0.1, -1, NULL, 0, 2, "budget -1"}, {0.1, INFINITY, NULL, 0, 2, "budget"},
               {0.1, 0, "fp8", 0, 2, "'fp8'"},     {0.1, 0, "bf16,bf17", 0, 2, "'bf17'"},
               {0.1, 0, NULL, -1, 2, "steps -1"},  {0.1, 0, NULL, 0, 1, "trials 1: from 2"},
               {0.1, 0, NULL, 0, 17, "trials 17"}};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        mixt_search_options o =
            MIXT_OPTIONS(mixt_search_options, .lose = bad[k].lose, .budget = bad[k].budget, .formats = bad[k].formats);
        o.steps = bad[k].steps;
        o.trials = bad[k].trials;
        o.write = temp_path("never.yaml");
        refused(&o, small_yaml, MIXT_ERROR_ARGUMENT, bad[k].word);
    }
    mixt_search_options o = MIXT_OPTIONS(mixt_search_options);
    refused(&o, small_yaml, MIXT_ERROR_ARGUMENT, "write");
    o.write = temp_path("never.yaml");
    static const char table[] = "a,b,label\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n";
    assert_true(temp_write(temp_path("table.csv"), table, sizeof table - 1));
    char yaml[700];
    snprintf(yaml, sizeof yaml,
             "model: mlp\ndevice: cpu\nthreads: 1\ndata: {kind: csv, path: %s, val_fraction: 0}\n"
             "train: {batch: 2, epochs: 1}\n",
             temp_path("table.csv"));
    refused(&o, yaml, MIXT_ERROR_DATA, "validation part");
    struct stat info;
    assert_int_not_equal(stat(temp_path("never.yaml"), &info), 0);
    assert_int_not_equal(stat(temp_path("never.yaml.search"), &info), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        planted_seeds = atoi(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_injected),    cmocka_unit_test(test_planted),      cmocka_unit_test(test_late),
        cmocka_unit_test(test_going_on),    cmocka_unit_test(test_other_search), cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_absurd_rows), cmocka_unit_test(test_files),        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_final_word),  cmocka_unit_test(test_undecided),
    };
    return cmocka_run_group_tests(tests, temp_folder_setup, temp_folder_teardown);
}
