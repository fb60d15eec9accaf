# libmixt_cuda.so: loaded at run time, so it is built beside the library and never linked into it.
# Sanitized builds leave it out: they test the host code, and the GPU has compute-sanitizer.
set(MIXT_CUDA_ARCHITECTURES "" CACHE STRING "compute capabilities to build for, as CMake writes them; empty: 75 to 90")
option(MIXT_CUDA_QUICK "compile device code without most optimizations: to see that it builds, not to be fast" OFF)
include(CheckLanguage)
check_language(CUDA)
if(NOT MIXT_CUDA OR MIXT_SANITIZE OR NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA backend: not built")
  return()
endif()
if(MIXT_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES ${MIXT_CUDA_ARCHITECTURES})
else()
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90a-real 90-virtual) # 8.6 and 8.9 run what is built for 8.0
endif()
set(CMAKE_CUDA_STANDARD 20)
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(CUDAToolkit_VERSION VERSION_LESS 13 AND NOT MIXT_CUDA_ARCHITECTURES)
  list(PREPEND CMAKE_CUDA_ARCHITECTURES 70-real) # CUDA 13 dropped Volta
endif()
get_filename_component(cuda_root ${CUDAToolkit_BIN_DIR} DIRECTORY)
find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${cuda_root}/include)
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_root}/lib ${cuda_root}/lib64)
find_library(CUBLASLT_LIBRARY cublasLt HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_root}/lib ${cuda_root}/lib64)
find_library(NVRTC_LIBRARY nvrtc HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_root}/lib ${cuda_root}/lib64)
find_library(CUDART_LIBRARY cudart_static HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_root}/lib ${cuda_root}/lib64)
if(NOT (CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY AND CUBLASLT_LIBRARY AND NVRTC_LIBRARY AND CUDART_LIBRARY))
  message(STATUS "CUDA backend: not built (cuDNN 9, cuBLASLt or NVRTC is missing)")
  return()
endif()
message(STATUS "CUDA backend: toolkit ${CUDAToolkit_VERSION}, ${CUDNN_LIBRARY}")

file(GLOB_RECURSE CUDA_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.c
     ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
if(MIXT_CUDA_QUICK)
  include(cmake/cuda_together.cmake)
  mixt_cuda_together(CUDA_SOURCES)
endif()
file(GLOB CUDA_BASE ${PROJECT_SOURCE_DIR}/src/base/*.c)
add_library(mixt_cuda MODULE ${CUDA_SOURCES} ${CUDA_BASE} ${PROJECT_SOURCE_DIR}/src/num/dtype.c
            ${PROJECT_SOURCE_DIR}/src/backend/training.c)
# Updates give the same bits as the CPU's: no contraction there either.
set(update_folder ${PROJECT_SOURCE_DIR}/src/backend/cuda/update)
set_source_files_properties(${update_folder}/optimizer.cu ${update_folder}/gradient_stats.cu PROPERTIES COMPILE_OPTIONS
                            --fmad=false)
target_include_directories(mixt_cuda PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                           ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
target_compile_definitions(mixt_cuda PRIVATE _GNU_SOURCE)
target_compile_options(mixt_cuda PRIVATE
  $<$<COMPILE_LANGUAGE:C>:-Wall -Wextra -Wconversion -Wno-sign-conversion -Wvla -Wmissing-prototypes -ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CUDA>:--threads=2 -Xcompiler=-Wall>)
if(MIXT_CUDA_QUICK AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8) # which brought the option
  target_compile_options(mixt_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
endif()
target_link_libraries(mixt_cuda PRIVATE ${CUDART_LIBRARY} ${CUBLASLT_LIBRARY} ${CUDNN_LIBRARY} ${NVRTC_LIBRARY}
                      Threads::Threads ${CMAKE_DL_LIBS} rt m)
target_link_options(mixt_cuda PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/cuda_exports.map -Wl,--no-undefined)
# The libraries are found where the build found them, or by LD_LIBRARY_PATH.
set(cuda_folders)
foreach(library ${CUBLASLT_LIBRARY} ${CUDNN_LIBRARY} ${NVRTC_LIBRARY})
  get_filename_component(folder ${library} DIRECTORY)
  list(APPEND cuda_folders ${folder})
endforeach()
list(REMOVE_DUPLICATES cuda_folders)
set_target_properties(mixt_cuda PROPERTIES CUDA_RUNTIME_LIBRARY None
                      BUILD_RPATH "${cuda_folders}" INSTALL_RPATH "${cuda_folders}")
install(TARGETS mixt_cuda DESTINATION ${CMAKE_INSTALL_LIBDIR}/mixt COMPONENT cuda)
