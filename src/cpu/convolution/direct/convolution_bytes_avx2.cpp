// The inner loops of convolutions of bytes for any CPU that Sconce runs on.
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/device/cpu_isa.h"
// After the headers that it uses.
#include "src/cpu/convolution/direct/convolution_bytes_tiles.h"

namespace sconce {
namespace {

bool allowed_vnni = has_avx512_vnni();
constexpr ByteTiles kBytes = make_byte_tiles();

}  // namespace

void testing_convolution_vnni(bool allowed) noexcept { allowed_vnni = allowed && has_avx512_vnni(); }

const ByteTiles& byte_tiles() noexcept { return allowed_vnni ? kByteVnni : kBytes; }

}  // namespace sconce
