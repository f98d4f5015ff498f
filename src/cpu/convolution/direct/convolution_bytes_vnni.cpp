// The inner loops of convolutions of bytes for CPUs with AVX-512 (F, BW, DQ, VL, VNNI).
// GCC 12 takes its own intrinsics for uses of uninitialised variables (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "src/cpu/convolution/direct/convolution_isa.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")
#define SCONCE_BYTES_VNNI
#include "src/cpu/convolution/direct/convolution_bytes_tiles.h"

namespace sconce {

const ByteTiles kByteVnni = make_byte_tiles();

}  // namespace sconce
#pragma GCC pop_options
