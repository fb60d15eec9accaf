/* Making a run directory and appending to its metrics. */
#include "cli/run_dir.h"

#include "base/status.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

/** mkdir -p for everything before the last component. */
static mixt_status make_parents(const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return mixt__fail(MIXT_ERROR_FILE, "cannot make folder %s: %s", part, strerror(errno));
        *slash = '/';
    }
    return MIXT_OK;
}

static mixt_status make_named(cli_run_dir *dir, const char *name)
{
    if (strlen(name) >= sizeof dir->path)
        return mixt__fail(MIXT_ERROR_FILE, "the run directory's path is longer than %zu bytes", sizeof dir->path - 1);
    snprintf(dir->path, sizeof dir->path, "%s", name);
    for (size_t end = strlen(dir->path); end > 1 && dir->path[end - 1] == '/'; end--)
        dir->path[end - 1] = '\0';
    MIXT_TRY(make_parents(dir->path));
    if (!mkdir(dir->path, 0777))
        return MIXT_OK;
    if (errno == EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "run directory %s exists already: choose another with out=DIR (nothing was changed)",
                          dir->path);
    return mixt__fail(MIXT_ERROR_FILE, "cannot make run directory %s: %s", dir->path, strerror(errno));
}

/** Makes the first free <stem>-<number>. */
static mixt_status make_numbered(const char *stem, char *path, size_t size)
{
    for (int number = 1; number < 100000; number++) {
        if (snprintf(path, size, "%s-%d", stem, number) >= (int)size)
            break;
        MIXT_TRY(make_parents(path));
        if (!mkdir(path, 0777))
            return MIXT_OK;
        if (errno != EEXIST)
            return mixt__fail(MIXT_ERROR_FILE, "cannot make run directory %s: %s", path, strerror(errno));
    }
    return mixt__fail(MIXT_ERROR_FILE, "no free number for a run directory %s-…: name one with out=DIR", stem);
}

mixt_status cli_demo_folder(char *path, size_t size)
{
    return make_numbered("runs/demo", path, size);
}

/** runs/<model>-<precision>-<number>; of a policy file the name without its folder. */
static mixt_status make_default(cli_run_dir *dir, const mixt__config *config)
{
    char stem[256];
    const char *precision = mixt__config_string(config, MIXT_KEY_PRECISION), *slash = strrchr(precision, '/');
    snprintf(stem, sizeof stem, "runs/%.100s-%.100s", mixt__config_string(config, MIXT_KEY_MODEL), slash ? slash + 1 : precision);
    return make_numbered(stem, dir->path, sizeof dir->path);
}

const char *cli_run_dir_file(const cli_run_dir *dir, const char *name, char text[1200])
{
    snprintf(text, 1200, "%s/%s", dir->path, name);
    return text;
}

mixt_status cli_run_dir_create(cli_run_dir *dir, const mixt__config *config)
{
    const char *out = mixt__config_string(config, MIXT_KEY_OUT);
    char path[1200];
    *dir = (cli_run_dir){0};
    MIXT_TRY(*out ? make_named(dir, out) : make_default(dir, config));
    MIXT_TRY(mixt__config_write(config, cli_run_dir_file(dir, "config.yaml", path)));
    dir->metrics = fopen(cli_run_dir_file(dir, "metrics.jsonl", path), "wx");
    if (!dir->metrics)
        return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", path, strerror(errno));
    return MIXT_OK;
}

void cli_run_dir_close(cli_run_dir *dir)
{
    if (dir->metrics)
        fclose(dir->metrics);
    dir->metrics = NULL;
}

static json_t *real_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

mixt_status cli_run_dir_log(cli_run_dir *dir, const cli_metrics_row *row)
{
    json_t *object = json_object();
    json_object_set_new(object, "step", json_integer(row->step));
    json_object_set_new(object, "epoch", json_integer(row->epoch));
    json_object_set_new(object, "loss", real_or_null(row->loss));
    json_object_set_new(object, "accuracy", real_or_null(row->accuracy));
    json_object_set_new(object, "lr", real_or_null(row->lr));
    json_object_set_new(object, "scale", real_or_null(row->scale));
    json_object_set_new(object, "skipped", json_integer(row->skipped));
    json_object_set_new(object, "grad_norm", real_or_null(row->grad_norm));
    json_object_set_new(object, "samples_s", real_or_null(row->samples_s));
    json_object_set_new(object, "memory", json_integer(row->memory));
    if (row->overflow_layer)
        json_object_set_new(object, "overflow_layer", json_string(row->overflow_layer));
    if (!isnan(row->val_loss))
        json_object_set_new(object, "val_loss", real_or_null(row->val_loss));
    if (!isnan(row->val_accuracy))
        json_object_set_new(object, "val_accuracy", real_or_null(row->val_accuracy));
    int failed = json_dumpf(object, dir->metrics, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    json_decref(object);
    if (failed || fputc('\n', dir->metrics) == EOF || fflush(dir->metrics))
        return mixt__fail(MIXT_ERROR_FILE, "cannot write %s/metrics.jsonl: %s", dir->path, strerror(errno));
    return MIXT_OK;
}
