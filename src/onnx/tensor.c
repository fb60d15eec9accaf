/* Tensors of an ONNX file: where their elements lie, and those as numbers. */
#include "onnx/file.h"

#include "base/status.h"
#include "mixt/num.h"

#include <math.h>
#include <string.h>

typedef struct type_record {
    const char *name;
    int bits;
} type_record;

static const type_record types[MIXT_ONNX_TYPE_COUNT] = {
#define MIXT_ONNX_TYPE_RECORD(id, number, text, bits) [number] = {text, bits},
    MIXT_ONNX_TYPES(MIXT_ONNX_TYPE_RECORD)
#undef MIXT_ONNX_TYPE_RECORD
};

const char *mixt__onnx_type_name(mixt__onnx_type type)
{
    return (int)type > 0 && type < MIXT_ONNX_TYPE_COUNT ? types[type].name : "unknown";
}

int mixt__onnx_type_bits(mixt__onnx_type type)
{
    return (int)type > 0 && type < MIXT_ONNX_TYPE_COUNT ? types[type].bits : 0;
}

bool mixt__onnx_type_is_float(mixt__onnx_type type)
{
    return type == MIXT_ONNX_FLOAT || type == MIXT_ONNX_DOUBLE || type == MIXT_ONNX_FLOAT16 ||
           type == MIXT_ONNX_BFLOAT16 || (type >= MIXT_ONNX_FLOAT8E4M3FN && type <= MIXT_ONNX_FLOAT8E5M2FNUZ) ||
           type == MIXT_ONNX_FLOAT4E2M1;
}

/* ---- where elements lie ---- */

static mixt_status bad(const mixt__onnx_file *f, const mixt__onnx_tensor *t, const char *what)
{
    char text[128];
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' %s", f->path, mixt__onnx_text(t->name, text, sizeof text),
                      what);
}

static bool add_dim(mixt__onnx_tensor *t, uint64_t dim)
{
    if (t->rank == MIXT_ONNX_RANK || dim > INT64_MAX)
        return false;
    t->dims[t->rank++] = (int64_t)dim;
    return !__builtin_mul_overflow(t->count, (int64_t)dim, &t->count);
}

static bool add_dims(mixt__onnx_tensor *t, const mixt__wire_field *field)
{
    uint64_t dim;
    if (field->type == MIXT_WIRE_VARINT)
        return add_dim(t, field->value);
    mixt__wire packed = mixt__wire_read(field->bytes);
    while (mixt__wire_varint(&packed, &dim))
        if (!add_dim(t, dim))
            return false;
    return field->type == MIXT_WIRE_BYTES && !packed.damaged;
}

typedef struct external_place {
    mixt__wire_span location;
    uint64_t offset, length;
    bool has_length, bad;
} external_place;

/** Digits alone; more than 19 of them are no place in a file. */
static uint64_t number_of(mixt__wire_span text, bool *bad_number)
{
    uint64_t number = 0;
    *bad_number = *bad_number || !text.bytes || text.bytes > 18;
    for (size_t i = 0; i < text.bytes && !*bad_number; i++) {
        *bad_number = text.at[i] < '0' || text.at[i] > '9';
        number = 10 * number + (uint64_t)(text.at[i] - '0');
    }
    return *bad_number ? 0 : number;
}

static void read_place(mixt__wire_span message, external_place *place)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    mixt__wire_span key = {0}, value = {0};
    while (mixt__wire_next(&w, &field))
        if (field.type == MIXT_WIRE_BYTES && field.number == MIXT_ONNX_PAIR_KEY)
            key = field.bytes;
        else if (field.type == MIXT_WIRE_BYTES && field.number == MIXT_ONNX_PAIR_VALUE)
            value = field.bytes;
    place->bad = place->bad || w.damaged;
    if (mixt__wire_is(key, "location"))
        place->location = value;
    else if (mixt__wire_is(key, "offset"))
        place->offset = number_of(value, &place->bad);
    else if (mixt__wire_is(key, "length")) {
        place->length = number_of(value, &place->bad);
        place->has_length = true;
    }
}

static mixt_status take_external(mixt__onnx_file *f, mixt__onnx_tensor *t, const external_place *place)
{
    mixt__wire_span whole;
    if (place->bad || !place->location.bytes)
        return bad(f, t, "has no place in a file of external data");
    MIXT_TRY(mixt__onnx_external_open(f, place->location, &whole));
    if (place->offset > whole.bytes || (place->has_length && place->length > whole.bytes - place->offset))
        return bad(f, t, "lies beyond the end of its file of external data");
    t->data = (mixt__wire_span){whole.at + place->offset,
                                place->has_length ? (size_t)place->length : whole.bytes - (size_t)place->offset};
    return MIXT_OK;
}

/** How many elements fields of a number hold; -1: damage. */
static int64_t count_elements(mixt__wire_span message, uint32_t number, size_t size)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    uint64_t value;
    int64_t count = 0;
    while (mixt__wire_next(&w, &field)) {
        if (field.number != number)
            continue;
        mixt__wire packed = mixt__wire_read(field.bytes);
        if (field.type != MIXT_WIRE_BYTES)
            count++;
        else if (size && field.bytes.bytes % size)
            return -1;
        else if (size)
            count += (int64_t)(field.bytes.bytes / size);
        else
            while (mixt__wire_varint(&packed, &value))
                count++;
        if (packed.damaged)
            return -1;
    }
    return w.damaged ? -1 : count;
}

/** The field that has elements of a type where they are not raw bytes. @param size of one, 0: whole numbers */
static uint32_t field_of(mixt__onnx_type type, size_t *size)
{
    *size = type == MIXT_ONNX_FLOAT ? 4 : type == MIXT_ONNX_DOUBLE ? 8 : 0;
    return type == MIXT_ONNX_FLOAT                                ? MIXT_ONNX_TENSOR_FLOATS
           : type == MIXT_ONNX_DOUBLE                             ? MIXT_ONNX_TENSOR_DOUBLES
           : type == MIXT_ONNX_INT64                              ? MIXT_ONNX_TENSOR_INT64S
           : type == MIXT_ONNX_UINT64 || type == MIXT_ONNX_UINT32 ? MIXT_ONNX_TENSOR_UINT64S
                                                                  : MIXT_ONNX_TENSOR_INT32S;
}

/** Holds what is there against what the shape asks for. */
static mixt_status check_elements(const mixt__onnx_file *f, mixt__onnx_tensor *t, mixt__wire_span message)
{
    int bits = mixt__onnx_type_bits(t->type);
    size_t size;
    if (t->count > INT64_MAX / 64)
        return bad(f, t, "has more elements than a file can hold");
    int64_t need = (t->count * bits + 7) / 8, packed = bits == 4 ? (t->count + 1) / 2 : t->count;
    if (t->data.at && (uint64_t)need <= t->data.bytes) {
        t->data.bytes = (size_t)need;
        return MIXT_OK;
    }
    if (t->data.at)
        return bad(f, t, "has fewer elements than its shape");
    t->elements = field_of(t->type, &size);
    t->fields = message;
    int64_t count = count_elements(message, t->elements, size);
    if (count != packed && f->without_weights && !count) {
        t->absent = true;
        return MIXT_OK;
    }
    return count == packed ? MIXT_OK : bad(f, t, "does not have as many elements as its shape");
}

mixt_status mixt__onnx_tensor_read(mixt__onnx_file *f, mixt__wire_span message, mixt__onnx_tensor *t)
{
    mixt__wire w = mixt__wire_read(message);
    mixt__wire_field field;
    external_place place = {.bad = false};
    bool external = false, shape = true;
    *t = (mixt__onnx_tensor){.count = 1};
    while (mixt__wire_next(&w, &field)) {
        if (field.number == MIXT_ONNX_TENSOR_DIMS)
            shape = shape && add_dims(t, &field);
        else if (field.number == MIXT_ONNX_TENSOR_DATA_TYPE && field.type == MIXT_WIRE_VARINT)
            t->type = field.value < MIXT_ONNX_TYPE_COUNT ? (mixt__onnx_type)field.value : MIXT_ONNX_UNDEFINED;
        else if (field.number == MIXT_ONNX_TENSOR_LOCATION && field.type == MIXT_WIRE_VARINT)
            external = field.value == 1;
        else if (field.type != MIXT_WIRE_BYTES)
            continue;
        else if (field.number == MIXT_ONNX_TENSOR_NAME)
            t->name = field.bytes;
        else if (field.number == MIXT_ONNX_TENSOR_RAW)
            t->data = field.bytes;
        else if (field.number == MIXT_ONNX_TENSOR_EXTERNAL)
            read_place(field.bytes, &place);
    }
    if (w.damaged || !shape)
        return bad(f, t, "is damaged, or has more than 8 dimensions");
    if (!mixt__onnx_type_bits(t->type))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: a tensor of %s numbers", f->path, mixt__onnx_type_name(t->type));
    if (external)
        MIXT_TRY(take_external(f, t, &place));
    return check_elements(f, t, message);
}

/* ---- numbers ---- */

/** FP8 and FP4 by their parts. @param bias of the exponent */
static double small_float(unsigned bits, int exponent_bits, int mantissa_bits, int bias)
{
    unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
    int exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    double value = exponent ? ldexp(1 + ldexp(mantissa, -mantissa_bits), exponent - bias)
                            : ldexp(mantissa, 1 - bias - mantissa_bits);
    return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}

/** An element from its bits. */
static double number_from(mixt__onnx_type type, uint64_t bits)
{
    float f;
    double d;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case MIXT_ONNX_FLOAT:
        memcpy(&f, &low, sizeof f);
        return (double)f;
    case MIXT_ONNX_DOUBLE:
        memcpy(&d, &bits, sizeof d);
        return d;
    case MIXT_ONNX_FLOAT16:
        return (double)mixt_fp16_to_fp32((uint16_t)bits);
    case MIXT_ONNX_BFLOAT16:
        return (double)mixt_bf16_to_fp32((uint16_t)bits);
    case MIXT_ONNX_FLOAT8E4M3FN:
        return (double)mixt_fp8_e4m3_to_fp32((uint8_t)bits);
    case MIXT_ONNX_FLOAT8E5M2:
        return (double)mixt_fp8_e5m2_to_fp32((uint8_t)bits);
    case MIXT_ONNX_FLOAT8E4M3FNUZ:
        return (bits & 0xff) == 0x80 ? (double)NAN : small_float((unsigned)bits & 0xff, 4, 3, 8);
    case MIXT_ONNX_FLOAT8E5M2FNUZ:
        return (bits & 0xff) == 0x80 ? (double)NAN : small_float((unsigned)bits & 0xff, 5, 2, 16);
    case MIXT_ONNX_FLOAT4E2M1:
        return small_float((unsigned)bits & 15, 2, 1, 1);
    case MIXT_ONNX_INT4:
        return (double)((int)(bits & 15) - ((bits & 8) ? 16 : 0));
    case MIXT_ONNX_UINT4:
        return (double)(bits & 15);
    case MIXT_ONNX_INT8:
        return (double)(int8_t)bits;
    case MIXT_ONNX_INT16:
        return (double)(int16_t)bits;
    case MIXT_ONNX_INT32:
        return (double)(int32_t)bits;
    case MIXT_ONNX_INT64:
        return (double)(int64_t)bits;
    default: // unsigned, BOOL
        return (double)bits;
    }
}

static uint64_t bits_at(const mixt__onnx_tensor *t, int64_t index)
{
    int size = mixt__onnx_type_bits(t->type) / 8;
    uint64_t bits = 0;
    if (!size)
        return t->data.at[index / 2] >> (index % 2 ? 4 : 0) & 15;
    for (int i = 0; i < size; i++)
        bits |= (uint64_t)t->data.at[index * size + i] << (8 * i);
    return bits;
}

/** Where elements go that are fields: into one of both. */
typedef struct sink {
    double *doubles;
    float *floats;
    int64_t count;
} sink;

static void put(sink *s, double value)
{
    if (s->doubles)
        s->doubles[s->count++] = value;
    else
        s->floats[s->count++] = (float)value;
}

static void put_bits(sink *s, const mixt__onnx_tensor *t, uint64_t bits)
{
    put(s, number_from(t->type, bits));
    if (mixt__onnx_type_bits(t->type) == 4 && s->count < t->count)
        put(s, number_from(t->type, bits >> 4));
}

/** Elements that are fields, packed or each by itself; check_elements has counted them. */
static void read_fields(const mixt__onnx_tensor *t, sink *s)
{
    mixt__wire w = mixt__wire_read(t->fields);
    mixt__wire_field field;
    uint64_t value;
    size_t size;
    (void)field_of(t->type, &size);
    while (mixt__wire_next(&w, &field)) {
        if (field.number != t->elements)
            continue;
        if (field.type != MIXT_WIRE_BYTES) {
            put_bits(s, t, field.value);
            continue;
        }
        mixt__wire packed = mixt__wire_read(field.bytes);
        for (size_t at = 0; size && at < field.bytes.bytes; at += size) {
            value = 0;
            for (size_t i = 0; i < size; i++)
                value |= (uint64_t)field.bytes.at[at + i] << (8 * i);
            put_bits(s, t, value);
        }
        while (!size && mixt__wire_varint(&packed, &value))
            put_bits(s, t, value);
    }
}

static mixt_status read_numbers(const mixt__onnx_tensor *t, sink *s)
{
    if (t->absent)
        return mixt__fail(MIXT_ERROR_STATE, "the file has no values of this tensor: they are in the run's checkpoints");
    if (t->elements)
        read_fields(t, s);
    else
        for (int64_t i = 0; i < t->count; i++)
            put(s, number_from(t->type, bits_at(t, i)));
    return MIXT_OK;
}

mixt_status mixt__onnx_tensor_doubles(const mixt__onnx_tensor *t, double *values)
{
    return read_numbers(t, &(sink){.doubles = values});
}

mixt_status mixt__onnx_tensor_floats(const mixt__onnx_tensor *t, float *values)
{
    if (t->type == MIXT_ONNX_FLOAT && t->data.at) {
        memcpy(values, t->data.at, (size_t)t->count * sizeof *values); // x86-64 is little-endian as the file is
        return MIXT_OK;
    }
    return read_numbers(t, &(sink){.floats = values});
}
