/* Strided copies. Dimensions that both sides walk through alike are merged first; what is left is one of three kinds:
 * rows that are contiguous on both sides (memcpy), a transpose (both sides contiguous, along different dimensions:
 * square blocks that fit L1), or neither (element by element). Threads split the outer positions.
 */
#include "backend/cpu/movement/strided_copy.h"

#include "base/threads.h"

#include <string.h>

enum { BLOCK = 32, GRAIN_BYTES = 65536 };

static void copy_element(char *dst, const char *src, size_t size)
{
    memcpy(dst, src, size);
}

void mixt__strided_copy_plain(const mixt__strided_copy *copy)
{
    for (int64_t i = 0; i < mixt__shape_count(&copy->shape); i++) {
        int64_t rest = i, from = 0, to = 0;
        for (int d = copy->shape.rank - 1; d >= 0; d--) {
            int64_t position = rest % copy->shape.dims[d];
            rest /= copy->shape.dims[d];
            from += position * copy->src_strides[d];
            to += position * copy->dst_strides[d];
        }
        copy_element((char *)copy->dst + to * (int64_t)copy->size, (const char *)copy->src + from * (int64_t)copy->size,
                     copy->size);
    }
}

/** The same copy with as few dimensions as possible. */
static mixt__strided_copy merge(const mixt__strided_copy *copy)
{
    mixt__strided_copy m = *copy;
    m.shape.rank = 0;
    for (int d = 0; d < copy->shape.rank; d++) {
        int64_t size = copy->shape.dims[d], last = m.shape.rank - 1;
        if (size == 1)
            continue;
        if (last >= 0 && m.src_strides[last] == size * copy->src_strides[d] &&
            m.dst_strides[last] == size * copy->dst_strides[d]) {
            m.shape.dims[last] *= size;
        } else {
            last = m.shape.rank++;
            m.shape.dims[last] = size;
        }
        m.src_strides[last] = copy->src_strides[d];
        m.dst_strides[last] = copy->dst_strides[d];
    }
    return m;
}

/** Takes dimension d out and puts it last. */
static void move_last(mixt__strided_copy *copy, int d)
{
    int64_t size = copy->shape.dims[d], from = copy->src_strides[d], to = copy->dst_strides[d];
    int last = copy->shape.rank - 1;
    for (; d < last; d++) {
        copy->shape.dims[d] = copy->shape.dims[d + 1];
        copy->src_strides[d] = copy->src_strides[d + 1];
        copy->dst_strides[d] = copy->dst_strides[d + 1];
    }
    copy->shape.dims[last] = size;
    copy->src_strides[last] = from;
    copy->dst_strides[last] = to;
}

static int dimension_of_stride_1(const mixt__strided_copy *copy, const int64_t *strides)
{
    for (int d = 0; d < copy->shape.rank; d++)
        if (strides[d] == 1)
            return d;
    return -1;
}

/** Where position `index` of the first `rank` dimensions lies on both sides. */
static void locate(const mixt__strided_copy *copy, int rank, int64_t index, const char **src, char **dst)
{
    int64_t from = 0, to = 0;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t position = index % copy->shape.dims[d];
        index /= copy->shape.dims[d];
        from += position * copy->src_strides[d];
        to += position * copy->dst_strides[d];
    }
    *src = (const char *)copy->src + from * (int64_t)copy->size;
    *dst = (char *)copy->dst + to * (int64_t)copy->size;
}

static int64_t outer_count(const mixt__strided_copy *copy, int rank)
{
    int64_t count = 1;
    for (int d = 0; d < rank; d++)
        count *= copy->shape.dims[d];
    return count;
}

/* ---- rows ---- */

static void copy_rows(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__strided_copy *copy = argument;
    int outer = copy->shape.rank - 1;
    size_t bytes = (size_t)copy->shape.dims[outer] * copy->size;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        const char *src;
        char *dst;
        locate(copy, outer, i, &src, &dst);
        memcpy(dst, src, bytes);
    }
}

static void copy_bytes(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__strided_copy *copy = argument;
    (void)thread;
    memcpy((char *)copy->dst + begin, (const char *)copy->src + begin, (size_t)(end - begin));
}

/* ---- transposes: the last dimension is contiguous in dst, the one before it in src ---- */

/** A block of rows × columns; an element at (r, c) lies at r + c·src_step and at r·dst_step + c. */
static inline __attribute__((always_inline)) void transpose_block(char *dst, const char *src, int64_t rows,
                                                                  int64_t columns, int64_t src_step, int64_t dst_step,
                                                                  size_t size)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(dst + (r * dst_step + c) * (int64_t)size, src + (r + c * src_step) * (int64_t)size, size);
}

static void transpose(void *argument, int64_t begin, int64_t end, int thread)
{
    const mixt__strided_copy *copy = argument;
    int inner = copy->shape.rank - 1, middle = inner - 1;
    int64_t rows = copy->shape.dims[middle], columns = copy->shape.dims[inner], bands = (rows + BLOCK - 1) / BLOCK;
    int64_t src_step = copy->src_strides[inner], dst_step = copy->dst_strides[middle], size = (int64_t)copy->size;
    (void)thread;
    for (int64_t unit = begin; unit < end; unit++) {
        const char *src;
        char *dst;
        int64_t r = unit % bands * BLOCK, height = rows - r < BLOCK ? rows - r : BLOCK;
        locate(copy, middle, unit / bands, &src, &dst);
        src += r * size;
        dst += r * dst_step * size;
        for (int64_t c = 0; c < columns; c += BLOCK) {
            int64_t width = columns - c < BLOCK ? columns - c : BLOCK;
            char *to = dst + c * size;
            const char *from = src + c * src_step * size;
            if (size == 4)
                transpose_block(to, from, height, width, src_step, dst_step, 4);
            else if (size == 2)
                transpose_block(to, from, height, width, src_step, dst_step, 2);
            else
                transpose_block(to, from, height, width, src_step, dst_step, copy->size);
        }
    }
}

void mixt__strided_copy_blocked(const mixt__strided_copy *copy)
{
    mixt__strided_copy m = merge(copy);
    if (mixt__shape_count(&copy->shape) == 0)
        return;
    int src_inner = dimension_of_stride_1(&m, m.src_strides), dst_inner = dimension_of_stride_1(&m, m.dst_strides);
    int64_t count = mixt__shape_count(&m.shape);
    if (m.shape.rank == 0 || (m.shape.rank == 1 && src_inner == 0 && dst_inner == 0)) {
        mixt__parallel(count * (int64_t)m.size, GRAIN_BYTES, copy_bytes, &m);
    } else if (src_inner >= 0 && src_inner == dst_inner) {
        move_last(&m, src_inner);
        int64_t bytes = m.shape.dims[m.shape.rank - 1] * (int64_t)m.size;
        mixt__parallel(outer_count(&m, m.shape.rank - 1), 1 + GRAIN_BYTES / bytes, copy_rows, &m);
    } else if (src_inner >= 0 && dst_inner >= 0) {
        move_last(&m, src_inner);
        move_last(&m, dst_inner > src_inner ? dst_inner - 1 : dst_inner);
        int64_t bands = (m.shape.dims[m.shape.rank - 2] + BLOCK - 1) / BLOCK;
        int64_t bytes = BLOCK * m.shape.dims[m.shape.rank - 1] * (int64_t)m.size;
        mixt__parallel(outer_count(&m, m.shape.rank - 2) * bands, 1 + GRAIN_BYTES / bytes, transpose, &m);
    } else {
        mixt__strided_copy_plain(&m);
    }
}
