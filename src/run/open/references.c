/* Scoring pairs by the reference, and the file of scores. */
#include "run/open/references.h"

#include "data/chat/chat_pairs.h"
#include "data/data.h"
#include "model/lora.h"
#include "store/checksum.h"
#include "store/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { AT_ONCE = 16, PATH_ROOM = 1200 };

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the scores of the reference");
}

/* ---- making them ---- */

/** Whether a parameter is what adapters add by: without it they add nothing. */
static bool adds(const mixt__param *p)
{
    const char *at = p->adapter ? strstr(p->name, "." MIXT_LORA_B) : NULL;
    return at != NULL;
}

/** Sets what adapters add by to zeros, or back. @param values of all of them, one behind the other */
static mixt_status switch_adapters(mixt__params *params, bool off, float *values)
{
    for (int32_t i = 0; i < params->count; i++) {
        const mixt__param *p = &params->table[i];
        if (!adds(p))
            continue;
        if (off)
            MIXT_TRY(mixt__params_get(params, i, values));
        float *zeros = off ? mixt__alloc((size_t)p->count * sizeof *zeros) : NULL;
        if (off && !zeros)
            return no_memory();
        mixt_status status = mixt__params_set(params, i, off ? zeros : values);
        mixt__free(zeros);
        MIXT_TRY(status);
        values += p->count;
    }
    return mixt__params_refresh_copies(params);
}

static mixt_status score_all(mixt_trainer *t, const mixt_data *data, void *input, void *target, float *scores)
{
    int64_t pairs = mixt__chat_pairs_count(data);
    float margins[AT_ONCE];
    for (int64_t first = 0; first < pairs; first += AT_ONCE) {
        int64_t count = pairs - first < AT_ONCE ? pairs - first : AT_ONCE, valid;
        MIXT_TRY(mixt__data_read_some(data, first, count, AT_ONCE, input, target, &valid));
        MIXT_TRY(mixt_trainer_predict(t, input, AT_ONCE, margins));
        memcpy(scores + first, margins, (size_t)count * sizeof *scores);
    }
    for (int64_t i = 0; i < pairs; i++)
        if (!isfinite(scores[i]))
            return mixt__fail(MIXT_ERROR_DATA, "%s: the reference's score of pair %lld is not finite",
                              mixt_data_describe(data)->path, (long long)i + 1);
    return MIXT_OK;
}

/** Scores of a set by the model as it is: with a reference of 0 its outputs are they. */
static mixt_status score_set(mixt_trainer *t, mixt_data *data, float *scores)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, AT_ONCE);
    memset(scores, 0, (size_t)mixt__chat_pairs_count(data) * sizeof *scores);
    MIXT_TRY(mixt__chat_pairs_refer(data, scores));
    void *input = mixt__alloc(mixt__spec_input_bytes(&spec) + 1),
         *target = mixt__alloc(mixt__spec_target_bytes(&spec) + 1);
    mixt_status status = input && target ? score_all(t, data, input, target, scores) : no_memory();
    mixt__free(input);
    mixt__free(target);
    mixt__trainer_free_predict(t->inner);
    return status == MIXT_OK ? mixt__chat_pairs_refer(data, scores) : status;
}

/** Scores of several sets by the model without its adapters. */
static mixt_status score_sets(mixt_trainer *t, mixt_data *const *sets, int count, float *const *scores)
{
    mixt__params *params = mixt__trainer_params(t->inner);
    int64_t kept = 1;
    MIXT_TRY(mixt__trainer_take_weights(t->inner));
    for (int64_t i = 0; i < params->count; i++)
        kept += adds(&params->table[i]) ? params->table[i].count : 0;
    float *values = mixt__alloc((size_t)kept * sizeof *values);
    mixt_status status = values ? switch_adapters(params, true, values) : no_memory();
    for (int i = 0; status == MIXT_OK && i < count; i++)
        status = sets[i] ? score_set(t, sets[i], scores[i]) : MIXT_OK;
    if (status == MIXT_OK)
        status = switch_adapters(params, false, values);
    mixt__free(values);
    return status;
}

/* ---- the file ---- */

static const char *const parts[] = {"train", "val"};

static mixt_status path_of(const char *folder, char *path)
{
    int n = snprintf(path, PATH_ROOM, "%s/" MIXT_REFERENCES_FILE, folder);
    return n < PATH_ROOM ? MIXT_OK : mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
}

static mixt_status write_file(const char *folder, mixt_data *const *sets, float *const *scores)
{
    mixt__file_tensor tensors[4];
    uint64_t sums[2];
    char path[PATH_ROOM];
    int count = 0;
    MIXT_TRY(path_of(folder, path));
    for (int i = 0; i < 2; i++) {
        int64_t pairs = sets[i] ? mixt__chat_pairs_count(sets[i]) : 0;
        if (!pairs)
            continue;
        sums[i] = mixt__checksum(scores[i], (size_t)pairs * sizeof **scores);
        tensors[count++] = (mixt__file_tensor){
            .name = parts[i], .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {pairs}, .data = scores[i]};
        tensors[count++] = (mixt__file_tensor){.name = i ? "val.checksum" : "train.checksum",
                                               .dtype = MIXT_DTYPE_INT64,
                                               .rank = 1,
                                               .dims = {1},
                                               .data = &sums[i]};
    }
    return mixt__safetensors_write(path, tensors, count, NULL);
}

/** Takes the scores of one part from an open file. */
static mixt_status read_part(const char *path, const mixt__safetensors *file, int part, mixt_data *data)
{
    const mixt__file_tensor *scores = mixt__safetensors_find(file, parts[part]);
    const mixt__file_tensor *sum = mixt__safetensors_find(file, part ? "val.checksum" : "train.checksum");
    int64_t pairs = mixt__chat_pairs_count(data);
    if (!scores || !sum || scores->dtype != MIXT_DTYPE_FP32 || sum->dtype != MIXT_DTYPE_INT64 || sum->bytes != 8)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: holds no scores of the reference for the part %s", path, parts[part]);
    if (mixt__checksum(scores->data, scores->bytes) != *(const uint64_t *)sum->data)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: is damaged: the scores of part %s do not have their checksum. Start the run again", path,
                          parts[part]);
    if (scores->bytes != (size_t)pairs * sizeof(float))
        return mixt__fail(MIXT_ERROR_DATA, "%s: has scores of %zu pairs, but the part %s of the data has %lld", path,
                          scores->bytes / sizeof(float), parts[part], (long long)pairs);
    return mixt__chat_pairs_refer(data, scores->data);
}

static mixt_status read_file(const char *folder, mixt_data *const *sets)
{
    mixt__safetensors *file;
    char path[PATH_ROOM];
    mixt_status status = MIXT_OK;
    MIXT_TRY(path_of(folder, path));
    MIXT_TRY(mixt__safetensors_open(path, &file));
    for (int i = 0; i < 2 && status == MIXT_OK; i++)
        status = sets[i] && mixt__chat_pairs_count(sets[i]) ? read_part(path, file, i, sets[i]) : MIXT_OK;
    mixt__safetensors_close(file);
    return status;
}

/** Scores that were read, for a run that goes on in another directory. */
static mixt_status write_again(const char *folder, mixt_data *const *sets)
{
    float *scores[2] = {0};
    for (int i = 0; i < 2; i++)
        scores[i] = sets[i] ? mixt__chat_state_of(sets[i])->reference : NULL;
    return write_file(folder, sets, scores);
}

/* ---- runs ---- */

static mixt_status make(mixt_run *run, mixt_data *const *sets)
{
    float *scores[2] = {0};
    mixt_status status = MIXT_OK;
    for (int i = 0; i < 2 && status == MIXT_OK; i++) {
        scores[i] = mixt__alloc((size_t)(sets[i] ? mixt__chat_pairs_count(sets[i]) + 1 : 1) * sizeof **scores);
        status = scores[i] ? MIXT_OK : no_memory();
    }
    if (status == MIXT_OK)
        status = score_sets(run->experiment.trainer, sets, 2, scores);
    if (status == MIXT_OK && !run->dir.silent)
        status = write_file(run->dir.path, sets, scores);
    mixt__free(scores[0]);
    mixt__free(scores[1]);
    return status;
}

mixt_status mixt__references_take(mixt_run *run)
{
    mixt_data *const sets[2] = {run->experiment.train, run->experiment.val};
    if (!run->experiment.train || !mixt__chat_pairs_count(run->experiment.train))
        return MIXT_OK;
    if (!run->resume.checkpoint)
        return make(run, sets);
    MIXT_TRY(read_file(run->resume.run, sets));
    return run->resume.out[0] && !run->dir.silent ? write_again(run->dir.path, sets) : MIXT_OK;
}

mixt_status mixt__references_for(mixt_run *run, const char *split, mixt_data *data)
{
    if (!mixt__chat_pairs_count(data))
        return MIXT_OK;
    float *scores = mixt__alloc((size_t)(mixt__chat_pairs_count(data) + 1) * sizeof *scores);
    bool adapters = mixt__trainer_model(run->experiment.trainer->inner)->lora.rank > 0;
    mixt_data *const one[2] = {!strcmp(split, parts[0]) ? data : NULL, !strcmp(split, parts[1]) ? data : NULL};
    mixt_status status = MIXT_OK;
    if (!scores)
        status = no_memory();
    else if (adapters)
        status = score_sets(run->experiment.trainer, &data, 1, &scores);
    else if (run->known.folder && (one[0] || one[1]))
        status = read_file(run->known.folder, one);
    else
        status = mixt__fail(MIXT_ERROR_STATE,
                            "%s: the reference of a run that trains all weights is the model that it began with, which "
                            "is gone: only its own parts train and val can be evaluated",
                            mixt_data_describe(data)->path);
    mixt__free(scores);
    return status;
}
