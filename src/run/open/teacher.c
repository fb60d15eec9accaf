/* From distill.teacher to a model in the training step: see run/open/teacher.h. */
#include "run/open/teacher.h"

#include "data/facts.h"
#include "data/text/inputs_text.h"
#include "data/text/tokenizer.h"
#include "run/open/hf_folder.h"
#include "run/open/init.h"
#include "run/open/inputs.h"
#include "run/open/policy.h"
#include "run/open/other_tokens.h"
#include "run/open/weights.h"
#include "store/checksum.h"

#include <stdio.h>
#include <string.h>

struct mixt__distillation {
    char path[MIXT_WEIGHTS_PATH];
    bool foreign; // a folder of another program
    mixt_config *config;
    mixt_policy *policy;
    mixt_data *facts; // NULL: nobody knows
    mixt__other_tokens tokens;
    mixt__model_sizes sizes;
    mixt__teacher teacher;
    mixt__file_tensor *wanted; // its parameters
    mixt__arena names;
    int64_t count;
    mixt__weights *weights;
    char sum[24];
};

static mixt_status refuse(const mixt__distillation *l, const char *what, const char *mine, const char *theirs)
{
    return mixt__fail(MIXT_ERROR_CONFIG, "distill.teacher=%s: %s: the teacher's %s, the data's %s", l->path, what,
                      theirs, mine);
}

/** What the teacher's run remembers of its data; a run that does not, or another program's model, is taken at its
 *  word. */
static mixt_status open_facts(mixt__distillation *l)
{
    char run[MIXT_WEIGHTS_PATH + 16];
    json_t *inputs;
    if (l->foreign)
        return MIXT_OK;
    mixt__run_inputs_folder(l->path, run, sizeof run);
    MIXT_TRY(mixt__run_inputs_read(run, &inputs));
    mixt_status status = inputs ? mixt__data_facts_unpack(json_object_get(inputs, "data"), &l->facts) : MIXT_OK;
    json_decref(inputs);
    return status;
}

static mixt_status open_tokens(mixt__distillation *l)
{
    char run[MIXT_WEIGHTS_PATH + 16];
    mixt__run_inputs_folder(l->path, run, sizeof run);
    l->tokens = (mixt__other_tokens){.path = l->path, .to = "to the teacher", .whose = "the teacher's"};
    if (l->foreign ? !mixt__hf_folder_has_tokenizer(l->path) : !l->facts)
        return MIXT_OK;
    const char *kind = l->foreign ? mixt__config_string(l->config, MIXT_KEY_DATA_KIND) : l->facts->info.kind;
    return mixt__other_tokens_open(&l->tokens, run, l->config, kind);
}

/** What the teacher's run ended with, or what the student's configuration names in its place. */
static mixt_status open_policy(mixt__distillation *l, const char *precision)
{
    const mixt_policy *all;
    if (*precision) {
        MIXT_TRY(mixt_policy_open(precision, &l->policy));
        return mixt_policy_phases(l->policy) ? mixt__fail(MIXT_ERROR_CONFIG,
                                                          "distill.policy=%s has phases: a teacher computes in one "
                                                          "precision",
                                                          precision)
                                             : MIXT_OK;
    }
    MIXT_TRY(mixt__config_policy(l->config, &all));
    return mixt__run_last_policy(all, &l->policy);
}

static mixt_status open(mixt__distillation *l, const mixt_config *config)
{
    const char *path = mixt__config_string(config, MIXT_KEY_DISTILL_TEACHER);
    if (snprintf(l->path, sizeof l->path, "%s", path) >= (int)sizeof l->path)
        return mixt__fail(MIXT_ERROR_CONFIG, "distill.teacher is longer than %zu bytes", sizeof l->path);
    MIXT_TRY(mixt_run_folder_config(path, &l->config));
    l->foreign = mixt__hf_folder_is(path);
    MIXT_TRY(
        mixt__run_weights_final(path, "distill.teacher=RUN/checkpoints/step-NNNNNNNN takes those of a checkpoint"));
    MIXT_TRY(open_policy(l, mixt__config_string(config, MIXT_KEY_DISTILL_POLICY)));
    l->teacher.weight = (float)mixt__config_float(config, MIXT_KEY_DISTILL_WEIGHT);
    l->teacher.temperature = (float)mixt__config_float(config, MIXT_KEY_DISTILL_TEMPERATURE);
    MIXT_TRY(open_facts(l));
    return open_tokens(l);
}

mixt_status mixt__distillation_open(const mixt_config *config, mixt__distillation **distillation)
{
    *distillation = NULL;
    if (!*mixt__config_string(config, MIXT_KEY_DISTILL_TEACHER))
        return MIXT_OK;
    mixt__distillation *l = mixt__alloc(sizeof *l);
    if (!l)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a teacher");
    mixt_status status = open(l, config);
    if (status != MIXT_OK) {
        mixt__distillation_close(l);
        return mixt__fail_context(status, "distill.teacher");
    }
    *distillation = l;
    return MIXT_OK;
}

const mixt_data *mixt__distillation_facts(const mixt__distillation *distillation)
{
    return distillation ? distillation->facts : NULL;
}

/* ---- held against the data ---- */

static const char *const target_words[] = {"auto", "classes", "values", "tokens", "texts"};

static mixt_status check_numbers(const mixt__distillation *l, const char *what, int64_t mine, int64_t theirs)
{
    char a[32], b[32];
    snprintf(a, sizeof a, "%lld", (long long)mine);
    snprintf(b, sizeof b, "%lld", (long long)theirs);
    return mine == theirs ? MIXT_OK : refuse(l, what, a, b);
}

/** Whether what the teacher was trained on is what the student sees. Texts may be shorter. */
static mixt_status check_facts(const mixt__distillation *l, const mixt_data_info *info)
{
    const mixt_data_info *t = &l->facts->info;
    mixt__shape mine = mixt__shape_of(info->input_rank, info->input_dims),
                theirs = mixt__shape_of(t->input_rank, t->input_dims);
    char a[128], b[128];
    bool text = info->target == MIXT_TARGET_TOKENS;
    if (info->target != t->target)
        return refuse(l, "other targets", target_words[info->target], target_words[t->target]);
    if (info->next_tokens != t->next_tokens)
        return refuse(l, "other targets", info->next_tokens ? "next tokens" : "hidden tokens",
                      t->next_tokens ? "next tokens" : "hidden tokens");
    bool fits = text ? mine.dims[0] <= theirs.dims[0] : mixt__shape_equal(&mine, &theirs);
    if (info->input_dtype != t->input_dtype || mine.rank != theirs.rank || !fits)
        return refuse(l, text ? "texts are longer than its context" : "inputs of another shape",
                      mixt__shape_text(&mine, a, sizeof a), mixt__shape_text(&theirs, b, sizeof b));
    return text ? mixt__other_tokens_count(&l->tokens, info->classes, t->classes)
                : check_numbers(l, "other classes", info->classes, t->classes);
}

static mixt_status check_data(const mixt__distillation *l, const mixt_data_info *info)
{
    int64_t vocab = mixt__config_int(l->config, MIXT_KEY_NET_VOCAB);
    if (info->target != MIXT_TARGET_CLASS && info->target != MIXT_TARGET_TOKENS)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "distill.teacher=%s: a teacher needs classes or tokens, but the targets of %s are %s",
                          l->path, info->path, target_words[info->target]);
    if (l->facts)
        return check_facts(l, info);
    return vocab && vocab < info->classes ? mixt__other_tokens_count(&l->tokens, info->classes, vocab) : MIXT_OK;
}

/** Whether a number is the same class to both, where both have names for it. */
static mixt_status check_classes(mixt__distillation *l, const mixt_data_info *info)
{
    const char *const *theirs;
    int64_t count;
    char a[256], b[256];
    MIXT_TRY(mixt__hf_folder_labels(l->path, l->facts, &l->names, &theirs, &count));
    int64_t other = mixt__data_facts_other_class(info->class_names, info->classes, theirs, count);
    if (other < 0)
        return MIXT_OK;
    snprintf(a, sizeof a, "class %lld is '%s'", (long long)other, info->class_names[other]);
    snprintf(b, sizeof b, "class %lld is '%s'", (long long)other, theirs[other]);
    return refuse(l, "other classes", a, b);
}

/** Whether a number is the same token to both. A teacher may know tokens that the data does not have, as long as both
 *  have as many scores. */
static mixt_status check_tokens(const mixt__distillation *l, const mixt__experiment *e, const mixt_data_info *info)
{
    const mixt__other_tokens *t = &l->tokens;
    bool scores = info->target != MIXT_TARGET_TOKENS || l->sizes.rows == e->sizes.rows;
    bool counted = l->facts || (t->mine && t->theirs && t->mine->size == t->theirs->size);
    if (!scores && !counted)
        return mixt__other_tokens_count(t, e->sizes.vocab, l->sizes.vocab);
    if (!scores)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "distill.teacher=%s: has %lld tokens, the student %lld: set net.vocab=%lld", l->path,
                          (long long)l->sizes.vocab, (long long)e->sizes.vocab, (long long)l->sizes.vocab);
    if (mixt__are_texts(info) && t->mine && t->theirs)
        MIXT_TRY(mixt__other_tokens_count(t, t->mine->size, t->theirs->size));
    return mixt__other_tokens_check(t);
}

/* ---- its model ---- */

/** The names and shapes of its parameters, in the order in which they stand in a graph. */
static mixt_status list_parameters(mixt__distillation *l, const mixt__model *model, const mixt_data *data)
{
    mixt__batch_spec spec = mixt__trainer_spec_of(data, 1);
    mixt__graph *graph;
    MIXT_TRY(mixt__model_build_outputs(model, &spec, 0, &graph));
    l->count = graph->param_count;
    l->wanted = mixt__alloc((size_t)(l->count + 1) * sizeof *l->wanted);
    bool complete = l->wanted;
    for (int64_t i = 0; complete && i < l->count; i++) {
        const mixt__param *p = &graph->params[i];
        l->wanted[i] = (mixt__file_tensor){.dtype = MIXT_DTYPE_FP32, .rank = p->shape.rank};
        l->wanted[i].name = mixt__arena_strdup(&l->names, p->name);
        memcpy(l->wanted[i].dims, p->shape.dims, (size_t)p->shape.rank * sizeof p->shape.dims[0]);
        complete = l->wanted[i].name;
    }
    mixt__graph_free(graph);
    return complete ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the parameters of a teacher");
}

/** Tells one teacher from another: by the tensors that are taken, wherever their file lies. */
static void take_sum(mixt__distillation *l)
{
    uint64_t sums[2] = {0};
    for (int64_t i = 0; i < l->weights->plan.count; i++) {
        const mixt__file_tensor *source = l->weights->sources[i];
        if (!source)
            continue;
        sums[1] = mixt__checksum(source->data, source->bytes);
        sums[0] = mixt__checksum(sums, sizeof sums);
    }
    snprintf(l->sum, sizeof l->sum, "%016llx", (unsigned long long)sums[0]);
}

static mixt_status open_weights(mixt__distillation *l, const mixt_data_info *info)
{
    mixt__name_facts facts;
    mixt__weights_request request = {.path = l->path, .wanted = l->wanted, .count = l->count, .vocab = l->sizes.vocab};
    MIXT_TRY(mixt__experiment_names(l->config, &request.names, &facts));
    mixt__name_facts_read(&facts, l->wanted, l->count);
    request.facts = &facts;
    if (info->target == MIXT_TARGET_TOKENS || mixt__are_texts(info))
        request.positions = info->input_dims[0];
    MIXT_TRY(mixt__weights_open(&request, &l->weights));
    take_sum(l);
    return MIXT_OK;
}

mixt_status mixt__distillation_fit(mixt__experiment *e, mixt__model *model)
{
    mixt__distillation *l = e->distillation;
    const mixt_data_info *info = mixt_data_describe(e->facts);
    mixt__experiment own = {.config = l->config};
    mixt__model teacher;
    MIXT_TRY(mixt__other_tokens_of(&l->tokens, e));
    MIXT_TRY(check_data(l, info));
    MIXT_TRY(check_classes(l, info));
    if (model->loss != MIXT_LOSS_CROSS_ENTROPY)
        return mixt__fail(MIXT_ERROR_CONFIG, "distill.teacher=%s: a %s has its own loss: it takes no teacher", l->path,
                          mixt__config_string(e->config, MIXT_KEY_MODEL));
    MIXT_TRY(mixt__experiment_sizes(&own));
    l->sizes = own.sizes;
    mixt_status status = mixt__zoo_model(mixt__config_string(l->config, MIXT_KEY_MODEL), info, &l->sizes, &teacher);
    if (status == MIXT_OK && teacher.loss != MIXT_LOSS_CROSS_ENTROPY)
        status = mixt__fail(MIXT_ERROR_CONFIG, "a %s does not predict classes",
                            mixt__config_string(l->config, MIXT_KEY_MODEL));
    if (status == MIXT_OK)
        MIXT_TRY(check_tokens(l, e, info));
    if (status == MIXT_OK)
        status = list_parameters(l, &teacher, e->facts);
    if (status == MIXT_OK)
        status = open_weights(l, info);
    if (status != MIXT_OK)
        return mixt__fail_context(status, "distill.teacher=%s", l->path);
    l->teacher.fn = teacher.fn;
    l->teacher.user = teacher.user;
    l->teacher.classes = teacher.classes;
    model->teacher = &l->teacher;
    return MIXT_OK;
}

void mixt__distillation_warning(const mixt__distillation *l, char warning[MIXT_WEIGHTS_WARNING])
{
    *warning = '\0';
    if (l && l->weights)
        mixt__weights_warning(l->weights, warning);
}

/* ---- its values ---- */

static mixt_status load(void *user, mixt__params *params)
{
    mixt__distillation *l = user;
    int64_t most = 1;
    for (int64_t i = 0; i < l->count; i++)
        most = params->table[params->count + i].count > most ? params->table[params->count + i].count : most;
    float *values = mixt__alloc((size_t)most * sizeof *values);
    mixt_status status = values ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to load a teacher");
    for (int64_t i = 0; status == MIXT_OK && i < l->count; i++) {
        status = mixt__weights_read(l->weights, i, values);
        if (status == MIXT_OK)
            status = mixt__params_give(params, i, values);
    }
    mixt__free(values);
    return status;
}

void mixt__distillation_attach(mixt__distillation *l, mixt__trainer *trainer)
{
    mixt__trainer_teacher teacher = {.policy = &l->policy->formats, .load = load, .user = l};
    memcpy(teacher.sum, l->sum, sizeof teacher.sum);
    mixt__trainer_set_teacher(trainer, &teacher);
}

void mixt__distillation_close(mixt__distillation *l)
{
    if (!l)
        return;
    mixt__weights_close(l->weights);
    mixt__free(l->wanted);
    mixt__arena_free(&l->names);
    mixt__other_tokens_close(&l->tokens);
    mixt_data_close(l->facts);
    mixt_policy_free(l->policy);
    mixt_config_free(l->config);
    mixt__free(l);
}
