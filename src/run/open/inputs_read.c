/* Reading what a run knows of its inputs. The file may come from anywhere: it is checked, never trusted. */
#include "run/open/inputs.h"

#include "base/status.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4400 };

static mixt_status check(const json_t *inputs)
{
    const char *format = json_string_value(json_object_get(inputs, "format"));
    int64_t version = json_integer_value(json_object_get(inputs, "version"));
    if (!format || strcmp(format, "mixt-inputs"))
        return mixt__fail(MIXT_ERROR_FORMAT, "is not a description of inputs written by mixt");
    if (version != MIXT_INPUTS_VERSION)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "has version %lld, this version of mixt reads %d", (long long)version,
                          MIXT_INPUTS_VERSION);
    return MIXT_OK;
}

mixt_status mixt__run_inputs_read(const char *folder, json_t **inputs)
{
    char path[PATH_BYTES];
    mixt__file_map map;
    *inputs = NULL;
    if (snprintf(path, sizeof path, "%s/%s", folder, MIXT_INPUTS_FILE) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", folder);
    if (access(path, F_OK) && errno == ENOENT)
        return MIXT_OK;
    MIXT_TRY(mixt__file_map_open(path, &map));
    json_t *root;
    mixt_status status = mixt__json_parse(path, map.data, map.bytes, JSON_REJECT_DUPLICATES, &root);
    mixt__file_map_close(&map);
    MIXT_TRY(status);
    status = check(root);
    if (status == MIXT_OK) {
        *inputs = root;
        return MIXT_OK;
    }
    json_decref(root);
    return mixt__fail_context(status, "%s", path);
}

/** Where "/checkpoints" begins in "RUN/checkpoints/NAME"; NULL: the path does not end like that. */
static char *checkpoints_in(char *path)
{
    static const char folder[] = "/checkpoints";
    char *name = strrchr(path, '/');
    bool there = name && name - path > (long)strlen(folder) && !strncmp(name - strlen(folder), folder, strlen(folder));
    return there ? name - strlen(folder) : NULL;
}

void mixt__run_inputs_folder(const char *weights, char *folder, size_t size)
{
    char path[PATH_BYTES];
    struct stat facts;
    snprintf(folder, size, "%s", weights);
    char *slash = strrchr(folder, '/');
    if (stat(weights, &facts) || !S_ISDIR(facts.st_mode)) // a file: its folder
        snprintf(slash ? slash : folder, 2, slash ? "" : ".");
    if (snprintf(path, sizeof path, "%s/manifest.json", folder) >= (int)sizeof path || access(path, F_OK))
        return;
    char *checkpoints = checkpoints_in(folder);
    if (checkpoints)
        *checkpoints = '\0';
    else
        snprintf(folder + strlen(folder), size - strlen(folder), "/../..");
}

int64_t mixt__run_inputs_positions(const char *weights, int64_t rows)
{
    char folder[PATH_BYTES];
    json_t *inputs;
    mixt__run_inputs_folder(weights, folder, sizeof folder);
    mixt_status status = mixt__run_inputs_read(folder, &inputs);
    int64_t known = status == MIXT_OK ? json_integer_value(json_object_get(inputs, "positions")) : 0;
    json_decref(inputs);
    return known > 0 && known < rows ? known : rows;
}
