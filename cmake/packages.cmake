# CPack: Debian packages, and a relocatable archive, from the preset "portable". One set of packages is for
# Debian 12 and 13, and for Ubuntu from 22.04 on, since the libraries that differ between them are inside.
set(CPACK_PACKAGE_VENDOR "Sconce")
set(CPACK_PACKAGE_CONTACT "The Sconce developers <sconce@packages.invalid>" CACHE STRING "Maintainer of Debian packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs and serves packages of PyTorch's AOTInductor")
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_SOURCE_DIR}/dist)
set(CPACK_COMPONENTS_ALL library program development)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_kinds.cmake)

set(CPACK_ARCHIVE_FILE_NAME sconce-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_PACKAGE_FILE_NAME ${CPACK_ARCHIVE_FILE_NAME})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)

# debian_package(COMPONENT NAME SECTION DEPENDS TEXT)
macro(debian_package component name section depends text)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${component}_DESCRIPTION "${text}")
  string(TOLOWER ${component} lower)
  install(FILES ${debian}/copyright ${PROJECT_BINARY_DIR}/debian/${name}/changelog.gz DESTINATION share/doc/${name}
          COMPONENT ${lower})
  if(EXISTS ${debian}/${name}.lintian-overrides)
    install(FILES ${debian}/${name}.lintian-overrides DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${lower})
  endif()
  execute_process(
    COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(log ${PROJECT_BINARY_DIR}/debian/${name}/changelog)
  file(WRITE ${log} "${name} (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Release ${PROJECT_VERSION}.\n\n"
                    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nf ${log} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

debian_package(LIBRARY libsconce0 libs "libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11)"
  "The library: implements the C ABI that the compiled code\nof .pt2 packages calls, without PyTorch.")
debian_package(PROGRAM sconce net "libsconce0 (= ${PROJECT_VERSION}), libc6 (>= 2.34), libstdc++6 (>= 11)"
  "The program: loads .pt2 packages, answers\nrequests over HTTP and takes new weights while it serves,\nwithout PyTorch.")
debian_package(DEVELOPMENT libsconce-dev libdevel "libsconce0 (= ${PROJECT_VERSION})"
  "Headers and CMake files of libsconce.")
foreach(script triggers shlibs)
  configure_file(${debian}/libsconce0.${script} ${PROJECT_BINARY_DIR}/debian/${script} COPYONLY)
  list(APPEND library_control ${PROJECT_BINARY_DIR}/debian/${script})
endforeach()
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${library_control})
foreach(script postinst prerm postrm conffiles)
  configure_file(${debian}/sconce.${script} ${PROJECT_BINARY_DIR}/debian/${script} COPYONLY)
  list(APPEND control ${PROJECT_BINARY_DIR}/debian/${script})
endforeach()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA ${control})
include(CPack)
