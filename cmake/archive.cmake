# `make package` and `make wheel`: what is packed, in one of three forms. Included last.
# - wheel: the library as Python packages carry it, what it needs beside it (tools/wheel.sh packs)
# - archive: a folder to unpack anywhere; the libraries that mixt needs lie in it
# - deb: Debian packages of the command, the library, what programs are built with, and what GPUs and MPI need
set(MIXT_PACKAGE "" CACHE STRING "what is packed: archive, deb or wheel; empty: nothing")
if(NOT MIXT_PACKAGE)
  return()
endif()

set(CPACK_PACKAGE_VENDOR "the mixt authors")
set(CPACK_PACKAGE_CONTACT "the mixt authors <mixt@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "mixed-precision training of neural networks")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/dist)
set(CPACK_MONOLITHIC_INSTALL OFF)

if(MIXT_PACKAGE MATCHES "^(archive|wheel)$")
  set_target_properties(mixt mixt_shared PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}:$ORIGIN")
  foreach(library ${JANSSON_LINK_LIBRARIES} ${YAML_LINK_LIBRARIES} ${ZLIB_LIBRARIES} ${JPEG_LIBRARIES})
    get_filename_component(file ${library} REALPATH)
    execute_process(COMMAND objdump -p ${file} COMMAND sed -n "s/^ *SONAME *//p" OUTPUT_VARIABLE soname
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR} RENAME ${soname} COMPONENT library)
    # Their licences go with them. Debian's list of files may know the library by its folder before /usr was merged.
    string(REGEX REPLACE "^/usr" "" short ${file})
    execute_process(COMMAND dpkg-query --search ${file} ${short} ERROR_QUIET COMMAND sed -n "1s/:.*//p"
                    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/licences RENAME ${package}
            COMPONENT library)
  endforeach()
  if(MIXT_PACKAGE STREQUAL wheel)
    set_target_properties(mixt_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
    if(TARGET mixt_cuda) # beside NVIDIA's own packages, or where the system has its libraries
      set_target_properties(mixt_cuda PROPERTIES INSTALL_RPATH
        "$ORIGIN/../nvidia/cublas/lib:$ORIGIN/../nvidia/cudnn/lib:$ORIGIN/../nvidia/cuda_nvrtc/lib:$ORIGIN/../nvidia/cu13/lib")
    endif()
    return()
  endif()
  install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mixt/configs COMPONENT command)
  install(FILES README.md LICENSE DESTINATION . COMPONENT command)
  set(CPACK_GENERATOR TZST)
  set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
  set(CPACK_MONOLITHIC_INSTALL ON)
  set(CPACK_PACKAGE_FILE_NAME mixt-${PROJECT_VERSION}-linux-x86_64)
  include(CPack)
  return()
endif()

# package NAME COMPONENT SECTION DEPENDS MORE: one Debian package. Its changelog is made of the version.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog ${CMAKE_BINARY_DIR}/changelog)
file(WRITE ${changelog} "mixt (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Version ${PROJECT_VERSION}.\n\n"
                        " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
execute_process(COMMAND gzip -9nf ${changelog} COMMAND_ERROR_IS_FATAL ANY)
macro(package name component section depends more)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${about}\n${more}")
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} RENAME copyright COMPONENT ${component})
  install(FILES ${changelog}.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
  list(APPEND CPACK_COMPONENTS_ALL ${component})
endmacro()

# Pages of the manual are compressed, as Debian has them.
install(CODE "execute_process(COMMAND sh -c \"gzip -9nr \\\"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}\\\"\"
                              COMMAND_ERROR_IS_FATAL ANY)" COMPONENT command)
set(same "= ${PROJECT_VERSION}")
set(about "mixt trains neural networks in FP32, TF32, FP16 and BF16. It chooses the")
string(APPEND about "\nformat of every value by compiling the model for a policy.")
package(mixt command science "" "This is the command.")
package(libmixt0 library libs "" "This is the library that programs load.")
package(libmixt-dev dev libdevel
        "libmixt0 (${same}), libjansson-dev, libyaml-dev, zlib1g-dev, libjpeg-dev"
        "This is what programs are built with.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS libmicrohttpd12)
file(WRITE ${CMAKE_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=") # structs may grow with each version
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
if(TARGET mixt_cuda)
  package(mixt-cuda cuda contrib/science "libmixt0 (${same}) | mixt (${same})"
          "This is what NVIDIA GPUs need. CUDA and cuDNN come from NVIDIA.")
endif()
if(TARGET mixt_mpi)
  package(mixt-mpi mpi science "libmixt0 (${same}) | mixt (${same})"
          "This is what several processes need.")
  set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
endif()
foreach(plugin mixt_cuda mixt_nccl) # NVIDIA's own packages tell the loader where their libraries lie
  if(TARGET ${plugin})
    set_target_properties(${plugin} PROPERTIES INSTALL_RPATH "")
  endif()
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
