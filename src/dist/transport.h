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

#include "mixt/ranks.h"

typedef mixt_message mixt__message;

/** What is looked at while messages are awaited. */
typedef struct mixt__waiting {
    double seconds; // how long at most
    /** Asked several times a second: a rank that is known to have died; -1: none. */
    int (*dead)(void *user);
    void *user;
    /** Told of memory that may still be written to after a failure, or read: it must stay. Messages of more than 16 KiB
     *  are therefore of mixt__alloc or of a device, never on a stack. */
    void (*hold)(const void *memory);
    bool *late; // (ranks) receives who has not answered, where that ends it and the transport can tell
} mixt__waiting;

/** Text that a rank leaves when it gives up: why. */
enum { MIXT_NOTICE_SIZE = 512 };

/** How an exchange ended. */
typedef struct mixt__arrival {
    int late;                      // a peer that did not answer in time; -1: none
    int dead;                      // a peer that has died; -1: none
    int gave_up;                   // a peer that gave up; -1: none
    char notice[MIXT_NOTICE_SIZE]; // and why,
    int speaker;                   // and who is to tell people
} mixt__arrival;

typedef struct mixt__transport mixt__transport;

/** Parts a group: all its ranks call it, those with the same colour become a group.
 *  @param colour 0 or more
 *  @param key orders the ranks of a part; where it is the same their rank does
 *  @param part closed on its own, after its messages and before the process ends */
typedef mixt_status mixt__transport_split_fn(mixt__transport *transport, int colour, int key, mixt__transport **part);

/** A group of ranks, with all that it needs to carry their messages. */
struct mixt__transport {
    const char *name;    // "mpi"
    const char *version; // of the library behind it, in its own words
    int rank, size;
    /** Sends and receives all of these. Messages between two ranks keep their order; a call answers a call: all ranks
     *  make them in the same order. Where it fails nothing more can be carried but notices, and no message comes late
     *  but to what `waiting->hold` was told of.
     *  @param arrival who is to blame where it fails */
    mixt_status (*exchange)(mixt__transport *transport, const mixt__message *out, int outs, const mixt__message *in,
                            int ins, const mixt__waiting *waiting, mixt__arrival *arrival);
    /** Tells all other ranks why this one gives up; waits a fifth of a second at most.
     *  @param speaker the rank that is to tell people */
    void (*give_up)(mixt__transport *transport, const char *why, int speaker);
    mixt__transport_split_fn *split; // NULL: it has no parts
    /** Frees this group alone. @param whole all ranks close it too; else this process ends without them */
    void (*close)(mixt__transport *transport, bool whole);
};

/** Sums in a device's own memory, in order with what it computes: all that is issued here may be under capture into a
 *  recorded step. All ranks issue the same in the same order. */
typedef struct mixt__device_sums mixt__device_sums;

/** As mixt__transport_split_fn, for sums on the same stream. */
typedef mixt_status mixt__device_sums_split_fn(mixt__device_sums *sums, int colour, int key, mixt__device_sums **part);

/** A group of ranks that sum so. */
struct mixt__device_sums {
    const char *version; // of the library behind it, in its own words
    /** data[i] = the sum over ranks: begins behind what was issued so far, runs beside what is issued next. In an order
     *  of additions that is the library's, the same every time. */
    mixt_status (*sum)(mixt__device_sums *sums, float *data, int64_t count);
    /** The same of which each rank gets its own slice alone; `data` keeps its values.
     *  @param cuts (ranks + 1) where slices begin; `data` begins at the first
     *  @param mine of this rank's slice; may be that slice of `data` itself */
    mixt_status (*reduce)(mixt__device_sums *sums, float *data, const int64_t *cuts, float *mine);
    /** Everyone's part of `data` to everyone, the same way. @param cuts of parts. @param size bytes of an element */
    mixt_status (*gather)(mixt__device_sums *sums, void *data, const int64_t *cuts, size_t size);
    /** Gives what was asked for so far a number, from 0 on; one that was given before is given anew. */
    mixt_status (*mark)(mixt__device_sums *sums, int64_t number);
    /** What is issued next waits for what has that number, and all before it; -1: for everything. */
    mixt_status (*join)(mixt__device_sums *sums, int64_t number);
    /** Until all that was issued has run. @param arrival who is to blame where it fails, as far as that is known */
    mixt_status (*wait)(mixt__device_sums *sums, const mixt__waiting *waiting, mixt__arrival *arrival);
    mixt__device_sums_split_fn *split; // NULL: it has no parts
    /** Frees this group's alone. @param whole all ranks close it too; else this process ends without them */
    void (*close)(mixt__device_sums *sums, bool whole);
};

/** What rank 0 gives to the others, by which they find each other. */
enum { MIXT_DEVICE_ID_SIZE = 128 };

/** Changes with the layout of anything above: a library of another build is refused. */
#define MIXT_TRANSPORT_ABI "mixt " MIXT_VERSION " transport 7"

/** Symbols that such a library exports: mixt_transport_version, the library behind it in its own words, which begins
 *  nothing, and mixt_transport_open.
 *  @param abi MIXT_TRANSPORT_ABI of the loader
 *  @param rank what the launcher says of this process, for libraries that do not find out themselves; @param size too
 *  @param timeout seconds after which a rank is lost; ten times as long they may take to come together
 *  @param error_set receives the text of every failure
 *  @param transport set on success; lives until it is closed */
typedef const char *mixt__transport_version_fn(void);
typedef mixt_status mixt__transport_open_fn(const char *abi, int rank, int size, double timeout,
                                            void (*error_set)(const char *text), mixt__transport **transport);
/** What sums of device memory are opened for. */
typedef struct mixt__sums_place {
    const char *id; // (MIXT_DEVICE_ID_SIZE) of rank 0
    int rank, size;
    int gpu;                    // its number in this process
    void *stream;               // of the device, in order with which sums run
    mixt__transport *transport; // what carries messages of the same ranks; where it is of this library, the ranks are
                                // joined already; NULL: nothing does
} mixt__sums_place;

/** One that sums in a device's memory exports these too: mixt_device_id, of rank 0, and mixt_device_sums_open.
 *  @param id (MIXT_DEVICE_ID_SIZE)
 *  @param sums set on success; lives until it is closed */
typedef mixt_status mixt__device_id_fn(void (*error_set)(const char *text), char *id);
typedef mixt_status mixt__device_sums_open_fn(const char *abi, void (*error_set)(const char *text),
                                              const mixt__sums_place *place, mixt__device_sums **sums);

#endif
