/* Making a run directory and appending to its metrics. */
#include "run/directory.h"

#include "base/files.h"
#include "base/status.h"
#include "data/data.h"
#include "mixt/run.h"
#include "run/open/hf_folder.h"
#include "run/open/inputs.h"
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/** mkdir -p for everything before the last component. */
static mixt_status make_parents(const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0777) && errno != EEXIST)
            return mixt__fail(MIXT_ERROR_FILE, "cannot create folder %s: %s", part, strerror(errno));
        *slash = '/';
    }
    return MIXT_OK;
}

const char *mixt__run_dir_file(const mixt__run_dir *dir, const char *name, char text[1200])
{
    snprintf(text, 1200, "%s/%s", dir->path, name);
    return text;
}

/* ---- making one ---- */

static const char beginning[] = ".beginning"; // there, and locked, while the directory is made

/** What a run of ours begins with; the mark goes last. */
static void remove_begun(const char *path)
{
    const char *const names[] = {"metrics.jsonl", "events.jsonl",  "layers.jsonl",
                                 "config.yaml",   "history.jsonl", MIXT_POLICY_FILE, MIXT_GRAPH_FILE};
    char inside[1200];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        mixt__folder_remove_file(path, names[i]);
    mixt__run_inputs_discard(path);
    snprintf(inside, sizeof inside, "%s/checkpoints", path);
    mixt__folder_remove_all(inside); // those that a resumed run took along
    mixt__folder_remove_file(path, beginning);
    rmdir(path);
}

/** A directory that a process which is no more has not finished. */
static void remove_unfinished(const char *path)
{
    char mark[1200];
    snprintf(mark, sizeof mark, "%s/%s", path, beginning);
    int fd = mixt__file_open_write(mark, O_WRONLY);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
        remove_begun(path);
    if (fd >= 0)
        close(fd);
}

/** Locked before it has its name: whoever finds it unlocked takes the directory for a dead process's. */
static mixt_status mark_beginning(mixt__run_dir *dir)
{
    char mark[1200], unlocked[1216];
    snprintf(unlocked, sizeof unlocked, "%s-", mixt__run_dir_file(dir, beginning, mark));
    int fd = mixt__file_open_write(unlocked, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", unlocked, mixt__file_problem(errno));
    (void)flock(fd, LOCK_EX | LOCK_NB); // a file system without locks: then nothing is removed there
    dir->beginning = fd + 1;
    if (!rename(unlocked, mark))
        return MIXT_OK;
    mixt_status status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", mark, strerror(errno));
    unlink(unlocked);
    return status;
}

mixt_status mixt__run_dir_begun(mixt__run_dir *dir)
{
    char mark[1200];
    if (!dir->beginning)
        return MIXT_OK;
    if (unlink(mixt__run_dir_file(dir, beginning, mark)))
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be removed: %s", mark, strerror(errno));
    close(dir->beginning - 1);
    dir->beginning = 0;
    return MIXT_OK;
}

static mixt_status make_named(mixt__run_dir *dir, const char *name)
{
    if (strlen(name) >= sizeof dir->path)
        return mixt__fail(MIXT_ERROR_FILE, "the run directory's path is longer than %zu bytes", sizeof dir->path - 1);
    snprintf(dir->path, sizeof dir->path, "%s", name);
    for (size_t end = strlen(dir->path); end > 1 && dir->path[end - 1] == '/'; end--)
        dir->path[end - 1] = '\0';
    MIXT_TRY(make_parents(dir->path));
    remove_unfinished(dir->path);
    if (!mkdir(dir->path, 0777))
        return MIXT_OK;
    if (errno == EEXIST)
        return mixt__fail(MIXT_ERROR_FILE,
                          "run directory %s exists already: choose another with out=DIR (nothing was changed)",
                          dir->path);
    return mixt__fail(MIXT_ERROR_FILE, "cannot create run directory %s: %s", dir->path, strerror(errno));
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
            return mixt__fail(MIXT_ERROR_FILE, "cannot create run directory %s: %s", path, strerror(errno));
    }
    return mixt__fail(MIXT_ERROR_FILE, "no free number for a run directory %s-…: set out=DIR", stem);
}

static mixt_status make_default(mixt__run_dir *dir, const mixt_config *config)
{
    char stem[256];
    const char *precision = mixt__config_string(config, MIXT_KEY_PRECISION), *slash = strrchr(precision, '/');
    const char *model = mixt__config_string(config, MIXT_KEY_MODEL), *folder = strrchr(model, '/');
    int name = (int)strlen(model) - (mixt__model_is_file(model) ? 5 : 0) - (folder ? (int)(folder + 1 - model) : 0);
    snprintf(stem, sizeof stem, "runs/%.*s-%.100s", name < 100 ? name : 100, folder ? folder + 1 : model,
             slash ? slash + 1 : precision);
    return make_numbered(stem, dir->path, sizeof dir->path);
}

enum { ABSOLUTE_MAX = 8400 };

/** The absolute form of a file's name. */
static mixt_status absolute(const char *name, char text[ABSOLUTE_MAX])
{
    char folder[4096] = "";
    if (*name != '/' && !getcwd(folder, sizeof folder))
        return mixt__fail(MIXT_ERROR_FILE, "the current folder cannot be found: %s", strerror(errno));
    snprintf(text, ABSOLUTE_MAX, "%s%s%s", folder, *name == '/' ? "" : "/", name);
    return MIXT_OK;
}

/** Sets a key to the absolute form of a file's name; `prefix` stands before it in the key's value. */
static mixt_status set_absolute(mixt_config *config, mixt__config_key key, const char *prefix, const char *name)
{
    char path[ABSOLUTE_MAX], setting[9000];
    if (*name == '/')
        return MIXT_OK;
    MIXT_TRY(absolute(name, path));
    snprintf(setting, sizeof setting, "%s=%s%s", mixt__config_table[key].name, prefix, path);
    return mixt_config_set(config, setting, mixt__config_origin(config, key));
}

/** The configuration names data by where it is, not by where mixt was called. */
static mixt_status resolve_data(mixt_config *config, const char *kind)
{
    const char *path = mixt__config_string(config, MIXT_KEY_DATA_PATH),
               *labels = mixt__config_string(config, MIXT_KEY_DATA_LABELS);
    if (mixt__data_is_drawn(kind))
        return MIXT_OK;
    bool column = !strcmp(kind, "csv") || !strcmp(kind, "labelled") || !strcmp(kind, "images");
    if (*labels && !column && !access(labels, F_OK))
        MIXT_TRY(set_absolute(config, MIXT_KEY_DATA_LABELS, "", labels));
    static const mixt__config_key features[] = {MIXT_KEY_DATA_USERS, MIXT_KEY_DATA_ITEMS, MIXT_KEY_DATA_NAMES};
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++) {
        const char *file = mixt__config_string(config, features[i]);
        if (*file && !access(file, F_OK)) // else it lies beside the ratings, or is no file
            MIXT_TRY(set_absolute(config, features[i], "", file));
    }
    const char *vocab = mixt__config_string(config, MIXT_KEY_DATA_VOCAB);
    if (*vocab)
        MIXT_TRY(set_absolute(config, MIXT_KEY_DATA_VOCAB, "", vocab));
    const char *chat = mixt__config_string(config, MIXT_KEY_DATA_TEMPLATE);
    if (*chat)
        MIXT_TRY(set_absolute(config, MIXT_KEY_DATA_TEMPLATE, "", chat));
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s:", kind);
    if (strncmp(path, prefix, strlen(prefix)))
        prefix[0] = '\0';
    path += strlen(prefix);
    return *path ? set_absolute(config, MIXT_KEY_DATA_PATH, prefix, path) : MIXT_OK; // nothing: it is drawn
}

/** The configuration names the policy by the file of the run's directory. */
static mixt_status name_policy(mixt_config *config, const mixt_policy *policy, const char *path, const char *origin)
{
    char name[ABSOLUTE_MAX];
    MIXT_TRY(absolute(path, name));
    return mixt__config_set_policy(config, name, origin, policy);
}

/** A run has the policy that it trains under beside it: the file that it came from may change or vanish. */
static mixt_status keep_policy(const mixt__run_dir *dir, mixt_config *config)
{
    char path[1200];
    const mixt_policy *policy;
    mixt__run_dir_file(dir, MIXT_POLICY_FILE, path);
    if (mixt__policy_is_word(mixt__config_string(config, MIXT_KEY_PRECISION))) {
        unlink(path);
        return MIXT_OK;
    }
    MIXT_TRY(mixt__config_policy(config, &policy));
    MIXT_TRY(mixt_policy_write(policy, path));
    return name_policy(config, policy, path, mixt__config_origin(config, MIXT_KEY_PRECISION));
}

mixt_status mixt__run_dir_config(const mixt__run_dir *dir, const mixt_config *config)
{
    char path[1200];
    return dir->silent ? MIXT_OK : mixt_config_write(config, mixt__run_dir_file(dir, "config.yaml", path));
}

mixt_status mixt__run_dir_policy(mixt__run_dir *dir, mixt_config *config, const mixt_policy *policy)
{
    char path[1200];
    MIXT_TRY(name_policy(config, policy, mixt__run_dir_file(dir, MIXT_POLICY_FILE, path), "run"));
    if (!dir->silent)
        MIXT_TRY(mixt_policy_write(policy, path));
    return mixt__run_dir_config(dir, config);
}

static mixt_status fill(mixt__run_dir *dir, mixt_config *config, const char *kind)
{
    char path[1200];
    MIXT_TRY(keep_policy(dir, config));
    MIXT_TRY(resolve_data(config, kind));
    if (mixt__model_is_file(mixt__config_string(config, MIXT_KEY_MODEL)))
        MIXT_TRY(set_absolute(config, MIXT_KEY_MODEL, "", mixt__config_string(config, MIXT_KEY_MODEL)));
    if (*mixt__config_string(config, MIXT_KEY_INIT))
        MIXT_TRY(set_absolute(config, MIXT_KEY_INIT, "", mixt__config_string(config, MIXT_KEY_INIT)));
    if (*mixt__config_string(config, MIXT_KEY_LORA_INIT))
        MIXT_TRY(set_absolute(config, MIXT_KEY_LORA_INIT, "", mixt__config_string(config, MIXT_KEY_LORA_INIT)));
    MIXT_TRY(mixt_config_write(config, mixt__run_dir_file(dir, "config.yaml", path)));
    MIXT_TRY(mixt__rows_open(&dir->metrics, mixt__run_dir_file(dir, "metrics.jsonl", path), -1));
    return mixt__rows_open(&dir->events, mixt__run_dir_file(dir, "events.jsonl", path), -1);
}

mixt_status mixt__run_dir_create(mixt__run_dir *dir, mixt_config *config, const char *kind)
{
    const char *out = mixt__config_string(config, MIXT_KEY_OUT);
    *dir = (mixt__run_dir){0};
    mixt_status status = *out ? make_named(dir, out) : make_default(dir, config);
    if (status != MIXT_OK) {
        dir->path[0] = '\0'; // what has that name is not ours
        return status;
    }
    status = mark_beginning(dir);
    if (status == MIXT_OK)
        status = fill(dir, config, kind);
    if (status != MIXT_OK)
        mixt__run_dir_discard(dir);
    return status;
}

void mixt__run_dir_discard(mixt__run_dir *dir)
{
    if (!dir->path[0])
        return;
    mixt__run_dir_close(dir);
    if (dir->resumed || dir->silent)
        return;
    remove_begun(dir->path);
    dir->path[0] = '\0';
}

mixt_status mixt__run_settle_config(mixt_config *config)
{
    bool said = mixt__config_was_set(config, MIXT_KEY_DATA_BUCKETS);
    return said ? MIXT_OK : mixt_config_set(config, "data.buckets=1", "as before there were buckets");
}

bool mixt__run_has_own_graph(const mixt_config *before, const mixt_config *now)
{
    const char *model = mixt__config_string(now, MIXT_KEY_MODEL), *name = strrchr(model, '/');
    return name && !strcmp(name + 1, MIXT_GRAPH_FILE) &&
           mixt__model_is_file(mixt__config_string(before, MIXT_KEY_MODEL));
}

mixt_status mixt__run_own_graph(const char *run, mixt_config *config)
{
    char setting[4200];
    int n = snprintf(setting, sizeof setting, "model=%s/%s", run, MIXT_GRAPH_FILE);
    if (n >= (int)sizeof setting || access(setting + 6, F_OK) ||
        !mixt__model_is_file(mixt__config_string(config, MIXT_KEY_MODEL)))
        return MIXT_OK;
    return mixt_config_set(config, setting, run);
}

mixt_status mixt_run_folder_config(const char *run, mixt_config **config)
{
    char path[4096], setting[4200];
    *config = NULL;
    struct stat info;
    if (snprintf(path, sizeof path, "%s/%s", run, MIXT_POLICY_FILE) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", run);
    if (stat(run, &info) || !S_ISDIR(info.st_mode))
        return mixt__fail(MIXT_ERROR_FILE, "%s: no such folder: expected a run directory made by 'mixt train'", run);
    if (mixt__hf_folder_is(run))
        return mixt__hf_folder_config(run, config);
    snprintf(setting, sizeof setting, "precision=%s", path);
    bool policy = !access(path, F_OK);
    snprintf(path, sizeof path, "%s/%s", run, beginning);
    if (!access(path, F_OK))
        return mixt__fail(
            MIXT_ERROR_FILE,
            "%s: was never started: the process that created it ended too early; the same command creates it again",
            run);
    snprintf(path, sizeof path, "%s/config.yaml", run);
    if (access(path, F_OK) && errno != ENOENT)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    if (access(path, F_OK))
        return mixt__fail(MIXT_ERROR_FILE, "%s: holds no config.yaml: it is not a run directory of 'mixt train'", run);
    mixt_status status = mixt_config_new(config);
    if (status == MIXT_OK)
        status = mixt_config_load(*config, path);
    if (status == MIXT_OK)
        status = mixt__run_settle_config(*config);
    if (status == MIXT_OK && policy) // the run may have been moved since
        status = mixt_config_set(*config, setting, path);
    if (status == MIXT_OK)
        status = mixt__run_own_graph(run, *config);
    if (status == MIXT_OK)
        status = mixt_config_check(*config);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt_config_free(*config);
    *config = NULL;
    return status;
}

mixt_status mixt__run_dir_reopen(mixt__run_dir *dir, const char *run, mixt_config *config, const char *kind,
                                 int64_t keep, int64_t keep_events)
{
    char path[1200];
    *dir = (mixt__run_dir){.resumed = true};
    if (snprintf(dir->path, sizeof dir->path, "%s", run) >= (int)sizeof dir->path)
        return mixt__fail(MIXT_ERROR_FILE, "the run directory's path is longer than %zu bytes", sizeof dir->path - 1);
    MIXT_TRY(mixt__rows_open(&dir->metrics, mixt__run_dir_file(dir, "metrics.jsonl", path), keep));
    MIXT_TRY(mixt__rows_open(&dir->events, mixt__run_dir_file(dir, "events.jsonl", path), keep_events));
    MIXT_TRY(keep_policy(dir, config));
    MIXT_TRY(resolve_data(config, kind));
    return mixt_config_write(config, mixt__run_dir_file(dir, "config.yaml", path));
}

void mixt__run_dir_close(mixt__run_dir *dir)
{
    mixt__rows_close(&dir->metrics);
    mixt__rows_close(&dir->events);
    mixt__rows_close(&dir->layers);
    if (dir->beginning)
        close(dir->beginning - 1);
    dir->beginning = 0;
}
