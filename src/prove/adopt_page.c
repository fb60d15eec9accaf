/* An adoption as a page: what to use and why in the first lines, then the figures of each stage, each decision with its
 * way back, curves and figures of the proof, memory by role, policy and configuration. Below them stand
 * the runs of the stages, as on any page. All of it is in the one file.
 */
#include "prove/adopt.h"

#include "base/status.h"
#include "mixt/compare.h"
#include "page/lead.h"
#include "page/report.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- parts ---- */

static json_t *figures_of(const mixt_adoption *a)
{
    mixt_adopt_figure f;
    json_t *rows = json_array();
    for (int64_t i = 0; mixt_adoption_figure(a, i, &f); i++)
        mixt__json_add(rows, json_pack("[s, s, o, o, o, o, o, s]", mixt_adopt_stage_name(f.stage), f.name,
                                       mixt__lead_number(f.loss, ""), mixt__lead_number(f.accuracy, "%"),
                                       mixt__lead_number(f.step_seconds, "s"), mixt__lead_number(f.memory, "bytes"),
                                       mixt__lead_word(f.good ? "yes" : "no", f.good ? "good" : "bad"), f.note));
    return json_pack("{s:s, s:[s, s, s, s, s, s, s, s], s:o}", "title", "What was measured", "head", "stage", "what",
                     "loss", "accuracy", "an update", "memory", "holds", "", "rows", rows);
}

/** A path without the folder that all of them lie in. */
static const char *in_folder(const mixt_adoption *a, const char *path)
{
    size_t length = strlen(a->folder);
    return !strncmp(path, a->folder, length) && path[length] == '/' ? path + length + 1 : path;
}

static json_t *decisions_of(const mixt_adoption *a)
{
    mixt_adopt_entry e;
    json_t *rows = json_array();
    for (int64_t i = 0; mixt_adoption_entry(a, i, &e); i++) {
        char version[24], when[24];
        snprintf(version, sizeof version, "%lld", (long long)e.version);
        snprintf(when, sizeof when, "%.10s %.8s", e.time, strlen(e.time) > 11 ? e.time + 11 : "");
        const char *stage = mixt_adopt_stage_name(e.stage);
        mixt__json_add(rows, e.undo
                                 ? json_pack("[s, s, s, s, o, s, s, s]", when, stage, "", "",
                                             mixt__lead_word("undone", "open"), "", "", "")
                                 : json_pack("[s, s, s, s, s, s, s, s]", when, stage, version, e.precision, e.decision,
                                             e.reason, in_folder(a, e.evidence), in_folder(a, e.config)));
    }
    return json_pack("{s:s, s:[s, s, s, s, s, s, s, s], s:o}", "title", "What was decided", "head", "when, UTC",
                     "stage", "version", "precision", "decision", "why", "evidence", "configuration", "rows", rows);
}

/** Safe, faster, smaller: what was concluded of the policy in question. */
static json_t *judgements_of(const mixt_adoption *a)
{
    static const char *const moods[] = {"open", "good", "bad"};
    json_t *rows = json_array();
    for (mixt_claim claim = MIXT_CLAIM_SAFE; claim < MIXT_CLAIM_COUNT; claim++) {
        mixt_judgement j;
        char *text = NULL;
        if (mixt_adoption_judgement(a, claim, &j) && mixt_judgement_text(&j, &text) == MIXT_OK)
            mixt__json_add(rows, json_pack("[s, o, s]", mixt_claim_name(claim),
                                           mixt__lead_word(mixt_verdict_name(j.verdict), moods[j.verdict]), text));
        mixt_free(text);
    }
    return json_pack("{s:s, s:[s, s, s], s:o}", "title", "Is it safe? Is it worth it?", "head", "claim", "verdict",
                     "judgement", "rows", rows);
}

/** Commands that can be copied; `original.yaml` is the configuration that was given. */
static json_t *ways_back(const mixt_adoption *a)
{
    char undo[2 * MIXT_ADOPT_PATH], from[2 * MIXT_ADOPT_PATH];
    const char *newest = a->current ? mixt__adopt_text(a->current, "stage") : "";
    snprintf(undo, sizeof undo, "mixt adopt %s/original.yaml --name %s --undo", a->folder, a->name);
    snprintf(from, sizeof from, "mixt adopt %s/original.yaml --name %s --from %s", a->folder, a->name,
             *newest ? newest : "baseline");
    return json_pack("{s:s, s:[s], s:[s, s]}", "title", "How to undo", "lines",
                     "The first command drops the newest stage, the second one repeats it; --from takes any stage and "
                     "repeats those after it too. Versions are kept: each configuration above can be used at any time.",
                     "commands", undo, from);
}

static json_t *memory_row(const char *role, double fp32, double mixed)
{
    return json_pack("[s, o, o, o]", role, mixt__lead_number(fp32, "bytes"), mixt__lead_number(mixed, "bytes"),
                     mixt__lead_number(fp32 > 0 ? 1 - mixed / fp32 : (double)NAN, "%"));
}

/** Memory by role, from the pairs of the proof, or where there are none from the runs of the first stages. */
static json_t *memory_of(const mixt_adoption *a)
{
    char proof[MIXT_ADOPT_PATH], baseline[MIXT_ADOPT_PATH], mixed[MIXT_ADOPT_PATH];
    const char *runs[] = {mixt__adopt_file(a, "baseline", baseline), mixt__adopt_file(a, "mixed", mixed)};
    const json_t *question = mixt__adopt_question(a);
    const char *pairs[] = {mixt__adopt_proof(a, question, proof)};
    bool proved = question && !access(proof, F_OK);
    mixt_table *table = NULL;
    const mixt_table_row *row = NULL;
    if ((proved || (!access(baseline, F_OK) && !access(mixed, F_OK))) &&
        mixt_table_read(proved ? pairs : runs, proved ? 1 : 2, &table) == MIXT_OK)
        row = mixt_table_row_at(table, 0);
    json_t *rows = json_array();
    if (row) {
        const mixt_table_memory *x = &row->sides[MIXT_TABLE_FP32].memory, *y = &row->sides[MIXT_TABLE_MIXED].memory;
        mixt__json_add(rows, memory_row("weights", x->weights, y->weights));
        mixt__json_add(rows, memory_row("gradients", x->gradients, y->gradients));
        mixt__json_add(rows, memory_row("moments", x->moments, y->moments));
        mixt__json_add(rows, memory_row("activations", x->activations, y->activations));
        mixt__json_add(rows, memory_row("workspace", x->workspace, y->workspace));
        mixt__json_add(rows, memory_row("other", x->other, y->other));
        mixt__json_add(rows, memory_row("all", x->total, y->total));
    }
    mixt_table_free(table);
    const char *precision =
        proved ? mixt__adopt_text(question, "precision")
               : mixt__adopt_text(a->done > MIXT_ADOPT_MIXED ? a->stack[MIXT_ADOPT_MIXED] : NULL, "precision");
    return json_pack("{s:s?, s:[s, s, s, s], s:o}", "title", row ? "Memory of a step, by role" : NULL, "head", "",
                     "fp32", precision, "saved", "rows", rows);
}

/** Figures that have more to say: of the proof, and of the checklist. */
static void add_details(const mixt_adoption *a, json_t *parts)
{
    const json_t *row;
    size_t i;
    json_array_foreach(a->figures, i, row)
    {
        json_t *details = json_object_get(row, "details");
        if (details)
            mixt__json_add(parts, json_incref(details));
    }
}

static json_t *curves_of(const mixt_adoption *a)
{
    char folder[MIXT_ADOPT_PATH], path[MIXT_ADOPT_PATH + 20], line[MIXT_ADOPT_PATH + 160];
    const json_t *question = mixt__adopt_question(a);
    snprintf(path, sizeof path, "%s/curves.svg", mixt__adopt_proof(a, question, folder));
    if (!question || access(path, F_OK))
        return json_object();
    snprintf(line, sizeof line,
             "A is FP32, B is %.40s: mean and range over the pairs. All of their runs: %s/report.html",
             mixt__adopt_text(question, "precision"), folder);
    return json_pack("{s:s, s:[s], s:o}", "title", "Learning curves of the validation", "lines", line, "picture",
                     mixt__lead_picture(path));
}

static json_t *parts_of(const mixt_adoption *a)
{
    json_t *parts = json_array();
    mixt__json_add(parts, judgements_of(a));
    mixt__json_add(parts, figures_of(a));
    mixt__json_add(parts, decisions_of(a));
    mixt__json_add(parts, ways_back(a));
    add_details(a, parts);
    mixt__json_add(parts, curves_of(a));
    mixt__json_add(parts, memory_of(a));
    if (a->current) {
        mixt__json_add(parts, json_pack("{s:s, s:o}", "title", "The policy, with its evidence", "text",
                                        mixt__lead_file(mixt__adopt_text(a->current, "policy"))));
        mixt__json_add(parts, json_pack("{s:s, s:o}", "title", "The configuration to use", "text",
                                        mixt__lead_file(mixt__adopt_text(a->current, "config"))));
    }
    return parts;
}

/* ---- the page ---- */

static json_t *lead_of(const mixt_adoption *a)
{
    static const char *const moods[] = {[MIXT_ADOPT_UNDER_WAY] = "open",
                                        [MIXT_ADOPT_ADOPTED] = "good",
                                        [MIXT_ADOPT_KEPT] = "bad",
                                        [MIXT_ADOPT_UNDECIDED] = "open"};
    mixt_adoption_info info = mixt_adoption_describe(a);
    char title[MIXT_ADOPT_NAME + 40], verdict[200], use[2 * MIXT_ADOPT_PATH] = "There is no decision yet.";
    char why[1200] = "";
    snprintf(title, sizeof title, "Mixed precision for %s", a->name);
    if (info.outcome == MIXT_ADOPT_UNDER_WAY)
        snprintf(verdict, sizeof verdict, "in progress: %lld of %d stages are done", (long long)info.done,
                 (int)MIXT_ADOPT_STAGES);
    else
        snprintf(verdict, sizeof verdict, "%s: %s", mixt_adopt_outcome_name(info.outcome),
                 info.outcome == MIXT_ADOPT_ADOPTED     ? info.precision
                 : info.outcome == MIXT_ADOPT_UNDECIDED ? info.best_precision
                                                        : "FP32 stays");
    if (a->current) {
        snprintf(why, sizeof why, "%s: %s: %s.", mixt__adopt_text(a->current, "stage"),
                 mixt__adopt_text(a->current, "decision"), mixt__adopt_text(a->current, "reason"));
        snprintf(use, sizeof use, "Use now: %s/adopted.yaml (%s)%s.", a->folder, info.precision,
                 info.done < MIXT_ADOPT_STAGES ? ", which is not validated yet" : "");
    }
    return json_pack("{s:s, s:s, s:s, s:[s, s], s:o}", "verdict", verdict, "mood", moods[info.outcome], "title", title,
                     "lines", why, use, "parts", parts_of(a));
}

mixt_status mixt__adopt_page_write(const mixt_adoption *a, const char *path)
{
    static const char *const stages[] = {"baseline", "mixed"}; // those that leave a run
    char folders[2][MIXT_ADOPT_PATH], metrics[MIXT_ADOPT_PATH + 20];
    const char *runs[2];
    int64_t count = 0;
    for (int i = 0; i < 2; i++) {
        snprintf(metrics, sizeof metrics, "%s/metrics.jsonl", mixt__adopt_file(a, stages[i], folders[i]));
        if (!access(metrics, F_OK))
            runs[count++] = folders[i];
    }
    json_t *lead = lead_of(a);
    mixt_status status = lead ? mixt__page_write_led(runs, count, lead, path, true)
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the page of an adoption");
    json_decref(lead);
    return status;
}
