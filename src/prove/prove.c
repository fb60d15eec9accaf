/* Names, folders and runs of work that goes on where it was ended. */
#include "prove/prove.h"

#include "base/files.h"
#include "base/status.h"
#include "mixt/policy.h"
#include "prove/compare.h"
#include "run/open/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mixt_status mixt__prove_check_name(const char *name, int longest)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!name || !*name || strlen(name) > (size_t)longest || name[strspn(name, letters)])
        return mixt__fail(MIXT_ERROR_ARGUMENT, "name '%.120s': expected 1 to %d letters, digits, '.', '_' and '-'",
                          name ? name : "", longest);
    return MIXT_OK;
}

mixt_status mixt__prove_make_folder(const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", path, strerror(errno));
    int fd = strchr(path, '/') ? mixt__folder_open(AT_FDCWD, path) : 0; // "runs" itself may lead to another disk
    if (fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s", path, mixt__file_problem(errno));
    if (fd > 0)
        close(fd);
    return MIXT_OK;
}

mixt_status mixt__prove_refuse(const char *folder, const char *what, const char *is, const char *was)
{
    return mixt__fail(MIXT_ERROR_STATE,
                      "%s: there is another experiment of this name: %s is %.200s, was %.200s; use its settings to "
                      "continue it, or choose another name",
                      folder, what, is, was);
}

mixt_status mixt__prove_rows_advice(mixt_status status, const char *folder)
{
    if (status != MIXT_ERROR_FORMAT)
        return status;
    return mixt__fail(
        status, "%s; nothing was changed: restore the file from a copy, or move the folder %s away and start again",
        mixt_error_text(), folder);
}

mixt_status mixt__prove_same_config(const char *folder, const char *path, const mixt_config *config, const char *of)
{
    char name[100];
    mixt_config *before;
    MIXT_TRY(mixt_config_new(&before));
    mixt_status status = mixt_config_load(before, path);
    for (int key = 0; status == MIXT_OK && key < MIXT_KEY_COUNT; key++) {
        char *was = mixt__config_text(before, (mixt__config_key)key);
        char *is = mixt__config_text(config, (mixt__config_key)key);
        snprintf(name, sizeof name, "%s%s", mixt__config_table[key].name, of);
        if (!was || !is)
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a configuration");
        else if (strcmp(was, is) && key != MIXT_KEY_OUT)
            status = mixt__prove_refuse(folder, name, is, was);
        free(was);
        free(is);
    }
    mixt_config_free(before);
    return status;
}

/** What a run wrote down of its data; NULL: nothing that another run must have too. */
static mixt_status data_of(const char *folder, json_t **data)
{
    json_t *all = NULL;
    *data = NULL;
    mixt_status status = mixt__run_inputs_read(folder, &all);
    if (status != MIXT_OK)
        return status == MIXT_ERROR_FORMAT ? MIXT_OK : status; // facts that are damaged tell of no difference
    const char *kind = json_string_value(json_object_get(json_object_get(all, "data"), "kind"));
    bool drawn = !kind || !strcmp(kind, "digits") || !strcmp(kind, "random");
    *data = drawn ? NULL : json_incref(json_object_get(all, "trained_on"));
    json_decref(all);
    return MIXT_OK;
}

/** "360 samples, checksum 26d2…". */
static const char *sum_text(const json_t *data, const char *part, char text[80])
{
    const json_t *sum = json_object_get(data, part);
    const char *checksum = json_string_value(json_object_get(sum, "checksum"));
    snprintf(text, 80, "%lld samples, checksum %.20s", (long long)json_integer_value(json_object_get(sum, "samples")),
             checksum ? checksum : "none");
    return text;
}

mixt_status mixt__prove_same_data(const char *a, const char *b)
{
    char before[80], now[80];
    json_t *x = NULL, *y = NULL;
    mixt_status status = data_of(a, &x);
    if (status == MIXT_OK)
        status = data_of(b, &y);
    bool same = !x || !y || json_equal(x, y);
    const char *part = json_equal(json_object_get(x, "train"), json_object_get(y, "train")) ? "val" : "train";
    if (status == MIXT_OK)
        status =
            same ? MIXT_OK
                 : mixt__fail(
                       MIXT_ERROR_DATA,
                       "%s and %s used different data (%s part: %s; %s): only runs on the same data can be compared", a,
                       b, part, sum_text(x, part, before), sum_text(y, part, now));
    json_decref(x);
    json_decref(y);
    return status;
}

const char *mixt__prove_precision(const char *precision, char *name, size_t size)
{
    const char *slash = strrchr(precision, '/'), *stem = slash ? slash + 1 : precision, *dot = strrchr(stem, '.');
    bool yaml = dot && dot > stem && !strcmp(dot, ".yaml");
    mixt_policy *policy = NULL, *plain = NULL;
    snprintf(name, size, "%.*s", (int)(yaml ? dot - stem : (ptrdiff_t)strlen(stem)), stem);
    bool read = yaml && mixt_policy_load(precision, &policy) == MIXT_OK;
    for (int i = 0; read && i < MIXT_DTYPE_COUNT; i++) {
        const char *format = mixt_dtype_name((mixt_dtype)i);
        if (!mixt__format_may((mixt_dtype)i, MIXT_MAY_MULTIPLY))
            continue;
        if (mixt_policy_named(format, &plain) == MIXT_OK && mixt_policy_equal(policy, plain))
            snprintf(name, size, "%s", format);
        mixt_policy_free(plain);
    }
    mixt_policy_free(policy);
    return name;
}

/** Whether a folder holds a file or folder. */
static bool has(const char *folder, const char *name)
{
    char path[MIXT_COMPARE_PATH + 200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return !access(path, F_OK);
}

mixt_status mixt__prove_open_run(const mixt_config *config, const char *folder, const mixt_run_options *options,
                                 mixt_run **run)
{
    mixt_run_options resumed = *options;
    bool over = has(folder, "model.safetensors") && !has(folder, "checkpoints");
    resumed.settings = NULL;
    if (has(folder, "config.yaml") && !over)
        return mixt_run_resume_with(folder, &resumed, run);
    mixt__folder_remove_all(folder);
    return mixt_run_open_config(config, options, run);
}
