/* A 64-bit checksum of bytes, for damage and not for attackers.
 *
 * A change within one aligned group of eight bytes always shows: every step is a bijection of the one accumulator that
 * the group enters. Other changes escape with a chance of about 2^-64.
 */
#ifndef MIXT_STORE_CHECKSUM_H
#define MIXT_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t mixt__checksum(const void *data, size_t bytes);
/** Sum of 64-bit words modulo 2^64, the last one possibly cut: what an update sums of its state (backend/training.h). */
uint64_t mixt__checksum_words(const void *data, size_t bytes);

#endif
