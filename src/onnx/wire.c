/* Protobuf's wire format, field by field. */
#include "onnx/wire.h"

#include "base/unicode.h"

#include <string.h>

enum { VARINT_BYTES = 10, FIELD_MAX = (1 << 29) - 1 };

mixt__wire mixt__wire_read(mixt__wire_span message)
{
    return (mixt__wire){.rest = message};
}

bool mixt__wire_varint(mixt__wire *w, uint64_t *value)
{
    *value = 0;
    if (!w->rest.bytes)
        return false;
    for (size_t i = 0; i < VARINT_BYTES && i < w->rest.bytes; i++) {
        uint8_t byte = w->rest.at[i];
        if (i == VARINT_BYTES - 1 && byte > 1)
            break; // more than 64 bits
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        w->rest.at += i + 1;
        w->rest.bytes -= i + 1;
        return true;
    }
    w->damaged = true;
    return false;
}

static bool take(mixt__wire *w, uint64_t bytes, mixt__wire_span *span)
{
    if (bytes > w->rest.bytes) {
        w->damaged = true;
        return false;
    }
    *span = (mixt__wire_span){w->rest.at, (size_t)bytes};
    w->rest.at += bytes;
    w->rest.bytes -= (size_t)bytes;
    return true;
}

static bool take_fixed(mixt__wire *w, size_t bytes, uint64_t *value)
{
    mixt__wire_span span;
    if (!take(w, bytes, &span))
        return false;
    for (size_t i = 0; i < bytes; i++)
        *value |= (uint64_t)span.at[i] << (8 * i);
    return true;
}

bool mixt__wire_next(mixt__wire *w, mixt__wire_field *field)
{
    uint64_t tag, length;
    *field = (mixt__wire_field){0};
    if (w->damaged || !mixt__wire_varint(w, &tag))
        return false;
    field->type = (mixt__wire_type)(tag & 7);
    if (tag >> 3 == 0 || tag >> 3 > FIELD_MAX) {
        w->damaged = true;
        return false;
    }
    field->number = (uint32_t)(tag >> 3);
    switch (field->type) {
    case MIXT_WIRE_VARINT:
        w->damaged = w->damaged || !mixt__wire_varint(w, &field->value);
        return !w->damaged;
    case MIXT_WIRE_FIXED64:
        return take_fixed(w, 8, &field->value);
    case MIXT_WIRE_FIXED32:
        return take_fixed(w, 4, &field->value);
    case MIXT_WIRE_BYTES:
        w->damaged = w->damaged || !mixt__wire_varint(w, &length);
        return !w->damaged && take(w, length, &field->bytes);
    }
    w->damaged = true; // groups are older than ONNX
    return false;
}

bool mixt__wire_is(mixt__wire_span span, const char *text)
{
    size_t length = strlen(text);
    return span.bytes == length && (!length || !memcmp(span.at, text, length));
}

bool mixt__wire_equal(mixt__wire_span a, mixt__wire_span b)
{
    return a.bytes == b.bytes && (!a.bytes || !memcmp(a.at, b.at, a.bytes));
}

bool mixt__wire_is_text(mixt__wire_span span)
{
    for (size_t i = 0; i < span.bytes; i++)
        if (span.at[i] < 0x20 || span.at[i] == 0x7f)
            return false;
    return mixt__utf8_valid(span.at, (int64_t)span.bytes) == (int64_t)span.bytes;
}

/* ---- writing ---- */

static void append(mixt__wire_out *out, const void *bytes, size_t count)
{
    int64_t need = out->count + (int64_t)count;
    if (out->short_of_memory)
        return;
    if (need > out->capacity) {
        int64_t capacity = need > 2 * out->capacity ? need + 64 : 2 * out->capacity;
        uint8_t *larger = mixt__realloc(out->bytes, (size_t)capacity);
        if (!larger) {
            out->short_of_memory = true;
            return;
        }
        out->bytes = larger;
        out->capacity = capacity;
    }
    if (count)
        memcpy(out->bytes + out->count, bytes, count);
    out->count = need;
}

static void append_varint(mixt__wire_out *out, uint64_t value)
{
    uint8_t bytes[VARINT_BYTES];
    size_t count = 0;
    for (; value > 0x7f; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    append(out, bytes, count);
}

static void append_tag(mixt__wire_out *out, uint32_t field, mixt__wire_type type)
{
    append_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

static void append_fixed(mixt__wire_out *out, uint64_t value, size_t count)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    append(out, bytes, count);
}

void mixt__wire_put_number(mixt__wire_out *out, uint32_t field, uint64_t value)
{
    append_tag(out, field, MIXT_WIRE_VARINT);
    append_varint(out, value);
}

void mixt__wire_put_float(mixt__wire_out *out, uint32_t field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    append_tag(out, field, MIXT_WIRE_FIXED32);
    append_fixed(out, bits, sizeof bits);
}

void mixt__wire_put_bytes(mixt__wire_out *out, uint32_t field, const void *bytes, size_t count)
{
    append_tag(out, field, MIXT_WIRE_BYTES);
    append_varint(out, count);
    append(out, bytes, count);
}

void mixt__wire_put_text(mixt__wire_out *out, uint32_t field, const char *text)
{
    mixt__wire_put_bytes(out, field, text, strlen(text));
}

void mixt__wire_put_message(mixt__wire_out *out, uint32_t field, mixt__wire_out *message)
{
    out->short_of_memory = out->short_of_memory || message->short_of_memory;
    mixt__wire_put_bytes(out, field, message->bytes, (size_t)message->count);
    mixt__wire_out_free(message);
}

void mixt__wire_put_field(mixt__wire_out *out, const mixt__wire_field *f)
{
    if (f->type == MIXT_WIRE_BYTES) {
        mixt__wire_put_bytes(out, f->number, f->bytes.at, f->bytes.bytes);
        return;
    }
    append_tag(out, f->number, f->type);
    if (f->type == MIXT_WIRE_VARINT)
        append_varint(out, f->value);
    else
        append_fixed(out, f->value, f->type == MIXT_WIRE_FIXED32 ? 4 : 8);
}

void mixt__wire_out_free(mixt__wire_out *out)
{
    mixt__free(out->bytes);
    *out = (mixt__wire_out){0};
}
