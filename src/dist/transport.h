/* The seam between mixt and what carries bytes from rank to rank: a library of its own, loaded when a run has more than
 * one rank, as a GPU's backend is.
 *
 * One primitive carries everything: messages to and from peers, all posted at once, awaited together, with a deadline.
 * Sums, agreements and broadcasts are built on it once (dist/group.h), in a fixed order, whatever carries them: that is
 * what makes their bits the same.
 *
 * A transport is used by one thread at a time, the one that opened it where MPI asks for that.
 */
#ifndef MIXT_DIST_TRANSPORT_H
#define MIXT_DIST_TRANSPORT_H

#include "mixt/types.h"

/** Bytes to or from another rank. */
typedef struct mixt__message {
    int peer;
    void *data; // of what is sent it is only read
    size_t bytes;
} mixt__message;

/** What is looked at while messages are awaited. */
typedef struct mixt__waiting {
    double seconds; // how long at most
    /** Asked several times a second: a rank that is known to have died; -1: none. */
    int (*dead)(void *user);
    void *user;
} mixt__waiting;

/** Text that a rank leaves when it gives up: why. */
enum { MIXT_NOTICE_SIZE = 512 };

/** How an exchange ended. */
typedef struct mixt__arrival {
    int late;                      // a peer that did not answer in time; -1: none
    int dead;                      // a peer that has died; -1: none
    int gave_up;                   // a peer that gave up; -1: none
    char notice[MIXT_NOTICE_SIZE]; // and why
} mixt__arrival;

typedef struct mixt__transport {
    const char *name;    // "mpi"
    const char *version; // of the library behind it, in its own words
    int rank, size;
    /** Sends and receives all of these. Messages between two ranks keep their order; a call answers a call: all ranks
     *  make them in the same order. Where it fails nothing more can be carried but notices.
     *  @param arrival who is to blame where it fails */
    mixt_status (*exchange)(const mixt__message *out, int outs, const mixt__message *in, int ins,
                            const mixt__waiting *waiting, mixt__arrival *arrival);
    /** Tells all other ranks why this one gives up; waits half a second at most. */
    void (*give_up)(const char *why);
    /** @param whole all ranks close it too; else this process ends without them */
    void (*close)(bool whole);
} mixt__transport;

/** Changes with the layout of anything above: a library of another build is refused. */
#define MIXT_TRANSPORT_ABI "mixt " MIXT_VERSION " transport 1"

/** Symbols that such a library exports: mixt_transport_version, the library behind it in its own words, which begins
 *  nothing, and mixt_transport_open.
 *  @param abi MIXT_TRANSPORT_ABI of the loader
 *  @param error_set receives the text of every failure
 *  @param transport set on success; lives until it is closed */
typedef const char *mixt__transport_version_fn(void);
typedef mixt_status mixt__transport_open_fn(const char *abi, void (*error_set)(const char *text),
                                            const mixt__transport **transport);

#endif
