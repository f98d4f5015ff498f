# What `cmake --install` puts where, and the packages of it: cpack -G DEB, cpack -G TZST.

install(TARGETS sconce_lib EXPORT sconce LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS sconce_program COMPONENT program)
# A prefix of /usr is that of a distribution's package, whose settings are in /etc. systemd reads units from lib, whatever
# the libraries' folder is called.
install(CODE "
  set(settings \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_SYSCONFDIR}\")
  set(prefix \"\${CMAKE_INSTALL_PREFIX}\")
  if(prefix STREQUAL /usr)
    set(settings /etc)
  endif()
  file(INSTALL \"${PROJECT_SOURCE_DIR}/conf/sconce.conf\" DESTINATION \"\${settings}/sconce\")
  file(READ \"${PROJECT_SOURCE_DIR}/conf/sconce.service\" unit)
  # Nobody knows where an archive of cpack will be unpacked: its unit says /usr/local.
  if(NOT prefix MATCHES /_CPack_Packages/)
    string(REPLACE /usr/local/etc \"\${settings}\" unit \"\${unit}\")
    string(REPLACE /usr/local \"\${prefix}\" unit \"\${unit}\")
  endif()
  file(WRITE \"${PROJECT_BINARY_DIR}/sconce.service\" \"\${unit}\")
" COMPONENT program)
install(FILES ${PROJECT_BINARY_DIR}/sconce.service DESTINATION lib/systemd/system COMPONENT program)

install(DIRECTORY include/sconce TYPE INCLUDE COMPONENT development)
install(FILES include/sconce.h TYPE INCLUDE COMPONENT development)
install(EXPORT sconce NAMESPACE sconce:: FILE sconceTargets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sconce
        COMPONENT development)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(sconceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${CMAKE_BINARY_DIR}/sconceConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/sconceTargets.cmake)\n")
install(FILES ${CMAKE_BINARY_DIR}/sconceConfig.cmake ${CMAKE_BINARY_DIR}/sconceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sconce COMPONENT development)

if(SCONCE_PACKAGES)
  find_program(SCONCE_PACKAGING_PYTHON python3 REQUIRED)
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    execute_process(COMMAND ${SCONCE_PACKAGING_PYTHON} ${PROJECT_SOURCE_DIR}/packaging/bundle.py
                            \"\${prefix}/${SCONCE_BUNDLE_DIR}\" \"\${prefix}/share/doc/sconce/licences\"
                            $<TARGET_FILE:sconce_lib> $<TARGET_FILE:sconce_program>
                            --sbom \"\${prefix}/share/doc/sconce/sconce.cdx.json\" sconce ${PROJECT_VERSION}
                    COMMAND_ERROR_IS_FATAL ANY)
  " COMPONENT library)
  install(FILES LICENSE DESTINATION share/doc/sconce/licences COMPONENT library)
  if(TARGET sconce_grpc)
    install(CODE "
      set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
      execute_process(COMMAND ${SCONCE_PACKAGING_PYTHON} ${PROJECT_SOURCE_DIR}/packaging/bundle.py
                              \"\${prefix}/${SCONCE_BUNDLE_DIR}\" \"\${prefix}/share/doc/sconce-grpc/licences\"
                              $<TARGET_FILE:sconce_grpc> --beside $<TARGET_FILE:sconce_lib> $<TARGET_FILE:sconce_program>
                              --sbom \"\${prefix}/share/doc/sconce-grpc/sconce-grpc.cdx.json\" sconce-grpc ${PROJECT_VERSION}
                      COMMAND_ERROR_IS_FATAL ANY)
    " COMPONENT grpc)
  endif()

  # Manual pages and the shell's completion, from what the program says of its options.
  set(manual ${PROJECT_BINARY_DIR}/manual)
  add_custom_command(OUTPUT ${manual}/sconce.1.gz
    COMMAND ${SCONCE_PACKAGING_PYTHON} ${PROJECT_SOURCE_DIR}/packaging/manual.py $<TARGET_FILE:sconce_program> ${manual}
    DEPENDS sconce_program packaging/manual.py)
  add_custom_target(sconce_manual ALL DEPENDS ${manual}/sconce.1.gz)
  install(DIRECTORY ${manual}/ DESTINATION share/man/man1 COMPONENT program FILES_MATCHING PATTERN "*.1.gz")
  install(FILES ${manual}/sconce.bash DESTINATION share/bash-completion/completions RENAME sconce COMPONENT program)
  include(cmake/packages.cmake)
endif()
