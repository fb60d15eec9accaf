/* Moments in FP32, BF16 and codes of blocks.
 *
 * The second moment is rounded stochastically: with beta2 of 0.999 its decay is less than half a unit in BF16's last
 * place, and of a code's steps, which rounding to the nearest would always lose.
 */
#include "backend/cpu/update/moments.h"

#include "base/rng.h"
#include "num/blocks.h"
#include "num/stochastic.h"

mixt__moment mixt__moment_at(const mixt__update *update, int which, const mixt__segment *segment, int64_t inside)
{
    const mixt__update_role *role = &update->moments[which];
    bool apart = role->scales, wide = apart && !segment->coded;
    mixt__moment m = {.format = wide ? MIXT_DTYPE_FP32 : role->format,
                      .stochastic = role->stochastic,
                      .first = segment->first + inside};
    char *base = wide ? (char *)role->wide : role->data;
    int64_t at = (apart ? segment->moment_offset : segment->offset) + inside;
    m.data = base ? base + at * (int64_t)mixt_dtype_size(m.format) : NULL;
    m.scales = apart && !wide ? role->scales + segment->scale_offset + inside / MIXT_BLOCK : NULL;
    m.key = m.stochastic ? mixt__rng_key(role->key, (uint64_t)update->control->step, 0) : 0;
    return m;
}

bool mixt__moment_is_narrow(const mixt__moment *m)
{
    return m->data && m->format != MIXT_DTYPE_FP32;
}

static int64_t block_of(int64_t count, int64_t at)
{
    return count - at < MIXT_BLOCK ? count - at : MIXT_BLOCK;
}

float *mixt__moment_open(const mixt__moment *m, int64_t count, float *room)
{
    if (!mixt__moment_is_narrow(m))
        return (float *)(void *)m->data;
    if (!m->scales)
        mixt__widen(m->format)(room, m->data, count);
    for (int64_t i = 0; m->scales && i < count; i += MIXT_BLOCK)
        mixt__block_open(room + i, m->data + i, m->scales[i / MIXT_BLOCK], m->format, block_of(count, i));
    return room;
}

void mixt__moment_close(const mixt__moment *m, int64_t count, const float *values)
{
    if (!mixt__moment_is_narrow(m))
        return;
    for (int64_t i = 0; m->scales && i < count; i += MIXT_BLOCK) {
        mixt__block_random random = {m->key, m->first + i};
        m->scales[i / MIXT_BLOCK] =
            mixt__block_close(m->data + i, values + i, m->format, block_of(count, i), m->stochastic ? &random : NULL);
    }
    if (m->scales)
        return;
    if (m->stochastic)
        mixt__stochastic_bf16((uint16_t *)(void *)m->data, values, count, m->key, m->first);
    else
        mixt__narrow(m->format)(m->data, values, count);
}

uint64_t mixt__moment_sum(const mixt__moment *m, int64_t count)
{
    if (!m->data)
        return 0;
    uint64_t sum = mixt__words_sum(m->data, (size_t)count * mixt_dtype_size(m->format));
    size_t scales = m->scales ? (size_t)((count + MIXT_BLOCK - 1) / MIXT_BLOCK) : 0;
    return sum + (scales ? mixt__words_sum(m->scales, scales * sizeof *m->scales) : 0);
}
