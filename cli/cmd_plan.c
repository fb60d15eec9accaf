/* mixt plan: what a configuration would compute and how much memory it would take, without running it. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/plan_buckets.h"
#include "cli/plan_frozen.h"
#include "cli/plan_nodes.h"
#include "cli/plan_ranks.h"
#include "cli/profile.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"

#include <mixt/onnx.h>
#include <mixt/plan.h>

#include <string.h>

/** What a plan is printed from. */
typedef struct report {
    const mixt_trainer *trainer;
    const char *layer; // only nodes of these layers; NULL: all
    mixt_memory memory;
    mixt_run_memory run;
    mixt_fit fit;
    mixt_plan_info info;
    const mixt_run *of;    // for its phases
    int64_t phase;         // that is shown; -1: there are none
    mixt_profile *profile; // NULL: not asked for
    double link;           // bytes a second between ranks; 0: not known
} report;

static void print_memory(const mixt_memory *m)
{
    char text[32];
    mixt_memory_role roles[MIXT_MEMORY_ROLES];
    cli_table table = {0};
    cli_table_column(&table, "memory", CLI_LEFT);
    cli_table_column(&table, "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    cli_table_column(&table, "", CLI_LEFT);
    mixt_memory_roles(m, roles);
    for (int i = 0; i < MIXT_MEMORY_ROLES; i++) {
        cli_table_cell(&table, "%s", roles[i].name);
        cli_table_cell(&table, "%zu", roles[i].bytes);
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)roles[i].bytes));
        cli_table_cell(&table, "%s", roles[i].text);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

/** One column of bytes, or two where the device has memory of its own. */
static void print_run_memory(const mixt_run_memory *m)
{
    char text[32];
    bool device = m->total.device > 0;
    mixt_run_memory_part parts[MIXT_RUN_MEMORY_PARTS];
    cli_table table = {0};
    cli_table_column(&table, "run", CLI_LEFT);
    cli_table_column(&table, device ? "host bytes" : "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    if (device) {
        cli_table_column(&table, "device bytes", CLI_RIGHT);
        cli_table_column(&table, "", CLI_RIGHT);
    }
    cli_table_column(&table, "", CLI_LEFT);
    mixt_run_memory_parts(m, parts);
    for (int i = 0; i < MIXT_RUN_MEMORY_PARTS; i++) {
        cli_table_cell(&table, "%s", parts[i].name);
        cli_table_cell(&table, "%zu", parts[i].bytes.host);
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)parts[i].bytes.host));
        if (device) {
            cli_table_cell(&table, "%zu", parts[i].bytes.device);
            cli_table_cell(&table, "%s", cli_format_bytes(text, (double)parts[i].bytes.device));
        }
        cli_table_cell(&table, "%s", parts[i].text);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
    size_t prediction = m->prediction.host + m->prediction.device, weights = m->weights.host + m->weights.device;
    char alone[32], files[64] = "";
    cli_format_bytes(alone, (double)(prediction + weights));
    if (m->mapped)
        snprintf(files, sizeof files, "; %s of files are mapped", cli_format_bytes(text, (double)m->mapped));
    cli_line(stdout, "",
             "validation in batches of %lld; predicting would take %s more, by itself %s with the weights%s",
             (long long)m->eval_batch, cli_format_bytes(text, (double)prediction), alone, files);
}

/* ---- phases ---- */

/** Bytes where the run trains. */
static size_t phase_bytes(const mixt_run_phase *p)
{
    return p->memory.total.device ? p->memory.total.device : p->memory.total.host;
}

static void print_phases(const report *r)
{
    char text[32];
    mixt_run_phase p;
    cli_table table = {0};
    cli_table_column(&table, "phase", CLI_LEFT);
    cli_table_column(&table, "updates", CLI_LEFT);
    cli_table_column(&table, "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    cli_table_column(&table, "", CLI_LEFT);
    for (int64_t i = 0; i < mixt_run_phases(r->of); i++) {
        if (mixt_run_get_phase(r->of, i, &p) != MIXT_OK)
            break;
        cli_table_cell(&table, "%s", p.name);
        if (p.first > p.last)
            cli_table_cell(&table, "never reached");
        else
            cli_table_cell(&table, "%lld to %lld", (long long)p.first, (long long)p.last);
        cli_table_cell(&table, "%zu", phase_bytes(&p));
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)phase_bytes(&p)));
        cli_table_cell(&table, "%s", i == r->phase ? "shown here" : "");
    }
    if (r->phase >= 0) {
        cli_table_print(&table, stdout, 0);
        putchar('\n');
    }
    cli_table_free(&table);
}

static json_t *json_bytes(mixt_bytes bytes)
{
    return cli_json_pack("{s:I, s:I}", "host", (json_int_t)bytes.host, "device", (json_int_t)bytes.device);
}

/** NULL: the run has none. */
static json_t *json_phases(const report *r)
{
    mixt_run_phase p;
    json_t *list = r->phase < 0 ? json_null() : json_array();
    for (int64_t i = 0; i < mixt_run_phases(r->of) && mixt_run_get_phase(r->of, i, &p) == MIXT_OK; i++)
        cli_json_add(list,
                     cli_json_pack("{s:s, s:I, s:I, s:o, s:b}", "name", p.name, "first", (json_int_t)p.first, "last",
                                   (json_int_t)p.last, "total", json_bytes(p.memory.total), "shown", i == r->phase));
    return list;
}

/** The phase that is asked for, else the largest: compiled. */
static mixt_status choose_phase(const cli_args *args, mixt_run *run, report *r)
{
    const char *name = cli_given(args, "phase") ? cli_text(args, "phase") : NULL;
    size_t most = 0;
    mixt_run_phase p;
    r->of = run;
    r->phase = -1;
    for (int64_t i = 0; i < mixt_run_phases(run); i++) {
        CLI_TRY(mixt_run_get_phase(run, i, &p));
        if (name ? !strcmp(name, p.name) : phase_bytes(&p) > most) {
            r->phase = i;
            most = phase_bytes(&p);
        }
    }
    if (name && r->phase < 0)
        return mixt_fail(MIXT_ERROR_ARGUMENT,
                         mixt_run_phases(run) ? "--phase '%s': no phase has such a name"
                                              : "--phase '%s': the policy has no phases",
                         name);
    return r->phase >= 0 ? mixt_run_plan_phase(run, r->phase) : MIXT_OK;
}

/* ---- JSON ---- */

static json_t *json_run_memory(const mixt_run_memory *m)
{
    mixt_run_memory_part parts[MIXT_RUN_MEMORY_PARTS];
    json_t *o = json_object();
    mixt_run_memory_parts(m, parts);
    for (int i = 0; i < MIXT_RUN_MEMORY_PARTS; i++)
        cli_json_set(o, parts[i].name, json_bytes(parts[i].bytes));
    cli_json_set(o, "prediction", json_bytes(m->prediction));
    cli_json_set(o, "weights", json_bytes(m->weights));
    cli_json_set(o, "mapped", json_integer((json_int_t)m->mapped));
    cli_json_set(o, "eval_batch", json_integer((json_int_t)m->eval_batch));
    return o;
}

/** How the plan was made to fit; NULL: there is no limit. */
static json_t *json_fit(const mixt_fit *f)
{
    if (!f->budget)
        return json_null();
    json_t *o =
        cli_json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "budget", (json_int_t)f->budget, "of",
                      f->device ? "device" : "host", "memory", (json_int_t)f->memory, "asked", (json_int_t)f->asked,
                      "batch", (json_int_t)f->batch, "accumulate", (json_int_t)f->accumulate, "split",
                      (json_int_t)f->split, "eval_batch", (json_int_t)f->eval_batch);
    cli_json_set(o, "recompute", json_integer((json_int_t)f->recompute));
    cli_json_set(o, "recomputed", json_integer((json_int_t)f->recomputed));
    cli_json_set(o, "keep", cli_json_string(f->keep == MIXT_DTYPE_NONE ? "none" : mixt_dtype_name(f->keep)));
    cli_json_set(o, "cost", cli_json_real(f->cost));
    cli_json_set(o, "batch_norm", json_boolean(f->batch_norm));
    cli_json_set(o, "compares", json_boolean(f->compares));
    return o;
}

/** What is computed again in the backward pass; NULL: activations have no limit. */
static json_t *json_recompute(const mixt_plan_info *i)
{
    if (!i->recompute_budget)
        return json_null();
    return cli_json_pack("{s:I, s:I, s:f, s:f, s:f, s:I}", "budget", (json_int_t)i->recompute_budget, "nodes",
                         (json_int_t)i->recomputed, "flops", i->recompute_flops, "seconds", i->recompute_seconds,
                         "bound", i->recompute_bound, "activations_kept_all", (json_int_t)i->activations_kept_all);
}

static void print_json(const report *r)
{
    mixt_memory_role roles[MIXT_MEMORY_ROLES];
    json_t *memory = json_object();
    mixt_memory_roles(&r->memory, roles);
    for (int i = 0; i < MIXT_MEMORY_ROLES; i++)
        cli_json_set(memory, roles[i].name, json_integer((json_int_t)roles[i].bytes));
    json_t *o =
        cli_json_pack("{s:s, s:o, s:f, s:f, s:I, s:o}", "device", r->info.device, "memory", memory, "flops",
                      r->info.flops, "matrix_flops", r->info.matrix_flops, "activations_without_reuse",
                      (json_int_t)r->info.activations_unshared, "nodes", cli_plan_nodes_json(r->trainer, r->layer));
    cli_json_set(o, "run_memory", json_run_memory(&r->run));
    cli_json_set(o, "phases", json_phases(r));
    cli_json_set(o, "buckets", cli_plan_buckets_json(r->of));
    cli_json_set(o, "frozen", cli_plan_frozen_json(r->trainer));
    cli_json_set(o, "fit", json_fit(&r->fit));
    cli_json_set(o, "recompute", json_recompute(&r->info));
    cli_json_set(o, "checks_state", json_boolean(r->info.checks_state));
    cli_json_set(o, "ranks", json_integer(r->info.ranks));
    cli_json_set(o, "rank_sent", json_integer(r->info.rank_sent));
    cli_json_set(o, "rank_gradients", json_integer(r->info.rank_gradients));
    cli_json_set(o, "rank_weights", json_integer(r->info.rank_weights));
    if (r->link > 0)
        cli_json_set(o, "rank_seconds", cli_json_real((double)r->info.rank_sent / r->link));
    cli_json_set(o, "rank_whole", json_integer(r->info.rank_whole));
    cli_json_set(o, "rank_whole_sent", json_integer(r->info.rank_whole_sent));
    cli_json_set(o, "rank_run_sent", json_integer(r->info.rank_run_sent));
    if (r->profile)
        cli_json_set(o, "profile", cli_profile_json(r->profile));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

/* ---- text ---- */

/** What was chosen to fit, and what it costs. */
static void print_fit(const mixt_fit *f)
{
    for (int i = 0; i < MIXT_FIT_LINES && f->lines[i]; i++)
        cli_line(stdout, i ? "     " : "fit  ", "%s", f->lines[i]);
    if (f->lines[0])
        putchar('\n');
}

/** What is computed again, and by how much another choice could be cheaper where that is not known to be none. */
static void print_recompute(const mixt_plan_info *i)
{
    char bytes[32], bound[64] = "";
    if (!i->recomputed)
        return;
    if (i->recompute_bound < i->recompute_seconds)
        snprintf(bound, sizeof bound, " (the best choice: at least %.3f)", 1e3 * i->recompute_bound);
    cli_line(stdout, "",
             "%lld nodes recomputed in the backward pass: %.3f GFLOP, about %.3f ms%s; without recomputation "
             "activations would take %s",
             (long long)i->recomputed, i->recompute_flops / 1e9, 1e3 * i->recompute_seconds, bound,
             cli_format_bytes(bytes, (double)i->activations_kept_all));
}

/** Room on the device and what is in use there beside mixt's own. */
static void print_device(const mixt_plan_info *info)
{
    char bytes[3][32];
    if (!info->device_name[0])
        return;
    cli_line(stdout, "", "%s: %s of memory, %s free now, %s taken by context, libraries and other programs",
             info->device_name, cli_format_bytes(bytes[0], (double)info->device_bytes),
             cli_format_bytes(bytes[1], (double)info->device_free),
             cli_format_bytes(bytes[2], (double)info->device_other));
}

static void print_text(const cli_args *args, const report *r)
{
    char text[32];
    if (cli_flag(args, "graph"))
        cli_plan_graph_print(r->trainer, r->layer);
    if (cli_flag(args, "explain"))
        cli_plan_nodes_print(r->trainer, r->layer);
    print_fit(&r->fit);
    print_phases(r);
    print_memory(&r->memory);
    putchar('\n');
    cli_plan_frozen_print(r->trainer);
    print_run_memory(&r->run);
    cli_plan_buckets_print(r->of);
    cli_line(stdout, "",
             "%lld nodes, %.3f GFLOP per step (%.1f%% of it matrix work); activations without reuse would take %s",
             (long long)r->info.nodes, r->info.flops / 1e9, 100 * r->info.matrix_flops / r->info.flops,
             cli_format_bytes(text, (double)r->info.activations_unshared));
    print_recompute(&r->info);
    cli_plan_ranks_print(&r->info, r->link);
    print_device(&r->info);
    if (!r->info.checks_state)
        cli_line(stdout, "", "bits that flip in the memory of weights and moments are not looked for: %s",
                 strcmp(r->info.device, "cpu") ? "on this device nobody sums them" : "integrity.sums=false");
    if (r->profile) {
        putchar('\n');
        cli_profile_print(r->profile);
    }
}

/* ---- the command ---- */

enum { PROFILE_RUNS = 10 };

static mixt_status read_report(const cli_args *args, mixt_run *run, report *r)
{
    mixt_trainer *trainer = mixt_run_trainer(run);
    mixt_data *data;
    CLI_TRY(choose_phase(args, run, r));
    r->trainer = trainer;
    r->layer = cli_given(args, "layer") ? cli_text(args, "layer") : NULL;
    if (mixt_plan_next(r->trainer, r->layer, 0) < 0)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--layer '%s': no layer has such a name; without it, --graph lists all",
                         r->layer);
    CLI_TRY(mixt_trainer_memory(trainer, &r->memory));
    CLI_TRY(mixt_run_plan_memory(run, &r->run));
    CLI_TRY(mixt_plan_fit(run, 0, &r->fit));
    if (cli_flag(args, "profile")) {
        CLI_TRY(mixt_run_data(run, "train", &data));
        CLI_TRY(mixt_profile_new(trainer, data, PROFILE_RUNS, &r->profile));
    }
    return mixt_plan_describe(trainer, &r->info);
}

static mixt_status plan(const cli_args *args, const mixt_config *config)
{
    mixt_run *run = NULL;
    report r = {0};
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .progress = cli_tokenize_progress,
                                            .plan_ranks = cli_given(args, "ranks") ? cli_int(args, "ranks") : 0);
    mixt_status status = cli_plan_ranks_link(args, &r.link);
    if (status == MIXT_OK)
        status = mixt_run_open_config(config, &options, &run);
    if (status == MIXT_OK)
        status = read_report(args, run, &r);
    if (status == MIXT_OK && cli_flag(args, "json"))
        print_json(&r);
    else if (status == MIXT_OK)
        print_text(args, &r);
    mixt_profile_free(r.profile);
    mixt_run_close(run);
    return status;
}

/** Where a search that takes long is, on a line of its own. */
static mixt_status tell_note(void *user, mixt_run *run, const mixt_event *event)
{
    (void)user;
    (void)run;
    if (event->kind == MIXT_EVENT_NOTE)
        fprintf(stderr, "%s\n", event->text);
    return MIXT_OK;
}

/** By calculation: nothing is run. */
static mixt_status largest_batch(const cli_args *args, const mixt_config *config)
{
    char memory[32], next[32];
    mixt_largest_batch l;
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .progress = cli_tokenize_progress, .observer = tell_note,
                                            .plan_ranks = cli_given(args, "ranks") ? cli_int(args, "ranks") : 0);
    CLI_TRY(mixt_plan_largest_batch(config, &options, 0, &l));
    if (cli_flag(args, "json")) {
        json_t *o =
            cli_json_pack("{s:I, s:I, s:I, s:s, s:s}", "batch", (json_int_t)l.batch, "memory", (json_int_t)l.memory,
                          "limit", (json_int_t)l.limit, "of", l.device ? "device" : "host", "reason", l.reason);
        cli_json_set(o, "next", l.next ? json_integer((json_int_t)l.next) : json_null());
        cli_json_print(o, stdout, JSON_COMPACT);
        mixt_free(l.reason);
        return MIXT_OK;
    }
    cli_line(stdout, "", "train.batch=%lld takes %s (%zu bytes) of the %s's memory: the largest, since %s",
             (long long)l.batch, cli_format_bytes(memory, (double)l.memory), l.memory, l.device ? "GPU" : "host",
             l.reason);
    if (l.next)
        cli_line(stdout, "", "the next would take %s (%zu bytes)", cli_format_bytes(next, (double)l.next), l.next);
    mixt_free(l.reason);
    return MIXT_OK;
}

/** --memory is train.memory. */
static int set_memory(const cli_args *args, mixt_config *config)
{
    char setting[128];
    if (!cli_given(args, "memory"))
        return CLI_OK;
    snprintf(setting, sizeof setting, "train.memory=%s", cli_text(args, "memory"));
    return mixt_config_set(config, setting, "--memory") == MIXT_OK ? CLI_OK
                                                                   : cli_usage(args->command, "%s", mixt_error_text());
}

/** What of an ONNX file is not supported, all of it. */
static int explain_file(const char *path)
{
    char *text;
    if (mixt_onnx_explain(path, NULL, &text) != MIXT_OK)
        return cli_failed();
    int status = CLI_OK;
    if (*text) {
        fputs(text, stdout);
        mixt_fail(MIXT_ERROR_UNSUPPORTED, "%s: what is listed above is not supported: it cannot be trained", path);
        status = cli_failed();
    }
    mixt_free(text);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    if (cli_flag(args, "explain") && cli_is_onnx(cli_word(args, 0))) {
        int listed = explain_file(cli_word(args, 0));
        if (listed != CLI_OK)
            return listed;
    }
    int status = cli_config(args, cli_word(args, 0), &config);
    if (status == CLI_OK && cli_config_device(args, config) != MIXT_OK)
        status = cli_failed();
    if (status == CLI_OK)
        status = set_memory(args, config);
    if (status == CLI_OK && (cli_flag(args, "largest-batch") ? largest_batch : plan)(args, config) != MIXT_OK)
        status = cli_failed();
    mixt_config_free(config);
    return status;
}

const cli_command cli_plan = {
    .name = "plan",
    .summary = "show memory, formats and kernels before a run starts",
    .description =
        "Compiles the training step of a configuration and prints its memory by role: parameters, gradients, moments, "
        "activations, workspace. What is planned is what will be allocated, to the byte. Then the memory of the whole "
        "run: the step, validation, batches, checkpoints and data.\n\n"
        "On a GPU the memory of CUDA's context and libraries is shown separately, and the run's memory separately for "
        "host and GPU (run_memory with --json). Validation whose batches do not fit is planned, and run, with smaller "
        "ones.\n\n"
        "With --memory, or train.memory, the plan is made to fit by what train.memory_may allows; it prints what was "
        "done and what it should cost (fit with --json). --largest-batch prints the largest batch only ({\"batch\", "
        "\"memory\", \"next\"} with --json: bytes of the run, and with one sample more).\n\n"
        "A policy with phases is shown in its largest phase, which decides the memory of the run, or in that of "
        "--phase (phases with --json). Where batches are padded to several lengths (data.buckets), a table shows each "
        "length with its share of the samples, its updates per epoch and its activations (buckets with --json).\n\n"
        "--ranks N plans the run as one of N processes started by mpirun or srun, without starting any: memory of a "
        "rank and the bytes that it sends per update, in all and to each rank (ranks, rank_sent, rank_gradients and "
        "rank_weights with --json). With dist.compress also how many updates send all gradients before compression "
        "begins, the bytes of such an update and of the whole run (rank_whole, rank_whole_sent, rank_run_sent). With "
        "--machine also the time that sending takes at the speed of that machine's links (rank_seconds).\n\n"
        "In place of a configuration an ONNX file may stand (docs/onnx.md): it is planned with random samples of its "
        "shape, and --explain first lists everything in it that mixt does not support.\n\n"
        "--profile also runs the step and prints each op's time, FLOP/s, bytes/s and share of the device's limits.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run, or an ONNX file"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=32"},
        },
    .options =
        {
            {"explain", 'e', CLI_FLAG, .help = "formats and kernel of each op, and why",
             .more = "What decided them, why a cast is there, why other kernels were refused"},
            {"graph", 'g', CLI_FLAG, .help = "the typed graph, forward and backward"},
            {"layer", 'l', CLI_TEXT, "GLOB", .help = "only ops of these layers, as in 'h.*.attn*'"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda|cuda:N",
             .help = "plan for this device"},
            {"memory", 'm', CLI_TEXT, "SIZE", .help = "plan within this memory, as in 900M or 12G",
             .more = "Of the GPU where the run trains on one, else of the host"},
            {"largest-batch", .kind = CLI_FLAG, .help = "only find the largest batch that fits",
             .more = "Into --memory, or into what is free; nothing is run"},
            {"phase", .kind = CLI_TEXT, .metavar = "NAME", .help = "a phase of the policy; default: the largest"},
            {"ranks", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1 << 20, .help = "plan for one of N ranks"},
            {"machine", .kind = CLI_TEXT, .metavar = "NAME",
             .help = "with --ranks: a machine of 'mixt advise --machine'"},
            {"profile", .kind = CLI_FLAG, .help = "run the step and time each op"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object"},
        },
    .examples =
        {
            {"mixt plan configs/digits.yaml precision=fp16", "memory of the step in FP16"},
            {"mixt plan configs/digits.yaml --largest-batch --memory 1G", "the largest batch that fits into 1 GiB"},
            {"mixt plan configs/digits.yaml --memory 24M", "a plan within 24 MiB, and what it costs"},
            {"mixt plan configs/gpt.yaml data.path=FILE --explain", "formats and kernel of each op, and why"},
            {"mixt plan configs/gpt.yaml data.path=FILE --device cuda --profile", "time of each op on the GPU"},
            {"mixt plan configs/digits.yaml precision=fp16 --graph", "where the casts are"},
            {"mixt plan net.onnx --explain", "what of an ONNX file is not supported, else its formats and kernels"},
        },
    .see_also = "train|bench|config",
    .run = run,
};
