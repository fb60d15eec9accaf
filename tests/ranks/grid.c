/* Rows and columns of 4 ranks in a grid of 2 by 2: they sum apart; closing the rows leaves the others. Under mpirun -n
 * 4 over what it carries; `grid nccl`, started as Slurm starts ranks, over NCCL, and then in a GPU's memory as well. */
#include "backend/beside.h"
#include "base/status.h"
#include "dist/group.h"
#include "dist/load.h"

#include <stdio.h>
#include <string.h>

static mixt_status sum(mixt__group *g, float *data)
{
    char workspace[4096];
    return mixt__group_sum(g, data, 1, 64, MIXT_DTYPE_FP32, workspace);
}

static int wrong(const char *what, float found, float expected)
{
    if (found != expected)
        printf("%s: %g, must be %g\n", what, found, expected);
    return found != expected;
}

static mixt_status reduce(mixt__group *all, int *bad)
{
    mixt__group *row, *column;
    int x = all->rank % 2, y = all->rank / 2;
    float value = (float)(1 << all->rank), kept = value, whole = value;
    MIXT_TRY(mixt__group_split(all, y, 0, &row));
    MIXT_TRY(mixt__group_split(all, x, 0, &column));
    *bad += row->size != 2 || row->rank != x || column->size != 2 || column->rank != y;
    MIXT_TRY(sum(row, &value));
    *bad += wrong("a row", value, y ? 12 : 3);
    MIXT_TRY(sum(column, &value));
    *bad += wrong("rows, then columns", value, 15);
    mixt__group_close(row);
    MIXT_TRY(sum(column, &kept));
    *bad += wrong("a column without rows", kept, x ? 10 : 5);
    mixt__group_close(column);
    MIXT_TRY(sum(all, &whole));
    *bad += wrong("all", whole, 15);
    return MIXT_OK;
}

/* ---- in a GPU's memory ---- */

typedef struct on_gpu {
    mixt__device *device;
    float *value; // one number
    mixt__group *all;
} on_gpu;

/** What a number becomes that these sum. */
static mixt_status sum_there(const on_gpu *g, mixt__device_sums *sums, float *value)
{
    MIXT_TRY(mixt__device_upload(g->device, g->value, value, sizeof *value));
    MIXT_TRY(sums->sum(sums, g->value, 1));
    MIXT_TRY(sums->join(sums, -1));
    MIXT_TRY(mixt__group_await(g->all, sums));
    return mixt__device_download(g->device, value, g->value, sizeof *value);
}

static mixt_status reduce_there(const on_gpu *g, mixt__device_sums *all, int *bad)
{
    mixt__device_sums *row, *column;
    int x = g->all->rank % 2, y = g->all->rank / 2;
    float value = (float)(1 << g->all->rank), kept = value, whole = value;
    if (!all->split)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "sums of %s have no parts", all->version);
    MIXT_TRY(all->split(all, y, 0, &row));
    MIXT_TRY(all->split(all, x, 0, &column));
    MIXT_TRY(sum_there(g, row, &value));
    *bad += wrong("a row on GPUs", value, y ? 12 : 3);
    MIXT_TRY(sum_there(g, column, &value));
    *bad += wrong("rows, then columns on GPUs", value, 15);
    row->close(row, true);
    MIXT_TRY(sum_there(g, column, &kept));
    *bad += wrong("a column without rows on GPUs", kept, x ? 10 : 5);
    column->close(column, true);
    MIXT_TRY(sum_there(g, all, &whole));
    *bad += wrong("all on GPUs", whole, 15);
    return MIXT_OK;
}

/** Over the communicator that carries the group's messages. */
static mixt_status reduce_on_gpus(mixt__group *all, int *bad)
{
    const mixt__backend *cuda;
    mixt__device_sums *sums;
    on_gpu g = {.all = all};
    MIXT_TRY(mixt__backend_cuda(&cuda));
    MIXT_TRY(cuda->open(0, 0, &g.device));
    g.value = mixt__device_alloc(g.device, sizeof *g.value);
    mixt__sums_place place = {.rank = all->rank, .size = all->size, .transport = all->transport};
    place.stream = cuda->beside->stream(g.device);
    MIXT_TRY(g.value ? mixt__device_sums_load("nccl", &place, &sums) : MIXT_ERROR_MEMORY);
    mixt_status status = reduce_there(&g, sums, bad);
    sums->close(sums, status == MIXT_OK);
    mixt__device_free(g.device, g.value);
    mixt__device_close(g.device);
    return status;
}

int main(int argc, char **argv)
{
    mixt__group *all;
    int bad = 0;
    const char *transport = argc > 1 ? argv[1] : "mpi";
    mixt_status status = mixt__group_open(transport, strcmp(transport, "nccl") ? 10 : 60, &all);
    if (status == MIXT_OK)
        status = reduce(all, &bad);
    if (status == MIXT_OK && !strcmp(transport, "nccl"))
        status = reduce_on_gpus(all, &bad);
    if (status != MIXT_OK)
        printf("%s\n", mixt_error_text());
    if (status == MIXT_OK)
        mixt__group_close(all);
    return bad || status != MIXT_OK;
}
