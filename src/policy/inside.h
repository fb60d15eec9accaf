/* What the files of this folder share: policy.c makes, changes, copies and compares policies, settings.c checks what
 * goes with the formats, phases.c the parts of a run, yaml.c opens YAML documents, read.c reads a policy from one,
 * evidence.c the map that mixt does not read, print.c writes both.
 *
 * Numbers are read and written in the C locale, which mixt__c_locale_enter sets for the thread.
 */
#ifndef MIXT_POLICY_INSIDE_H
#define MIXT_POLICY_INSIDE_H

#include "base/c_locale.h"
#include "base/status.h"
#include "policy/policy.h"

#include <stdio.h>
#include <yaml.h>

/** A value of the evidence: a text, or a list or map of values. */
typedef struct mixt__evidence {
    enum { MIXT_EVIDENCE_TEXT, MIXT_EVIDENCE_LIST, MIXT_EVIDENCE_MAP } kind;
    const char *key;               // in a map
    const char *text;              // of a TEXT
    bool key_plain, plain;         // written without quotes: a reader may take it for a number, true or nothing
    struct mixt__evidence *next;   // in the same list or map
    struct mixt__evidence *inside; // the first value of a LIST or MAP
} mixt__evidence;

/** The same of keep: FP32, FP16, BF16 or FP8 E4M3. */
mixt_dtype mixt__policy_keep_dtype(const char *name);
/** Adds a rule whose texts are in the policy's arena, at `index`. */
mixt_status mixt__policy_place(mixt_policy *policy, int64_t index, const mixt__policy_rule *rule);

/** One that says nothing yet, not even formats. */
mixt_status mixt__policy_empty(mixt_policy **policy);
/** All of a policy but its default formats and its phases into another one, behind the rules that are there. */
mixt_status mixt__policy_copy_into(const mixt_policy *policy, mixt_policy *copy);
/** A copy in the policy's arena; NULL stays NULL. */
mixt_status mixt__policy_text(mixt_policy *policy, const char *text, const char **kept);
/** Refuses what YAML cannot hold: bytes that are not UTF-8. */
mixt_status mixt__policy_check_text(const char *what, const char *text);

/* ---- phases ---- */

/** Checks and adds a phase; its changes become the policy's, or are freed where that fails. */
mixt_status mixt__policy_take_phase(mixt_policy *policy, const mixt__policy_phase *phase);
mixt_status mixt__policy_copy_phases(const mixt_policy *policy, mixt_policy *copy);
bool mixt__policy_phases_equal(const mixt_policy *a, const mixt_policy *b);
void mixt__policy_free_phases(mixt_policy *policy);
/** Refuses phases of which the last one has an end. */
mixt_status mixt__policy_check_last(const mixt_policy *policy);
/** "500", "2 epochs" or "10%". */
mixt_status mixt__phase_until_parse(const char *text, double *until, mixt_phase_unit *unit);
enum { MIXT_UNTIL_TEXT = 48 };
const char *mixt__phase_until_text(double until, mixt_phase_unit unit, char text[MIXT_UNTIL_TEXT]);

/* ---- what goes with the formats ---- */

/** Reads, checks and stores one; a text goes to the arena. */
mixt_status mixt__policy_setting_parse(mixt_policy_settings *settings, int index, const char *text, mixt__arena *arena);
/** The shortest decimal that reads back to the same float. Returns `text`. */
const char *mixt__float_text(float number, char *text, size_t size);

/* ---- YAML ---- */

/** One document, and the name that messages give it. */
typedef struct mixt__yaml {
    const char *name;
    yaml_document_t document;
} mixt__yaml;

/** Opens a text that is one document with something in it; `empty` says what is missing if not. */
mixt_status mixt__yaml_open(mixt__yaml *yaml, const char *text, size_t size, const char *name, const char *empty);
void mixt__yaml_close(mixt__yaml *yaml);
yaml_node_t *mixt__yaml_node(const mixt__yaml *yaml, int index);
/** The text of a scalar; "" of anything else. */
const char *mixt__yaml_text(const yaml_node_t *node);
/** Fails at a node, "name:line:column: what". */
mixt_status mixt__yaml_bad(const mixt__yaml *yaml, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** The same for a failure that has a text already. */
mixt_status mixt__yaml_at(const mixt__yaml *yaml, const yaml_node_t *node, mixt_status status);
/** Refuses a map that has a key twice. */
mixt_status mixt__yaml_check_twice(const mixt__yaml *yaml, const yaml_node_t *map);
/** Refuses what is no map, keys that are not among `known`, "a|b|c", and those that are given twice. */
mixt_status mixt__yaml_check_map(const mixt__yaml *yaml, const yaml_node_t *map, const char *what, const char *known);
/** The value of a key; NULL when the map has it not. */
const yaml_node_t *mixt__yaml_find(const mixt__yaml *yaml, const yaml_node_t *map, const char *name);

/** Reads a policy into an empty one. */
mixt_status mixt__policy_read(mixt_policy *policy, const char *text, size_t size, const char *name);
/** Takes a map out of a document; only a map is one of evidence. */
mixt_status mixt__evidence_take(mixt__arena *arena, const mixt__yaml *yaml, const yaml_node_t *node,
                                const mixt__evidence **map);
/** A copy in another arena; NULL when there is no memory. */
const mixt__evidence *mixt__evidence_copy(mixt__arena *arena, const mixt__evidence *value);

/** A policy, or evidence alone, as YAML. */
void mixt__policy_print(FILE *stream, const mixt_policy *policy);
void mixt__evidence_print(FILE *stream, const mixt__evidence *map, int indent);

#endif
