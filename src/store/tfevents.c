/* Messages field by field, records with their CRC-32C, histograms. */
#include "store/tfevents.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- the parts of a message ---- */

/** How a field's value lies in a message. */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/** Numbers of the fields that are used here, by message. */
enum {
    EVENT_WALL_TIME = 1,
    EVENT_STEP = 2,
    EVENT_FILE_VERSION = 3,
    EVENT_SUMMARY = 5,
    EVENT_SESSION_LOG = 7,
    SESSION_LOG_STATUS = 1,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_SIMPLE = 2,
    VALUE_HISTOGRAM = 5,
    VALUE_TENSOR = 8,
    VALUE_METADATA = 9,
    METADATA_PLUGIN = 1,
    PLUGIN_NAME = 1,
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_STRING = 8,
    SHAPE_DIM = 2,
    DIM_SIZE = 1,
};
enum { SESSION_START = 1, DTYPE_STRING = 7 };

static void put(mixt__tfevents *e, const void *data, size_t bytes)
{
    if (e->count + bytes > e->capacity) {
        size_t room = 2 * (e->count + bytes) + 4096;
        unsigned char *more = mixt__realloc(e->bytes, room);
        e->lost = e->lost || !more;
        if (!more)
            return;
        e->bytes = more;
        e->capacity = room;
    }
    memcpy(e->bytes + e->count, data, bytes);
    e->count += bytes;
}

static void put_varint(mixt__tfevents *e, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; value >= 128; value >>= 7)
        bytes[n++] = (unsigned char)(value | 128);
    bytes[n++] = (unsigned char)value;
    put(e, bytes, n);
}

static void put_key(mixt__tfevents *e, int field, int wire)
{
    put_varint(e, (uint64_t)field << 3 | (uint64_t)wire);
}

static void put_int(mixt__tfevents *e, int field, int64_t value)
{
    put_key(e, field, WIRE_VARINT);
    put_varint(e, (uint64_t)value);
}

static void put_double(mixt__tfevents *e, int field, double value)
{
    put_key(e, field, WIRE_64);
    put(e, &value, sizeof value); // files are little-endian, as is every machine that mixt is built for
}

static void put_bytes(mixt__tfevents *e, int field, const void *data, size_t bytes)
{
    put_key(e, field, WIRE_BYTES);
    put_varint(e, bytes);
    put(e, data, bytes);
}

static void put_text(mixt__tfevents *e, int field, const char *text)
{
    put_bytes(e, field, text, strlen(text));
}

/** A message inside another begins with its length, which is known at its end only: five bytes are held free for it. */
static size_t open_message(mixt__tfevents *e, int field)
{
    put_key(e, field, WIRE_BYTES);
    put(e, "\x80\x80\x80\x80\x00", 5);
    return e->count;
}

static void close_message(mixt__tfevents *e, size_t start)
{
    if (e->lost)
        return;
    size_t length = e->count - start;
    for (int i = 0; i < 5; i++, length >>= 7)
        e->bytes[start - 5 + (size_t)i] = (unsigned char)((length & 127) | (i < 4 ? 128 : 0));
}

/* ---- records ---- */

/** CRC-32C, half a byte at a time. */
static uint32_t crc32c(const unsigned char *data, size_t bytes)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/** As records hold it: a checksum of bytes that hold their own checksum would say little. */
static uint32_t masked_crc(const unsigned char *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

enum { RECORD_HEAD = 12 }; // length and its checksum

static void begin_record(mixt__tfevents *e)
{
    struct timespec now;
    static const unsigned char head[RECORD_HEAD] = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    e->lost = false;
    e->record = e->count;
    put(e, head, sizeof head);
    put_double(e, EVENT_WALL_TIME, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}

static mixt_status end_record(mixt__tfevents *e)
{
    if (!e->lost) {
        unsigned char *head = e->bytes + e->record;
        uint64_t length = e->count - e->record - RECORD_HEAD;
        memcpy(head, &length, sizeof length);
        uint32_t crc = masked_crc(head, sizeof length);
        memcpy(head + sizeof length, &crc, sizeof crc);
        crc = masked_crc(head + RECORD_HEAD, length);
        put(e, &crc, sizeof crc);
    }
    if (!e->lost)
        return MIXT_OK;
    e->count = e->record;
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a record of %s", e->path);
}

mixt_status mixt__tfevents_open(mixt__tfevents *e, const char *folder)
{
    struct timespec now;
    *e = (mixt__tfevents){0};
    clock_gettime(CLOCK_REALTIME, &now);
    // nanoseconds: a run that is resumed within the second has a file of its own, in order
    snprintf(e->path, sizeof e->path, "%s/events.out.tfevents.%lld.%09ld.mixt", folder, (long long)now.tv_sec,
             now.tv_nsec);
    e->fd = open(e->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (e->fd < 0)
        return mixt__fail(MIXT_ERROR_FILE, "cannot make %s: %s", e->path, strerror(errno));
    e->open = true;
    begin_record(e);
    put_text(e, EVENT_FILE_VERSION, "brain.Event:2");
    return end_record(e);
}

mixt_status mixt__tfevents_restart(mixt__tfevents *e, int64_t step)
{
    begin_record(e);
    put_int(e, EVENT_STEP, step);
    size_t log = open_message(e, EVENT_SESSION_LOG);
    put_int(e, SESSION_LOG_STATUS, SESSION_START);
    close_message(e, log);
    return end_record(e);
}

void mixt__tfevents_begin(mixt__tfevents *e, int64_t step)
{
    begin_record(e);
    put_int(e, EVENT_STEP, step);
    e->message = open_message(e, EVENT_SUMMARY);
}

mixt_status mixt__tfevents_end(mixt__tfevents *e)
{
    close_message(e, e->message);
    return end_record(e);
}

mixt_status mixt__tfevents_flush(mixt__tfevents *e)
{
    size_t done = 0;
    while (e->open && done < e->count) {
        ssize_t got = write(e->fd, e->bytes + done, e->count - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            e->count = 0;
            return mixt__fail(MIXT_ERROR_FILE, "cannot write %s: %s", e->path, strerror(errno));
        }
        done += (size_t)got;
    }
    e->count = 0;
    return MIXT_OK;
}

void mixt__tfevents_close(mixt__tfevents *e)
{
    if (e->open) {
        (void)mixt__tfevents_flush(e); // who wants to know has flushed
        close(e->fd);
    }
    mixt__free(e->bytes);
    *e = (mixt__tfevents){0};
}

/* ---- values ---- */

static size_t open_value(mixt__tfevents *e, const char *tag)
{
    size_t value = open_message(e, SUMMARY_VALUE);
    put_text(e, VALUE_TAG, tag);
    return value;
}

void mixt__tfevents_scalar(mixt__tfevents *e, const char *tag, float number)
{
    size_t value = open_value(e, tag);
    put_key(e, VALUE_SIMPLE, WIRE_32);
    put(e, &number, sizeof number);
    close_message(e, value);
}

void mixt__tfevents_text(mixt__tfevents *e, const char *tag, const char *text)
{
    size_t value = open_value(e, tag);
    size_t metadata = open_message(e, VALUE_METADATA), plugin = open_message(e, METADATA_PLUGIN);
    put_text(e, PLUGIN_NAME, "text");
    close_message(e, plugin);
    close_message(e, metadata);
    size_t tensor = open_message(e, VALUE_TENSOR);
    put_int(e, TENSOR_DTYPE, DTYPE_STRING);
    size_t shape = open_message(e, TENSOR_SHAPE), dim = open_message(e, SHAPE_DIM);
    put_int(e, DIM_SIZE, 1);
    close_message(e, dim);
    close_message(e, shape);
    put_text(e, TENSOR_STRING, text);
    close_message(e, tensor);
    close_message(e, value);
}

void mixt__tfevents_histogram(mixt__tfevents *e, const char *tag, const mixt__histogram *h)
{
    size_t value = open_value(e, tag), message = open_message(e, VALUE_HISTOGRAM);
    const double totals[] = {h->min, h->max, h->count, h->sum, h->sum_squares};
    for (int i = 0; i < 5; i++)
        put_double(e, i + 1, totals[i]);
    put_bytes(e, 6, h->limit, (size_t)h->buckets * sizeof *h->limit);
    put_bytes(e, 7, h->bucket, (size_t)h->buckets * sizeof *h->bucket);
    close_message(e, message);
    close_message(e, value);
}

void mixt__histogram_make(mixt__histogram *h, const float *values, int64_t count)
{
    *h = (mixt__histogram){.min = INFINITY, .max = -INFINITY, .buckets = MIXT_TFEVENTS_BUCKETS};
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            double v = (double)values[i];
            h->min = v < h->min ? v : h->min;
            h->max = v > h->max ? v : h->max;
            h->sum += v;
            h->sum_squares += v * v;
            h->count++;
        }
    if (h->count == 0.0)
        h->min = h->max = 0;
    double width = (h->max - h->min) / MIXT_TFEVENTS_BUCKETS;
    width = width > 0 ? width : 1;
    for (int b = 0; b < MIXT_TFEVENTS_BUCKETS; b++)
        h->limit[b] = h->min + width * (b + 1);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            int b = (int)(((double)values[i] - h->min) / width);
            h->bucket[b < MIXT_TFEVENTS_BUCKETS ? b : MIXT_TFEVENTS_BUCKETS - 1]++;
        }
}
