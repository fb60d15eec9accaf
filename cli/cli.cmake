# What is made from the command's own tables: man pages and completion scripts. Included after the target `mixt`.

set(MIXT_MAN ${CMAKE_BINARY_DIR}/man)
set(MIXT_COMPLETION ${CMAKE_BINARY_DIR}/completion)
add_custom_command(
  OUTPUT ${MIXT_MAN}/mixt.1
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${MIXT_MAN}
  COMMAND mixt help --man-folder ${MIXT_MAN}
  DEPENDS mixt
  COMMENT "man pages" VERBATIM)
add_custom_command(
  OUTPUT ${MIXT_COMPLETION}/mixt.bash
  COMMAND ${CMAKE_COMMAND} -E make_directory ${MIXT_COMPLETION}
  COMMAND mixt completion zsh > ${MIXT_COMPLETION}/_mixt
  COMMAND mixt completion fish > ${MIXT_COMPLETION}/mixt.fish
  COMMAND mixt completion bash > ${MIXT_COMPLETION}/mixt.bash
  DEPENDS mixt
  COMMENT "shell completion" VERBATIM)
add_custom_target(mixt_pages ALL DEPENDS ${MIXT_MAN}/mixt.1 ${MIXT_COMPLETION}/mixt.bash)

install(DIRECTORY ${MIXT_MAN}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command FILES_MATCHING PATTERN "*.1")
install(DIRECTORY ${MIXT_MAN}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man5 COMPONENT command FILES_MATCHING PATTERN "*.5")
install(FILES ${MIXT_COMPLETION}/mixt.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT command
        RENAME mixt)
install(FILES ${MIXT_COMPLETION}/_mixt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
install(FILES ${MIXT_COMPLETION}/mixt.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
