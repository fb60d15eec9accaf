/* Opening a weights file for a model: which names it uses, whether every tensor is there and fits, what is left over.
 */
#include "store/weights.h"

#include "base/globs.h"
#include "base/status.h"
#include "mixt/num.h"
#include "store/nf4_file.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/** Appends a name to a list for people; what does not fit is counted by the caller's dots. */
static void list_add(char *list, size_t size, const char *name)
{
    size_t used = strlen(list), length = strlen(name);
    if (used + length + 8 < size)
        snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
    else if (used + 6 < size && (used < 3 || strcmp(list + used - 3, "...")))
        snprintf(list + used, size - used, ", ...");
}

/** The file itself, or the one inside a folder. */
static mixt_status find_file(mixt__weights *w, const char *path)
{
    struct stat facts;
    bool folder = !stat(path, &facts) && S_ISDIR(facts.st_mode);
    if (snprintf(w->path, sizeof w->path, folder ? "%s/model.safetensors" : "%s", path) >= (int)sizeof w->path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", path);
    char index[sizeof w->path + 16];
    snprintf(index, sizeof index, "%s.index.json", w->path);
    if (folder && access(w->path, F_OK) && !access(index, F_OK) && strlen(index) < sizeof w->path) {
        memcpy(w->path, index, strlen(index) + 1); // in several files
        return MIXT_OK;
    }
    if (folder && access(w->path, F_OK)) // a checkpoint?
        snprintf(w->path, sizeof w->path, "%s/state.safetensors", path);
    if (folder && access(w->path, F_OK))
        return mixt__fail(MIXT_ERROR_FILE, "%s: the folder holds no model.safetensors", path);
    return MIXT_OK;
}

/** The config.json that the file of another program belongs to; false: none is there, or nobody asks. */
static bool find_config(const mixt__weights *w, const mixt__weights_request *r, char path[sizeof w->path])
{
    snprintf(path, sizeof w->path, "%s", w->path);
    char *name = strrchr(path, '/');
    if (!w->foreign || !r->facts || !name ||
        (strcmp(name, "/model.safetensors") && strcmp(name, "/model.safetensors.index.json")))
        return false;
    snprintf(name, sizeof w->path - (size_t)(name - path), "/config.json");
    return !access(path, F_OK);
}

static mixt_status check_config(const mixt__weights *w, const mixt__weights_request *r)
{
    char path[sizeof w->path];
    return find_config(w, r, path) ? mixt__names_check_config(w->plan.names, r->facts, path) : MIXT_OK;
}

/* ---- rows that have names ---- */

/** What is known of the rows of a tensor here; NULL: nothing. */
static const mixt__weights_rows *rows_of(const mixt__weights *w, int64_t here)
{
    for (int64_t i = 0; i < w->row_count; i++)
        if (!strcmp(w->rows[i].tensor, w->plan.here[here].name))
            return &w->rows[i];
    return NULL;
}

/** A table by name has as many rows in the file as there were names. */
static void expect_rows(mixt__weights *w)
{
    for (int64_t i = 0; i < w->plan.count; i++) {
        mixt__name_entry *e = &w->plan.entries[i];
        const mixt__weights_rows *rows = rows_of(w, e->here);
        if (rows && rows->from)
            e->rows = e->there.dims[0] = rows->there;
    }
}

/** The rows of the file to those here that have their names. */
static void take_rows(const mixt__file_tensor *here, const mixt__weights_rows *rows, const float *there, float *values)
{
    int64_t columns = 1;
    for (int i = 1; i < here->rank; i++)
        columns *= here->dims[i];
    for (int64_t r = 0; r < here->dims[0]; r++)
        for (int64_t c = 0; c < columns && rows->from[r] >= 0; c++)
            values[r * columns + c] = there[rows->from[r] * columns + c] + rows->add;
}

/* ---- finding tensors ---- */

/** The tensor of a name, or of the name without the family's prefix. */
static const mixt__file_tensor *find_plain(const mixt__weights *w, const char *name)
{
    const mixt__file_tensor *found = mixt__safetensors_find(w->file, name);
    size_t length = w->foreign ? strlen(w->plan.names->prefix) : 0;
    if (!found && length && !strncmp(name, w->plan.names->prefix, length))
        found = mixt__safetensors_find(w->file, name + length);
    return found;
}

static const mixt__file_tensor *find(const mixt__weights *w, const char *name)
{
    const mixt__file_tensor *found = find_plain(w, name);
    const mixt__name_pair *alias = w->foreign ? w->plan.names->aliases : NULL;
    for (; !found && alias && alias->first; alias++) {
        size_t length = strlen(name), end = strlen(alias->first);
        char other[512];
        if (length < end || strcmp(name + length - end, alias->first) ||
            snprintf(other, sizeof other, "%.*s%s", (int)(length - end), name, alias->second) >= (int)sizeof other)
            continue;
        found = find_plain(w, other);
    }
    return found;
}

/** Rows that the file must have of a table whose rows may be fewer there; 0: all of them. */
static int64_t least_rows(const mixt__weights *w, const mixt__name_rule *rule)
{
    return rule->vocabulary ? w->vocab : rule->positions ? w->positions : 0;
}

/** Whether a tensor is what an entry needs; a vocabulary may lack the rows here that are only padding and a table of
 *  positions those that no text here reaches, which shortens the entry. */
static bool fits(const mixt__weights *w, const mixt__file_tensor *tensor, mixt__name_entry *e)
{
    int64_t least = least_rows(w, e->rule);
    bool same =
        (mixt_dtype_is_float(tensor->dtype) || tensor->dtype == MIXT_DTYPE_NF4) && tensor->rank == e->there.rank;
    for (int i = 0; same && i < tensor->rank; i++)
        same = tensor->dims[i] == e->there.dims[i] ||
               (!i && least && tensor->dims[0] >= least && tensor->dims[0] < e->rows);
    if (same && (e->rule->vocabulary || e->rule->positions))
        e->rows = e->there.dims[0] = tensor->dims[0];
    return same;
}

/** What to do about a table with other tokens, where the file's own tokenizer is there; "" for other tensors. */
static void advise_tokens(const mixt__weights *w, const mixt__name_entry *e, const mixt__file_tensor *tensor,
                          char *advice, size_t size)
{
    const mixt__file_tensor *here = &w->plan.here[e->here];
    bool table = e->rule->vocabulary || !strcmp(here->name, "wte.weight") || !strcmp(here->name, "emb.weight");
    bool width = tensor->rank == here->rank;
    for (int i = 1; width && i < tensor->rank; i++)
        width = tensor->dims[i] == e->there.dims[i];
    *advice = '\0';
    if (table && width && w->tokens)
        snprintf(advice, size, "data.vocab=%s reads the data with the tokens of the file; ", w->tokens);
}

/** @param others why the rows of a tensor that fits are not those here; NULL: it does not fit */
static mixt_status explain(const mixt__weights *w, const mixt__name_entry *e, const mixt__file_tensor *tensor,
                           const char *others)
{
    const char *here = w->plan.here[e->here].name, *there = e->there.name;
    char both[512];
    snprintf(both, sizeof both, strcmp(here, there) ? "'%s' ('%s' in mixt)" : "'%s'", there, here);
    mixt__file_tensor least = e->there;
    if (least_rows(w, e->rule))
        least.dims[0] = least_rows(w, e->rule);
    mixt__dims_text wants = mixt__dims_print(least.rank, least.dims);
    if (!tensor)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor %s is missing: expected %s; nothing was loaded (init_skip excludes names)",
                          w->path, both, wants.text);
    const char *part = strrchr(here, '.'); // of a layer: weight, bias
    int layer = part ? (int)(part - here) : (int)strlen(here);
    char advice[sizeof w->path + 64];
    advise_tokens(w, e, tensor, advice, sizeof advice);
    if (others)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor %s is of other %s; nothing was loaded (%sinit_new_head=%.*s gives that layer new "
                          "random weights)",
                          w->path, both, others, advice, layer, here);
    return mixt__fail(MIXT_ERROR_FORMAT,
                      "%s: tensor %s is %s %s, expected a float tensor %s; nothing was loaded (%sinit_new_head=%.*s "
                      "gives that layer new random weights)",
                      w->path, both, mixt_dtype_name(tensor->dtype), mixt__dims_print(tensor->rank, tensor->dims).text,
                      wants.text, advice, layer, here);
}

/** Looks up every entry of the plan. A tensor made of several is taken whole or not at all. */
static mixt_status match_entries(mixt__weights *w, mixt__globs *skip, mixt__globs *head)
{
    for (int64_t i = 0; i < w->plan.here_count; i++) {
        w->taken[i] = !mixt__globs_find(skip, w->plan.here[i].name);
        (void)mixt__globs_find(head, w->plan.here[i].name); // also where nothing needs drawing, it names a layer
    }
    MIXT_TRY(mixt__globs_check(skip, "init_skip", ""));
    MIXT_TRY(mixt__globs_check(head, "init_new_head", ""));
    for (int64_t i = 0; i < w->plan.count; i++) {
        mixt__name_entry *e = &w->plan.entries[i];
        const char *here = w->plan.here[e->here].name;
        if (e->rule->layout == MIXT_LAYOUT_COUNTER || !w->taken[e->here])
            continue;
        const mixt__file_tensor *tensor = find(w, e->there.name);
        const mixt__weights_rows *rows = rows_of(w, e->here);
        bool fit = tensor && fits(w, tensor, e);
        const char *others = fit && rows ? rows->others : NULL;
        if (fit && !others)
            w->sources[i] = tensor;
        else if (mixt__globs_find(head, here))
            w->taken[e->here] = false;
        else
            return explain(w, e, tensor, others);
        if (e->rule->vocabulary && w->plan.here[e->here].dims[0] - e->rows > w->padded)
            w->padded = w->plan.here[e->here].dims[0] - e->rows;
        if (w->sources[i] && e->rule->positions)
            w->places = e->rows;
    }
    for (int64_t i = 0; i < w->plan.here_count; i++) {
        w->loaded += w->taken[i];
        if (!w->taken[i])
            list_add(w->skipped, sizeof w->skipped, w->plan.here[i].name);
    }
    return MIXT_OK;
}

/** Whether a name there is that of a tensor here. */
static bool is_planned(const mixt__weights *w, const char *name)
{
    for (int64_t i = 0; i < w->plan.count; i++)
        if (!strcmp(w->plan.entries[i].there.name, name))
            return true;
    return false;
}

/** A head with weights of its own, where the model here uses the embedding, would be lost without a word. */
static mixt_status check_tied(const mixt__weights *w)
{
    const mixt__name_pair *pair = w->foreign ? w->plan.names->tied : NULL;
    for (; pair && pair->first; pair++) {
        if (is_planned(w, pair->first))
            continue;
        const mixt__file_tensor *copy = find_plain(w, pair->first), *original = find(w, pair->second);
        if (copy && original && copy != original &&
            (copy->bytes != original->bytes || memcmp(copy->data, original->data, copy->bytes)))
            return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                              "%s: '%s' differs from '%s': the model here uses one tensor for both (tied weights)",
                              w->path, pair->first, pair->second);
    }
    return MIXT_OK;
}

static bool known(const mixt__weights *w, const mixt__file_tensor *tensor)
{
    for (int64_t i = 0; i < w->plan.count; i++)
        if (w->sources[i] ? w->sources[i] == tensor : find(w, w->plan.entries[i].there.name) == tensor)
            return true;
    const mixt__names *names = w->plan.names;
    for (int i = 0; names && names->ignored && names->ignored[i]; i++)
        if (!fnmatch(names->ignored[i], tensor->name, 0))
            return true;
    for (const mixt__name_pair *pair = names ? names->tied : NULL; pair && pair->first; pair++)
        if (find_plain(w, pair->first) == tensor)
            return true;
    return false;
}

/* ---- what is left over ---- */

/** A file with more layers than its config.json says would run as a smaller model. */
static mixt_status check_layers(const mixt__weights *w, const mixt__weights_request *r)
{
    char path[sizeof w->path];
    const char *name = NULL;
    int64_t layers = 0;
    if (!w->left || !find_config(w, r, path))
        return MIXT_OK;
    for (int64_t i = 0; i < w->file->count; i++) {
        int64_t layer = mixt__names_layer(w->plan.names, w->file->tensors[i].name);
        if (layer >= r->facts->layers && layer >= layers && !known(w, &w->file->tensors[i])) {
            layers = layer + 1;
            name = w->file->tensors[i].name;
        }
    }
    if (!name)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FORMAT,
                      "%s: %s is %lld, but %s has %lld layers ('%s'): correct config.json, or take the weights that "
                      "belong to it",
                      path, mixt__names_layers_key(w->plan.names), (long long)r->facts->layers, w->path,
                      (long long)layers, name);
}

static mixt_status find_left(mixt__weights *w, const mixt__weights_request *r)
{
    for (int64_t i = 0; i < w->file->count; i++)
        if (!known(w, &w->file->tensors[i])) {
            list_add(w->left_over, sizeof w->left_over, w->file->tensors[i].name);
            w->left++;
        }
    return check_layers(w, r);
}

void mixt__weights_warning(const mixt__weights *w, char warning[MIXT_WEIGHTS_WARNING])
{
    *warning = '\0';
    if (w->left)
        snprintf(warning, MIXT_WEIGHTS_WARNING, "%s: %lld of its tensors %s not in this model and left out: %s",
                 w->path, (long long)w->left, w->left == 1 ? "is" : "are", w->left_over);
}

/* ---- opening and reading ---- */

static mixt_status open_file(mixt__weights *w, const mixt__weights_request *r)
{
    w->vocab = r->vocab;
    w->positions = r->positions;
    w->tokens = r->tokens;
    w->rows = r->rows;
    w->row_count = r->row_count;
    MIXT_TRY(find_file(w, r->path));
    MIXT_TRY(mixt__safetensors_open_weights(w->path, &w->file));
    MIXT_TRY(mixt__nf4_show(w->path, w->file));
    const char *format = mixt__safetensors_metadata(w->file, "format");
    w->foreign = r->names && !(format && !strcmp(format, "mixt"));
    MIXT_TRY(mixt__name_plan_make(&w->plan, w->foreign ? r->names : NULL, r->facts, r->wanted, r->count, 0, 0));
    MIXT_TRY(check_config(w, r));
    expect_rows(w);
    int64_t most = 1;
    for (int64_t i = 0; i < w->plan.count; i++) {
        const mixt__file_tensor *there = &w->plan.entries[i].there;
        int64_t count = mixt__file_tensor_count(there->dtype, there->rank, there->dims);
        most = count > most ? count : most;
    }
    w->sources = mixt__alloc((size_t)(w->plan.count + 1) * sizeof *w->sources);
    w->taken = mixt__alloc((size_t)(r->count + 1) * sizeof *w->taken);
    w->buffer = mixt__alloc_uninit((size_t)most * sizeof *w->buffer);
    if (!w->sources || !w->taken || !w->buffer)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", w->path);
    return MIXT_OK;
}

static mixt_status match(mixt__weights *w, const mixt__weights_request *r)
{
    mixt__globs skip, head;
    MIXT_TRY(mixt__globs_parse(&skip, r->skip, false, "init_skip"));
    mixt_status status = mixt__globs_parse(&head, r->new_head, false, "init_new_head");
    if (status == MIXT_OK)
        status = match_entries(w, &skip, &head);
    mixt__globs_free(&skip);
    mixt__globs_free(&head);
    if (status == MIXT_OK)
        status = check_tied(w);
    return status == MIXT_OK ? find_left(w, r) : status;
}

mixt_status mixt__weights_open(const mixt__weights_request *request, mixt__weights **weights)
{
    mixt__weights *w = mixt__alloc(sizeof *w);
    *weights = NULL;
    if (!w)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", request->path);
    mixt_status status = open_file(w, request);
    if (status == MIXT_OK)
        status = match(w, request);
    if (status == MIXT_OK)
        *weights = w;
    else
        mixt__weights_close(w);
    return status;
}

/** Rows that are only padding must not stand out, should somebody look at their outputs: with the mean of the others,
 *  they have the mean output. */
static void fill_rows(const mixt__file_tensor *here, int64_t given, float *values)
{
    int64_t columns = 1;
    for (int i = 1; i < here->rank; i++)
        columns *= here->dims[i];
    for (int64_t c = 0; c < columns; c++) {
        double sum = 0;
        for (int64_t r = 0; r < given; r++)
            sum += (double)values[r * columns + c];
        for (int64_t r = given; r < here->dims[0]; r++)
            values[r * columns + c] = (float)(sum / (double)given);
    }
}

mixt_status mixt__weights_read(mixt__weights *w, int64_t index, float *values)
{
    for (int64_t i = 0; i < w->plan.count; i++) {
        const mixt__name_entry *e = &w->plan.entries[i];
        const mixt__file_tensor *source = w->sources[i];
        if (e->here != index || !source)
            continue;
        MIXT_TRY(mixt__nf4_tensor_values(source, w->buffer));
        const mixt__weights_rows *rows = rows_of(w, index);
        if (rows && rows->from)
            take_rows(&w->plan.here[index], rows, w->buffer, values);
        else
            mixt__name_from_there(&w->plan, e, w->buffer, values);
        if (e->rule->vocabulary && e->rows < w->plan.here[index].dims[0])
            fill_rows(&w->plan.here[index], e->rows, values);
    }
    return MIXT_OK;
}

bool mixt__weights_read_nf4(const mixt__weights *w, int64_t index, const mixt__nf4_matrix *matrix, uint8_t *codes,
                            float *scales)
{
    bool any = false;
    mixt__nf4_lay_out(matrix, scales);
    for (int64_t i = 0; i < w->plan.count; i++) {
        const mixt__name_entry *e = &w->plan.entries[i];
        if (e->here != index)
            continue;
        if (!w->sources[i] || e->rule->layout != MIXT_LAYOUT_SAME ||
            !mixt__nf4_put(w->sources[i], matrix, e->first, codes, scales))
            return false;
        any = true;
    }
    return any;
}

void mixt__weights_close(mixt__weights *w)
{
    if (!w)
        return;
    mixt__name_plan_free(&w->plan);
    mixt__safetensors_close(w->file);
    mixt__free(w->sources);
    mixt__free(w->taken);
    mixt__free(w->buffer);
    mixt__free(w);
}
