/* CPU threads: teams of fixed size, static partition, so that the same count gives the same bits.
 *
 * A thread that asks for nothing works with the process's team. A CPU device that was opened has a team of its own:
 * whose regions a thread runs is the thread's choice, as a GPU's driver has it.
 *
 * A thread that waits keeps its core for some milliseconds, then sleeps: a region starts in about a microsecond, while
 * being woken takes tens of them, on a virtual machine hundreds. Meanwhile it offers the core to others again and
 * again; where it sees one of them take it, it sleeps early for the next second, since on a busy machine nobody should
 * burn the core that the slowest thread needs: with more runnable threads than cores a team that only spins makes small
 * steps a hundred times slower.
 *
 * A region also takes long where a thread waits for its turn on a busy machine, or where its work is less than what
 * starting it costs. So a team measures what its regions take, next to what their parts would take one after the other.
 * Where threads only lose, the caller runs all parts by itself for a while, then the team tries again. The parts are the
 * same ones, so the bits are too.
 */
#ifndef MIXT_BASE_THREADS_H
#define MIXT_BASE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Threads of a process that asked for no number: MIXT_THREADS, else all usable cores. */
int mixt__threads_default(void);
/** Threads that parallel regions of the caller use: what it asked for with mixt__threads_use, else those of its team,
 *  else mixt__threads_default(). */
int mixt__threads_count(void);
/** The count for the calling thread alone, until the next call: a plan runs with the count that it was made for, which
 *  its workspace is cut by. 0: the team's. Returns what was there before. */
int mixt__threads_use(int count);
/** Threads of the caller's team; 0: the default. Must not be called inside a region. */
void mixt__threads_set(int count);

/* ---- teams ---- */

typedef struct mixt__team mixt__team;

/** The team that a thread works with. Once that is closed, the process's. */
typedef struct mixt__team_hold {
    mixt__team *team; // NULL: the process's
    uint64_t life;
} mixt__team_hold;

/** A team of so many threads, the caller of a region being one; they start when they are first needed. 0: the default.
 *  NULL: there is no memory. */
mixt__team *mixt__team_open(int threads);
/** Ends its threads. NULL is allowed. */
void mixt__team_close(mixt__team *team);
/** NULL: the process's. */
int mixt__team_threads(const mixt__team *team);
/** Regions of the calling thread are this team's from now on; NULL: the process's. Returns what was there before. */
mixt__team_hold mixt__team_use(mixt__team *team);
/** What the calling thread works with, for a thread that it starts. */
mixt__team_hold mixt__team_now(void);
void mixt__team_use_again(mixt__team_hold hold);

/* ---- regions ---- */

typedef struct mixt__range {
    int64_t begin, end;
} mixt__range;

/** Part `index` of `parts` of [0, count), cut at multiples of `grain`. */
static inline mixt__range mixt__range_part(int64_t count, int64_t grain, int64_t index, int64_t parts)
{
    int64_t pieces = (count + grain - 1) / grain;
    int64_t begin = pieces * index / parts * grain, end = pieces * (index + 1) / parts * grain;
    return (mixt__range){begin < count ? begin : count, end < count ? end : count};
}

/** Work on [begin, end) by thread `thread` of the team. */
typedef void mixt__range_fn(void *argument, int64_t begin, int64_t end, int thread);

/** Splits [0, count) into one contiguous range a thread, each a multiple of `grain` but the last; runs inline when
 *  there is only one range or when called inside a region. `thread` is below mixt__threads_count(). */
void mixt__parallel(int64_t count, int64_t grain, mixt__range_fn *fn, void *argument);

/** Zeroes a block on all threads: what takes time is the first touch of its pages. */
void mixt__parallel_zero(void *block, size_t bytes);

/** Parts [first, end) of `threads`: one, on a thread of its own, or all of them on the caller's. With a barrier, what
 *  comes before it is done for all these parts first. */
typedef void mixt__team_fn(void *argument, int first, int end, int threads);

/** Runs fn on `threads` threads at once, the caller being thread 0, or all parts on the caller's: where the system gave
 * fewer threads, and where threads do not help. False, with nothing run, when the caller is inside a region. */
bool mixt__team_run(int threads, mixt__team_fn *fn, void *argument);
/** Inside mixt__team_run: a barrier, waits until all its threads have called it; nothing where one runs all parts. */
void mixt__team_barrier(void);
/** Whether the caller is inside a region. */
bool mixt__team_inside(void);

/** Seconds on a clock that never goes back. */
double mixt__time_now(void);

#endif
