/* The cache of token files. A file's name is a hash of everything its tokens depend on; its header says the same in
 * full, and whatever does not match or is damaged is made again. Files are put in place whole, so that two runs at once
 * do no harm. */
#include "data/text/token_cache.h"

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"
#include "data/data.h"
#include "data/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4400, SAMPLES = 64, SAMPLE_BYTES = 1 << 16 };

mixt_status mixt__text_fingerprint(const char *path, uint64_t *fingerprint)
{
    struct stat info;
    mixt__file_map map;
    *fingerprint = 0;
    if (stat(path, &info))
        return mixt__fail(MIXT_ERROR_FILE, "%s: %s; check the path of the data set", path, strerror(errno));
    MIXT_TRY(mixt__file_map_open(path, &map));
    uint64_t h = mixt__hash_word((uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec);
    int64_t size = (int64_t)map.bytes, whole = (int64_t)SAMPLES * SAMPLE_BYTES;
    if (size <= whole)
        h = mixt__hash_bytes(h, map.data, size);
    for (int64_t i = 0; i < SAMPLES && size > whole; i++)
        h = mixt__hash_bytes(h, map.data + i * ((size - SAMPLE_BYTES) / (SAMPLES - 1)), SAMPLE_BYTES);
    *fingerprint = mixt__hash_word(h, (uint64_t)size);
    mixt__file_map_close(&map);
    return MIXT_OK;
}

mixt__token_facts mixt__token_facts_of(const mixt_tokenizer *t, uint64_t source)
{
    return (mixt__token_facts){t->size, t->special, t->fingerprint, source};
}

/* ---- making a file ---- */

static bool is_gzip(const mixt__file_map *map)
{
    return map->bytes >= 2 && map->data[0] == 0x1f && map->data[1] == 0x8b;
}

static mixt_status tokenize_into(mixt__token_sink *sink, void *user, const mixt_tokenizer *t, const char *text,
                                 mixt__teller teller)
{
    mixt__file_map map;
    mixt__bytes unpacked = {0};
    MIXT_TRY(mixt__file_map_open(text, &map));
    mixt__tokenize_job job = {.tokenizer = t, .text = map.data, .size = (int64_t)map.bytes};
    mixt_status status = MIXT_OK;
    if (is_gzip(&map)) {
        status = mixt__bytes_read(text, &unpacked);
        job.text = unpacked.bytes;
        job.size = unpacked.size;
    }
    job.sink = sink;
    job.sink_user = user;
    job.teller = teller;
    job.name = text;
    if (status == MIXT_OK && !job.size)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: the file is empty", text);
    if (status == MIXT_OK)
        status = mixt__text_check(text, job.text, job.size);
    if (status == MIXT_OK)
        status = mixt__tokenize(&job);
    mixt__bytes_free(&unpacked);
    mixt__file_map_close(&map);
    return status;
}

mixt_status mixt__text_to_tokens(const mixt_tokenizer *t, const char *text, uint64_t source, const char *path,
                                 bool overwrite, mixt__teller teller)
{
    mixt__token_writer w;
    mixt__token_facts facts = mixt__token_facts_of(t, source);
    MIXT_TRY(mixt__token_writer_open(&w, path, overwrite, &facts));
    mixt_status status = tokenize_into(mixt__token_writer_append, &w, t, text, teller);
    if (status == MIXT_OK)
        return mixt__token_writer_commit(&w);
    mixt__token_writer_abandon(&w);
    return status;
}

/* ---- where it lies ---- */

/** Makes the folder and those above it; false when it cannot be written. */
static bool make_folder(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        bool failed = mkdir(path, 0777) && errno != EEXIST;
        *slash = '/';
        if (failed)
            return false;
    }
    return !mkdir(path, 0777) || errno == EEXIST;
}

bool mixt__cache_folder(const char *name, char *path, size_t room)
{
    const char *own = mixt__env_get(MIXT_ENV_CACHE), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (*own)
        length = snprintf(path, room, "%s/%s", own, name);
    else if (xdg && *xdg == '/')
        length = snprintf(path, room, "%s/mixt/%s", xdg, name);
    else if (home && *home == '/')
        length = snprintf(path, room, "%s/.cache/mixt/%s", home, name);
    return length >= 0 && (size_t)length < room && make_folder(path);
}

static bool cache_path(char *path, uint64_t key)
{
    if (!mixt__cache_folder("tokens", path, PATH_SIZE - 32))
        return false;
    size_t length = strlen(path);
    snprintf(path + length, PATH_SIZE - length, "/%016llx.tokens", (unsigned long long)key);
    return true;
}

/** Opens what was made before, if it is this text by this tokenizer. */
static bool reopen(const char *path, const mixt__token_facts *facts, bool trusted, mixt__token_file *file)
{
    if (!mixt__path_is_file(path))
        return false; // whoever makes it tidies up first
    mixt__file_remove_left_behind(path);
    if (mixt__token_file_open(path, 0, trusted, file) != MIXT_OK) {
        MIXT_LOG(DATA, "made again: %s", mixt_error_text());
        return false;
    }
    if (file->facts.source == facts->source && file->facts.fingerprint == facts->fingerprint)
        return true;
    mixt__token_file_close(file);
    return false;
}

/** Takes over tokens that were gathered, or frees them after a failure. */
static mixt_status take_memory(mixt_status status, const mixt__token_memory *memory, const mixt__token_facts *facts,
                               mixt__token_file *file)
{
    if (status != MIXT_OK) {
        mixt__free(memory->ids);
        return status;
    }
    file->block = memory->ids;
    file->ids = memory->ids;
    file->width = memory->width;
    file->count = memory->count;
    file->facts = *facts;
    return MIXT_OK;
}

/** In memory, for want of a cache folder: nothing is written that nobody asked for. */
static mixt_status open_in_memory(const mixt_tokenizer *t, const char *text, const mixt__token_facts *facts,
                                  mixt__teller teller, mixt__token_file *file)
{
    mixt__token_memory memory = {.width = mixt__token_width(facts->vocabulary)};
    mixt_status status = tokenize_into(mixt__token_memory_append, &memory, t, text, teller);
    MIXT_TRY(take_memory(status, &memory, facts, file));
    MIXT_LOG(DATA, "%s: tokens are kept in memory: no cache folder is writable", text);
    return MIXT_OK;
}

mixt_status mixt__tokens_of_memory(const mixt_tokenizer *t, const unsigned char *text, int64_t size,
                                   mixt__token_file *file)
{
    mixt__token_facts facts = mixt__token_facts_of(t, mixt__hash_bytes(0, text, size));
    mixt__token_memory memory = {.width = mixt__token_width(facts.vocabulary)};
    mixt__tokenize_job job = {
        .tokenizer = t, .text = text, .size = size, .sink = mixt__token_memory_append, .sink_user = &memory};
    *file = (mixt__token_file){0};
    return take_memory(mixt__tokenize(&job), &memory, &facts, file);
}

mixt_status mixt__token_cache_open(const mixt_tokenizer *t, const char *text, bool trusted, mixt__teller teller,
                                   mixt__token_file *file)
{
    char path[PATH_SIZE];
    uint64_t source;
    *file = (mixt__token_file){0};
    MIXT_TRY(mixt__text_fingerprint(text, &source));
    mixt__token_facts facts = mixt__token_facts_of(t, source);
    uint64_t key = mixt__hash_word(mixt__hash_word(source, facts.fingerprint), (uint64_t)strlen(t->kind->name));
    if (!cache_path(path, key))
        return open_in_memory(t, text, &facts, teller, file);
    if (reopen(path, &facts, trusted, file))
        return MIXT_OK;
    mixt_status status = mixt__text_to_tokens(t, text, source, path, true, teller);
    if (status == MIXT_ERROR_FILE) // no room there
        return open_in_memory(t, text, &facts, teller, file);
    MIXT_TRY(status);
    MIXT_LOG(DATA, "%s: tokens kept in %s", text, path);
    return mixt__token_file_open(path, 0, true, file);
}
