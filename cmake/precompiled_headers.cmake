# sconce_precompiled_headers(TARGET [HEADER...])
#
# The compiler reads the standard library's headers once for all of TARGET's C++ sources. Only headers that we never
# edit belong here, so that an edit causes no more compilation than without them. A source still
# includes what it uses: builds without these headers (sanitizers, clang) fail where it does not.
#
# HEADERs are further ones for a target that does not share those of the libraries. An executable cannot share them: its
# sources are compiled with -fPIE.
# GCC takes none of them where -fopenmp or a macro of the standard library is given: such sources have
# SKIP_PRECOMPILE_HEADERS.
set(default ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR SCONCE_SANITIZE OR SCONCE_FUZZ)
  set(default OFF)
endif()
option(SCONCE_PRECOMPILED_HEADERS "Read the standard library's headers once" ${default})
if(SCONCE_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # The first lets ccache see which precompiled headers a source uses; the second turns off a warning of GCC 12's own
  # std::string_view::find that it forgets to suppress there.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
endif()

# GCC compiles templates that a header's own functions use anew in each source, wanted or not. <filesystem> has many and
# kernels use none of it, so they have fewer headers.
set(SCONCE_KERNEL_HEADERS <algorithm> <array> <atomic> <bit> <cmath> <complex> <cstddef> <cstdint> <cstring> <functional>
    <immintrin.h> <limits> <memory> <optional> <span> <string> <string_view> <type_traits> <utility> <vector>)
set(SCONCE_STANDARD_HEADERS ${SCONCE_KERNEL_HEADERS} <charconv> <chrono> <filesystem> <map> <mutex>)
set(SCONCE_KERNEL_ROOMS sconce_types sconce_device sconce_tensor sconce_cpu sconce_aoti_abi sconce_custom_ops)

function(sconce_precompiled_headers target)
  if(NOT SCONCE_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(target STREQUAL "sconce_types")
    target_precompile_headers(${target} PRIVATE ${SCONCE_KERNEL_HEADERS})
  elseif(target IN_LIST SCONCE_KERNEL_ROOMS)
    target_precompile_headers(${target} REUSE_FROM sconce_types)
  elseif(type STREQUAL "EXECUTABLE" OR ARGN OR target STREQUAL "sconce_package_format")
    target_precompile_headers(${target} PRIVATE ${SCONCE_STANDARD_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM sconce_package_format)
  endif()
endfunction()
