# Instruction sets: which sources are compiled for which, and how. All others use no more than the x86-64 baseline.
#
# A source is compiled for a set
#   - once, when its name ends in the set (kernel_avx2.c): written for that set alone;
#   - once for each set beside its name in MIXT_ONE_SOURCE: written once, its exported names end in the set by MIXT_AT of
#     src/base/isa_at.h.
# Of vector code the sanitized build leaves out two checks that took a quarter of compiling it and say what AddressSanitizer
# says of the same addresses.
set(MIXT_VISIBILITY hidden)
add_library(mixt_set_flags INTERFACE)
if(MIXT_SANITIZE)
  set(MIXT_VISIBILITY default) # mixt_tested is shared there
  target_compile_options(mixt_set_flags INTERFACE -fno-sanitize=pointer-overflow,object-size)
endif()
set(MIXT_SETS scalar avx2 avx512 avx512bf16 amx)
set(MIXT_SET_scalar)
set(MIXT_SET_avx2 -mavx2 -mfma -mf16c)
set(MIXT_SET_avx512 ${MIXT_SET_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
set(MIXT_SET_avx512bf16 ${MIXT_SET_avx512} -mavx512bf16)
set(MIXT_SET_amx ${MIXT_SET_avx512bf16} -mamx-tile -mamx-bf16)

set(MIXT_ONE_SOURCE
    "backend/cpu/attention/cached_kernel.c avx2 avx512"
    "backend/cpu/attention/kernel.c avx2 avx512 avx512bf16 amx"
    "backend/cpu/conv/depthwise.c avx2 avx512"
    "backend/cpu/conv/depthwise_weight.c avx2 avx512"
    "backend/cpu/conv/groups.c avx2 avx512"
    "backend/cpu/conv/groups_weight.c avx2 avx512"
    "backend/cpu/core/rows_loops.c scalar avx2 avx512"
    "backend/cpu/gemm/rows_kernel.c avx2 avx512"
    "backend/cpu/loss/head_kernel.c avx2 avx512"
    "backend/cpu/norm/batch_norm_kernel.c avx2 avx512"
    "backend/cpu/norm/layer_norm_kernel.c avx2 avx512"
    "backend/cpu/pointwise/loops.c scalar avx2 avx512"
    "backend/cpu/pool/kernel.c avx2 avx512"
    "backend/cpu/recurrent/cached_kernel.c avx2 avx512"
    "backend/cpu/recurrent/gru_kernel.c avx2 avx512"
    "backend/cpu/recurrent/lstm_kernel.c avx2 avx512"
    "backend/cpu/recurrent/rnn_kernel.c avx2 avx512"
    "backend/cpu/statistics/loops.c scalar avx2 avx512"
    "backend/cpu/update/loops.c scalar avx2 avx512"
    "backend/cpu/update/rules.c scalar avx2 avx512"
    "num/blocks_loops.c scalar avx2 avx512"
    "num/stochastic_loops.c scalar avx2 avx512")

# mixt_add_objects(NAME FLAGS OBJECTS SOURCE...): an object library NAME of what is compiled for the baseline and one, NAME_SET,
# for each set that has sources; all link FLAGS. OBJECTS, in the caller's scope, becomes what they make.
function(mixt_add_objects name flags objects)
  set(baseline ${ARGN})
  foreach(set ${MIXT_SETS})
    set(for_${set} ${ARGN})
    list(FILTER for_${set} INCLUDE REGEX "_${set}\\.c$")
    list(REMOVE_ITEM baseline ${for_${set}} "")
  endforeach()
  foreach(line ${MIXT_ONE_SOURCE})
    string(REPLACE " " ";" sets ${line})
    list(POP_FRONT sets file)
    set(source ${ARGN})
    list(FILTER source INCLUDE REGEX "/src/${file}$")
    list(REMOVE_ITEM baseline ${source} "")
    foreach(set ${sets})
      list(APPEND for_${set} ${source})
    endforeach()
  endforeach()
  add_library(${name} OBJECT ${baseline})
  target_link_libraries(${name} PRIVATE ${flags})
  set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET ${MIXT_VISIBILITY})
  set(all $<TARGET_OBJECTS:${name}>)
  foreach(set ${MIXT_SETS})
    if(for_${set})
      add_library(${name}_${set} OBJECT ${for_${set}})
      target_compile_options(${name}_${set} PRIVATE ${MIXT_SET_${set}})
      target_compile_definitions(${name}_${set} PRIVATE MIXT_ISA_SUFFIX=${set})
      target_link_libraries(${name}_${set} PRIVATE ${flags} mixt_set_flags) # in this order
      set_target_properties(${name}_${set} PROPERTIES C_VISIBILITY_PRESET ${MIXT_VISIBILITY})
      list(APPEND all $<TARGET_OBJECTS:${name}_${set}>)
    endif()
  endforeach()
  set(${objects} ${all} PARENT_SCOPE)
endfunction()
