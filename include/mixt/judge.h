/* What was concluded, how sure is that, and what would it take to be surer? One value for everything that judges:
 * advise, sensitivity, search, verify, compare, adopt and the controller.
 *
 *   mixt_judgement j;
 *   char *text;
 *   mixt_judge_worse(worse, 8, 0.005, MIXT_UNIT_SHARE, &j);          // B's loss over A's, less 1, pair by pair
 *   if (mixt_judgement_text(&j, &text) == MIXT_OK)
 *       puts(text); // safe: yes; loss +0.09% (-0.30% to +0.48%), margin 0.5%; 8 pairs; a failure in fewer than 31% of
 * … mixt_free(text);
 *
 * A precision is *safe* where it loses less than the margin, and *worth it* where it is faster, smaller or cheaper:
 * two questions, with a judgement each. "Undecided" is an answer: it says how many more pairs would tell.
 */
#ifndef MIXT_JUDGE_H
#define MIXT_JUDGE_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What is claimed of a precision, next to FP32 or to what it is held against. */
typedef enum mixt_claim {
    MIXT_CLAIM_SAFE,    /**< it loses less than the margin */
    MIXT_CLAIM_FASTER,  /**< it is faster by more than the margin */
    MIXT_CLAIM_SMALLER, /**< it saves more memory than the margin */
    MIXT_CLAIM_CHEAPER, /**< it saves more of the cost than the margin */
    MIXT_CLAIM_COUNT
} mixt_claim;
/** "safe", "faster", "smaller", "cheaper". */
MIXT_API const char *mixt_claim_name(mixt_claim claim);

typedef enum mixt_verdict { MIXT_VERDICT_UNDECIDED, MIXT_VERDICT_YES, MIXT_VERDICT_NO } mixt_verdict;
/** "undecided", "yes", "no". */
MIXT_API const char *mixt_verdict_name(mixt_verdict verdict);

/** What a judgement rests on. */
typedef enum mixt_evidence {
    MIXT_EVIDENCE_PREDICTED, /**< calculated, or estimated without training */
    MIXT_EVIDENCE_MEASURED,  /**< measured once: nothing is known of its spread */
    MIXT_EVIDENCE_PAIRED,    /**< pairs of runs that share seed, weights and data */
    MIXT_EVIDENCE_REPLAYED,  /**< updates of one run, made once more: they depend on each other, other seeds were not
                                  tried. More than MEASURED, less than PAIRED */
} mixt_evidence;
/** "predicted", "measured once", "paired over seeds", "replayed". */
MIXT_API const char *mixt_evidence_name(mixt_evidence evidence);

/** In what a statistic and its margin are told. */
typedef enum mixt_unit {
    MIXT_UNIT_SHARE,  /**< 0.005 is 0.5% */
    MIXT_UNIT_POINTS, /**< of accuracy: 0.005 is half a point */
    MIXT_UNIT_TIMES,  /**< 1.6 is 1.6 times as fast */
    MIXT_UNIT_PLAIN,  /**< the metric's own */
} mixt_unit;

typedef struct mixt_judgement {
    mixt_claim claim;
    mixt_verdict verdict;
    mixt_evidence evidence;
    const char *statistic; /**< what was measured: "loss", "accuracy lost", "speed", "memory saved"; a constant */
    mixt_unit unit;
    double value;     /**< of the statistic. SAFE: by how much worse; else by how much better. NaN: not known */
    double low, high; /**< interval of it; NaN: nothing is known of its spread */
    double margin;    /**< SAFE: yes below it; else yes above it */
    int64_t pairs;    /**< that it rests on; 0: not on pairs */
    int64_t updates;  /**< of each run; REPLAYED: that were judged; 0: not known */
    int64_t needs; /**< undecided: pairs to add so that the next look is likely to decide; MIXT_JUDGE_NEVER: no number
                        that anyone makes. Else 0 */
} mixt_judgement;

enum { MIXT_JUDGE_NEVER = -1 };

/**
 * Whether B is safe, from pairs: by the rule of mixt_stats_judge, at its first look.
 * @param worse by how much B is worse than A, pair by pair; above 0: worse. `count` of them, at least 1.
 * @param margin above 0, in the same unit.
 * @param unit SHARE: of A's loss; POINTS: of accuracy; PLAIN.
 */
MIXT_API mixt_status mixt_judge_worse(const double *worse, int64_t count, double margin, mixt_unit unit,
                                      mixt_judgement *judgement);
/**
 * Whether B is faster (FASTER) or saves something (SMALLER, CHEAPER), from pairs: the geometric mean of the ratios with
 * its 95% interval. Yes where all of it is above the margin, no where none is.
 * @param ratios A's over B's, pair by pair, above 0: 1.6 where B is 1.6 times as fast. `count` of them, at least 1.
 * @param margin FASTER: a ratio, such as 1; else a share that is to be saved, such as 0.
 */
MIXT_API mixt_status mixt_judge_ratios(mixt_claim claim, const double *ratios, int64_t count, double margin,
                                       mixt_judgement *judgement);
/** From a number that has no spread, such as planned bytes, or of which none is known.
 *  @param value as in mixt_judgement; one that is not finite is undecided. @param evidence not PAIRED. */
MIXT_API mixt_judgement mixt_judge_value(mixt_claim claim, double value, double margin, mixt_evidence evidence);
/** Of several judgements that must all hold: the first that is no, else the first that is undecided, else the first.
 *  None: undecided. */
MIXT_API mixt_judgement mixt_judge_all(const mixt_judgement *judgements, int count);

/** @param text receives it in one sentence, for mixt_free. */
MIXT_API mixt_status mixt_judgement_text(const mixt_judgement *judgement, char **text);
/** @param json receives it as an object of JSON with the keys claim, verdict, statistic, unit, value, low, high,
 *  margin, evidence, pairs, unseen, updates, needs and text, for mixt_free; what is not known is null. */
MIXT_API mixt_status mixt_judgement_json(const mixt_judgement *judgement, char **json);

#ifdef __cplusplus
}
#endif
#endif
