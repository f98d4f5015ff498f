# CPack: Debian packages, and a relocatable archive, of a build with SCONCE_PACKAGES. One set of packages is for
# Debian 12 and 13, and for Ubuntu from 22.04 on, since the libraries that differ between them are inside.
set(CPACK_PACKAGE_VENDOR "Sconce")
set(CPACK_PACKAGE_CONTACT "The Sconce developers <sconce@packages.invalid>" CACHE STRING "Maintainer of Debian packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs and serves packages of PyTorch's AOTInductor")
set(CPACK_STRIP_FILES ON)
set(CPACK_OUTPUT_FILE_PREFIX ${PROJECT_SOURCE_DIR}/dist)
set(CPACK_COMPONENTS_ALL library program development)
if(TARGET sconce_grpc)
  list(APPEND CPACK_COMPONENTS_ALL grpc)
endif()
set(CPACK_PACKAGE_FILE_NAME sconce-${PROJECT_VERSION}-linux-x86_64)
set(CPACK_ARCHIVE_FILE_NAME ${CPACK_PACKAGE_FILE_NAME})
if(SCONCE_CUDA_PACKAGES)
  # The others are those of a build without CUDA. The archive unpacks into the folder of the other one.
  set(CPACK_COMPONENTS_ALL cuda)
  set(CPACK_ARCHIVE_FILE_NAME sconce-cuda-${PROJECT_VERSION}-linux-x86_64)
endif()
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_kinds.cmake)

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
  set(copyright ${debian}/${name}.copyright)
  if(NOT EXISTS ${copyright})
    set(copyright ${debian}/copyright)
  endif()
  install(FILES ${copyright} DESTINATION share/doc/${name} RENAME copyright COMPONENT ${lower})
  install(FILES ${PROJECT_BINARY_DIR}/debian/${name}/changelog.gz DESTINATION share/doc/${name} COMPONENT ${lower})
  if(EXISTS ${debian}/${name}.lintian-overrides)
    install(FILES ${debian}/${name}.lintian-overrides DESTINATION share/lintian/overrides RENAME ${name} COMPONENT ${lower})
  endif()
  execute_process(
    COMMAND git -C ${PROJECT_SOURCE_DIR} log -1 --format=%cD OUTPUT_VARIABLE date ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT date)  # no checkout
    string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  endif()
  set(log ${PROJECT_BINARY_DIR}/debian/${name}/changelog)
  file(WRITE ${log} "${name} (${PROJECT_VERSION}) unstable; urgency=medium\n\n  * Release ${PROJECT_VERSION}.\n\n"
                    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nf ${log} COMMAND_ERROR_IS_FATAL ANY)
endmacro()

if(SCONCE_CUDA_PACKAGES)
  # NVIDIA's repositories have a package for each release of CUDA, and later releases of 13 have the same interfaces.
  # libsconce_cuda opens their libraries when a model first needs them; the runtime, without which it does not load, is inside.
  function(any_release_of_cuda result)
    foreach(package ${ARGN})
      set(releases "")
      foreach(minor RANGE ${CUDAToolkit_VERSION_MINOR} 9)
        list(APPEND releases ${package}-${CUDAToolkit_VERSION_MAJOR}-${minor})
      endforeach()
      list(JOIN releases " | " releases)
      list(APPEND all "${releases}")
    endforeach()
    list(JOIN all ", " all)
    set(${result} "${all}" PARENT_SCOPE)
  endfunction()
  any_release_of_cuda(libraries libcublas libcufft libcusolver cuda-nvrtc)
  debian_package(CUDA sconce-cuda libs "libsconce0 (= ${PROJECT_VERSION}), libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11)"
    "CUDA devices: with it, CUDA packages run on NVIDIA GPUs of\ncompute capability 8.0 or later, with a driver for CUDA 13.")
  set(CPACK_DEBIAN_CUDA_PACKAGE_RECOMMENDS "libcuda1 (>= 580), ${libraries}, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}")
  configure_file(${debian}/libsconce0.triggers ${PROJECT_BINARY_DIR}/debian/cuda/triggers COPYONLY)
  configure_file(${debian}/sconce-cuda.shlibs ${PROJECT_BINARY_DIR}/debian/cuda/shlibs COPYONLY)
  set(CPACK_DEBIAN_CUDA_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/cuda/triggers
                                              ${PROJECT_BINARY_DIR}/debian/cuda/shlibs)
endif()
debian_package(LIBRARY libsconce0 libs "libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11)"
  "The library: implements the C ABI that the compiled code\nof .pt2 packages calls, without PyTorch.")
# libcurl: opened for requests to other servers, such as those of `sconce health`. Names of Debian 13 and Ubuntu 24.04, and of
# earlier releases.
debian_package(PROGRAM sconce net
  "libsconce0 (= ${PROJECT_VERSION}), libc6 (>= 2.34), libstdc++6 (>= 11), libcurl4t64 | libcurl4"
  "The program: loads .pt2 packages, answers\nrequests over HTTP and takes new weights while it serves,\nwithout PyTorch.")
# For `sconce pull` and remote sources, and opened only for these.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libexpat1, ca-certificates")
debian_package(DEVELOPMENT libsconce-dev libdevel "libsconce0 (= ${PROJECT_VERSION})"
  "Headers and CMake files of libsconce.")
if(TARGET sconce_grpc)
  debian_package(GRPC sconce-grpc libs "libsconce0 (= ${PROJECT_VERSION}), libc6 (>= 2.34), libgcc-s1 (>= 3.0), libstdc++6 (>= 11)"
    "gRPC: with it, the program answers the clients\nof KServe and Triton over gRPC as well (setting grpc).")
  configure_file(${debian}/sconce-grpc.shlibs ${PROJECT_BINARY_DIR}/debian/grpc/shlibs COPYONLY)
  configure_file(${debian}/libsconce0.triggers ${PROJECT_BINARY_DIR}/debian/grpc/triggers COPYONLY)
  set(CPACK_DEBIAN_GRPC_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/grpc/triggers
                                              ${PROJECT_BINARY_DIR}/debian/grpc/shlibs)
endif()
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
