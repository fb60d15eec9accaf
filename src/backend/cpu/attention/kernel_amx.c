/* Attention for AMX: BF16 tensors only, products on tile registers. */
#define TILE_AMX
#include "backend/cpu/attention/kernel.h"
