/* Precision policies: what the passes read of one, and the value behind the public handle.
 *
 * What only the files of this folder share is in inside.h.
 */
#ifndef MIXT_POLICY_POLICY_H
#define MIXT_POLICY_POLICY_H

#include "base/alloc.h"
#include "base/handles.h"
#include "mixt/policy.h"

/** The last rule whose patterns match decides. NULL patterns match everything. Formats are those to multiply in. */
typedef struct mixt__policy_rule {
    const char *layer;            // glob over the dotted layer path: "h.*.attn*"
    const char *op;               // glob over the op's name
    mixt_dtype forward, backward; // of the op itself, of its gradient
    mixt_dtype keep;              // of what it saves for its gradient; NONE: as the policy's
    const char *origin;           // where it stands, in words: "policy.yaml:7", "rule 2 of the policy"
    char *numbered;               // memory of such an origin that follows the rule's place; NULL: it is of a file
} mixt__policy_rule;

/** What the passes read of a policy. */
typedef struct mixt__policy {
    mixt_dtype forward, backward; // for what no rule matches
    mixt_dtype keep;              // for rules that say none; NONE: values are kept as they are
    const char *keep_origin;      // in words; NULL with NONE
    const mixt__policy_rule *rules;
    int64_t rule_count;
    const char *origin; // of the default formats, in words
} mixt__policy;

enum { MIXT_POLICY_RULES_MAX = 4096, MIXT_POLICY_PHASES_MAX = 256, MIXT_PHASE_NAME_MAX = 64 };

/** Part of a run with changes of its own. */
typedef struct mixt__policy_phase {
    const char *name;
    double until; // 0: to the end
    mixt_phase_unit unit;
    const char *origin;   // in words; NULL: it was added by hand
    mixt_policy *changes; // owned; a default of NONE is the policy's
} mixt__policy_phase;

struct mixt_policy {
    mixt__handle handle;
    mixt__policy formats;     // its rules are those below
    mixt__policy_rule *rules; // `capacity` of them
    int64_t capacity;
    mixt__policy_phase *phases; // `phase_capacity` of them
    int64_t phase_count, phase_capacity;
    mixt_policy_settings settings;
    const char *made_by;                   // NULL: it does not say
    const struct mixt__evidence *evidence; // a map; NULL: none
    mixt__arena arena;                     // of all texts
};

/** The policy that options ask for, one of their own: `given` copied, or by name or file, "fp32" when both are NULL. */
mixt_status mixt__policy_choose(const char *precision, const mixt_policy *given, mixt_policy **policy);
/** The format in which what a rule's nodes save is kept; rule NULL: where no rule matches. FP32: as it is. */
mixt_dtype mixt__policy_kept(const mixt__policy *policy, const mixt__policy_rule *rule);
/** One format for everything. */
mixt__policy mixt__policy_of(mixt_dtype dtype);
/** Whether anything has a format whose gradients need the loss scaled. */
bool mixt__policy_needs_scaling(const mixt__policy *policy);
/** The formats of a policy's word: a format's name for both ways, or "fp8" for FP8 E4M3 forward and E5M2, which has a
 *  wider range, backward. @return whether it is one; if not, both are NONE */
bool mixt__policy_word(const char *name, mixt_dtype *forward, mixt_dtype *backward);
/** Whether a precision is such a word, and no file's name. */
static inline bool mixt__policy_is_word(const char *name)
{
    mixt_dtype forward, backward;
    return mixt__policy_word(name, &forward, &backward);
}
/** Whether it names a format, of forward or backward work. */
bool mixt__policy_names(const mixt__policy *policy, mixt_dtype dtype);
/** Whether anything has a format below FP32. */
bool mixt__policy_lowers(const mixt__policy *policy);
/** Refuses a policy with phases where there is no run to go through them. */
mixt_status mixt__policy_need_one(const mixt_policy *policy);
/** The phase that update number `update`, from 1, is made in: ends are counted in updates. 0 without phases. */
int64_t mixt__policy_phase_at(const mixt_policy *policy, int64_t update);
/* ---- loss scaling and clipping: see settings.def. By place in mixt_policy_setting. ---- */

enum { MIXT_POLICY_SETTINGS = 10, MIXT_POLICY_SETTING_TEXT = 40 };
bool mixt__policy_setting_said(const mixt_policy_settings *settings, int index);
/** A number, 0 where it is not said; NaN of the one that is a text. *whole: it is an integer. */
double mixt__policy_setting_get(const mixt_policy_settings *settings, int index, bool *whole);
/** Says a number, 0 included. */
void mixt__policy_setting_set(mixt_policy_settings *settings, int index, double number);
/** Writes one as a file has it; false when it is not said. */
bool mixt__policy_setting_text(const mixt_policy_settings *settings, int index, char text[MIXT_POLICY_SETTING_TEXT]);
/** Refuses numbers that are said and may not be. */
mixt_status mixt__policy_settings_check(const mixt_policy_settings *settings);
/** Those that `from` says in the place of those of `settings`. The text is borrowed. */
void mixt__policy_settings_take(mixt_policy_settings *settings, const mixt_policy_settings *from);
/** Those that are not said become the defaults. */
void mixt__policy_settings_fill(mixt_policy_settings *settings);
/** Reads a loss scale that is a number; false where it is none, or losses scaled by it, or the factor that unscales
 *  them, would no longer be normal numbers of FP32. */
bool mixt__policy_fixed_scale(const char *text, float *scale);
/** One line: "bf16; layer h.*, op *: fp32", in the order in which its rules count. Text for free(); NULL: no memory. */
char *mixt__policy_line(const mixt__policy *policy);

#endif
