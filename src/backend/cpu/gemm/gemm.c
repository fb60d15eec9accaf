/* Runs a product as plan.h cuts it: pack together, wait for all, multiply, finish. */
#include "backend/cpu/gemm/plan.h"

#include "backend/cpu/core/rows.h"
#include "base/threads.h"
#include "num/num.h"

enum { ROWS_AT_ONCE = 128 }; // of A that are summed together

typedef struct job {
    const mixt__gemm_problem *problem;
    const mixt__gemm_plan *plan;
    char *workspace;
} job;

/** What all threads do between two barriers. */
typedef struct step {
    int thread;
    int64_t row_turn, col_turn; // panels that the thread begins with: what many read comes faster not all at once
    int64_t number;
    int64_t col, cols, row, rows; // of C
    int64_t k_block, k0, k, units;
    bool first, last; // pass over K
} step;

typedef mixt__range range;

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/** Of A, read in place. */
static int64_t element_size(const mixt__gemm_kernel *kernel)
{
    return kernel->pairs ? sizeof(uint16_t) : sizeof(float);
}

static char *own_part(const job *j, int thread)
{
    return j->workspace + j->plan->own_offset + (size_t)thread * j->plan->own_size;
}

static char *b_panel(const job *j, const step *s, int64_t panel)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_plan *plan = j->plan;
    if (p->b_packed)
        return (char *)p->b_packed +
               mixt__gemm_packed_offset(plan, p->n, p->k, s->k_block, s->col / plan->kernel->nr + panel);
    size_t copy = plan->threads > 1 && s->number % 2 ? plan->b_size : 0;
    char *panels = plan->keep_b ? own_part(j, s->thread) + plan->own_b : j->workspace + copy;
    return panels + 4 * plan->kernel->nr * s->units * panel;
}

/** The team's panels of the rows of one row of the thread grid. */
static char *a_shared(const job *j, const step *s, int64_t grid_row)
{
    const mixt__gemm_plan *plan = j->plan;
    size_t copy = plan->threads > 1 && s->number % 2 ? plan->a_size : 0;
    return j->workspace + plan->a_offset + copy + (size_t)grid_row * plan->a_part;
}

/** Packs this thread's share: threads that read the same panels split them, so most are packed where they are read;
 * or each packs its own. */
static void pack(const job *j, const step *s)
{
    const mixt__gemm_plan *plan = j->plan;
    const mixt__gemm_kernel *kernel = plan->kernel;
    char *gather = own_part(j, s->thread) + plan->own_gather;
    int grid_row = s->thread / plan->grid_n, grid_col = s->thread % plan->grid_n;
    if (!j->problem->b_packed) {
        range cols = mixt__range_part(s->cols, kernel->nr, grid_col, plan->grid_n);
        int sharing = plan->keep_b ? 1 : plan->grid_m;
        range mine = mixt__range_part(cols.end - cols.begin, kernel->nr, grid_row % sharing, sharing);
        int64_t first = cols.begin + mine.begin;
        if (mine.begin < mine.end)
            mixt__gemm_pack_b(j->problem, kernel, s->col + first, mine.end - mine.begin, s->k0, s->k,
                              b_panel(j, s, first / kernel->nr), gather);
    }
    if (plan->share_a) {
        range rows = mixt__range_part(s->rows, kernel->m_grain, grid_row, plan->grid_m);
        range mine = mixt__range_part(rows.end - rows.begin, kernel->mr, grid_col, plan->grid_n);
        if (mine.begin < mine.end)
            mixt__gemm_pack_a(j->problem, kernel, s->row + rows.begin + mine.begin, mine.end - mine.begin, s->k0, s->k,
                              a_shared(j, s, grid_row) + 4 * kernel->a_width * s->units * (mine.begin / kernel->mr),
                              gather);
    }
}

/** A rectangle of C (from its corner) and where its FP32 sums grow. */
typedef struct block {
    int64_t row, rows, col, cols;
    float *sums;
    int64_t ld;
} block;

static block block_at(const job *j, const step *s, range rows, range cols)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_plan *plan = j->plan;
    block b = {.row = s->row + rows.begin,
               .rows = rows.end - rows.begin,
               .col = s->col + cols.begin,
               .cols = cols.end - cols.begin};
    if (plan->scratch_whole) {
        b.ld = plan->nc;
        b.sums = (float *)(j->workspace + plan->scratch_offset) + rows.begin * b.ld + cols.begin;
    } else if (plan->scratch) {
        b.ld = plan->fc;
        b.sums = (float *)(own_part(j, s->thread) + plan->own_scratch);
    } else {
        b.ld = p->ldc;
        b.sums = (float *)p->c + b.row * b.ld + b.col;
    }
    return b;
}

static void multiply(const job *j, const step *s, const block *b, const char *a)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_kernel *kernel = j->plan->kernel;
    mixt__gemm_tile_fn *product = j->plan->direct ? kernel->tile_direct : kernel->tile;
    int64_t a_step =
        j->plan->direct ? kernel->mr * j->plan->a_ld * element_size(kernel) : 4 * kernel->a_width * s->units;
    int64_t row_panels = (b->rows + kernel->mr - 1) / kernel->mr, col_panels = (b->cols + kernel->nr - 1) / kernel->nr;
    mixt__gemm_tile tile = {.a_stride = j->plan->a_ld, .a_count = s->k, .k = s->units, .ldc = b->ld, .alpha = p->alpha};
    tile.add = !s->first || (p->accumulate && !j->plan->scratch);
    for (int64_t n = 0; n < col_panels; n++) {
        int64_t panel = (s->col_turn + n) % col_panels, c = panel * kernel->nr;
        int64_t first = (b->col - s->col) / kernel->nr, after = panel + 1 < col_panels ? panel + 1 : 0;
        tile.b = b_panel(j, s, first + panel);
        tile.cols = (int)min64(kernel->nr, b->cols - c);
        tile.bias = p->bias && s->first ? p->bias + b->col + c : NULL;
        const char *next = n + 1 < col_panels ? b_panel(j, s, first + after) : NULL;
        for (int64_t m = 0; m < row_panels; m++) {
            int64_t r = (s->row_turn + m) % row_panels * kernel->mr;
            tile.next = next && m < 2 ? next + 64 * s->units * m : tile.b;
            tile.a = a + a_step * (r / kernel->mr);
            tile.rows = (int)min64(kernel->mr, b->rows - r);
            tile.c = b->sums + r * b->ld + c;
            product(&tile);
        }
    }
}

/** After the last pass: what C held (where the sums grew elsewhere), the epilogue, rounding. */
static void finish(const job *j, const block *b)
{
    const mixt__gemm_problem *p = j->problem;
    size_t size = mixt_dtype_size(p->c_dtype);
    char *c = (char *)p->c + (size_t)(b->row * p->ldc + b->col) * size;
    size_t c_step = (size_t)p->ldc * size;
    if (j->plan->scratch && p->accumulate)
        for (int64_t r = 0; r < b->rows; r++)
            for (int64_t done = 0; done < b->cols; done += 128) {
                float old[128], *sum = b->sums + r * b->ld + done;
                int64_t count = min64(128, b->cols - done);
                mixt__widen(p->c_dtype)(old, c + (size_t)r * c_step + (size_t)done * size, count);
                for (int64_t i = 0; i < count; i++)
                    sum[i] += old[i];
            }
    if (p->epilogue)
        p->epilogue(p->epilogue_argument, b->row, b->rows, b->col, b->cols, b->sums, b->ld);
    if (j->plan->scratch) {
        mixt__narrow_fn *narrow = mixt__narrow(p->c_dtype);
        for (int64_t r = 0; r < b->rows; r++)
            narrow(c + (size_t)r * c_step, b->sums + r * b->ld, b->cols);
    }
}

/** Rows `part` of A (of the thread's `rows`) as the tiles read them: packed here, packed by the team, or in place. */
static const char *a_ready(const job *j, const step *s, range rows, range part)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_plan *plan = j->plan;
    int64_t row = s->row + part.begin, count = part.end - part.begin, mr = plan->kernel->mr;
    char *own = own_part(j, s->thread);
    if (plan->share_a)
        return a_shared(j, s, s->thread / plan->grid_n) +
               4 * plan->kernel->a_width * s->units * ((part.begin - rows.begin) / mr);
    if (plan->direct && !p->a.gather)
        return (const char *)p->a.data + (row * p->a.row_stride + s->k0) * element_size(plan->kernel);
    if (!plan->direct)
        mixt__gemm_pack_a(p, plan->kernel, row, count, s->k0, s->k, own, own + plan->own_gather);
    else if (s->k)
        p->a.gather(p->a.gather_argument, row, count, s->k0, s->k, (float *)own, plan->a_ld);
    return own;
}

static void multiply_own(const job *j, const step *s)
{
    const mixt__gemm_plan *plan = j->plan;
    const mixt__gemm_kernel *kernel = plan->kernel;
    int grid_row = s->thread / plan->grid_n, grid_col = s->thread % plan->grid_n;
    range rows = mixt__range_part(s->rows, kernel->m_grain, grid_row, plan->grid_m);
    range cols = mixt__range_part(s->cols, kernel->nr, grid_col, plan->grid_n);
    for (int64_t r = rows.begin; r < rows.end && cols.begin < cols.end; r += plan->mc) {
        range part = {r, min64(r + plan->mc, rows.end)};
        const char *a = a_ready(j, s, rows, part);
        for (int64_t c = cols.begin; c < cols.end; c += plan->fc) {
            block b = block_at(j, s, part, (range){c, min64(c + plan->fc, cols.end)});
            multiply(j, s, &b, a);
            if (s->last)
                finish(j, &b);
        }
    }
}

/** sums += rows [row, row + count) of A, all of K: short sums in FP32, long ones in FP64. */
static void sum_along_k(const mixt__gemm_operand *a, int64_t row, int64_t count, int64_t k, double *sums)
{
    enum { SHORT = 64 };
    const mixt__row_loops *loops = mixt__row_loops_best();
    for (int64_t k0 = 0; k0 < k; k0 += SHORT) {
        float part[ROWS_AT_ONCE] = {0}, one[ROWS_AT_ONCE];
        int64_t end = min64(k0 + SHORT, k), at = k0;
        for (; at + MIXT__ROW_GROUP <= end && a->dtype != MIXT_DTYPE_FP16; at += MIXT__ROW_GROUP) {
            const void *group = mixt__row_at(a->data, a->dtype, row + at * a->col_stride);
            if (a->dtype == MIXT_DTYPE_FP32)
                loops->add_group(part, group, a->col_stride, count);
            else
                loops->add_group_bf16(part, group, a->col_stride, count);
        }
        for (; at < end; at++)
            loops->add(part, mixt__row_load(one, a->data, a->dtype, row + at * a->col_stride, count), count);
        for (int64_t i = 0; i < count; i++)
            sums[i] += (double)part[i];
    }
}

static void sum_rows(const job *j, int thread)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_plan *plan = j->plan;
    range rows = mixt__range_part(p->m, plan->kernel->m_grain, thread / plan->grid_n, plan->grid_m);
    range mine = mixt__range_part(rows.end - rows.begin, 1, thread % plan->grid_n, plan->grid_n);
    int64_t end = rows.begin + mine.end;
    for (int64_t row = rows.begin + mine.begin; row < end; row += ROWS_AT_ONCE) {
        double sums[ROWS_AT_ONCE] = {0};
        int64_t count = min64(ROWS_AT_ONCE, end - row);
        sum_along_k(&p->a, row, count, p->k, sums);
        for (int64_t i = 0; i < count; i++)
            p->row_sums[row + i] = (float)sums[i] + (p->add_row_sums ? p->row_sums[row + i] : 0.0f);
    }
}

/** A step as one of the threads makes it. */
static step step_of(const job *j, const step *all, int thread)
{
    step s = *all;
    s.thread = thread;
    if (j->plan->scattered) {
        s.row_turn = thread % j->plan->grid_n;
        s.col_turn = thread / j->plan->grid_n;
    }
    return s;
}

static void pack_parts(const job *j, const step *all, int first, int end)
{
    for (int thread = first; thread < end; thread++) {
        step s = step_of(j, all, thread);
        pack(j, &s);
    }
}

static void multiply_parts(const job *j, const step *all, int first, int end)
{
    for (int thread = first; thread < end; thread++) {
        step s = step_of(j, all, thread);
        multiply_own(j, &s);
    }
}

/** What threads [first, end) of the plan do. */
static void work(const job *j, int first, int end)
{
    const mixt__gemm_problem *p = j->problem;
    const mixt__gemm_plan *plan = j->plan;
    step s = {0};
    for (int thread = first; p->row_sums && thread < end; thread++)
        sum_rows(j, thread);
    for (s.col = 0; s.col < p->n; s.col += plan->nc)
        for (s.row = 0; s.row < p->m; s.row += plan->mo)
            for (s.k_block = 0; s.k_block < plan->k_blocks; s.k_block++) {
                s.cols = min64(plan->nc, p->n - s.col);
                s.rows = min64(plan->mo, p->m - s.row);
                s.k0 = s.k_block * plan->kc;
                s.k = min64(plan->kc, p->k - s.k0);
                s.units = mixt__gemm_units(plan->kernel, s.k);
                s.first = s.k_block == 0;
                s.last = s.k_block == plan->k_blocks - 1;
                pack_parts(j, &s, first, end);
                if (plan->barrier)
                    mixt__team_barrier();
                if (!s.number && plan->kernel->begin)
                    plan->kernel->begin(); // waits for all that goes on: not while the first values are on their way
                multiply_parts(j, &s, first, end);
                s.number++;
            }
    if (plan->kernel->end)
        plan->kernel->end();
}

static void work_in_team(void *argument, int first, int end, int threads)
{
    (void)threads;
    work(argument, first, end);
}

static int team_size(void)
{
    return mixt__team_inside() ? 1 : mixt__threads_count();
}

size_t mixt__gemm_workspace(const mixt__gemm_problem *problem)
{
    size_t team = mixt__gemm_plan_make(problem, mixt__threads_count()).total;
    size_t alone = mixt__gemm_plan_make(problem, 1).total;
    return team > alone ? team : alone;
}

const mixt__gemm_plan *mixt__gemm_plan_keep(const mixt__gemm_problem *problem, mixt__arena *arena)
{
    mixt__gemm_plan *plan = mixt__arena_alloc(arena, sizeof *plan);
    if (plan)
        *plan = mixt__gemm_plan_make(problem, mixt__threads_count());
    return plan;
}

void mixt__gemm_run(const mixt__gemm_problem *problem, void *workspace)
{
    mixt__gemm_plan made;
    const mixt__gemm_plan *plan = problem->plan;
    if (problem->m <= 0 || problem->n <= 0)
        return;
    if (!plan || mixt__team_inside()) {
        made = mixt__gemm_plan_make(problem, team_size());
        plan = &made;
    }
    job team = {problem, plan, workspace};
    if (plan->threads == 1)
        work(&team, 0, 1);
    else
        mixt__team_run(plan->threads, work_in_team, &team);
}

typedef struct batch {
    const mixt__gemm_problem *problem;
    mixt__gemm_plan plan; // of one item on one thread
    int64_t a_step, b_step, c_step;
    char *workspace;
    size_t slice;
} batch;

static mixt__gemm_problem item_of(const batch *b, int64_t index)
{
    mixt__gemm_problem item = *b->problem;
    item.a.data = (const char *)item.a.data + index * b->a_step;
    item.b.data = (const char *)item.b.data + index * b->b_step;
    item.c = (char *)item.c + index * b->c_step;
    return item;
}

static void run_items(void *argument, int64_t begin, int64_t end, int thread)
{
    const batch *b = argument;
    for (int64_t i = begin; i < end; i++) {
        mixt__gemm_problem item = item_of(b, i);
        work(&(job){&item, &b->plan, b->workspace + (size_t)thread * b->slice}, 0, 1);
    }
}

void mixt__gemm_run_batched(const mixt__gemm_problem *problem, int64_t count, int64_t a_step, int64_t b_step,
                            int64_t c_step, void *workspace)
{
    if (problem->m <= 0 || problem->n <= 0)
        return;
    batch b = {problem, mixt__gemm_plan_make(problem, 1), a_step, b_step, c_step, workspace, 0};
    b.slice = (b.plan.total + 63) / 64 * 64;
    if (count >= team_size()) {
        mixt__parallel(count, 1, run_items, &b);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        mixt__gemm_problem item = item_of(&b, i);
        mixt__gemm_run(&item, workspace);
    }
}

size_t mixt__gemm_packed_bytes(const mixt__gemm_problem *p)
{
    mixt__gemm_plan plan = mixt__gemm_plan_make(p, 1);
    int64_t panels = (p->n + plan.kernel->nr - 1) / plan.kernel->nr;
    return mixt__gemm_packed_offset(&plan, p->n, p->k, plan.k_blocks - 1, panels);
}

typedef struct packing {
    const mixt__gemm_problem *problem;
    mixt__gemm_plan plan;
    char *packed;
} packing;

static void pack_panels(void *argument, int64_t begin, int64_t end, int thread)
{
    const packing *w = argument;
    const mixt__gemm_problem *p = w->problem;
    int64_t nr = w->plan.kernel->nr;
    (void)thread;
    for (int64_t block = 0; block < w->plan.k_blocks; block++)
        for (int64_t panel = begin; panel < end; panel++) {
            int64_t k0 = block * w->plan.kc;
            mixt__gemm_pack_b(p, w->plan.kernel, panel * nr, min64(nr, p->n - panel * nr), k0,
                              min64(w->plan.kc, p->k - k0),
                              w->packed + mixt__gemm_packed_offset(&w->plan, p->n, p->k, block, panel), NULL);
        }
}

void mixt__gemm_pack_whole_b(const mixt__gemm_problem *problem, void *packed)
{
    packing w = {problem, mixt__gemm_plan_make(problem, 1), packed};
    int64_t nr = w.plan.kernel->nr;
    mixt__parallel((problem->n + nr - 1) / nr, 1, pack_panels, &w);
}

const char *mixt__gemm_path(const mixt__gemm_problem *problem)
{
    return mixt__gemm_kernel_for(problem)->name;
}
