# sconce_precompiled_headers(TARGET [HEADER...])
#
# The compiler reads the standard library's headers once for all of TARGET's C++ sources. Only headers that we never
# edit belong here, so that an edit causes no more compilation than without them. A source still
# includes what it uses: builds without these headers (sanitizers, clang) fail where it does not.
#
# HEADERs are further ones for an executable, whose sources, compiled with -fPIE, cannot share those of the libraries.
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

set(SCONCE_STANDARD_HEADERS <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <complex> <cstddef> <cstdint>
    <cstring> <filesystem> <functional> <immintrin.h> <limits> <map> <memory> <mutex> <optional> <span> <string>
    <string_view> <type_traits> <utility> <vector>)

function(sconce_precompiled_headers target)
  if(NOT SCONCE_PRECOMPILED_HEADERS)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE" OR target STREQUAL "sconce_types")
    target_precompile_headers(${target} PRIVATE ${SCONCE_STANDARD_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM sconce_types)
  endif()
endfunction()
