/* One pass over the values of the compiled step. */
#include "run/report/shares.h"

#include <string.h>

void mixt__shares_find(const mixt__trainer *t, mixt_run_row *row)
{
    double values = 0, bytes = 0;
    memset(row->share_values, 0, sizeof row->share_values);
    memset(row->share_bytes, 0, sizeof row->share_bytes);
    for (int32_t i = 1; mixt__trainer_compiled(t) && i < mixt__trainer_compiled(t)->graph->value_count; i++) {
        const mixt__value *v = &mixt__trainer_compiled(t)->graph->values[i];
        bool made = v->producer >= 0 || v->role != MIXT_ROLE_ACTIVATION; // else a pass has removed its maker
        if (v->base || !made || !mixt_dtype_is_float(v->dtype))
            continue;
        double count = (double)mixt__shape_count(&v->shape), size = count * (double)mixt_dtype_size(v->dtype);
        row->share_values[v->dtype] += count;
        row->share_bytes[v->dtype] += size;
        values += count;
        bytes += size;
    }
    for (int d = 0; d < MIXT_DTYPE_COUNT && values > 0; d++) {
        row->share_values[d] /= values;
        row->share_bytes[d] /= bytes;
    }
}
