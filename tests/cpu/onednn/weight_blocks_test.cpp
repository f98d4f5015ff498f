// Weights in oneDNN's blocks, compared byte by byte with a loop over the elements.
#include "src/cpu/onednn/weight_blocks.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "src/device/threads.h"

using namespace sconce;

namespace {

using Four = std::array<int64_t, 4>;  // out, in, height, width

// Without the library, so that the test needs none.
dnnl::memory::desc describe(dnnl_data_type_t type, const Four& dims, const Four& strides,
                            std::initializer_list<std::array<int64_t, 2>> blocks) {
  dnnl_memory_desc_t d{};
  d.ndims = 4;
  d.data_type = type;
  d.format_kind = dnnl_blocked;
  for (size_t i = 0; i < 4; ++i) {
    d.dims[i] = d.padded_dims[i] = dims[i];
    d.format_desc.blocking.strides[i] = strides[i];
  }
  for (const auto& [dim, size] : blocks) {
    auto& blocking = d.format_desc.blocking;
    blocking.inner_idxs[blocking.inner_nblks] = dim;
    blocking.inner_blks[blocking.inner_nblks++] = size;
    d.padded_dims[dim] = (dims[static_cast<size_t>(dim)] + size - 1) / size * size;
  }
  return {d};
}

}  // namespace

TEST_CASE("WeightBlocks: random weights in every layout") {
  std::mt19937_64 random(4);
  const auto pick = [&](std::initializer_list<int64_t> from) { return from.begin()[random() % from.size()]; };
  const int before = kernel_threads();
  int usable = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    const int64_t unit = pick({1, 2}), block = pick({8, 16, 32, 48, 64});
    const Four dims{pick({1, 8, 17, 32, 47, 48, 64, 100}), pick({1, 2, 3, 16, 30, 64, 130}), pick({1, 1, 3}),
                    pick({1, 3, 3})};
    const auto [out, in, height, width] = dims;
    const int64_t taps = height * width, row = in + pick({0, 0, 0, 1, 2});
    const bool last = random() % 2;
    const Four strides = last ? Four{taps * row, 1, width * row, row} : Four{taps * row, taps, width, 1};
    const int64_t pairs = (in + unit - 1) / unit, panel = pairs * block * unit;
    const Four to_strides{taps * panel, block * unit, width * panel, panel};
    const dnnl_data_type_t type = unit == 1 ? dnnl_f32 : dnnl_bf16;
    const auto from = describe(type, dims, strides, {});
    auto to = describe(type, dims, to_strides, {{0, block}});
    if (unit == 2) to = describe(type, dims, to_strides, {{0, block}, {1, 2}});
    if (random() % 8 == 0) to = describe(type, dims, to_strides, {{1, block}});
    const onednn::WeightBlocks blocks(from, to);
    if (!blocks.usable()) {
      ++refused;
      continue;
    }
    ++usable;
    const auto bytes = static_cast<size_t>(4 / unit);
    std::vector<std::byte> source(static_cast<size_t>(out * taps * row) * bytes);
    for (std::byte& b : source) b = static_cast<std::byte>(random());
    const size_t size = static_cast<size_t>((out + block - 1) / block * taps * panel) * bytes;
    std::vector<std::byte> expected(size), got(size, std::byte{0x5A});
    for (int64_t o = 0; o < out; ++o)
      for (int64_t c = 0; c < in; ++c)
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t y = t / width, x = t % width;
          const int64_t at = o * strides[0] + c * strides[1] + y * strides[2] + x * strides[3];
          const int64_t place = o / block * to_strides[0] + c / unit * to_strides[1] + y * to_strides[2] +
                                x * to_strides[3] + o % block * unit + c % unit;
          std::memcpy(&expected[static_cast<size_t>(place) * bytes], &source[static_cast<size_t>(at) * bytes], bytes);
        }
    set_kernel_threads(static_cast<int>(pick({1, 2})));
    blocks.order(source.data(), got.data());
    CAPTURE(unit);
    CAPTURE(block);
    CAPTURE(out);
    CAPTURE(in);
    CAPTURE(taps);
    CAPTURE(last);
    CHECK(got == expected);
  }
  set_kernel_threads(before);
  CHECK(usable >= 100);
  CHECK(refused >= 50);
}
