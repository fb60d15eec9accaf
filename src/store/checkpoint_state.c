/* The state file of a checkpoint that is being filled: its header by one process, its tensors by as many as there are,
 * each what it has at its place; what was written, as the manifest has it.
 */
#include "store/checkpoint.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/status.h"
#include "store/checkpoint_inside.h"
#include "store/checksum.h"
#include "store/file.h"
#include "store/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int64_t bytes_of(const mixt__file_tensor *t)
{
    return mixt__file_tensor_count(t->dtype, t->rank, t->dims) * (int64_t)mixt_dtype_size(t->dtype);
}

static void state_path(const mixt__checkpoint_draft *d, char path[MIXT_CHECKPOINT_INSIDE])
{
    snprintf(path, MIXT_CHECKPOINT_INSIDE, "%s/%s", d->temporary, MIXT_CHECKPOINT_STATE);
}

/* ---- writing ---- */

/** Who writes a part finds its place by adding up what stands before: in the file, too, tensors keep their order. */
static mixt_status check_order(const char *path, const mixt__checkpoint_content *content)
{
    for (int64_t i = 1; i < content->count; i++)
        if (mixt_dtype_size(content->tensors[i].dtype) > mixt_dtype_size(content->tensors[i - 1].dtype))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: tensor '%s' has wider elements than the one before it", path,
                              content->tensors[i].name);
    return MIXT_OK;
}

/** The file, its header and its length. */
static mixt_status make_file(const char *path, const char *header, mixt__checkpoint_draft *d)
{
    int fd = mixt__file_open_write(path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be created: %s", path, strerror(errno));
    mixt_status status = mixt__file_write_at(fd, path, header, (size_t)d->data, 0);
    if (status == MIXT_OK && ftruncate(fd, (off_t)d->bytes))
        status =
            mixt__fail(MIXT_ERROR_FILE, "%s: cannot have %lld bytes: %s", path, (long long)d->bytes, strerror(errno));
    if (close(fd) && status == MIXT_OK)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be closed: %s", path, strerror(errno));
    return status;
}

mixt_status mixt__checkpoint_state_make(mixt__checkpoint_draft *d, const mixt__checkpoint_content *content)
{
    char path[MIXT_CHECKPOINT_INSIDE], *header;
    size_t bytes;
    state_path(d, path);
    MIXT_TRY(check_order(path, content));
    MIXT_TRY(mixt__safetensors_header(path, content->tensors, content->count, &header, &bytes));
    d->data = d->bytes = (int64_t)bytes;
    d->header = mixt__checksum(header, bytes);
    for (int64_t i = 0; i < content->count; i++)
        d->bytes += bytes_of(&content->tensors[i]);
    mixt_status status = make_file(path, header, d);
    mixt__free(header);
    return status;
}

/** Where tensors stand in the file, asked for in their order. */
typedef struct places {
    const mixt__checkpoint_content *content;
    int64_t tensor, at;
} places;

static int64_t place_of(places *p, const mixt__checkpoint_piece *piece)
{
    for (; p->tensor < piece->tensor; p->tensor++)
        p->at += bytes_of(&p->content->tensors[p->tensor]);
    return p->at + piece->begin;
}

static mixt_status write_pieces(int fd, const char *path, const mixt__checkpoint_draft *d,
                                const mixt__checkpoint_content *content, const mixt__checkpoint_piece *pieces,
                                int64_t count, mixt__checkpoint_sum *sums)
{
    places places = {content, 0, d->data};
    for (int64_t i = 0; i < count; i++) {
        const mixt__checkpoint_piece *p = &pieces[i];
        MIXT_TRY(mixt__file_write_at(fd, path, p->data, (size_t)p->bytes, place_of(&places, p)));
        sums[i] = (mixt__checkpoint_sum){p->tensor, p->begin, p->bytes, mixt__checksum(p->data, (size_t)p->bytes)};
    }
    if (fsync(fd)) // delayed allocation reports a full disk here
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be flushed to disk: %s", path, strerror(errno));
    return MIXT_OK;
}

enum { READ_AT_ONCE = 1 << 18 }; // whole words

/** The sum of so many bytes of a file. Read, not mapped: what is mapped counts as the process's memory. */
static mixt_status sum_range(int fd, const char *path, int64_t at, int64_t bytes, char *buffer, uint64_t *sum)
{
    *sum = 0;
    while (bytes > 0) {
        size_t wanted = bytes < READ_AT_ONCE ? (size_t)bytes : READ_AT_ONCE, have = 0;
        while (have < wanted) {
            ssize_t now = pread(fd, buffer + have, wanted - have, at + (int64_t)have);
            if (now < 0 && errno == EINTR)
                continue;
            if (now < 0)
                return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read again: %s", path, strerror(errno));
            if (!now)
                return mixt__fail(MIXT_ERROR_FILE, "%s: was cut while it was written", path);
            have += (size_t)now;
        }
        *sum += mixt__checksum_words(buffer, wanted);
        at += (int64_t)wanted;
        bytes -= (int64_t)wanted;
    }
    return MIXT_OK;
}

/** Between memory that was verified and the file a bit may flip too: the file is what must be right. */
static mixt_status read_pieces(int fd, const char *path, const mixt__checkpoint_draft *d,
                               const mixt__checkpoint_content *content, const mixt__checkpoint_piece *pieces,
                               int64_t count)
{
    places places = {content, 0, d->data};
    char *buffer = mixt__alloc_uninit(READ_AT_ONCE);
    mixt_status status = buffer ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read %s again", path);
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        const mixt__checkpoint_piece *p = &pieces[i];
        int64_t at = place_of(&places, p);
        uint64_t sum = p->words;
        if (p->summed)
            status = sum_range(fd, path, at, p->bytes, buffer, &sum);
        if (status == MIXT_OK && sum != p->words)
            status = mixt__fail(
                MIXT_ERROR_DATA,
                "'%s' is not in the file as it was in memory: a bit has flipped, or a program wrote to the wrong place",
                content->tensors[p->tensor].name);
    }
    mixt__free(buffer);
    return status;
}

mixt_status mixt__checkpoint_add(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content,
                                 const mixt__checkpoint_piece *pieces, int64_t count, mixt__checkpoint_sum *sums)
{
    char path[MIXT_CHECKPOINT_INSIDE];
    state_path(d, path);
    int fd = mixt__file_open_write(path, O_RDWR);
    if (fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be opened: %s", path, strerror(errno));
    mixt_status status = write_pieces(fd, path, d, content, pieces, count, sums);
    if (status == MIXT_OK)
        status = read_pieces(fd, path, d, content, pieces, count);
    if (close(fd) && status == MIXT_OK)
        status = mixt__fail(MIXT_ERROR_FILE, "%s: cannot be closed: %s", path, strerror(errno));
    return status;
}

/* ---- what is to be written ---- */

mixt_status mixt__checkpoint_finite(const mixt__checkpoint_content *content, const mixt__checkpoint_piece *pieces,
                                    int64_t count)
{
    const int64_t size = (int64_t)sizeof(float);
    const size_t prefix = strlen(MIXT_STATE_MASTER);
    for (int64_t i = 0; i < (pieces ? count : content->count); i++) {
        const mixt__file_tensor *t = &content->tensors[pieces ? pieces[i].tensor : i];
        if (strncmp(t->name, MIXT_STATE_MASTER, prefix) || t->dtype != MIXT_DTYPE_FP32)
            continue;
        const void *data = pieces ? pieces[i].data : t->data;
        int64_t bytes = pieces ? pieces[i].bytes : bytes_of(t), begin = pieces ? pieces[i].begin : 0;
        MIXT_TRY(mixt__weights_finite(t->name + prefix, data, begin / size, bytes / size,
                                      "checkpoints of before it went wrong are kept"));
    }
    return MIXT_OK;
}

/* ---- what was written ---- */

json_t *mixt__checkpoint_hex(uint64_t sum)
{
    char text[20];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return mixt__json_string(text);
}

static int by_place(const void *a, const void *b)
{
    const mixt__checkpoint_sum *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/** One checksum, or [[bytes, checksum], …] of a tensor that several have written. NULL: no memory. */
static json_t *tensor_record(const mixt__checkpoint_sum *sums, int64_t count)
{
    if (count == 0)
        return mixt__checkpoint_hex(mixt__checksum("", 0));
    if (count == 1)
        return mixt__checkpoint_hex(sums->sum);
    json_t *parts = json_array();
    for (int64_t i = 0; i < count; i++)
        if (mixt__json_add(parts, json_pack("[I, o]", (json_int_t)sums[i].bytes, mixt__checkpoint_hex(sums[i].sum)))) {
            json_decref(parts);
            return NULL;
        }
    return parts;
}

/** How many of `sums` are of this tensor; -1: they are not all of it, once. */
static int64_t count_parts(const mixt__checkpoint_sum *sums, int64_t left, int64_t tensor, int64_t bytes)
{
    int64_t count = 0, end = 0;
    for (; count < left && sums[count].tensor == tensor; count++) {
        if (sums[count].begin != end || sums[count].bytes < 1)
            return -1;
        end += sums[count].bytes;
    }
    return end == bytes ? count : -1;
}

mixt_status mixt__checkpoint_state_record(const mixt__checkpoint_draft *d, const mixt__checkpoint_content *content,
                                          mixt__checkpoint_sum *sums, int64_t count, json_t *record, bool *cut)
{
    json_t *tensors = json_object();
    int64_t used = 0;
    bool good = tensors != NULL;
    *cut = false;
    qsort(sums, (size_t)count, sizeof *sums, by_place);
    for (int64_t i = 0; good && i < content->count; i++) {
        const mixt__file_tensor *t = &content->tensors[i];
        int64_t parts = count_parts(sums + used, count - used, i, bytes_of(t));
        if (parts < 0) {
            json_decref(tensors);
            return mixt__fail(MIXT_ERROR_STATE, "checkpoint %s: tensor '%s' was not written once and whole", d->target,
                              t->name);
        }
        *cut = *cut || parts > 1;
        good = !mixt__json_set(tensors, t->name, tensor_record(sums + used, parts));
        used += parts;
    }
    good = good && !mixt__json_set(record, "bytes", json_integer((json_int_t)d->bytes)) &&
           !mixt__json_set(record, "header", mixt__checkpoint_hex(d->header)) &&
           !mixt__json_set(record, "tensors", json_incref(tensors));
    json_decref(tensors);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "checkpoint %s: no memory to write it", d->target);
}
