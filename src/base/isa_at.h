/* Names of what a source makes that is compiled once for each of several instruction sets.
 *
 * cmake/isa.cmake lists those sources and defines MIXT_ISA_SUFFIX for each of their compilations: scalar, avx2, avx512,
 * avx512bf16 or amx. What such a file exports is declared as MIXT_AT(name), which is name_avx2 and so on; whoever
 * chooses at run time names them all. Not for headers of other files: without MIXT_ISA_SUFFIX nothing here is a name.
 */
#ifndef MIXT_BASE_ISA_AT_H
#define MIXT_BASE_ISA_AT_H

#include "base/isa.h"

#define MIXT__AT_PASTE(a, b) a##b
#define MIXT__AT_JOIN(a, b) MIXT__AT_PASTE(a, b)
#define MIXT__AT_QUOTE(a) #a
#define MIXT__AT_TEXT(a) MIXT__AT_QUOTE(a)

/** `name` with the suffix of the set that is compiled for. */
#define MIXT_AT(name) MIXT__AT_JOIN(name##_, MIXT_ISA_SUFFIX)
/** The suffix as text: a candidate's name. */
#define MIXT_AT_NAME MIXT__AT_TEXT(MIXT_ISA_SUFFIX)
/** The least mixt__isa_level that runs it. (Tests that emulate a set define another.) */
#ifndef MIXT_AT_LEVEL
#define MIXT_AT_LEVEL MIXT__AT_JOIN(MIXT__AT_LEVEL_, MIXT_ISA_SUFFIX)
#endif
/** Why a candidate refuses on a CPU below that level. */
#define MIXT_AT_REASON MIXT__AT_JOIN(MIXT__AT_REASON_, MIXT_ISA_SUFFIX)
/** Whether products run on AMX's tile registers. */
#define MIXT_AT_AMX MIXT__AT_JOIN(MIXT__AT_AMX_, MIXT_ISA_SUFFIX)

#define MIXT__AT_LEVEL_scalar MIXT_ISA_SCALAR
#define MIXT__AT_LEVEL_avx2 MIXT_ISA_AVX2
#define MIXT__AT_LEVEL_avx512 MIXT_ISA_AVX512
#define MIXT__AT_LEVEL_avx512bf16 MIXT_ISA_AVX512_BF16
#define MIXT__AT_LEVEL_amx MIXT_ISA_AMX

#define MIXT__AT_REASON_avx2 "needs AVX2, FMA and F16C"
#define MIXT__AT_REASON_avx512 "needs AVX-512"
#define MIXT__AT_REASON_avx512bf16 "needs AVX512-BF16"
#define MIXT__AT_REASON_amx "needs AMX"

#define MIXT__AT_AMX_scalar 0
#define MIXT__AT_AMX_avx2 0
#define MIXT__AT_AMX_avx512 0
#define MIXT__AT_AMX_avx512bf16 0
#define MIXT__AT_AMX_amx 1

#endif
