/* Direct convolution, forward and with respect to the source: register tiles over a window of the source.
 *
 * Both are sums of passes. The forward is one pass. The gradient with respect to the source is stride² passes: the
 * pixels (py, px) modulo the stride see every stride-th tap of the kernel, turned around, and for them it is a
 * convolution of grad_dst with stride 1. Weights are repacked at each run as panels of `tiles->panel` outputs.
 * Threads split rows of pixels, never a sum: the bits do not depend on their number.
 */
#include "backend/cpu/conv/conv.h"
#include "backend/cpu/conv/window.h"
#include "base/alloc.h"
#include "base/isa.h"
#include "base/status.h"
#include "base/threads.h"

enum { MAX_STRIDE = 4, LINE = 64 };

typedef struct pass {
    mixt__conv_window window;
    int64_t tap_y, tap_x, tap_step;                   // kernel taps: tap_y + tap_step · i
    int64_t offset, image_step, row_step, pixel_step; // of dst, in elements
    int64_t units;                                    // of a patch
    size_t panels_at;                                 // bytes from the workspace
} pass;

typedef struct plan {
    const mixt__conv_tiles *tiles;
    mixt__conv conv;
    bool turned;  // gradient with respect to the source
    int64_t cols; // channels of dst
    int threads, pass_count;
    size_t buffers_at, buffer_bytes; // one a thread
    pass passes[MAX_STRIDE * MAX_STRIDE];
} plan;

typedef struct job {
    const mixt__call *call;
    const plan *plan;
    const pass *pass;
} job;

static size_t padded(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* ---- plan ---- */

static int64_t panel_count(const plan *p)
{
    return (p->cols + p->tiles->panel - 1) / p->tiles->panel;
}

static pass forward_pass(const mixt__conv *v, mixt_dtype dtype)
{
    return (pass){.window = {.dtype = dtype,
                             .h = v->h,
                             .w = v->w,
                             .c = v->c,
                             .stride = v->stride,
                             .taps_h = v->kernel_h,
                             .taps_w = v->kernel_w,
                             .top = v->pad,
                             .left = v->pad_w,
                             .out_h = v->out_h,
                             .out_w = v->out_w},
                  .tap_step = 1,
                  .image_step = v->out_h * v->out_w * v->o,
                  .row_step = v->out_w * v->o,
                  .pixel_step = v->o};
}

/** Taps of a kernel of `size` that pixels ≡ phase (mod stride) see: the first one, how many, and the padding. */
static void phase_taps(int64_t size, int64_t stride, int64_t pad, int64_t phase, int64_t *first, int64_t *taps,
                       int64_t *before)
{
    *first = (phase + pad) % stride;
    *taps = size > *first ? (size - *first + stride - 1) / stride : 0;
    *before = *taps - 1 - (phase + pad) / stride;
}

static pass turned_pass(const mixt__conv *v, mixt_dtype dtype, int64_t py, int64_t px)
{
    pass s = {.window = {.dtype = dtype,
                         .h = v->out_h,
                         .w = v->out_w,
                         .c = v->o,
                         .stride = 1,
                         .out_h = (v->h - py + v->stride - 1) / v->stride,
                         .out_w = (v->w - px + v->stride - 1) / v->stride},
              .tap_step = v->stride,
              .offset = (py * v->w + px) * v->c,
              .image_step = v->h * v->w * v->c,
              .row_step = v->stride * v->w * v->c,
              .pixel_step = v->stride * v->c};
    mixt__conv_window *w = &s.window;
    phase_taps(v->kernel_h, v->stride, v->pad, py, &s.tap_y, &w->taps_h, &w->top);
    phase_taps(v->kernel_w, v->stride, v->pad_w, px, &s.tap_x, &w->taps_w, &w->left);
    if (w->taps_h == 0 || w->taps_w == 0) { // no tap: zeros, by tiles without units
        w->taps_h = w->taps_w = 0;
        w->top = w->left = 0;
    }
    return s;
}

static void add_pass(plan *p, pass s, size_t *bytes)
{
    mixt__conv_window *w = &s.window;
    w->pairs = p->tiles->forward_pairs && w->dtype == MIXT_DTYPE_BF16 && w->c % 2 == 0;
    mixt__conv_window_plan(w);
    s.units = w->taps_h * mixt__conv_window_run(w);
    s.panels_at = *bytes;
    *bytes += padded((size_t)(s.units * p->tiles->panel * panel_count(p)) * sizeof(float));
    if (w->buffer_bytes > p->buffer_bytes)
        p->buffer_bytes = padded(w->buffer_bytes);
    p->passes[p->pass_count++] = s;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    plan *p = mixt__arena_alloc(arena, sizeof *p);
    if (!p)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a convolution");
    size_t bytes = 0;
    p->tiles = mixt__conv_tiles_here();
    p->conv = mixt__conv_of(call);
    p->turned = call->op != &mixt__op_conv2d;
    p->cols = p->turned ? p->conv.c : p->conv.o;
    p->threads = mixt__threads_count();
    if (!p->turned)
        add_pass(p, forward_pass(&p->conv, call->in[0].dtype), &bytes);
    for (int64_t py = 0; p->turned && py < p->conv.stride && py < p->conv.h; py++)
        for (int64_t px = 0; px < p->conv.stride && px < p->conv.w; px++)
            add_pass(p, turned_pass(&p->conv, call->in[0].dtype, py, px), &bytes);
    p->buffers_at = bytes;
    call->workspace_bytes = bytes + (size_t)p->threads * p->buffer_bytes;
    call->state = p;
    return MIXT_OK;
}

/* ---- weights ---- */

static float *panel_of(const job *j, int64_t panel)
{
    return (float *)((char *)j->call->workspace + j->pass->panels_at) + panel * j->pass->units * j->plan->tiles->panel;
}

/** What the engine's packers share with the panels here: lanes are outputs, K is the patch. */
static mixt__gemm_pack packing(const job *j, int64_t panel)
{
    const mixt__tensor *weight = &j->call->in[1];
    int64_t width = j->plan->tiles->panel, rest = j->plan->cols - panel * width;
    return (mixt__gemm_pack){.src = weight->data,
                             .dtype = weight->dtype,
                             .lanes = rest < width ? rest : width,
                             .used = width,
                             .width = width,
                             .dst = panel_of(j, panel)};
}

static void move_source(mixt__gemm_pack *pack, int64_t elements)
{
    pack->src = (const char *)pack->src + elements * (int64_t)mixt_dtype_size(pack->dtype);
}

/** Rows of the weight become columns of a panel. */
static void pack_forward(const job *j, int64_t panel, mixt__gemm_pack_fn *fn)
{
    mixt__gemm_pack pack = packing(j, panel);
    pack.k = pack.lane_stride = mixt__conv_patch(&j->plan->conv);
    pack.k_stride = 1;
    pack.units = j->pass->units;
    move_source(&pack, panel * pack.width * pack.lane_stride);
    fn(&pack);
}

/** Rows of a panel are runs of the weight's channels: taps of the pass from the last to the first, each with all
 *  channels of grad_dst. */
static void pack_turned(const job *j, int64_t panel, mixt__gemm_pack_fn *fn)
{
    const mixt__conv *v = &j->plan->conv;
    const pass *s = j->pass;
    const mixt__conv_window *w = &s->window;
    for (int64_t tap = 0; tap < w->taps_h * w->taps_w; tap++) {
        int64_t y = s->tap_y + s->tap_step * (w->taps_h - 1 - tap / w->taps_w);
        int64_t x = s->tap_x + s->tap_step * (w->taps_w - 1 - tap % w->taps_w);
        mixt__gemm_pack pack = packing(j, panel);
        pack.k = v->o;
        pack.lane_stride = 1;
        pack.k_stride = mixt__conv_patch(v);
        pack.units = w->pairs ? v->o / 2 : v->o;
        pack.dst = (float *)pack.dst + tap * pack.units * pack.width;
        move_source(&pack, (y * v->kernel_w + x) * v->c + panel * pack.width);
        fn(&pack);
    }
}

static void pack_panels(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const mixt__conv_tiles *tiles = j->plan->tiles;
    mixt__gemm_pack_fn *fn = (j->pass->window.pairs ? tiles->pairs_packer : tiles->packer)->pack_b;
    (void)thread;
    for (int64_t panel = begin; panel < end; panel++)
        (j->plan->turned ? pack_turned : pack_forward)(j, panel, fn);
}

/* ---- products ---- */

/** The tiles of one output row and one panel. `src` is its first unit; `tile` has all that rows share. */
static void run_row(const job *j, mixt__conv_tile tile, const float *src, int64_t row, int64_t at)
{
    const plan *p = j->plan;
    const mixt__conv_window *w = &j->pass->window;
    const mixt__tensor *out = &j->call->out[0];
    int64_t pieces = (w->out_w + p->tiles->rows - 1) / p->tiles->rows, first, end;
    mixt__conv_window_taps(w, row, &first, &end);
    tile.rows = end - first;
    tile.panel += first * tile.run * p->tiles->panel;
    for (int64_t q = 0; q < pieces; q++) {
        int64_t x = w->out_w * q / pieces;
        tile.src = src + first * w->row_units + x * tile.pixel_step;
        tile.dst = (char *)out->data + (at + x * tile.dst_step) * (int64_t)mixt_dtype_size(out->dtype);
        tile.pixels = (int)(w->out_w * (q + 1) / pieces - x);
        (w->pairs ? p->tiles->forward_pairs : p->tiles->forward)(&tile);
    }
}

/** All tiles of `rows` output rows of one image and one panel. */
static void run_panel(const job *j, const float *src, int64_t panel, int64_t image, int64_t row, int64_t rows)
{
    const plan *p = j->plan;
    const pass *s = j->pass;
    const mixt__conv_window *w = &s->window;
    const mixt__conv2d_attrs *attrs = j->call->attrs;
    int64_t first = panel * p->tiles->panel;
    mixt__conv_tile tile = {.pixel_step = mixt__conv_window_step(w),
                            .row_step = w->row_units,
                            .run = mixt__conv_window_run(w),
                            .panel = panel_of(j, panel),
                            .dst_dtype = j->call->out[0].dtype,
                            .dst_step = s->pixel_step};
    tile.cols = (int)(p->cols - first < p->tiles->panel ? p->cols - first : p->tiles->panel);
    tile.bias = !p->turned && attrs->bias ? (const float *)j->call->in[2].data + first : NULL;
    for (int64_t y = 0; y < rows; y++)
        run_row(j, tile, src + y * w->stride * w->row_units, row + y,
                s->offset + image * s->image_step + (row + y) * s->row_step + first);
}

static void run_parts(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    const plan *p = j->plan;
    const mixt__conv_window *w = &j->pass->window;
    int64_t total = p->conv.n * w->out_h;
    (void)thread;
    for (int64_t part = begin; part < end; part++) {
        void *buffer = (char *)j->call->workspace + p->buffers_at + (size_t)part * p->buffer_bytes;
        int64_t stop = total * (part + 1) / p->threads, count;
        for (int64_t at = total * part / p->threads; at < stop; at += count) {
            int64_t image = at / w->out_h, row = at % w->out_h;
            count = w->out_h - row < w->block_rows ? w->out_h - row : w->block_rows;
            count = stop - at < count ? stop - at : count;
            const float *src = mixt__conv_window_rows(w, j->call->in[0].data, image, row, count, buffer);
            for (int64_t panel = 0; panel < panel_count(p); panel++)
                run_panel(j, src, panel, image, row, count);
        }
    }
}

static mixt_status run(const mixt__call *call)
{
    const plan *p = call->state;
    for (int i = 0; i < p->pass_count; i++) {
        job j = {call, p, &p->passes[i]};
        mixt__parallel(panel_count(p), 1, pack_panels, &j);
        mixt__parallel(p->threads, 1, run_parts, &j);
    }
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
    else if (v.stride > MAX_STRIDE && call->op != &mixt__op_conv2d)
        *reason = "its gradient takes strides up to 4";
    else if (v.kernel_h == 1 && v.kernel_w == 1 && v.stride == 1 && v.pad == 0 && v.pad_w == 0)
        *reason = "a 1x1 convolution is a plain matrix product";
    else if (v.out_w < 8 && mixt__conv_patch(&v) >= 2048)
        *reason = "few pixels in a row and long patches: a matrix product reads the weight less often";
    else if (mixt__isa_level() >= MIXT_ISA_AMX && call->in[0].dtype == MIXT_DTYPE_BF16 && v.c >= 16 && v.o >= 16)
        *reason = "this CPU multiplies BF16 faster in AMX tiles";
    return !*reason;
}

const mixt__kernel mixt__conv2d_direct = {.name = "direct", .supports = supports, .prepare = prepare, .run = run};
const mixt__kernel mixt__conv2d_grad_src_direct = {
    .name = "direct", .supports = supports, .prepare = prepare, .run = run};
