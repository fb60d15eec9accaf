/* A judgement in a sentence, and as JSON. */
#include "judge/judge.h"

#include "base/status.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER = 40, SENTENCE = 400 };

enum { STATISTICS = 5, EVIDENCES = 4 };

static const char *const claims[MIXT_CLAIM_COUNT] = {"safe", "faster", "smaller", "cheaper"};
static const char *const verdicts[] = {"undecided", "yes", "no"};
static const char *const evidences[] = {"predicted", "measured once", "paired over seeds", "replayed"};
static const char *const units[] = {"share", "points", "times", "plain"};
static const char *const statistics[STATISTICS] = {"loss", "accuracy lost", "speed", "memory saved", "cost saved"};

const char *mixt_claim_name(mixt_claim claim)
{
    return (unsigned)claim < MIXT_CLAIM_COUNT ? claims[claim] : "?";
}

const char *mixt_verdict_name(mixt_verdict verdict)
{
    return (unsigned)verdict <= MIXT_VERDICT_NO ? verdicts[verdict] : "?";
}

const char *mixt_evidence_name(mixt_evidence evidence)
{
    return (unsigned)evidence <= MIXT_EVIDENCE_REPLAYED ? evidences[evidence] : "?";
}

static const char *unit_name(mixt_unit unit)
{
    return (unsigned)unit <= MIXT_UNIT_PLAIN ? units[unit] : "?";
}

/* ---- the sentence ---- */

/** @param sign a plus is written where it is a change */
static const char *number(char text[NUMBER], const mixt_judgement *j, double value, bool sign)
{
    bool percent = j->unit == MIXT_UNIT_SHARE || j->unit == MIXT_UNIT_POINTS;
    double shown = percent ? 100 * value : value;
    const char *unit = j->unit == MIXT_UNIT_SHARE    ? "%"
                       : j->unit == MIXT_UNIT_POINTS ? " points"
                       : j->unit == MIXT_UNIT_TIMES  ? "x"
                                                     : "";
    if (j->unit != MIXT_UNIT_PLAIN && fabs(shown) < 0.005)
        shown = 0; // no -0.00%
    int digits = j->unit == MIXT_UNIT_PLAIN ? 4 : fabs(shown) < 100 ? 2 : 0;
    if (isnan(value))
        snprintf(text, NUMBER, "not known");
    else if (isinf(value))
        snprintf(text, NUMBER, "not finite");
    else if (j->unit == MIXT_UNIT_PLAIN)
        snprintf(text, NUMBER, sign ? "%+.*g" : "%.*g", digits, shown);
    else
        snprintf(text, NUMBER, sign ? "%+.*f%s" : "%.*f%s", digits, shown, unit);
    return text;
}

/** The margin as it was given: 0.5%, not 0.50%. */
static const char *margin_text(char text[NUMBER], const mixt_judgement *j)
{
    bool percent = j->unit == MIXT_UNIT_SHARE || j->unit == MIXT_UNIT_POINTS;
    const char *unit = j->unit == MIXT_UNIT_SHARE    ? "%"
                       : j->unit == MIXT_UNIT_POINTS ? " points"
                       : j->unit == MIXT_UNIT_TIMES  ? "x"
                                                     : "";
    snprintf(text, NUMBER, "%.4g%s", percent ? 100 * j->margin : j->margin, unit);
    return text;
}

/** "8 pairs of 200 updates each, 7 more pairs would tell" */
static void evidence_text(char text[SENTENCE], const mixt_judgement *j)
{
    int used = j->evidence == MIXT_EVIDENCE_PAIRED ? snprintf(text, SENTENCE, "%lld pairs", (long long)j->pairs)
                                                   : snprintf(text, SENTENCE, "%s", mixt_evidence_name(j->evidence));
    if (j->evidence == MIXT_EVIDENCE_REPLAYED)
        snprintf(text, SENTENCE, j->updates ? "%lld updates of this run, replayed" : "replayed", (long long)j->updates);
    else if (j->updates > 0)
        used += snprintf(text + used, (size_t)(SENTENCE - used), " of %lld updates%s", (long long)j->updates,
                         j->evidence == MIXT_EVIDENCE_PAIRED ? " each" : "");
    if (j->verdict == MIXT_VERDICT_YES && j->claim == MIXT_CLAIM_SAFE && j->evidence == MIXT_EVIDENCE_PAIRED)
        snprintf(text + used, (size_t)(SENTENCE - used), "; failures in fewer than %.2g%% of runs are not ruled out",
                 100 * mixt_stats_unseen(j->pairs));
    if (j->verdict != MIXT_VERDICT_UNDECIDED)
        return;
    if (j->needs > 0)
        snprintf(text + used, (size_t)(SENTENCE - used), ", %lld more pair%s would decide", (long long)j->needs,
                 j->needs == 1 ? "" : "s");
    else if (j->needs == MIXT_JUDGE_NEVER)
        snprintf(text + used, (size_t)(SENTENCE - used), ", and no realistic number of pairs would decide");
}

static void sentence(char text[SENTENCE], const mixt_judgement *j)
{
    char value[NUMBER], low[NUMBER], high[NUMBER], margin[NUMBER], evidence[SENTENCE], range[3 * NUMBER] = "";
    bool sign = j->claim == MIXT_CLAIM_SAFE;
    if (!isnan(j->low) && !isnan(j->high))
        snprintf(range, sizeof range, " (%s to %s)", number(low, j, j->low, sign), number(high, j, j->high, sign));
    evidence_text(evidence, j);
    snprintf(text, SENTENCE, "%s: %s; %s %s%s, margin %s; %.200s", mixt_claim_name(j->claim),
             mixt_verdict_name(j->verdict), j->statistic ? j->statistic : "", number(value, j, j->value, sign), range,
             margin_text(margin, j), evidence);
}

mixt_status mixt_judgement_text(const mixt_judgement *judgement, char **text)
{
    char made[SENTENCE];
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need(judgement));
    sentence(made, judgement);
    *text = strdup(made); // for mixt_free, which is free
    return *text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a judgement");
}

/* ---- JSON ---- */

static void set_number(json_t *o, const char *key, double value)
{
    mixt__json_set(o, key, isfinite(value) ? json_real(value) : json_null());
}

json_t *mixt__judgement_object(const mixt_judgement *j)
{
    char text[SENTENCE];
    json_t *o = json_object();
    sentence(text, j);
    mixt__json_set_text(o, "claim", mixt_claim_name(j->claim));
    mixt__json_set_text(o, "verdict", mixt_verdict_name(j->verdict));
    mixt__json_set_text(o, "statistic", j->statistic ? j->statistic : "");
    mixt__json_set_text(o, "unit", unit_name(j->unit));
    set_number(o, "value", j->value);
    set_number(o, "low", j->low);
    set_number(o, "high", j->high);
    set_number(o, "margin", j->margin);
    mixt__json_set_text(o, "evidence", mixt_evidence_name(j->evidence));
    mixt__json_set(o, "pairs", json_integer(j->pairs));
    set_number(o, "unseen", j->evidence == MIXT_EVIDENCE_PAIRED ? mixt_stats_unseen(j->pairs) : (double)NAN);
    mixt__json_set(o, "updates", j->updates > 0 ? json_integer(j->updates) : json_null());
    mixt__json_set(o, "needs", j->needs == MIXT_JUDGE_NEVER ? json_null() : json_integer(j->needs));
    mixt__json_set_text(o, "text", text);
    return o;
}

static double get_number(const json_t *o, const char *key)
{
    const json_t *value = json_object_get(o, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/** @return the first whose name is the text; `count` where there is none */
static int find_name(const json_t *o, const char *key, const char *const *names, int count)
{
    const char *text = json_string_value(json_object_get(o, key));
    int i = 0;
    while (i < count && (!text || strcmp(text, names[i])))
        i++;
    return i;
}

bool mixt__judgement_read(const json_t *o, mixt_judgement *j)
{
    int claim = find_name(o, "claim", claims, MIXT_CLAIM_COUNT), verdict = find_name(o, "verdict", verdicts, 3);
    int evidence = find_name(o, "evidence", evidences, EVIDENCES), unit = find_name(o, "unit", units, 4);
    int statistic = find_name(o, "statistic", statistics, STATISTICS);
    if (claim == MIXT_CLAIM_COUNT || verdict == 3 || evidence == EVIDENCES || unit == 4)
        return false;
    const json_t *needs = json_object_get(o, "needs");
    *j = (mixt_judgement){
        .claim = (mixt_claim)claim,
        .verdict = (mixt_verdict)verdict,
        .evidence = (mixt_evidence)evidence,
        .statistic = statistic < STATISTICS ? statistics[statistic] : "",
        .unit = (mixt_unit)unit,
        .value = get_number(o, "value"),
        .low = get_number(o, "low"),
        .high = get_number(o, "high"),
        .margin = get_number(o, "margin"),
        .pairs = json_integer_value(json_object_get(o, "pairs")),
        .updates = json_integer_value(json_object_get(o, "updates")),
        .needs = json_is_integer(needs) ? json_integer_value(needs) : MIXT_JUDGE_NEVER,
    };
    return true;
}

mixt_status mixt_judgement_json(const mixt_judgement *judgement, char **json)
{
    MIXT_TRY(mixt__need(json));
    *json = NULL;
    MIXT_TRY(mixt__need(judgement));
    json_t *o = mixt__judgement_object(judgement);
    *json = mixt__json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return *json ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a judgement");
}
