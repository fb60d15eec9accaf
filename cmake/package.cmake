# How others find an installed mixt: mixt.pc for pkg-config, mixtConfig.cmake for find_package. Both look from where they
# lie, so that `cmake --install --prefix` and moved folders are right.
include(CMakePackageConfigHelpers)

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(MIXT_PC_PREFIX ${CMAKE_INSTALL_PREFIX}) # cut loose from the prefix on purpose
else()
  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" MIXT_PC_PREFIX "\${pcfiledir}/${up}")
endif()
configure_file(cmake/mixt.pc.in mixt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mixt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

string(REGEX REPLACE " *-l" ";" MIXT_PRIVATE_NAMES "${MIXT_PRIVATE_LIBS}")
list(FILTER MIXT_PRIVATE_NAMES EXCLUDE REGEX "^$")
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/mixt)
configure_package_config_file(cmake/mixtConfig.cmake.in mixtConfig.cmake INSTALL_DESTINATION ${folder}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(mixtConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/mixtConfig.cmake ${CMAKE_BINARY_DIR}/mixtConfigVersion.cmake DESTINATION ${folder}
        COMPONENT dev)
