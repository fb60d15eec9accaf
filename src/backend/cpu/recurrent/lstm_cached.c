/* The LSTM recurrence that goes on from a state: the plain candidate, sums in double, and the list. */
#include "backend/cpu/attention/cached.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/recurrent/lstm.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void step(const mixt__call *call, const mixt__lstm_sizes *s, int64_t b, int64_t t)
{
    const mixt__tensor *gates_x = &call->in[0], *weight = &call->in[1], *dst = &call->out[0];
    const mixt__tensor *before = t ? dst : &call->in[2];
    int64_t at = b * s->steps + t, from = t ? (at - 1) * s->hidden : b * s->hidden;
    float *cell = (float *)call->in[3].data + b * s->hidden;
    for (int64_t j = 0; j < s->hidden; j++) {
        double gate[4];
        for (int64_t g = 0; g < 4; g++) {
            int64_t row = g * s->hidden + j;
            double x = (double)mixt__load(gates_x->data, gates_x->dtype, at * 4 * s->hidden + row);
            for (int64_t i = 0; i < s->hidden; i++)
                x += (double)mixt__load(weight->data, weight->dtype, row * s->hidden + i) *
                     (double)mixt__load(before->data, before->dtype, from + i);
            gate[g] = g == 2 ? tanh(x) : sigmoid(x);
        }
        double c = gate[1] * (double)cell[j] + gate[0] * gate[2];
        cell[j] = (float)c;
        mixt__store(dst->data, dst->dtype, at * s->hidden + j, (float)(gate[3] * tanh(c)));
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__lstm_sizes s = mixt__lstm_sizes_of(&call->in[0]);
    size_t row = (size_t)s.hidden * mixt_dtype_size(call->out[0].dtype);
    for (int64_t b = 0; b < s.batch; b++) {
        for (int64_t t = 0; t < s.steps; t++)
            step(call, &s, b, t);
        if (s.steps)
            memcpy((char *)call->in[2].data + (size_t)b * row,
                   (const char *)call->out[0].data + (size_t)((b + 1) * s.steps - 1) * row, row);
    }
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .run = run};

const mixt__kernel *const mixt__cpu_lstm_cached_kernels[] = {&mixt__lstm_cached_avx512, &mixt__lstm_cached_avx2, &plain,
                                                             NULL};
