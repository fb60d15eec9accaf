/* Saving while a run of the command goes on. */
#include "cli/checkpoints.h"

#include "base/isa.h"
#include "base/threads.h"
#include "data/data.h"
#include "store/checksum.h"

#include <stdlib.h>
#include <string.h>

json_t *cli_surroundings(const cli_experiment *e)
{
    char data[96];
    bool cpu = e->context->backend->host_memory;
    uint64_t sums[2] = {mixt__data_fingerprint(e->train), e->val ? mixt__data_fingerprint(e->val) : 0};
    snprintf(data, sizeof data, "%lld samples, checksum %016llx", (long long)mixt_data_describe(e->train)->samples,
             (unsigned long long)mixt__checksum(sums, sizeof sums));
    return json_pack("{s:s, s:s, s:i, s:s}", "device", e->context->backend->name, "data", data, "threads",
                     cpu ? mixt__threads_count() : 0, "instructions", cpu ? mixt__isa_name(mixt__isa_level()) : "");
}

void cli_checkpoints_open(cli_checkpoints *c, cli_experiment *e, const cli_run_dir *dir, cli_progress *progress,
                          int64_t resumed)
{
    *c = (cli_checkpoints){.e = e, .dir = dir, .progress = progress, .newest = resumed};
    c->every = mixt__config_int(e->config, MIXT_KEY_TRAIN_CHECKPOINT_EVERY);
    c->keep = mixt__config_int(e->config, MIXT_KEY_TRAIN_KEEP);
    c->interval = 60 * mixt__config_float(e->config, MIXT_KEY_TRAIN_CHECKPOINT_MINUTES);
    c->last = mixt__time_now();
    c->active = c->every > 0 || resumed >= 0;
    FILE *stream = open_memstream(&c->config, &c->config_bytes);
    if (stream && mixt_config_print(e->config, stream, false) == MIXT_OK)
        fclose(stream);
}

void cli_checkpoints_prepare(cli_checkpoints *c)
{
    if (c->saver || c->hopeless || (!c->every && c->interval <= 0 && !c->active))
        return;
    if (mixt__saver_start(&c->e->trainer->core, &c->saver) == MIXT_OK) {
        c->surroundings = cli_surroundings(c->e);
        return;
    }
    c->hopeless = true;
    cli_progress_warn(c->progress, "no checkpoints will be saved: %s", mixt_error_text());
}

bool cli_checkpoints_due(const cli_checkpoints *c, int64_t step)
{
    if (c->hopeless)
        return false;
    return (c->every && step % c->every == 0) || (c->interval > 0 && mixt__time_now() - c->last >= c->interval);
}

/** Evaluation may have had more algorithms timed since the last save. */
static void ask_choices(cli_checkpoints *c)
{
    const mixt__backend *backend = c->e->context->backend;
    mixt__free(c->choices);
    c->choices = NULL;
    c->choices_bytes = backend->choices ? backend->choices(NULL, 0) : 0;
    if (c->choices_bytes)
        c->choices = mixt__alloc(c->choices_bytes);
    if (c->choices)
        c->choices_bytes = backend->choices(c->choices, c->choices_bytes);
}

static mixt_status save(cli_checkpoints *c, const cli_loop_state *state)
{
    mixt__save_request r = {.step = state->steps, .keep = c->keep, .best = state->best_step};
    snprintf(r.folder, sizeof r.folder, "%s/checkpoints", c->dir->path);
    r.run = json_deep_copy(c->surroundings); // the saver's thread alone holds what it is given
    json_object_set_new(r.run, "loop", cli_loop_state_pack(state));
    r.files[r.file_count++] = (mixt__checkpoint_file){"config.yaml", c->config, c->config_bytes};
    ask_choices(c);
    if (c->choices)
        r.files[r.file_count++] = (mixt__checkpoint_file){CLI_CHOICES_FILE, c->choices, c->choices_bytes};
    return mixt__saver_save(c->saver, &r);
}

void cli_checkpoints_save(cli_checkpoints *c, const cli_loop_state *state)
{
    double start = mixt__time_now();
    c->active = true;
    cli_checkpoints_prepare(c);
    c->lost += c->hopeless;
    if (c->hopeless)
        return;
    mixt__saver_wait(c->saver);
    cli_checkpoints_poll(c);
    if (save(c, state) != MIXT_OK) {
        c->failed = true;
        c->lost++;
        cli_progress_warn(c->progress, "no checkpoint of step %lld: %s; training goes on", (long long)state->steps,
                          mixt_error_text());
    }
    c->last = mixt__time_now();
    c->stall += c->last - start;
}

void cli_checkpoints_poll(cli_checkpoints *c)
{
    mixt__save_report report;
    if (!c->saver || !mixt__saver_report(c->saver, &report))
        return;
    bool again = c->failed; // a disk that stays full is said once
    c->failed = report.status != MIXT_OK;
    c->lost += c->failed;
    if (!c->failed)
        c->newest = report.step;
    if (again && !c->failed)
        cli_progress_warn(c->progress, "checkpoints are saved again, from step %lld on", (long long)report.step);
    if (c->failed && !again)
        cli_progress_warn(c->progress, "no checkpoint of step %lld: %s; training goes on, earlier checkpoints stay",
                          (long long)report.step, report.error);
}

/** A disk that stayed full was spoken of once, perhaps hours ago. */
static void say_lost(const cli_checkpoints *c)
{
    char newest[64] = "there is none";
    if (c->newest >= 0)
        snprintf(newest, sizeof newest, "the newest is of step %lld", (long long)c->newest);
    if (c->lost)
        cli_progress_warn(c->progress, "%lld checkpoint%s could not be saved; %s", (long long)c->lost,
                          c->lost == 1 ? "" : "s", newest);
}

bool cli_checkpoints_finish(cli_checkpoints *c)
{
    if (c->saver) {
        mixt__saver_wait(c->saver);
        cli_checkpoints_poll(c);
    }
    say_lost(c);
    return !c->hopeless && !c->failed;
}

void cli_checkpoints_close(cli_checkpoints *c)
{
    mixt__saver_stop(c->saver);
    json_decref(c->surroundings);
    mixt__free(c->choices);
    free(c->config);
    *c = (cli_checkpoints){0};
}
