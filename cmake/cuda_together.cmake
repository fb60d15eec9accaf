# A quick build of device code (MIXT_CUDA_QUICK): of each source nvcc spends more time on headers than on kernels, so
# sources are compiled several at once, each in a namespace of its own, with the headers of all in front of them.
# What links between sources is extern "C" and leaves its namespace.

# mixt_cuda_together(LIST): in place of the .cu files in LIST, of each folder one that includes them. Those stay that have
# options of their own (update), headers for several kinds of code (pointwise), a name that a neighbour's header has, and
# constants in a block of extern "C", which a namespace hides.
function(mixt_cuda_together list)
  set(sources ${${list}})
  set(alone ${sources})
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  list(FILTER sources EXCLUDE REGEX "/update/|/pointwise/|/pool/|/statistics/|/norm/batch_norm|/recurrent/cached")
  list(REMOVE_ITEM alone ${sources})
  foreach(source ${sources})
    get_filename_component(folder ${source} DIRECTORY)
    get_filename_component(folder ${folder} NAME)
    get_filename_component(name ${source} NAME_WE)
    file(STRINGS ${source} headers REGEX "^#include")
    list(APPEND headers_of_${folder} ${headers})
    string(APPEND code_of_${folder} "namespace source_${name} {\n#include \"${source}\"\n}\n")
    list(APPEND folders ${folder})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(REMOVE_DUPLICATES headers_of_${folder})
    list(JOIN headers_of_${folder} "\n" headers)
    set(file ${CMAKE_BINARY_DIR}/generated/cuda_${folder}.cu)
    file(CONFIGURE OUTPUT ${file} CONTENT "${headers}\n${code_of_${folder}}" @ONLY)
    list(APPEND alone ${file})
  endforeach()
  set(${list} ${alone} PARENT_SCOPE)
endfunction()
