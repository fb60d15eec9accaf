/* Rows and columns of 4 ranks in a grid of 2 by 2, under mpirun -n 4: they sum apart; closing the rows leaves the
 * others. */
#include "base/status.h"
#include "dist/group.h"

#include <stdio.h>

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

int main(void)
{
    mixt__group *all;
    int bad = 0;
    mixt_status status = mixt__group_open("mpi", 10, &all);
    if (status == MIXT_OK)
        status = reduce(all, &bad);
    if (status != MIXT_OK)
        printf("%s\n", mixt_error_text());
    if (status == MIXT_OK)
        mixt__group_close(all);
    return bad || status != MIXT_OK;
}
