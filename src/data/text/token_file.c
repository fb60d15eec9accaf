/* Reading and writing of token files. The checksum chains the hashes of blocks of 1 MiB, so that threads can share the
 * pass over a large file. */
#include "data/text/token_file.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/threads.h"
#include "data/hash.h"

#include <errno.h>
#include <unistd.h>

static const char magic[8] = "mixttok";

enum { VERSION = 1 };

typedef struct header {
    char magic[8];
    uint32_t version, width;
    uint64_t count, vocabulary;
    int64_t mask, start, end, unknown, pad;
    uint64_t fingerprint, source;
    uint64_t reserved[3]; // 0
    uint64_t checksum;    // of the tokens
    uint64_t own;         // of all fields before it
} header;

_Static_assert(sizeof(header) == 128, "no padding inside");

static uint64_t header_sum(const header *h)
{
    return mixt__hash_bytes(VERSION, h, offsetof(header, own));
}

/* ---- the pass over all tokens ---- */

typedef struct token_scan {
    const unsigned char *bytes;
    int64_t size;
    int width;
    uint64_t *hashes;  // one a block
    uint32_t *largest; // one a block
} token_scan;

static void scan_blocks(void *argument, int64_t begin, int64_t end, int thread)
{
    const token_scan *s = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const unsigned char *block = s->bytes + i * MIXT_TOKEN_BLOCK;
        int64_t size = s->size - i * MIXT_TOKEN_BLOCK;
        size = size < MIXT_TOKEN_BLOCK ? size : MIXT_TOKEN_BLOCK;
        s->hashes[i] = mixt__hash_bytes(0, block, size);
        uint32_t largest = 0;
        if (s->width == 2)
            for (int64_t k = 0; k < size / 2; k++) {
                uint16_t id;
                memcpy(&id, block + 2 * k, 2);
                largest = id > largest ? id : largest;
            }
        else
            for (int64_t k = 0; k < size / 4; k++) {
                uint32_t id;
                memcpy(&id, block + 4 * k, 4);
                largest = id > largest ? id : largest;
            }
        s->largest[i] = largest;
    }
}

static int64_t find_token(const mixt__token_file *f, uint32_t id)
{
    for (int64_t i = 0; i < f->count; i++)
        if ((f->width == 2 ? ((const uint16_t *)f->ids)[i] : ((const uint32_t *)f->ids)[i]) == id)
            return i;
    return -1;
}

static mixt_status scan(const char *path, const mixt__token_file *f, uint64_t *checksum)
{
    int64_t size = f->count * f->width, blocks = (size + MIXT_TOKEN_BLOCK - 1) / MIXT_TOKEN_BLOCK;
    token_scan s = {.bytes = f->ids, .size = size, .width = f->width};
    s.hashes = mixt__alloc_uninit((size_t)blocks * sizeof *s.hashes);
    s.largest = mixt__alloc_uninit((size_t)blocks * sizeof *s.largest);
    mixt_status status =
        s.hashes && s.largest ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to check it", path);
    uint32_t largest = 0;
    *checksum = 0;
    if (status == MIXT_OK) {
        mixt__parallel(blocks, 1, scan_blocks, &s);
        for (int64_t i = 0; i < blocks; i++) {
            *checksum = mixt__hash_word(*checksum, s.hashes[i]);
            largest = s.largest[i] > largest ? s.largest[i] : largest;
        }
    }
    mixt__free(s.hashes);
    mixt__free(s.largest);
    if (status == MIXT_OK && largest >= f->facts.vocabulary)
        return mixt__fail(MIXT_ERROR_DATA, "%s: token %lld is %lld, but the vocabulary has %lld", path,
                          (long long)find_token(f, largest), (long long)largest, (long long)f->facts.vocabulary);
    return status;
}

/* ---- reading ---- */

static bool special_fits(int64_t id, uint64_t vocabulary)
{
    return id >= -1 && id < (int64_t)vocabulary;
}

static mixt_status read_header(const char *path, mixt__token_file *f, header *h)
{
    if (f->map.bytes < sizeof *h)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %zu bytes, a token file's header alone has %zu", path, f->map.bytes,
                          sizeof *h);
    memcpy(h, f->map.data, sizeof *h);
    if (h->version != VERSION)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: version %u of a token file, this program reads %d", path,
                          (unsigned)h->version, VERSION);
    if (h->own != header_sum(h))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: the header is damaged (checksum); create the file again", path);
    if ((h->width != 2 && h->width != 4) || h->vocabulary < 1 || h->vocabulary > MIXT_VOCABULARY_MAX ||
        !special_fits(h->mask, h->vocabulary) || !special_fits(h->start, h->vocabulary) ||
        !special_fits(h->end, h->vocabulary) || !special_fits(h->unknown, h->vocabulary) ||
        !special_fits(h->pad, h->vocabulary))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tokens of %u bytes, a vocabulary of %llu: out of range", path,
                          (unsigned)h->width, (unsigned long long)h->vocabulary);
    if (h->count != (f->map.bytes - sizeof *h) / h->width || (f->map.bytes - sizeof *h) % h->width)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %llu tokens of %u bytes expected, %zu bytes are there; cut off?",
                          path, (unsigned long long)h->count, (unsigned)h->width, f->map.bytes - sizeof *h);
    f->ids = f->map.data + sizeof *h;
    f->width = (int)h->width;
    f->count = (int64_t)h->count;
    f->facts = (mixt__token_facts){
        (int64_t)h->vocabulary, {h->mask, h->start, h->end, h->unknown, h->pad}, h->fingerprint, h->source};
    return MIXT_OK;
}

static mixt_status read_raw(const char *path, int64_t vocabulary, mixt__token_file *f)
{
    if (!vocabulary)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "%s: has no header of a token file; for raw 16-bit tokens say how many distinct ones there are "
            "(classes; of a model, vocab) or which folder holds their vocabulary (vocab)",
            path);
    if (f->map.bytes % 2 || !f->map.bytes)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %zu bytes are not a whole number of 16-bit tokens", path,
                          f->map.bytes);
    f->ids = f->map.data;
    f->width = 2;
    f->count = (int64_t)f->map.bytes / 2;
    f->facts = (mixt__token_facts){.vocabulary = vocabulary, .special = {-1, -1, -1, -1, -1}};
    return MIXT_OK;
}

bool mixt__token_file_has_header(const char *path)
{
    mixt__file_map map;
    bool own = mixt__file_map_open(path, &map) == MIXT_OK && map.bytes >= sizeof magic &&
               !memcmp(map.data, magic, sizeof magic);
    mixt__file_map_close(&map);
    return own;
}

static mixt_status check(const char *path, int64_t vocabulary, bool trusted, mixt__token_file *f)
{
    header h = {0};
    bool own = f->map.bytes >= sizeof magic && !memcmp(f->map.data, magic, sizeof magic);
    uint64_t checksum;
    MIXT_TRY(own ? read_header(path, f, &h) : read_raw(path, vocabulary, f));
    if (trusted)
        return MIXT_OK;
    MIXT_TRY(scan(path, f, &checksum));
    if (own && checksum != h.checksum)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: the tokens are damaged (checksum); create the file again", path);
    return MIXT_OK;
}

mixt_status mixt__token_file_open(const char *path, int64_t vocabulary, bool trusted, mixt__token_file *file)
{
    *file = (mixt__token_file){0};
    MIXT_TRY(mixt__file_map_open(path, &file->map));
    mixt_status status = check(path, vocabulary, trusted, file);
    if (status != MIXT_OK)
        mixt__token_file_close(file);
    return status;
}

void mixt__token_file_close(mixt__token_file *file)
{
    mixt__file_map_close(&file->map);
    mixt__free(file->block);
    *file = (mixt__token_file){0};
}

/* ---- writing ---- */

int mixt__token_width(int64_t vocabulary)
{
    return vocabulary <= 1 << 16 ? 2 : 4;
}

static void put_tokens(unsigned char *to, int width, const uint32_t *ids, int64_t count)
{
    if (width == 4)
        memcpy(to, ids, (size_t)count * 4);
    else
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = (uint16_t)ids[i];
}

mixt_status mixt__token_memory_append(void *user, const uint32_t *ids, int64_t count)
{
    mixt__token_memory *m = user;
    if (m->count + count > m->capacity) {
        int64_t capacity = m->capacity + m->capacity / 2 + count;
        void *bigger = mixt__realloc(m->ids, (size_t)(capacity * m->width));
        if (!bigger)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld tokens", (long long)capacity);
        m->ids = bigger;
        m->capacity = capacity;
    }
    put_tokens(m->ids + m->count * m->width, m->width, ids, count);
    m->count += count;
    return MIXT_OK;
}

mixt_status mixt__token_writer_open(mixt__token_writer *w, const char *path, bool overwrite,
                                    const mixt__token_facts *facts)
{
    header blank = {0};
    *w = (mixt__token_writer){.facts = *facts, .width = mixt__token_width(facts->vocabulary)};
    MIXT_TRY(mixt__file_writer_open(&w->file, path, overwrite));
    w->block = mixt__alloc_uninit(MIXT_TOKEN_BLOCK);
    mixt_status status = w->block ? mixt__file_writer_append(&w->file, &blank, sizeof blank)
                                  : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write it", path);
    if (status != MIXT_OK)
        mixt__token_writer_abandon(w);
    return status;
}

static mixt_status write_block(mixt__token_writer *w)
{
    if (!w->filled)
        return MIXT_OK;
    w->checksum = mixt__hash_word(w->checksum, mixt__hash_bytes(0, w->block, w->filled));
    mixt_status status = mixt__file_writer_append(&w->file, w->block, (size_t)w->filled);
    w->filled = 0;
    return status;
}

mixt_status mixt__token_writer_append(void *user, const uint32_t *ids, int64_t count)
{
    mixt__token_writer *w = user;
    while (count > 0) {
        int64_t room = (MIXT_TOKEN_BLOCK - w->filled) / w->width, n = count < room ? count : room;
        put_tokens(w->block + w->filled, w->width, ids, n);
        w->filled += n * w->width;
        w->count += n;
        ids += n;
        count -= n;
        if (w->filled == MIXT_TOKEN_BLOCK)
            MIXT_TRY(write_block(w));
    }
    return MIXT_OK;
}

static mixt_status write_header(mixt__token_writer *w)
{
    const mixt__special_tokens *s = &w->facts.special;
    header h = {.version = VERSION, .width = (uint32_t)w->width, .count = (uint64_t)w->count};
    memcpy(h.magic, magic, sizeof magic);
    h.vocabulary = (uint64_t)w->facts.vocabulary;
    h.mask = s->mask;
    h.start = s->start;
    h.end = s->end;
    h.unknown = s->unknown;
    h.pad = s->pad;
    h.fingerprint = w->facts.fingerprint;
    h.source = w->facts.source;
    h.checksum = w->checksum;
    h.own = header_sum(&h);
    if (pwrite(w->file.fd, &h, sizeof h, 0) != (ssize_t)sizeof h)
        return mixt__fail(MIXT_ERROR_FILE, "%s: its header cannot be written: %s", w->file.path, strerror(errno));
    return MIXT_OK;
}

mixt_status mixt__token_writer_commit(mixt__token_writer *w)
{
    mixt_status status = write_block(w);
    if (status == MIXT_OK)
        status = write_header(w);
    if (status == MIXT_OK)
        status = mixt__file_writer_commit(&w->file);
    mixt__token_writer_abandon(w);
    return status;
}

void mixt__token_writer_abandon(mixt__token_writer *w)
{
    mixt__file_writer_abandon(&w->file);
    mixt__free(w->block);
    w->block = NULL;
}
