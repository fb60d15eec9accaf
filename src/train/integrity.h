/* Whether the state of training is as it was written, to the bit.
 *
 * An update reads and writes every weight and moment: it sums what it writes, by parameter, and what it reads at the
 * next (backend/training.h). What the two differ in has changed in memory in between: hardware, or a stray write. No
 * byte is moved for it. What an update does not read is checked beside it: frozen parameters every so many updates,
 * running statistics before the first pass, the control block in each step control.
 *
 * One pass reads and writes, so the verdict comes when the update has been applied: it is in the update's result. From
 * then on nothing is saved until a state is restored; whoever makes updates gets an error, unless he asked to look at
 * what was found himself. State that was written by others than updates is summed anew.
 */
#ifndef MIXT_TRAIN_INTEGRITY_H
#define MIXT_TRAIN_INTEGRITY_H

#include "backend/backend.h"

typedef struct mixt__trainer mixt__trainer;
typedef struct mixt__params mixt__params;

/** What was found, for people. */
typedef struct mixt__integrity_finding {
    int64_t step;        // of the update that found it
    int rank;            // that has it; -1: there is one
    mixt__damaged kind;  // or of mixt__summed
    const char *what;    // "first moments", "working copies", …
    char parameter[128]; // "": no one of them
    char text[320];
} mixt__integrity_finding;

/** The same from rank to rank. */
typedef struct mixt__integrity_word {
    int64_t step; // 0: nothing was found
    int32_t kind, param;
} mixt__integrity_word;

typedef struct mixt__integrity {
    char *memory;                // device: all of the following
    mixt__segment_sums *sums[2]; // by segment, of ranks that shard by those that are this one's
    mixt__damage *damage;
    mixt__still_block *blocks; // frozen parameters and a teacher's
    int64_t block_count;
    bool stale;      // sums are made anew before the next update
    int64_t written; // what the parameters counted when sums were made (runtime/params.h)
    bool told;       // somebody looks at what is found; else it is a failure
    bool found;
    mixt__integrity_finding finding;
    mixt__integrity_word word; // of the finding
    int64_t read;              // the newest update whose result was read
    int64_t known;             // ranks: the update from which on all of them know of it; 0: not yet
} mixt__integrity;

/** Whether a device sums its state at all. */
bool mixt__integrity_possible(const mixt__device *device);
/** Bytes that it takes of the device. Needs compile. */
size_t mixt__integrity_bytes(const mixt__trainer *trainer);
mixt_status mixt__integrity_take(mixt__trainer *trainer);
void mixt__integrity_release(mixt__trainer *trainer);
/** What an update needs to know of it. */
void mixt__integrity_fill(mixt__trainer *trainer);

/** Before anything of update `attempts`: sums that are to be made anew, and what no pass has moved yet. */
mixt_status mixt__integrity_begin(mixt__trainer *trainer);
/** Between step control and the update. */
mixt_status mixt__integrity_read(mixt__trainer *trainer, const mixt__update *update);
/** After it. */
mixt_status mixt__integrity_judge(mixt__trainer *trainer, const mixt__update *update);
/** Sends what was found along with the step's result. */
mixt_status mixt__integrity_report(mixt__trainer *trainer);
/** Takes in what a result says. Fails where something was found that nobody looks at. */
mixt_status mixt__integrity_take_in(mixt__trainer *trainer, int64_t step, const mixt__damage *damage);
/** The same as the device has it now. */
mixt_status mixt__integrity_look(mixt__trainer *trainer, int64_t step);

/** State was written by others than an update: it counts as right. */
void mixt__integrity_renew_later(mixt__trainer *trainer);
/** Sums are made anew, where that was asked for. */
mixt_status mixt__integrity_renew(mixt__trainer *trainer);

/** Ranks tell each other with what they have computed: what a rank has found in an update the others hear with the
 * next, and all of them act on it then. */
mixt__integrity_word mixt__integrity_tell(const mixt__trainer *trainer);
/** @param words of all ranks, so many bytes apart @param now all look at the same result; else at the coming one's */
void mixt__integrity_hear(mixt__trainer *trainer, const mixt__integrity_word *words, size_t apart, int ranks, bool now);

/** What was found in an update whose result was taken in, and is in the state still; NULL: nothing. */
const mixt__integrity_finding *mixt__trainer_damage(const mixt__trainer *trainer);
/** From here on results come back whatever was found: somebody asks mixt__trainer_damage. */
void mixt__trainer_tell_damage(mixt__trainer *trainer);

/** What no snapshot has, so that it can be put right where it is what was found: frozen parameters, in a file of
 *  FOLDER. */
mixt_status mixt__integrity_keep_frozen(mixt__trainer *trainer, const char *folder);
/** Puts those right, and a teacher's, where they are what was found. Fails where they cannot be. */
mixt_status mixt__integrity_heal(mixt__trainer *trainer);

/** Whether all state is as it was written, by reading all of it; waits for what was issued. Before it is saved. */
mixt_status mixt__integrity_verify(mixt__trainer *trainer);

/** Sums of the state that was verified last. */
typedef struct mixt__integrity_words {
    mixt__segment_sums *sums; // by segment; NULL: nobody has summed
} mixt__integrity_words;
/** After mixt__integrity_verify. */
mixt_status mixt__integrity_words_read(mixt__trainer *trainer, mixt__integrity_words *words);
/** Of all of a parameter in a role. @return false: there is none */
bool mixt__integrity_words_of(const mixt__trainer *trainer, const mixt__integrity_words *words, int role, int32_t param,
                              uint64_t *sum);
void mixt__integrity_words_free(mixt__integrity_words *words);

/** A control block that is complete but for its sum, to the device. */
mixt_status mixt__trainer_put_control(mixt__trainer *trainer, mixt__control *control);

#endif
