/* From measurements to scores, from scores to ranks and recommendations.
 *
 *   accuracy   1 / (1 + |loss change| / (0.5% of the loss) + error of the gradients / 50%)
 *   stability  0 where a value overflows; else (1 - share flushed to 0) · (1 - 2^-margin), the margin being the powers
 * of two between the largest value and the format's largest number score      accuracy · stability
 *
 * A layer bears a format where the score is above 0.5: one rule for picture, text, JSON and policies made of it. */
#include "choose/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LOSS_TOLERANCE = 0.005, GRADIENT_TOLERANCE = 0.5, SCORE_LIMIT = 0.5;

double mixt__sense_decibels(double signal, double noise)
{
    if (!isfinite(noise) || !isfinite(signal))
        return NAN;
    double db = noise > 0 ? 10 * log10(signal / noise) : MIXT_SENSE_EXACT_DB;
    return fmin(db, MIXT_SENSE_EXACT_DB);
}

static double accuracy_of(const mixt__seen *s)
{
    double loss = fabs(s->loss_change) / (LOSS_TOLERANCE * fmax(fabs(s->loss), 1e-6));
    double harm = loss + s->grad_error / GRADIENT_TOLERANCE;
    return isfinite(harm) ? 1 / (1 + harm) : 0;
}

static double stability_of(const mixt__seen *s)
{
    if (s->overflow > 0 || !isfinite(s->loss_change) || !isfinite(s->grad_error))
        return 0;
    return (1 - s->underflow) * (1 - exp2(-fmax(s->margin, 0)));
}

void mixt__seen_add(mixt__seen_sum *sum, const mixt__seen *seen)
{
    double accuracy = accuracy_of(seen), stability = stability_of(seen), score = accuracy * stability;
    mixt__seen *s = &sum->sum;
    s->loss += seen->loss;
    s->loss_change += seen->loss_change;
    s->snr_db += seen->snr_db;
    s->grad_cosine += seen->grad_cosine;
    s->grad_norm_error += seen->grad_norm_error;
    s->grad_error += seen->grad_error;
    s->update_error += seen->update_error;
    s->overflow += seen->overflow;
    s->underflow += seen->underflow;
    s->margin += seen->margin;
    sum->accuracy += accuracy;
    sum->stability += stability;
    sum->score += score;
    sum->score_squares += score * score;
    sum->count++;
}

double mixt__seen_score(const mixt__seen_sum *sum)
{
    return sum->count ? sum->score / (double)sum->count : 1;
}

/** Standard deviation of the scores; 0 of one. */
static double spread_of(const mixt__seen_sum *sum)
{
    double n = (double)sum->count;
    return n < 2 ? 0 : sqrt(fmax(0, (sum->score_squares - sum->score * sum->score / n) / (n - 1)));
}

static const mixt__seen_sum *best_known(const mixt__sense_cell *cell)
{
    return cell->measured.count ? &cell->measured : &cell->estimated;
}

static void fill_row(mixt_sensitivity_row *row, const mixt__seen_sum *sum)
{
    double n = (double)sum->count;
    row->loss_change = sum->sum.loss_change / n;
    row->snr_db = sum->sum.snr_db / n;
    row->grad_cosine = sum->sum.grad_cosine / n;
    row->grad_norm_error = sum->sum.grad_norm_error / n;
    row->update_error = sum->sum.update_error / n;
    row->overflow = sum->sum.overflow / n;
    row->underflow = sum->sum.underflow / n;
    row->accuracy_score = sum->accuracy / n;
    row->stability_score = sum->stability / n;
    row->score = sum->score / n;
    row->spread = spread_of(sum);
    if (!isfinite(row->loss_change))
        row->loss_change = NAN;
}

/* ---- recommendations ---- */

static double lowered_score(const mixt_sensitivity *s, int64_t layer, int format)
{
    const mixt__sense_cell *cell = mixt__sense_cell_of(s, layer, format, MIXT_SENSITIVITY_LOWERED);
    return cell->exists ? mixt__seen_score(best_known(cell)) : 1;
}

/** The format that a layer takes in a model of `format`: that one where it tolerates it, else another of 16 bits, else
 *  FP32. */
static const char *recommend(const mixt_sensitivity *s, int64_t layer, int format)
{
    if (lowered_score(s, layer, format) > SCORE_LIMIT)
        return mixt_dtype_name(s->info.formats[format]);
    int best = -1;
    for (int f = 0; f < s->info.format_count; f++)
        if (!mixt__dtype_way(s->info.formats[f]) && lowered_score(s, layer, f) > SCORE_LIMIT &&
            (best < 0 || lowered_score(s, layer, f) > lowered_score(s, layer, best)))
            best = f;
    return best < 0 ? "fp32" : mixt_dtype_name(s->info.formats[best]);
}

/** All formats that a layer bears, in words: "any", "bf16, tf32", "fp32" where it bears none. NULL: no memory. */
static const char *borne(mixt_sensitivity *s, int64_t layer)
{
    char names[64] = "";
    int count = 0;
    for (int f = 0; f < s->info.format_count; f++) {
        size_t used = strlen(names);
        if (lowered_score(s, layer, f) <= SCORE_LIMIT)
            continue;
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", mixt_dtype_name(s->info.formats[f]));
        count++;
    }
    if (!count || count == s->info.format_count)
        return count ? "any" : "fp32";
    return mixt__arena_strdup(&s->layers.arena, names);
}

/** From what the score lacks: the recommendation as a judgement. */
static mixt_judgement judge(const mixt_sensitivity_row *row)
{
    mixt_judgement j = mixt_judge_value(MIXT_CLAIM_SAFE, 1 - row->score, 1 - SCORE_LIMIT,
                                        row->measured ? MIXT_EVIDENCE_MEASURED : MIXT_EVIDENCE_PREDICTED);
    j.statistic = "harm, 1 less the score,";
    j.unit = MIXT_UNIT_PLAIN;
    return j;
}

/* ---- ranks ---- */

/** Lowered: the lowest scores first; kept: the highest. Where that is equal, the order of the model. */
static int by_rank(const void *x, const void *y)
{
    const mixt_sensitivity_row *a = x, *b = y;
    if (a->mode != b->mode)
        return a->mode < b->mode ? -1 : 1;
    double first = a->mode == MIXT_SENSITIVITY_KEPT ? -a->score : a->score;
    double second = b->mode == MIXT_SENSITIVITY_KEPT ? -b->score : b->score;
    return first < second ? -1 : first > second;
}

/** Sorts in place without changing the order of equals: glibc's qsort does, where it has memory; this needs none. */
static void sort_rows(mixt_sensitivity_row *rows, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        mixt_sensitivity_row row = rows[i];
        int64_t j = i;
        for (; j > 0 && by_rank(&row, &rows[j - 1]) < 0; j--)
            rows[j] = rows[j - 1];
        rows[j] = row;
    }
}

mixt_status mixt__sense_rank(mixt_sensitivity *s)
{
    int64_t cells = s->layers.count * s->info.format_count * MIXT_SENSITIVITY_MODES;
    s->rows = mixt__alloc((size_t)(cells + 1) * sizeof *s->rows);
    if (!s->rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld rows", (long long)cells);
    for (int64_t i = 0; i < cells; i++) {
        int mode = (int)(i % MIXT_SENSITIVITY_MODES);
        int format = (int)(i / MIXT_SENSITIVITY_MODES % s->info.format_count);
        int64_t layer = i / MIXT_SENSITIVITY_MODES / s->info.format_count;
        const mixt__sense_cell *cell = &s->cells[i];
        if (!cell->exists || !best_known(cell)->count)
            continue;
        mixt_sensitivity_row *row = &s->rows[s->row_count++];
        *row = (mixt_sensitivity_row){.layer = s->layers.layers[layer].name,
                                      .format = s->info.formats[format],
                                      .mode = (mixt_sensitivity_mode)mode,
                                      .recommend = recommend(s, layer, format),
                                      .measured = cell->measured.count > 0};
        fill_row(row, best_known(cell));
        row->safe = judge(row);
        s->info.measured += row->measured;
    }
    sort_rows(s->rows, s->row_count);
    for (int64_t l = 0; l < s->layers.count; l++)
        if (!(s->layers.layers[l].shown.recommend = borne(s, l)))
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the formats of layers");
    for (int f = 0; f < s->info.format_count; f++) {
        s->info.all_low_score[f] = mixt__seen_score(&s->all_low[f]);
        s->info.all_low_loss[f] = s->all_low[f].sum.loss_change / (double)s->all_low[f].count;
        s->info.all_low[f] = mixt_judge_value(MIXT_CLAIM_SAFE, s->all_low[f].sum.loss_change / s->all_low[f].sum.loss,
                                              LOSS_TOLERANCE, MIXT_EVIDENCE_MEASURED);
    }
    return MIXT_OK;
}
