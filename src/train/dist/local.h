/* Updates that each rank makes by itself, after which ranks exchange what of their weights' differences matters.
 *
 * Where dist.compress is set, ranks begin with updates like those of an uncompressed run. From compress_after on, a
 * rank makes its passes and its update with its own gradients and moments, on weights W of its own. All ranks have the
 * weights X in common; `feedback` is E = X - W. After the update its D = X - W is compressed (dist/compress.h): what
 * all send moves X, and what a rank has not sent stays its E. The last update of a run sends all of D.
 *
 * Between updates the masters are X, so that validation, exports and checkpoints know nothing of this; while an update
 * is made they are W, and `feedback` holds X. Whether an update is skipped is one decision of all ranks: where one has
 * overflowed, all skip.
 */
#ifndef MIXT_TRAIN_LOCAL_H
#define MIXT_TRAIN_LOCAL_H

#include "train/trainer.h"

/** What an exchange of this trainer's weights would take: all but its memory. False: ranks do not compress. */
bool mixt__local_plan(const mixt__trainer *t, mixt__compressor *c);
/** After the compressor's blocks were taken, where they were not there before. */
void mixt__local_prepare(mixt__trainer *t);
/** Bytes that this rank, of planned ones the first, sends for such an update. @param whole for the run's last */
int64_t mixt__local_sent(const mixt__trainer *t, bool whole);

/** When update `attempts` begins: from here on the masters are this rank's own, if it is such an update. */
mixt_status mixt__local_begin(mixt__trainer *t);
/** step_control, as all ranks decide it. The norm of the gradients becomes the root of the mean of ranks' squares, and
 *  an overflow's place that of the first rank that has one. */
mixt_status mixt__local_control(mixt__trainer *t, mixt__update *update);
/** After the optimizer: ranks exchange, unless they skip. From here on the masters are common. */
mixt_status mixt__local_finish(mixt__trainer *t);
/** After a failure on the way: the same without an exchange. */
void mixt__local_leave(mixt__trainer *t);

#endif
