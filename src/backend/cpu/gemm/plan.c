/* The choices of plan.h: kernel, blocks, grid, workspace. */
#include "backend/cpu/gemm/plan.h"

enum {
    B_LIMIT = 4 * 1024 * 1024,       // bytes of B in a step: the team's share of the last cache level
    SCRATCH_LIMIT = 4 * 1024 * 1024, // bytes of sums kept outside C between passes
    SHARE_LIMIT = 512 * 1024,        // bytes of A per thread up to which the team packs it together
    FINISH_BYTES = 96 * 1024,        // a block to finish should still be in the second cache level
    FINISH_COLS = 128,
    DIRECT_PANELS = 3,   // columns, in panels, up to which reading A's rows in place beats packing them
    START_CYCLES = 2048, // work a thread must have to be worth waking
    MEET_CYCLES = 3000,
    SMALL_TEAM = 4,                   // threads that do not mind reading the same at once
    SCATTERED_ELEMENTS = 1024 * 1024, // of A, B and C together
    LINE = 64,
};

static const mixt__gemm_kernel *forced;

void mixt__gemm_force(const mixt__gemm_kernel *kernel)
{
    forced = kernel;
}

const mixt__gemm_kernel *mixt__gemm_kernel_for(const mixt__gemm_problem *p)
{
    static const mixt__gemm_kernel *const table[] = {&mixt__gemm_kernel_amx, &mixt__gemm_kernel_avx512bf16,
                                                     &mixt__gemm_kernel_avx512, &mixt__gemm_kernel_avx2};
    bool low = p->low && p->a.dtype == MIXT_DTYPE_BF16 && (p->b.dtype == MIXT_DTYPE_BF16 || p->b.pair);
    if (forced && (low || !forced->pairs))
        return forced;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (mixt__isa_level() >= table[i]->isa && table[i]->pairs <= low)
            return table[i];
    return &mixt__gemm_kernel_scalar;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t b)
{
    return div_up(a, b) * b;
}

int64_t mixt__gemm_units(const mixt__gemm_kernel *kernel, int64_t k)
{
    return round_up(kernel->pairs ? div_up(k, 2) : k, kernel->k_step);
}

static void cut_k(mixt__gemm_plan *plan, int64_t k)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    int64_t grain = (kernel->pairs ? 2 : 1) * kernel->k_step;
    plan->k_blocks = k > kernel->kc_max ? div_up(k, kernel->kc_max) : 1;
    plan->kc = min64(round_up(div_up(k, plan->k_blocks), grain), k);
    if (plan->kc)
        plan->k_blocks = div_up(k, plan->kc);
    plan->units = mixt__gemm_units(kernel, plan->kc);
}

/** Gathered rows need no packing. Others are worth none when few columns use them: few in all, or, when a small
 * product is scattered over many caches, one panel of a thread's. */
static bool direct_for(const mixt__gemm_plan *plan, const mixt__gemm_problem *p, int64_t cols)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    if (!kernel->tile_direct || (kernel->pairs && p->a.gather))
        return false;
    if (p->a.gather)
        return true;
    if (p->a.dtype != (kernel->pairs ? MIXT_DTYPE_BF16 : MIXT_DTYPE_FP32) || p->a.col_stride != 1)
        return false;
    bool whole = p->m % kernel->m_grain == 0 && p->k >= 2 * kernel->k_step; // rows of a tile, and a step of it
    return (plan->scattered && whole && cols <= kernel->nr) || (!kernel->pairs && p->n <= DIRECT_PANELS * kernel->nr);
}

/** About what the product takes one thread. What it reads and writes lies in the caches of those who used it last:
 * small products cost mostly that. */
static double cycles(const mixt__gemm_problem *p, const mixt__gemm_kernel *kernel)
{
    static const double FETCH = 0.625; // cycles an element
    double m = (double)p->m, n = (double)p->n, k = (double)p->k;
    return m * n * k / kernel->macs + FETCH * (m * k + k * n + m * n);
}

typedef struct grid {
    int m, n;
    bool direct, share_a, keep_b;
    double cost;   // a unit of K of the busiest thread: cycles
    int64_t reads; // rows and columns that it reads
} grid;

static grid grid_at(const mixt__gemm_plan *plan, const mixt__gemm_problem *p, int m, int threads)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    grid g = {.m = m, .n = threads / m};
    int64_t rows = min64(round_up(div_up(p->m, m), kernel->m_grain), p->m);
    int64_t cols = min64(div_up(div_up(p->n, kernel->nr), g.n) * kernel->nr, p->n);
    g.reads = rows + cols;
    g.direct = direct_for(plan, p, cols);
    g.share_a = g.n > 1 && !g.direct && p->m * plan->units * 4 <= (int64_t)threads * SHARE_LIMIT;
    bool share_b = m > 1 && !p->b_packed;
    double a = plan->scattered && g.direct ? 0 : (double)rows, b = (double)cols / m;
    double tiles = (double)rows * (double)cols / kernel->macs;
    g.cost = tiles + 0.5 * (a / (g.share_a ? g.n : 1) + b); // a cycle for two elements
    if (!plan->scattered || !(g.share_a || share_b))
        return g;
    g.cost += MEET_CYCLES / (double)(p->k > 0 ? p->k : 1);
    // Or everybody packs alone, waits for nobody and reads nothing of theirs; with whole rows or columns of C, which
    // suit the products around this one.
    double alone = tiles + 0.5 * (a + (share_b ? (double)cols : b));
    if (alone < g.cost && (m == 1 || g.n == 1)) {
        g.share_a = false;
        g.keep_b = share_b;
        g.cost = alone;
    }
    return g;
}

/** Picks the grid with the least work for its busiest thread, packing included. */
static void cut_threads(mixt__gemm_plan *plan, const mixt__gemm_problem *p, int threads)
{
    double work = cycles(p, plan->kernel);
    if (work < (double)threads * START_CYCLES)
        threads = work < START_CYCLES ? 1 : (int)(work / START_CYCLES);
    plan->scattered = threads > SMALL_TEAM && !p->a.gather && !p->b.gather &&
                      p->m * p->k + p->k * p->n + p->m * p->n <= SCATTERED_ELEMENTS;
    grid best = grid_at(plan, p, 1, threads);
    for (int m = 2; m <= threads; m++) {
        grid g = grid_at(plan, p, m, threads);
        // Of equals the squarest, which reads least; in a scattered product the one with more rows: a thread's part of
        // C is then in one piece.
        if (g.cost < best.cost || (g.cost <= best.cost && (plan->scattered || g.reads < best.reads)))
            best = g;
    }
    plan->grid_m = best.m;
    plan->grid_n = best.n;
    plan->direct = best.direct;
    plan->share_a = best.share_a;
    plan->keep_b = best.keep_b;
    plan->threads = plan->grid_m * plan->grid_n;
    // Gathered rows stand an odd number of cache lines apart, or all would fall into the same few sets.
    plan->a_ld = p->a.gather ? (round_up(plan->kc, 16) | 16) : p->a.row_stride;
}

static void cut_c(mixt__gemm_plan *plan, const mixt__gemm_problem *p)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    int64_t unit_bytes = 4 * (plan->units ? plan->units : 1), nr = kernel->nr;
    plan->scratch = p->c_dtype != MIXT_DTYPE_FP32;
    plan->scratch_whole = plan->scratch && plan->k_blocks > 1;
    int64_t grain = nr * plan->grid_n, limit = B_LIMIT / unit_bytes / grain * grain;
    plan->nc = min64(limit > grain ? limit : grain, round_up(p->n > 0 ? p->n : 1, nr));
    plan->mo = p->m > 0 ? p->m : 1;
    if (plan->scratch_whole) {
        int64_t narrow = round_up(SCRATCH_LIMIT / 4 / 2048, grain), row_grain = kernel->mr * plan->grid_m;
        plan->nc = min64(plan->nc, narrow);
        plan->mo = min64(plan->mo, round_up(SCRATCH_LIMIT / 4 / plan->nc, row_grain));
    }
    int64_t rows = div_up(plan->mo, plan->grid_m);
    int64_t most = kernel->a_block / (unit_bytes * kernel->a_width) * kernel->mr;
    most = min64(most > kernel->mr ? most : kernel->mr, FINISH_BYTES / FINISH_COLS / 4 / kernel->mr * kernel->mr);
    plan->mc = round_up(div_up(rows, div_up(rows, most)), kernel->mr);
    int64_t own = div_up(div_up(plan->nc, nr), plan->grid_n) * nr; // columns of a thread
    plan->fc = plan->scratch || p->epilogue ? min64(round_up(FINISH_COLS, nr), own) : plan->nc;
    bool moves = plan->nc < p->n || plan->mo < p->m; // a thread's rectangle, and with it the buffers it uses
    plan->barrier =
        plan->threads > 1 && (moves || plan->share_a || (plan->grid_m > 1 && !p->b_packed && !plan->keep_b));
}

static size_t padded(int64_t bytes)
{
    return (size_t)round_up(bytes, LINE);
}

static void place(mixt__gemm_plan *plan, const mixt__gemm_problem *p)
{
    const mixt__gemm_kernel *kernel = plan->kernel;
    bool one_step = plan->k_blocks == 1 && plan->nc >= p->n && plan->mo >= p->m;
    size_t copies = one_step || plan->threads == 1 ? 1 : 2;
    int64_t width = kernel->a_width, group = round_up(div_up(plan->mo, plan->grid_m), kernel->m_grain);
    size_t b_bytes = p->b_packed ? 0 : padded(4 * plan->units * plan->nc);
    plan->b_size = plan->keep_b ? 0 : b_bytes;
    if (plan->share_a)
        plan->a_part = padded(4 * plan->units * width * div_up(group, kernel->mr));
    plan->a_size = plan->a_part * (size_t)plan->grid_m;
    plan->a_offset = copies * plan->b_size;
    plan->scratch_offset = plan->a_offset + copies * plan->a_size;
    plan->own_offset = plan->scratch_offset + (plan->scratch_whole ? padded(4 * plan->mo * plan->nc) : 0);
    int64_t own_a =
        plan->direct ? (p->a.gather ? plan->a_ld * plan->mc : 0) : plan->units * width * (plan->mc / kernel->mr);
    plan->own_scratch = plan->share_a ? 0 : padded(4 * own_a);
    plan->own_gather =
        plan->own_scratch + (plan->scratch && !plan->scratch_whole ? padded(4 * plan->mc * plan->fc) : 0);
    plan->own_b = plan->own_gather + padded((int64_t)mixt__gemm_gather_bytes(p, plan));
    plan->own_size = plan->own_b + (plan->keep_b ? b_bytes : 0);
    plan->total = plan->own_offset + (size_t)plan->threads * plan->own_size;
}

mixt__gemm_plan mixt__gemm_plan_make(const mixt__gemm_problem *p, int threads)
{
    mixt__gemm_plan plan = {.kernel = mixt__gemm_kernel_for(p)};
    cut_k(&plan, p->k);
    cut_threads(&plan, p, threads);
    cut_c(&plan, p);
    place(&plan, p);
    return plan;
}

size_t mixt__gemm_packed_offset(const mixt__gemm_plan *plan, int64_t n, int64_t k, int64_t k_block, int64_t panel)
{
    int64_t nr = plan->kernel->nr, k0 = k_block * plan->kc;
    int64_t units = mixt__gemm_units(plan->kernel, min64(plan->kc, k - k0));
    return (size_t)(4 * nr * (k_block * plan->units * div_up(n, nr) + panel * units));
}
