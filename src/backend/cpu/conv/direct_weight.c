/* The direct gradient with respect to the weight: for each tap and output, a sum over all pixels of register tiles.
 *
 * A tile holds some taps of one kernel row × a panel of outputs and stays in registers over a block of pixels; both
 * operands are read where they lie (the source through its padded window). Threads split the pixels, each with sums of
 * its own that are added in a fixed order at the end; where those sums would be large they split the taps instead.
 */
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/conv/window.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/num.h"

enum { LINE = 64, SUMS_LIMIT = 16 * 1024 * 1024, FINISH_BLOCK = 64, FINISH_GRAIN = 16 };

typedef struct plan {
    const mixt__conv_tiles *tiles;
    mixt__conv conv;
    mixt__conv_window window;
    int64_t pieces; // tiles along the taps of a kernel row
    int64_t panels, patch;
    int threads;
    bool split_pixels;
    size_t sums_bytes; // [panel][tap][output of the panel]; with split_pixels one a thread
    size_t buffers_at, buffer_bytes;
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
} job;

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    mixt__conv v = p->conv = mixt__conv_of(call);
    p->tiles = mixt__conv_tiles_here();
    p->window = (mixt__conv_window){.dtype = call->in[0].dtype,
                                    .h = v.h,
                                    .w = v.w,
                                    .c = v.c,
                                    .stride = v.stride,
                                    .taps_h = v.kernel_h,
                                    .taps_w = v.kernel_w,
                                    .top = v.pad,
                                    .left = v.pad_w,
                                    .out_h = v.out_h,
                                    .out_w = v.out_w};
    mixt__conv_window_plan(&p->window);
    p->pieces = (v.kernel_w * v.c + p->tiles->rows - 1) / p->tiles->rows;
    p->panels = (v.o + p->tiles->panel - 1) / p->tiles->panel;
    p->patch = mixt__conv_patch(&v);
    p->threads = mixt__threads_count();
    p->sums_bytes = (size_t)(p->panels * p->patch * p->tiles->panel) * sizeof(float);
    p->split_pixels = p->sums_bytes * (size_t)p->threads <= SUMS_LIMIT;
    p->buffers_at = padded(p->sums_bytes * (size_t)(p->split_pixels ? p->threads : 1));
    p->buffer_bytes = padded(p->window.buffer_bytes);
    call->workspace_bytes = p->buffers_at + (size_t)p->threads * p->buffer_bytes;
    call->state = p;
    return MIXT_OK;
}

/** Sums a thread keeps, the tiles it computes and the rows of pixels it reads. */
typedef struct part {
    float *sums;
    void *buffer;
    int64_t tile_begin, tile_end, row_begin, row_end;
} part;

/** Where tile `index` starts in sums: tiles are numbered panel by panel, kernel row by kernel row, piece by piece. */
static int64_t tile_at(const plan *p, int64_t index)
{
    int64_t run = p->window.taps_w * p->window.c;
    return (index / p->pieces * run + run * (index % p->pieces) / p->pieces) * p->tiles->panel;
}

static part part_of(const job *j, int64_t index)
{
    const plan *p = j->plan;
    int64_t tiles = p->panels * p->window.taps_h * p->pieces, rows = p->conv.n * p->conv.out_h;
    char *workspace = j->call->workspace;
    part r = {.sums = (float *)workspace, .tile_end = tiles, .row_end = rows};
    r.buffer = workspace + p->buffers_at + (size_t)index * p->buffer_bytes;
    if (p->split_pixels) {
        r.sums = (float *)(workspace + (size_t)index * p->sums_bytes);
        r.row_begin = rows * index / p->threads;
        r.row_end = rows * (index + 1) / p->threads;
    } else {
        r.tile_begin = tiles * index / p->threads;
        r.tile_end = tiles * (index + 1) / p->threads;
    }
    return r;
}

/** Adds `rows` rows of pixels of one image to the tiles of a part. */
static void add_rows(const job *j, const part *r, const float *src, int64_t image, int64_t row, int64_t rows)
{
    const plan *p = j->plan;
    const mixt__conv *v = &p->conv;
    const mixt__conv_window *w = &p->window;
    const mixt__tensor *grad = &j->call->in[1];
    int64_t run = mixt__conv_window_run(w), pixel = (image * v->out_h + row) * v->out_w;
    mixt__conv_grad_tile tile = {.src_pixel = mixt__conv_window_step(w), .src_row = w->stride * w->row_units};
    tile.grad_dtype = grad->dtype;
    tile.grad_pixel = v->o;
    tile.grad_row = v->out_w * v->o;
    tile.pixels = v->out_w;
    for (int64_t t = r->tile_begin; t < r->tile_end; t++) {
        int64_t piece = t % p->pieces, i = t / p->pieces % w->taps_h,
                first = t / p->pieces / w->taps_h * p->tiles->panel;
        int64_t tap = run * piece / p->pieces, begin, end;
        mixt__conv_window_reach(w, i, row, rows, &begin, &end);
        tile.src = src + (begin - row) * tile.src_row + i * w->row_units + tap;
        tile.grad = (const char *)grad->data +
                    (pixel * v->o + (begin - row) * tile.grad_row + first) * (int64_t)mixt_dtype_size(grad->dtype);
        tile.rows = end - begin;
        tile.sums = r->sums + tile_at(p, t);
        tile.taps = (int)(run * (piece + 1) / p->pieces - tap);
        tile.cols = (int)(v->o - first < p->tiles->panel ? v->o - first : p->tiles->panel);
        p->tiles->grad(&tile);
    }
}

static void run_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv_window *w = &j->plan->window;
    (void)thread;
    for (int64_t index = begin; index < end; index++) {
        part r = part_of(j, index);
        int64_t zero = tile_at(j->plan, r.tile_begin), count;
        memset(r.sums + zero, 0, (size_t)(tile_at(j->plan, r.tile_end) - zero) * sizeof(float));
        for (int64_t at = r.row_begin; at < r.row_end && r.tile_begin < r.tile_end; at += count) {
            int64_t image = at / w->out_h, row = at % w->out_h;
            count = w->out_h - row < w->block_rows ? w->out_h - row : w->block_rows;
            count = r.row_end - at < count ? r.row_end - at : count;
            add_rows(j, &r, mixt__conv_window_rows(w, j->call->in[0].data, image, row, count, r.buffer), image, row,
                     count);
        }
    }
}

/** Adds the threads' sums, turns them to (output, tap) and stores them. */
static void finish(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    const mixt__tensor *out = &j->call->out[0];
    int64_t size = (int64_t)mixt_dtype_size(out->dtype), width = p->tiles->panel;
    (void)thread;
    for (int64_t k0 = 0; k0 < p->patch; k0 += FINISH_BLOCK)
        for (int64_t o = begin; o < end; o++) {
            float values[FINISH_BLOCK] = {0}, old[FINISH_BLOCK];
            int64_t count = p->patch - k0 < FINISH_BLOCK ? p->patch - k0 : FINISH_BLOCK;
            char *dst = (char *)out->data + (o * p->patch + k0) * size;
            for (int t = 0; t < (p->split_pixels ? p->threads : 1); t++) {
                const float *sums = (const float *)((char *)j->call->workspace + (size_t)t * p->sums_bytes);
                sums += (o / width * p->patch + k0) * width + o % width;
                for (int64_t k = 0; k < count; k++)
                    values[k] += sums[k * width];
            }
            if (j->call->accumulate & 1u) {
                mixt__widen(out->dtype)(old, dst, count);
                for (int64_t k = 0; k < count; k++)
                    values[k] += old[k];
            }
            mixt__narrow(out->dtype)(dst, values, count);
        }
}

static mixt_status run(const mixt__call *call)
{
    const plan *p = call->state;
    job j = {call, p};
    mixt__parallel(p->threads, 1, run_parts, &j);
    mixt__parallel(p->conv.o, FINISH_GRAIN, finish, &j);
    return MIXT_OK;
}

static bool supports(const mixt__call *call, const char **reason)
{
    mixt__conv v = mixt__conv_of(call);
    if (!mixt__conv_is_ordinary(call, reason))
        return false;
    if (!mixt__conv_tiles_here())
        *reason = "needs AVX2 or better";
    else if (mixt__conv_is_special(&v, reason))
        return false;
    else if (v.out_h * v.out_w < 128 && v.o * mixt__conv_patch(&v) >= 256 * 1024)
        *reason = "few pixels in an image and a large weight: a matrix product touches its sums less often";
    else if (mixt__isa_level() >= MIXT_ISA_AMX && call->in[0].dtype == MIXT_DTYPE_BF16 && v.c >= 16 && v.o >= 16)
        *reason = "this CPU multiplies BF16 faster in AMX tiles";
    return !*reason;
}

const mixt__kernel mixt__conv2d_grad_weight_direct = {
    .name = "direct", .supports = supports, .prepare = prepare, .run = run};
