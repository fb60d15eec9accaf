/* A team: workers that wait on a generation number, run what it announces, and report back.
 *
 * Every worker acknowledges every generation, also those not needed for it: so none can be late enough to mistake the
 * next region for this one. Waiting is a bounded spin that yields, then a futex. A team that lost time to waiting is
 * left alone for LOSS_APART times as long: so what trying costs is bounded, whatever else runs on the machine.
 */
#include "base/threads.h"

#include "base/cores.h"
#include "base/env.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 1024, SPINS = 256 };

// Seconds. To sleep and be woken takes tens of microseconds, on a virtual machine hundreds.
static const double SPIN_ALONE = 10e-3;  // a thread that waits keeps its core for this long while nobody else wants it,
static const double SPIN_SHARED = 40e-6; // and for this long where others do,
static const double SHARED_FOR = 1.0;    // which it believes for this long after it saw them:
static const double OFFER_EVERY = 100e-6; // it offers them the core this often

// What regions may lose before the caller goes on by itself: more than it takes to wake threads that sleep. What they
// have gained may make up for a loss, up to as much as a few interruptions. Regions of one kind have an account of
// their own: small loops that lose must not keep large products from gaining.
static const double LOSS_MOST = 1e-3, GAIN_MOST = 20e-3, LOSS_APART = 16;
enum { ACCOUNTS = 64 };
// A thread that took longer than this, and this many times as long as the caller, was interrupted: its work is not that
// long.
static const double PART_LEAST = 20e-6, PART_RATIO = 4;

/** A counter that threads wait on, alone on its cache line. */
typedef struct signal_word {
    _Alignas(64) uint32_t value;
    uint32_t sleepers;
    double worked; // seconds of a worker's part of the region that it reports the end of
} signal_word;

/** What regions of one kind have lost to running on many threads. */
typedef struct account {
    double lost;        // seconds; below 0: gained
    double alone_until; // the caller works by itself
} account;

struct mixt__team {
    mixt__team *next;           // in the list of all
    uint64_t life;              // changes when the team is closed: who still has it by then works with the process's
    int requested;              // threads; 0: the default
    bool ending;                // workers are to return
    pthread_t *threads;         // (workers) to wait for; NULL: the process's team, which nobody waits for
    pthread_mutex_t lock;       // one region at a time
    int workers;                // running, the caller not counted
    int wanted;                 // threads of the current region
    uint32_t started_at;        // generation at which the newest workers were started
    bool crowded;               // more threads than cores: do not spin
    bool resting;               // the caller works by itself: workers are to sleep
    account accounts[ACCOUNTS]; // by what a region runs; two kinds that share one only lose some speed
    mixt__team_fn *fn;
    void *argument;
    signal_word generation, barrier;
    // By worker: the generation it has finished, the barrier it has reached. A cache line each: none is contended.
    signal_word done[MAX_THREADS], reached[MAX_THREADS];
};

static mixt__team process = {.lock = PTHREAD_MUTEX_INITIALIZER}; // of threads that have no other
static mixt__team *teams = &process; // all that ever were: a closed one is opened again, never given back
static pthread_mutex_t teams_lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local mixt__team_hold held; // the team that this thread works with
static _Thread_local int used;             // its threads instead of those requested, when above 0
static _Thread_local mixt__team *inside;   // the team of the region that this thread is in
static _Thread_local int self;             // number in the team
static _Thread_local bool alone;           // it runs all parts of the region
static _Thread_local double waited;        // seconds at barriers of the region
static _Thread_local double shared_until;  // others run on this thread's core, as far as it knows

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static uint32_t load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static long times_preempted(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/** Lets others have the core, and notes whether anybody took it. (A hypervisor that took it is no reason to sleep.) */
static void offer_core(void)
{
    double before = mixt__time_now();
    long preempted = times_preempted();
    sched_yield();
    double after = mixt__time_now();
    if (after - before > OFFER_EVERY && times_preempted() > preempted)
        shared_until = after + SHARED_FOR;
}

/** True once the word differs from `old`, false if that takes too long. */
static bool spin(const mixt__team *team, const signal_word *word, uint32_t old)
{
    double begin = 0, offered = 0;
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            if (load(&word->value) != old)
                return true;
            pause_briefly();
        }
        double now = mixt__time_now();
        bool shared = now < shared_until;
        if (begin == 0)
            begin = offered = now;
        bool resting = __atomic_load_n(&team->resting, __ATOMIC_RELAXED);
        if (now - begin > (shared || resting ? SPIN_SHARED : SPIN_ALONE))
            return false;
        if (!shared && now - offered > OFFER_EVERY) {
            offer_core();
            offered = now;
        }
    }
}

/** Returns once the word differs from `old`. */
static void wait_change(mixt__team *team, signal_word *word, uint32_t old)
{
    if (!__atomic_load_n(&team->crowded, __ATOMIC_RELAXED) && spin(team, word, old))
        return;
    __atomic_add_fetch(&word->sleepers, 1, __ATOMIC_SEQ_CST);
    while (load(&word->value) == old)
        syscall(SYS_futex, &word->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    __atomic_sub_fetch(&word->sleepers, 1, __ATOMIC_SEQ_CST);
}

static void wake(signal_word *word)
{
    if (load(&word->sleepers))
        syscall(SYS_futex, &word->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void announce(signal_word *word)
{
    __atomic_add_fetch(&word->value, 1, __ATOMIC_SEQ_CST);
    wake(word);
}

typedef struct start {
    mixt__team *team;
    int self;
    bool taken; // by the worker
} start;

/** Runs the calling thread's part of the region. Returns the seconds that it worked. */
static double run_part(const mixt__team *team)
{
    double begin = mixt__time_now();
    waited = 0;
    team->fn(team->argument, self, self + 1, team->wanted);
    return mixt__time_now() - begin - waited;
}

static void *work(void *argument)
{
    start *s = argument;
    mixt__team *team = s->team;
    uint32_t seen = team->started_at; // no region runs while workers are started
    self = s->self;
    inside = team;
    __atomic_store_n(&s->taken, true, __ATOMIC_RELEASE);
    for (;;) {
        wait_change(team, &team->generation, seen);
        seen++; // exactly one further: the next region waits for this acknowledgement
        if (team->ending)
            return NULL;
        if (self < team->wanted)
            team->done[self].worked = run_part(team);
        announce(&team->done[self]);
    }
}

/** In the child of a fork the workers are gone. */
static void forget_workers(void)
{
    pthread_mutex_init(&teams_lock, NULL);
    for (mixt__team *team = teams; team; team = team->next) {
        pthread_mutex_init(&team->lock, NULL);
        team->workers = 0;
        team->generation = team->barrier = (signal_word){0};
        memset(team->done, 0, sizeof team->done);
        memset(team->reached, 0, sizeof team->reached);
    }
}

static void handle_forks(void)
{
    pthread_atfork(NULL, NULL, forget_workers);
}

static bool start_worker(mixt__team *team, const pthread_attr_t *attributes)
{
    pthread_t thread;
    start s = {.team = team, .self = team->workers + 1};
    if (pthread_create(&thread, attributes, work, &s))
        return false;
    while (!__atomic_load_n(&s.taken, __ATOMIC_ACQUIRE))
        sched_yield();
    if (team->threads)
        team->threads[team->workers] = thread;
    return true;
}

/** Starts workers until there are `count`; fewer when the system refuses. Called with no region under way. */
static void start_workers(mixt__team *team, int count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_forks);
    if (team->workers >= count)
        return;
    team->started_at = load(&team->generation.value);
    for (int worker = team->workers + 1; worker <= count; worker++)
        team->done[worker].value = team->started_at;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (!team->threads)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    while (team->workers < count && start_worker(team, &attributes))
        team->workers++;
    pthread_attr_destroy(&attributes);
    __atomic_store_n(&team->crowded, team->workers + 1 > mixt__cores_usable(),
                     __ATOMIC_RELAXED); // workers that wait read it
}

/* ---- teams ---- */

/** A closed one, or a new one in the list of all; with `teams_lock`. */
static mixt__team *find_room(void)
{
    for (mixt__team *team = process.next; team; team = team->next)
        if (!team->threads)
            return team;
    mixt__team *team = aligned_alloc(_Alignof(mixt__team), sizeof *team);
    if (!team)
        return NULL;
    memset(team, 0, sizeof *team);
    pthread_mutex_init(&team->lock, NULL);
    team->next = process.next;
    process.next = team;
    return team;
}

mixt__team *mixt__team_open(int threads)
{
    pthread_mutex_lock(&teams_lock);
    mixt__team *team = find_room();
    if (team)
        team->threads = calloc(MAX_THREADS, sizeof *team->threads);
    if (team && !team->threads)
        team = NULL;
    pthread_mutex_unlock(&teams_lock);
    if (team)
        __atomic_store_n(&team->requested, threads > MAX_THREADS ? MAX_THREADS : threads, __ATOMIC_RELAXED);
    return team;
}

void mixt__team_close(mixt__team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->lock); // a region that another thread has under way ends first
    team->ending = true;
    announce(&team->generation);
    for (int i = 0; i < team->workers; i++)
        pthread_join(team->threads[i], NULL);
    team->workers = 0;
    team->ending = false;
    __atomic_add_fetch(&team->life, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&team->lock);
    pthread_mutex_lock(&teams_lock);
    free(team->threads);
    team->threads = NULL;
    pthread_mutex_unlock(&teams_lock);
}

mixt__team_hold mixt__team_use(mixt__team *team)
{
    mixt__team_hold before = held;
    held = (mixt__team_hold){team, team ? __atomic_load_n(&team->life, __ATOMIC_SEQ_CST) : 0};
    return before;
}

mixt__team_hold mixt__team_now(void)
{
    return held;
}

void mixt__team_use_again(mixt__team_hold hold)
{
    held = hold;
}

static mixt__team *now(void)
{
    bool open = held.team && __atomic_load_n(&held.team->life, __ATOMIC_SEQ_CST) == held.life;
    return open ? held.team : &process;
}

int mixt__threads_default(void)
{
    int from_env = atoi(mixt__env_get(MIXT_ENV_THREADS));
    int count = from_env > 0 ? from_env : mixt__cores_usable();
    return count > MAX_THREADS ? MAX_THREADS : count;
}

int mixt__team_threads(const mixt__team *team)
{
    int count = __atomic_load_n(team ? &team->requested : &process.requested, __ATOMIC_RELAXED);
    return count > 0 ? count : mixt__threads_default();
}

int mixt__threads_count(void)
{
    if (used > 0)
        return used;
    mixt__team *team = now();
    int count = mixt__team_threads(team);
    __atomic_store_n(&team->requested, count, __ATOMIC_RELAXED);
    return count;
}

int mixt__threads_use(int count)
{
    int before = used;
    used = count;
    return before;
}

void mixt__threads_set(int count)
{
    __atomic_store_n(&now()->requested, count > MAX_THREADS ? MAX_THREADS : count > 0 ? count : 0, __ATOMIC_RELAXED);
}

bool mixt__team_inside(void)
{
    return inside;
}

/** Runs all parts on the calling thread. */
static void run_alone(mixt__team *team, int threads, mixt__team_fn *fn, void *argument)
{
    inside = team;
    alone = true;
    fn(argument, 0, threads, threads);
    alone = false;
    inside = NULL;
}

static account *account_of(mixt__team *team, uintptr_t kind)
{
    return &team->accounts[(kind >> 4 ^ kind >> 12) % ACCOUNTS];
}

/** Whether the caller is to run the region by itself, because the last ones of its kind on many threads lost time. */
static bool rests(mixt__team *team, account *of)
{
    bool resting = of->alone_until > 0 && mixt__time_now() < of->alone_until;
    if (!resting)
        of->alone_until = 0;
    __atomic_store_n(&team->resting, resting, __ATOMIC_RELAXED);
    return resting;
}

/** Counts a region that took `seconds`, in which the caller worked for `own`. */
static void weigh(mixt__team *team, account *of, double seconds, double own)
{
    double one_by_one = own, most = PART_RATIO * own > PART_LEAST ? PART_RATIO * own : PART_LEAST;
    for (int worker = 1; worker < team->wanted; worker++)
        one_by_one += team->done[worker].worked < most ? team->done[worker].worked : most;
    of->lost += seconds - one_by_one;
    if (of->lost < -GAIN_MOST)
        of->lost = -GAIN_MOST;
    if (of->lost < LOSS_MOST)
        return;
    of->alone_until = mixt__time_now() + LOSS_APART * of->lost;
    of->lost = 0;
}

static void run_together(mixt__team *team, account *of, int threads, mixt__team_fn *fn, void *argument)
{
    double begin = mixt__time_now();
    inside = team;
    team->wanted = threads;
    team->fn = fn;
    team->argument = argument;
    uint32_t before = load(&team->generation.value);
    announce(&team->generation);
    double own = run_part(team);
    for (int worker = 1; worker <= team->workers; worker++)
        wait_change(team, &team->done[worker], before);
    inside = NULL;
    weigh(team, of, mixt__time_now() - begin, own);
}

/** @param kind of region, by whose account it is decided */
static bool run_region(int threads, mixt__team_fn *fn, void *argument, uintptr_t kind)
{
    if (inside)
        return false;
    mixt__team *team = now();
    pthread_mutex_lock(&team->lock);
    account *of = account_of(team, kind);
    bool by_itself = rests(team, of);
    if (!by_itself)
        start_workers(team, threads - 1);
    if (by_itself || team->workers < threads - 1)
        run_alone(team, threads, fn, argument);
    else
        run_together(team, of, threads, fn, argument);
    pthread_mutex_unlock(&team->lock);
    return true;
}

bool mixt__team_run(int threads, mixt__team_fn *fn, void *argument)
{
    return run_region(threads, fn, argument, (uintptr_t)fn);
}

static void meet(mixt__team *team)
{
    uint32_t last = load(&team->barrier.value), next = last + 1;
    if (self > 0) {
        __atomic_store_n(&team->reached[self].value, next, __ATOMIC_SEQ_CST);
        wake(&team->reached[self]);
        wait_change(team, &team->barrier, last);
        return;
    }
    for (int worker = 1; worker < team->wanted; worker++)
        for (uint32_t seen; (seen = load(&team->reached[worker].value)) != next;)
            wait_change(team, &team->reached[worker], seen);
    announce(&team->barrier);
}

void mixt__team_barrier(void)
{
    if (alone)
        return;
    double begin = mixt__time_now();
    meet(inside);
    waited += mixt__time_now() - begin;
}

typedef struct split {
    mixt__range_fn *fn;
    void *argument;
    int64_t count, grain;
} split;

static void run_range(void *argument, int first, int end, int threads)
{
    const split *s = argument;
    for (int part = first; part < end; part++) {
        mixt__range mine = mixt__range_part(s->count, s->grain, part, threads);
        if (mine.begin < mine.end)
            s->fn(s->argument, mine.begin, mine.end, part);
    }
}

void mixt__parallel(int64_t count, int64_t grain, mixt__range_fn *fn, void *argument)
{
    if (count <= 0)
        return;
    split s = {.fn = fn, .argument = argument, .count = count, .grain = grain < 1 ? 1 : grain};
    int64_t pieces = (count + s.grain - 1) / s.grain, threads = mixt__threads_count();
    if (threads > pieces)
        threads = pieces;
    if (threads <= 1 || !run_region((int)threads, run_range, &s, (uintptr_t)fn))
        fn(argument, 0, count, 0);
}

static void zero_range(void *block, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    memset((char *)block + begin, 0, (size_t)(end - begin));
}

void mixt__parallel_zero(void *block, size_t bytes)
{
    enum { GRAIN = 4 << 20 }; // whole huge pages
    mixt__parallel((int64_t)bytes, GRAIN, zero_range, block);
}

double mixt__time_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
