/* What decides the bits of an update, as one number. */
#include "run/bits.h"

#include "data/data.h"
#include "run/run.h"
#include "run/saves.h"
#include "store/checksum.h"
#include "store/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Settings that decide bits and are no setting of the trainer. */
static const mixt__config_key keys[] = {MIXT_KEY_DIST_REDUCE, MIXT_KEY_DIST_COMPRESS, MIXT_KEY_DIST_COMPRESS_AFTER,
                                        MIXT_KEY_FAULTS};

/** The learning rate of an update depends on the number of updates where the schedule ends at the last one. */
static bool ends_at_total(mixt__schedule_kind kind)
{
    return kind != MIXT_SCHEDULE_CONSTANT && kind != MIXT_SCHEDULE_STEP;
}

void mixt__run_bits(mixt_run *run, char hash[MIXT_BITS_TEXT])
{
    mixt__experiment *e = &run->experiment;
    const mixt__trainer *t = e->trainer->inner;
    json_t *all = json_object();
    mixt__json_set(all, "settings", mixt__trainer_settings_json(t));
    mixt__json_set(all, "conditions", mixt__run_conditions(e)); // device, threads, instructions, data, its order
    if (ends_at_total(mixt__trainer_settings_of(t)->schedule.kind))
        mixt__json_set(all, "total_steps", json_integer(mixt__trainer_settings_of(t)->schedule.total_steps));
    json_t *left_out = json_array();
    for (int i = 0; i < e->train->left_out_count; i++)
        mixt__json_add(left_out, json_integer(e->train->left_out[i]));
    mixt__json_set(all, "left_out", left_out);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char *text = mixt__config_text(run->config, keys[i]);
        mixt__json_set(all, mixt__config_table[keys[i]].name, json_string(text ? text : ""));
        free(text);
    }
    char *text = mixt__json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    snprintf(hash, MIXT_BITS_TEXT, "%016llx", text ? (unsigned long long)mixt__checksum(text, strlen(text)) : 0ull);
    free(text);
    json_decref(all);
}
