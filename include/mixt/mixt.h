/* mixt: mixed-precision training in C. This header is the whole public interface.
 *
 * A context and all that was made from it belong to one thread at a time, and so do all contexts on a GPU together. A
 * data set may be read by several threads at once (mixt_data_batch, mixt_data_read), and mixt_error_text is each
 * thread's own. A context on the CPU has threads of its own: several contexts may train at once, each in its thread.
 *
 * Texts have one rule. A `char *`, given behind a `char **` or in a struct, is the caller's: mixt_free it, or the whole
 * list where its header has a function for that. A `const char *` belongs to the object that was asked (the first
 * argument), or to the library where none was, and lasts until that object is asked the same thing again, is changed in
 * what the text tells of, or is freed. A `const char *` that goes in is borrowed for the call, unless its words say
 * otherwise; NULL is "none".
 */
#ifndef MIXT_MIXT_H
#define MIXT_MIXT_H

#include "mixt/adopt.h"
#include "mixt/advise.h"
#include "mixt/bench.h"
#include "mixt/chat.h"
#include "mixt/compare.h"
#include "mixt/compute.h"
#include "mixt/config.h"
#include "mixt/data.h"
#include "mixt/debug.h"
#include "mixt/finetune.h"
#include "mixt/generate.h"
#include "mixt/graph.h"
#include "mixt/judge.h"
#include "mixt/loss.h"
#include "mixt/machine.h"
#include "mixt/metrics.h"
#include "mixt/monitor.h"
#include "mixt/num.h"
#include "mixt/onnx.h"
#include "mixt/ops.h"
#include "mixt/page.h"
#include "mixt/plan.h"
#include "mixt/plot.h"
#include "mixt/policy.h"
#include "mixt/predict.h"
#include "mixt/program.h"
#include "mixt/progress.h"
#include "mixt/ranks.h"
#include "mixt/report.h"
#include "mixt/run.h"
#include "mixt/search.h"
#include "mixt/sensitivity.h"
#include "mixt/suggest.h"
#include "mixt/tensor.h"
#include "mixt/tokenizer.h"
#include "mixt/train.h"
#include "mixt/types.h"
#include "mixt/verify.h"
#include "mixt/version.h"
#include "mixt/weights.h"
#include "mixt/zoo.h"

/* What some models are for: nothing above needs these. */
#include "mixt/tasks/pairs.h"
#include "mixt/tasks/ratings.h"
#include "mixt/tasks/table.h"
#include "mixt/tasks/transcript.h"
#include "mixt/tasks/translate.h"

#endif
