# The Python package as it runs from the build folder: what python/mixt holds and what is made of the public headers, beside a
# link to the shared library. `make wheel` packs the same (tools/wheel.sh).
find_program(MIXT_PYTHON3 python3)
if(NOT MIXT_PYTHON3 OR MIXT_SANITIZE)
  return()
endif()
file(GLOB PYTHON_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/mixt/*.py ${PROJECT_SOURCE_DIR}/python/mixt/*.typed)
file(GLOB_RECURSE PUBLIC_HEADERS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/mixt/*.h)
set(MIXT_PYTHON_PACKAGE ${CMAKE_BINARY_DIR}/python)
add_custom_command(
  OUTPUT ${MIXT_PYTHON_PACKAGE}/made
  COMMAND ${MIXT_PYTHON3} ${PROJECT_SOURCE_DIR}/tools/python_binding.py ${MIXT_PYTHON_PACKAGE} $<TARGET_SONAME_FILE:mixt_shared>
  COMMAND ${CMAKE_COMMAND} -E touch ${MIXT_PYTHON_PACKAGE}/made
  DEPENDS ${PYTHON_SOURCES} ${PUBLIC_HEADERS} ${PROJECT_SOURCE_DIR}/tools/python_binding.py ${PROJECT_SOURCE_DIR}/tools/headers.py
  COMMENT "Making the Python package")
add_custom_target(python_package ALL DEPENDS ${MIXT_PYTHON_PACKAGE}/made)
add_dependencies(python_package mixt_shared)
