/* Protobuf's wire format: what ONNX files are written in, read where it lies and written into memory.
 *
 * A message is a row of fields, each a number, a type, and a value: a whole number, four or eight bytes, or bytes with
 * their length before them, which may be a message again. Reading copies nothing and allocates nothing; what does not
 * fit into its message is damage, and ends it. Not here: what fields mean (schema.h).
 */
#ifndef MIXT_ONNX_WIRE_H
#define MIXT_ONNX_WIRE_H

#include "base/alloc.h"

typedef enum mixt__wire_type {
    MIXT_WIRE_VARINT = 0,
    MIXT_WIRE_FIXED64 = 1,
    MIXT_WIRE_BYTES = 2,
    MIXT_WIRE_FIXED32 = 5,
} mixt__wire_type;

/** Bytes that lie in a file: a text without an end mark, a message, numbers. */
typedef struct mixt__wire_span {
    const uint8_t *at;
    size_t bytes;
} mixt__wire_span;

typedef struct mixt__wire_field {
    uint32_t number;
    mixt__wire_type type;
    uint64_t value;        // of VARINT, FIXED32 and FIXED64
    mixt__wire_span bytes; // of BYTES
} mixt__wire_field;

/** A message that is being read. */
typedef struct mixt__wire {
    mixt__wire_span rest;
    bool damaged;
} mixt__wire;

mixt__wire mixt__wire_read(mixt__wire_span message);
/** The next field; false at the end, and where the rest is no field (damaged). */
bool mixt__wire_next(mixt__wire *wire, mixt__wire_field *field);
/** The next whole number of packed ones; false at the end, and where there is none (damaged). */
bool mixt__wire_varint(mixt__wire *wire, uint64_t *value);

/** Whether a text is this one. */
bool mixt__wire_is(mixt__wire_span span, const char *text);
bool mixt__wire_equal(mixt__wire_span a, mixt__wire_span b);
/** Whether the bytes are a text as names are: UTF-8 without control characters. */
bool mixt__wire_is_text(mixt__wire_span span);

/** A message that is being written, in memory that grows. */
typedef struct mixt__wire_out {
    uint8_t *bytes; // of mixt__alloc
    int64_t count, capacity;
    bool short_of_memory;
} mixt__wire_out;

void mixt__wire_put_number(mixt__wire_out *out, uint32_t field, uint64_t value);
void mixt__wire_put_float(mixt__wire_out *out, uint32_t field, float value);
void mixt__wire_put_bytes(mixt__wire_out *out, uint32_t field, const void *bytes, size_t count);
void mixt__wire_put_text(mixt__wire_out *out, uint32_t field, const char *text);
/** A message as a field of another; frees what it was written in. */
void mixt__wire_put_message(mixt__wire_out *out, uint32_t field, mixt__wire_out *message);
/** A field as it was read. */
void mixt__wire_put_field(mixt__wire_out *out, const mixt__wire_field *field);
void mixt__wire_out_free(mixt__wire_out *out);

#endif
