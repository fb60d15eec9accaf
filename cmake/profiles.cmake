# Profiles of machines: each file of profiles/ becomes a C string in profiles.inc, so that the library needs no file to
# find. MIXT_PROFILES are the files; ${CMAKE_BINARY_DIR}/generated holds what is made of them.
file(GLOB MIXT_PROFILES CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/../profiles/*.yaml)
set(inc "")
foreach(profile ${MIXT_PROFILES})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${profile})
  get_filename_component(name ${profile} NAME_WE)
  file(READ ${profile} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n\"" text "${text}")
  string(APPEND inc "{\"${name}\", \"${text}\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/profiles.inc CONTENT "${inc}" @ONLY)
