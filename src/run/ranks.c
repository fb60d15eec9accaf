/* Ranks of a run: joining, comparing, agreeing. */
#include "run/ranks.h"

#include "backend/visible.h"
#include "base/alloc.h"
#include "base/cores.h"
#include "base/env.h"
#include "base/isa.h"
#include "base/threads.h"
#include "dist/launcher.h"
#include "dist/keepalive.h"
#include "run/build.h"
#include "run/open/device_sums.h"
#include "run/resume.h"
#include "run/signals.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

bool mixt__run_writes(const mixt_run *run)
{
    return !run->group || run->group->rank == 0;
}

mixt_status mixt__run_agree(mixt_run *run, mixt_status status)
{
    return run->group ? mixt__group_agree(run->group, status) : status;
}

mixt_status mixt__run_agree_once(mixt_run *run, mixt_status status)
{
    status = mixt__run_agree(run, status);
    if (run->group)
        run->group->settled = false; // the run goes on: what fails next is something else
    return status;
}

mixt_status mixt__run_agree_on(mixt_run *run, const char *what, const char *text)
{
    MIXT_TRY(mixt__run_agree(run, MIXT_OK)); // which is patient: rank 0 may be writing a checkpoint
    return run->group ? mixt__group_same(run->group, what, text) : MIXT_OK;
}

/* ---- joining ---- */

/** What several ranks cannot do. */
static mixt_status check_possible(const mixt_run *run)
{
    const mixt_config *c = run->config;
    if (mixt__config_int(c, MIXT_KEY_DIST_ZERO) > 1 && *mixt__config_string(c, MIXT_KEY_FAULTS))
        return mixt__fail(MIXT_ERROR_CONFIG, "faults need the gradients on every rank: set dist.zero=0 or 1");
    if (mixt__config_int(c, MIXT_KEY_DIST_ZERO) > 2 && mixt__config_bool(c, MIXT_KEY_AUTO_STEER) &&
        !*mixt__config_string(c, MIXT_KEY_AUTO_REPLAY))
        return mixt__fail(MIXT_ERROR_CONFIG, "auto.steer (set by precision=auto) needs the weights on every rank, but "
                                             "dist.zero=3 shards them: use dist.zero=2, or auto.steer=false");
    return MIXT_OK;
}

static mixt_status check_bucket(const mixt_config *config)
{
    int64_t bytes = mixt__config_int(config, MIXT_KEY_DIST_BUCKET);
    if (bytes >= 4096 && bytes <= (int64_t)1 << 30)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG, "%s: dist.bucket %s: must be from 4K to 1G",
                      mixt__config_origin(config, MIXT_KEY_DIST_BUCKET),
                      mixt__config_string(config, MIXT_KEY_DIST_BUCKET));
}

/** What travels, and how: one way at a time. */
static mixt_status check_compress(const mixt_config *c)
{
    mixt__compression how;
    const char *word = mixt__config_string(c, MIXT_KEY_DIST_COMPRESS);
    mixt_status status = mixt__compression_parse(word, &how);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "%s", mixt__config_origin(c, MIXT_KEY_DIST_COMPRESS));
    int64_t after;
    status = mixt__compress_after_parse(mixt__config_string(c, MIXT_KEY_DIST_COMPRESS_AFTER), &how, 0, &after);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "%s", mixt__config_origin(c, MIXT_KEY_DIST_COMPRESS_AFTER));
    if (how.kind != MIXT_COMPRESS_NONE && mixt__config_choice(c, MIXT_KEY_DIST_REDUCE)) // 0: fp32
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "dist.compress=%s and dist.reduce=%s: compressed gradients are sent in fp32: leave one of them out", word,
            mixt__config_string(c, MIXT_KEY_DIST_REDUCE));
    if (how.kind != MIXT_COMPRESS_NONE && mixt__config_int(c, MIXT_KEY_DIST_ZERO))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "dist.compress=%s: every rank has moments of its own, which dist.zero=%lld would shard: "
                          "leave one of them out",
                          word, (long long)mixt__config_int(c, MIXT_KEY_DIST_ZERO));
    return MIXT_OK;
}

/** Ranks that update weights by themselves have a set each: one process has one. */
static mixt_status check_alone(const mixt_run *run)
{
    const char *word = mixt__config_string(run->config, MIXT_KEY_DIST_COMPRESS);
    if (run->experiment.ranks == 1 || !strcmp(word, "none"))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "dist.compress=%s: each of the %lld ranks has weights and moments of its own, which one process "
                      "does not hold; start them with a launcher (mpirun -n %lld), or leave out dist.ranks",
                      word, (long long)run->experiment.ranks, (long long)run->experiment.ranks);
}

/** Keys that may differ from rank to rank: where one is to fail in a test, and threads, of which those that are part
 *  of the bits are compared once the device is known. */
static bool may_differ(mixt__config_key key)
{
    return key == MIXT_KEY_TRAIN_INJECT_OVERFLOW || key == MIXT_KEY_FAULTS || key == MIXT_KEY_THREADS ||
           key == MIXT_KEY_DATA_THREADS;
}

/** The first key in which this rank's configuration is not rank 0's. */
static mixt_status compare_lines(const mixt_run *run, const char *first)
{
    for (int key = 0; key < MIXT_KEY_COUNT; key++) {
        const char *end = strchr(first, '\n');
        char *mine = mixt__config_text(run->config, (mixt__config_key)key);
        size_t length = end ? (size_t)(end - first) : strlen(first);
        bool same = mine && strlen(mine) == length && !strncmp(mine, first, length);
        mixt_status status = MIXT_OK;
        if (!same && !may_differ((mixt__config_key)key))
            status = mixt__fail(MIXT_ERROR_CONFIG, "ranks have different configurations: %s is %s here, %.*s on rank 0",
                                mixt__config_table[key].name, mine ? mine : "unknown", (int)length, first);
        free(mine);
        MIXT_TRY(status);
        first = end ? end + 1 : "";
    }
    return MIXT_OK;
}

static mixt_status config_lines(const mixt_config *config, char **lines, size_t *bytes)
{
    FILE *stream = open_memstream(lines, bytes);
    for (int key = 0; stream && key < MIXT_KEY_COUNT; key++) {
        char *text = mixt__config_text(config, (mixt__config_key)key);
        for (char *at = text; at && *at; at++)
            if (*at == '\n')
                *at = ' ';
        fprintf(stream, "%s\n", text ? text : "");
        free(text);
    }
    if (stream && !fclose(stream))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare configurations");
}

static mixt_status same_config(mixt_run *run)
{
    char *own = NULL, *lines;
    size_t bytes = 0;
    mixt_status status = mixt__run_agree(run, config_lines(run->config, &own, &bytes));
    uint64_t length = bytes;
    if (status == MIXT_OK)
        status = mixt__group_broadcast(run->group, &length, sizeof length, MIXT_PATIENCE);
    lines = status == MIXT_OK ? mixt__alloc((size_t)length + 1) : NULL; // which is held where a message comes late
    if (lines && !run->group->rank)
        memcpy(lines, own, bytes);
    free(own);
    if (status == MIXT_OK)
        status = mixt__run_agree(run, lines ? MIXT_OK
                                            : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare configurations"));
    if (status == MIXT_OK)
        status = mixt__group_broadcast(run->group, lines, (size_t)length, MIXT_PATIENCE);
    if (status == MIXT_OK)
        status = mixt__run_agree(run, compare_lines(run, lines));
    mixt__free(lines);
    return status;
}

/** All ranks begin a new run, or all go on with the same one, however they name it. */
static mixt_status same_start(mixt_run *run)
{
    const char *mine = run->resume.run, *const words[] = {"a new run", "--resume "};
    char first[sizeof run->resume.run];
    memcpy(first, mine, sizeof first);
    MIXT_TRY(mixt__group_broadcast(run->group, first, sizeof first, MIXT_PATIENCE));
    mixt_status status = MIXT_OK;
    if (strcmp(mine, first) && (!*mine || !*first || !mixt__same_file(mine, first)))
        status = mixt__fail(MIXT_ERROR_CONFIG,
                            "ranks were started for different runs: %s%.160s here, %s%.160s on rank 0 (nothing was "
                            "changed)",
                            words[*mine != 0], mine, words[*first != 0], first);
    return mixt__run_agree(run, status);
}

static mixt_status join(mixt_run *run, const mixt_ranks *found, const char *transport, const mixt_run_options *options)
{
    char build[96];
    MIXT_TRY(check_possible(run));
    double timeout = mixt__config_float(run->config, MIXT_KEY_DIST_TIMEOUT);
    MIXT_TRY(mixt__group_open(transport, timeout, &run->group));
    if (run->group->size != found->size || run->group->rank != found->rank)
        return mixt__fail(MIXT_ERROR_DEVICE,
                          "%s started rank %d of %d, but MPI takes this for rank %d of %d: libmixt_mpi.so is built "
                          "for another MPI (%s)",
                          found->launcher, found->rank, found->size, run->group->rank, run->group->size,
                          run->group->transport->version);
    mixt__build_describe(build, sizeof build);
    MIXT_TRY(mixt__group_same(run->group, "build", build));
    MIXT_TRY(same_start(run));
    MIXT_TRY(mixt__resume_agree(run, options));
    return same_config(run);
}

/** CPU threads of a rank that was not told how many: its share of the machine where the launcher has not bound it to
 *  cores of its own. */
static int thread_share(const mixt_ranks *found)
{
    cpu_set_t set;
    bool bound = sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
    int cores = mixt__cores_usable(), share = bound || found->local_size < 2 ? cores : cores / found->local_size;
    return share > 1 ? share : 1;
}

/** The number of threads is part of the bits: a rank that was not told how many takes the fewest that one has. */
static mixt_status share_threads(mixt_run *run, const mixt_ranks *found)
{
    const mixt__group *g = run->group;
    int64_t given = mixt__config_int(run->config, MIXT_KEY_THREADS);
    bool told = given || getenv("MIXT_THREADS"), any;
    mixt__word mine = {.count = given ? given : told ? mixt__threads_default() : thread_share(found)};
    MIXT_TRY(mixt__group_beat(run->group, &mine, &any));
    for (int rank = 0; rank < g->size; rank++)
        mine.count = g->words[rank].count < mine.count ? g->words[rank].count : mine.count;
    run->experiment.threads = told ? 0 : (int)mine.count;
    return MIXT_OK;
}

/** A run that is looked at as one of so many ranks. */
static mixt_status plan_ranks(mixt_run *run, int64_t ranks, bool on_device)
{
    int64_t asked = mixt__config_int(run->config, MIXT_KEY_DIST_RANKS);
    if (asked && asked != ranks)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "dist.ranks=%lld makes this a run of %lld ranks, but it is to be planned as one of %lld that a "
            "launcher starts (--ranks): leave one of them out, or give both the same number",
            (long long)asked, (long long)asked, (long long)ranks);
    run->experiment.ranks = ranks;
    run->experiment.planned = ranks > 1;
    run->experiment.on_device = run->experiment.planned && on_device;
    return check_possible(run);
}

mixt_status mixt__run_ranks_open(mixt_run *run, const mixt_run_options *options)
{
    mixt_ranks found = mixt_ranks_find();
    int64_t asked = mixt__config_int(run->config, MIXT_KEY_DIST_RANKS);
    const char *transport = mixt__config_string(run->config, MIXT_KEY_DIST_TRANSPORT);
    MIXT_TRY(check_bucket(run->config));
    MIXT_TRY(check_compress(run->config));
    bool on_device;
    MIXT_TRY(mixt__device_sums_asked(run->config, &on_device));
    if (options->plan_ranks)
        return plan_ranks(run, options->plan_ranks, on_device);
    bool several = options->ranks && found.size > 1 && strcmp(transport, "none");
    run->experiment.ranks = several ? found.size : asked ? asked : 1;
    run->experiment.on_device = on_device && options->ranks && (several || run->experiment.ranks == 1);
    if (!several)
        return options->ranks ? check_alone(run) : MIXT_OK;
    if (asked && asked != found.size)
        return mixt__fail(MIXT_ERROR_CONFIG, "dist.ranks is %lld, but %s started %d: leave it out, or start as many",
                          (long long)asked, found.launcher, found.size);
    mixt__gpu_take(found.local_rank);
    MIXT_TRY(join(run, &found, on_device && getenv("NCCL_COMM_ID") ? "nccl" : "mpi", options));
    run->experiment.group = run->group;
    return share_threads(run, &found);
}

void mixt__run_ranks_close(mixt_run *run)
{
    run->experiment.lost = run->group && run->group->broken;
    mixt__group_close(run->group);
    run->group = NULL;
}

/* ---- agreeing ---- */

/** The version of the C library, whose exp and tanh kernels call. */
static const char *c_library(void)
{
#ifdef __GLIBC__
    return gnu_get_libc_version();
#else
    return "unknown";
#endif
}

/** What decides bits beside the configuration and the number of threads. */
static mixt_status same_kernels(mixt__group *group, const mixt__device *device)
{
    bool fusion;
    const char *candidate = mixt__env_get(MIXT_ENV_CANDIDATE);
    if (device->backend->host_memory) { // a GPU's bits do not hang on its host
        MIXT_TRY(mixt__group_same(group, "instruction set (MIXT_ISA), which is part of the bits",
                                  mixt__isa_name(mixt__isa_level())));
        MIXT_TRY(mixt__group_same(group, "C library, which is part of the bits", c_library()));
    }
    MIXT_TRY(mixt__env_on(MIXT_ENV_FUSION, &fusion));
    MIXT_TRY(mixt__group_same(group, "MIXT_FUSION, which is part of the bits", fusion ? "1" : "0"));
    return mixt__group_same(group, "MIXT_CANDIDATE, which is part of the bits", *candidate ? candidate : "none");
}

mixt_status mixt__run_ranks_check(mixt_run *run)
{
    mixt__experiment *e = &run->experiment;
    char text[200];
    if (!run->group)
        return MIXT_OK;
    const uint64_t *sums = mixt__experiment_sums(e);
    snprintf(text, sizeof text, "%lld samples, checksums %016llx and %016llx",
             (long long)mixt_data_describe(e->train)->samples, (unsigned long long)sums[0],
             (unsigned long long)sums[1]);
    MIXT_TRY(mixt__group_same(run->group, "data", text));
    mixt__device *device = e->context->device;
    snprintf(text, sizeof text, device->backend->host_memory ? "%s with threads=%d" : "%s", device->backend->name,
             mixt__threads_count());
    MIXT_TRY(mixt__group_same(run->group, "device or threads, which are part of the bits", text));
    MIXT_TRY(same_kernels(run->group, device));
    const mixt__trainer_settings *s = mixt__trainer_settings_of(e->trainer->inner);
    snprintf(text, sizeof text, "%lld passes of %lld samples, %zu bytes of activations, %lld updates",
             (long long)s->accumulate, (long long)s->batch, s->recompute_budget, (long long)e->total_steps);
    return mixt__group_same(run->group, "plan", text);
}

/** Whether ranks of several machines would write to a file over NFS, whose clients each keep whole pages: one could
 *  write back what another has written since. */
static bool risky(const mixt_run *run)
{
    struct statfs system;
    const mixt__peer *peers = run->group->peers;
    bool apart = false;
    for (int i = 1; i < run->group->size; i++)
        apart = apart || strcmp(peers[i].host, peers[0].host);
    return apart && !statfs(run->dir.path, &system) && (unsigned long)system.f_type == NFS_SUPER_MAGIC;
}

/** Every rank looks for a file that rank 0 has just made in the run's directory: all write their parts of checkpoints
 *  where each one sees it. */
static mixt_status see_files(mixt_run *run)
{
    mixt__group *g = run->group;
    char mark[sizeof run->dir.path + 64];
    uint64_t nonce = 0;
    if (g->rank == 0)
        (void)!getrandom(&nonce, sizeof nonce, 0);
    MIXT_TRY(mixt__group_broadcast(g, &nonce, sizeof nonce, 1));
    snprintf(mark, sizeof mark, "%s/.ranks-%016llx", run->dir.path, (unsigned long long)nonce);
    int fd = g->rank == 0 ? open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (fd >= 0)
        close(fd);
    mixt_status made = g->rank || fd >= 0 ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: %s", mark, strerror(errno));
    mixt_status status = mixt__group_agree_soon(g, made);
    mixt__word mine = {.busy = status != MIXT_OK || access(mark, R_OK | W_OK) || risky(run)};
    bool any = false;
    if (status == MIXT_OK)
        status = mixt__group_beat(g, &mine, &any);
    if (fd >= 0)
        unlink(mark);
    int blind = 0;
    while (status == MIXT_OK && blind < g->size && !g->words[blind].busy)
        blind++;
    mixt__ranks_set_save_parts(run->experiment.trainer->inner, blind == g->size);
    if (status == MIXT_OK && blind < g->size)
        mixt__run_note(run, true,
                       "rank %d does not see the files of rank 0 in %s, or several machines would write to one file "
                       "over NFS: rank 0 collects the state of all ranks and writes the checkpoints",
                       blind, run->dir.path);
    if (status == MIXT_OK && blind < g->size &&
        run->resume.checkpoint) // each may have files of its own: it read a share
        status = mixt__group_agree(g, mixt__checkpoint_check(run->resume.checkpoint));
    return status;
}

mixt_status mixt__run_ranks_directory(mixt_run *run, mixt_status (*open)(mixt_run *run))
{
    char path[sizeof run->dir.path];
    mixt__keepalive meanwhile;
    if (!run->group)
        return open(run);
    mixt__keepalive_begin(&meanwhile, run->group);
    MIXT_TRY(mixt__keepalive_end(&meanwhile, open(run)));
    memcpy(path, run->dir.path, sizeof path);
    MIXT_TRY(mixt__group_broadcast(run->group, path, sizeof path, 1));
    memcpy(run->dir.path, path, sizeof path);
    return see_files(run);
}

/** All texts of all ranks to all. @param all (ranks × bytes), for mixt__free */
static mixt_status gather_texts(mixt__group *g, const char *mine, char **all, size_t *bytes)
{
    bool any;
    mixt__word size = {.count = (int64_t)strlen(mine) + 1};
    MIXT_TRY(mixt__group_beat(g, &size, &any));
    for (int rank = 0; rank < g->size; rank++)
        size.count = g->words[rank].count > size.count ? g->words[rank].count : size.count;
    *bytes = (size_t)size.count;
    char *padded = mixt__alloc(*bytes);
    *all = mixt__alloc(*bytes * (size_t)g->size);
    mixt_status status = padded && *all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for policies of ranks");
    status = mixt__group_agree_soon(g, status);
    if (status == MIXT_OK) {
        strcpy(padded, mine);
        status = mixt__group_gather(g, padded, *bytes, *all, 1);
    }
    mixt__free(padded);
    return status;
}

/** Takes the policy of the ranks that asked for one, where they asked for the same. */
static mixt_status choose_policy(mixt_run *run, const char *all, size_t bytes)
{
    int first = -1;
    for (int rank = 0; rank < run->group->size; rank++) {
        const char *text = all + (size_t)rank * bytes;
        if (*text && first < 0)
            first = rank;
        if (*text && strcmp(text, all + (size_t)first * bytes))
            return mixt__fail(MIXT_ERROR_CONFIG, "ranks %d and %d ask for different ones", first, rank);
    }
    return first < 0 || run->policy ? MIXT_OK
                                    : mixt_policy_parse(all + (size_t)first * bytes, "another rank's", &run->policy);
}

mixt_status mixt__run_ranks_policy(mixt_run *run)
{
    char *mine = NULL, *all = NULL;
    size_t bytes;
    mixt_status status = run->policy ? mixt_policy_print(run->policy, &mine) : MIXT_OK;
    MIXT_TRY(mixt__group_agree_soon(run->group, status));
    status = gather_texts(run->group, mine ? mine : "", &all, &bytes);
    mixt_free(mine);
    if (status != MIXT_OK) {
        mixt__free(all);
        return status;
    }
    status = mixt__run_agree_once(run, choose_policy(run, all, bytes));
    mixt__free(all);
    if (run->group->broken)
        return status;
    if (status != MIXT_OK) {
        mixt__run_note(run, true, "step %lld: continues with the policy that it had: %s", (long long)run->last.step,
                       mixt_error_text());
        mixt_policy_free(run->policy);
        run->policy = NULL;
    }
    if (!run->policy) // refused, or taken before this was heard
        run->asked &= ~(unsigned)MIXT_ASKED_POLICY;
    return MIXT_OK;
}

void mixt__run_ranks_tell(mixt_run *run)
{
    mixt__trainer *t = run->experiment.trainer->inner;
    if (!run->group)
        return;
    mixt__ranks_signal(t, run->signals ? (int)mixt__signals_stop : 0);
    mixt__ranks_ask(t, run->asking);
    if (mixt__events_weigh(run) || run->pressure.wish)
        mixt__ranks_ask(t, MIXT_ASKED_MEMORY);
    run->asking = 0;
}

void mixt__run_ranks_hear(mixt_run *run)
{
    if (run->group)
        run->asked |= mixt__ranks_agreed_asked(run->experiment.trainer->inner) & ~(unsigned)MIXT_ASKED_PATIENCE;
}

int mixt__run_signal(const mixt_run *run)
{
    if (run->group)
        return mixt__ranks_agreed_signal(run->experiment.trainer->inner);
    return run->signals ? (int)mixt__signals_stop : 0;
}

void mixt__run_ranks_note(mixt_run *run)
{
    const mixt__experiment *e = &run->experiment;
    const mixt__trainer *t = e->trainer->inner;
    int64_t sent = mixt__ranks_sent(t), plain = mixt__ranks_sent_plain(t), whole;
    (void)mixt__ranks_compress(t, &whole);
    char less[128] = "", over[320];
    const char *sums = e->device_sums ? e->device_sums->version : "";
    snprintf(over, sizeof over, "%s%s%s", run->group ? run->group->transport->version : "", *sums ? ", sums over " : "",
             sums);
    if (sent < plain) {
        int end = snprintf(less, sizeof less, ", %lld bytes instead of %lld", (long long)sent, (long long)plain);
        if (whole)
            snprintf(less + end, sizeof less - (size_t)end, ", after %lld updates together", (long long)whole);
    }
    if (run->group)
        mixt__run_note(run, false,
                       "%-8s %d over %s, %lld samples of each batch per rank; %.1f MiB sent per rank and update%s",
                       "ranks", run->group->size, over,
                       (long long)(mixt__trainer_settings_of(t)->batch * mixt__trainer_settings_of(t)->split),
                       (double)sent / 1048576.0, less);
    else if (e->ranks > 1)
        mixt__run_note(run, false, "%-8s %lld, computed one after the other by this process", "ranks",
                       (long long)e->ranks);
    else if (*sums)
        mixt__run_note(run, false, "%-8s 1, sums over %s", "ranks", sums);
}

void mixt__run_ranks_note_end(mixt_run *run)
{
    mixt_rank_trace t;
    if (!run->group || mixt_run_rank_trace(run, &t) != MIXT_OK || t.seconds <= 0)
        return;
    if (t.buckets)
        mixt__run_note(run, false,
                       "%-8s %.1f MiB sent per rank; sums took %.2f s, %.0f%% of that behind the backward pass",
                       "ranks", (double)t.sent / 1048576.0, t.seconds, 100 * t.hidden);
    else
        mixt__run_note(run, false, "%-8s %lld bytes sent per rank; compressed exchanges took %.2f s, after the updates",
                       "ranks", (long long)t.sent, t.seconds);
}

/* ---- how it went ---- */

mixt_status mixt_run_rank_trace(const mixt_run *run, mixt_rank_trace *trace)
{
    MIXT_TRY(mixt__need_open(run, "run"));
    MIXT_TRY(mixt__need(trace));
    mixt__ranks_trace of;
    if (!run->group || !mixt__ranks_trace_of(run->experiment.trainer->inner, &of))
        return mixt__fail(MIXT_ERROR_STATE, "the run has not trained as one of several ranks");
    *trace = (mixt_rank_trace){.sent = run->group->bytes, .buckets = of.count, .pass = of.passed};
    trace->seconds = of.seconds;
    trace->waited = of.waited;
    trace->hidden = trace->seconds > 0 ? 1 - trace->waited / trace->seconds : 0;
    return MIXT_OK;
}

mixt_status mixt_run_rank_bucket(const mixt_run *run, int64_t index, mixt_rank_bucket *bucket)
{
    mixt_rank_trace trace;
    mixt__ranks_trace of;
    MIXT_TRY(mixt__need(bucket));
    MIXT_TRY(mixt_run_rank_trace(run, &trace));
    if (index < 0 || index >= trace.buckets || !mixt__ranks_trace_of(run->experiment.trainer->inner, &of))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "bucket %lld: there are %lld", (long long)index,
                          (long long)trace.buckets);
    const mixt__bucket *b = &of.buckets[index];
    *bucket = (mixt_rank_bucket){.bytes = b->count * (int64_t)sizeof(float), .ready = b->allowed};
    bucket->begun = b->begun;
    bucket->ended = b->ended;
    return MIXT_OK;
}
