#include "tests/cpu/packed_weight.h"

#include <cstdlib>
#include <random>

namespace sconce::testing {

Packed pack(const Tensor& weight, const Ints& dims, const std::vector<Block>& blocks, int64_t groups,
            size_t metadata_bytes) {
  const size_t rank = dims.size();
  Ints inner(rank, 1), padded(rank), strides(rank);
  int64_t block_elems = 1;
  for (const Block& b : blocks) {
    inner[static_cast<size_t>(b.dim)] *= b.size;
    block_elems *= b.size;
  }
  int64_t stride = block_elems;
  for (size_t d = rank; d-- > 0;) {
    padded[d] = (dims[d] + inner[d] - 1) / inner[d] * inner[d];
    strides[d] = stride;
    stride *= padded[d] / inner[d];
  }
  const DType dtype = weight.dtype();
  const auto bytes = static_cast<size_t>(stride) * dtype_bytes(dtype);
  StoragePtr storage = StoragePtr::adopt(new Storage(
      std::malloc(bytes), bytes, Device{}, [](void* p, size_t, void*) noexcept { std::free(p); }, nullptr));
  std::memset(storage->data(), 0xFF, bytes);

  std::mt19937 noise(7);
  Packed p;
  p.metadata.resize(metadata_bytes);
  for (std::byte& b : p.metadata) b = static_cast<std::byte>(noise());  // unused bytes get random values
  put<uint8_t>(p.metadata, 0, 1);
  put(p.metadata, 4, static_cast<int32_t>(rank));
  for (size_t d = 0; d < rank; ++d) {
    put(p.metadata, 8 + 8 * d, dims[d]);
    put(p.metadata, 112 + 8 * d, padded[d]);
    put(p.metadata, 208 + 8 * d, int64_t{0});
    put(p.metadata, 320 + 8 * d, strides[d]);
  }
  put(p.metadata, 104, dtype == DType::kFloat32 ? 3 : dtype == DType::kBFloat16 ? 2 : dtype == DType::kInt8 ? 5 : 1);
  put(p.metadata, 304, int64_t{0});
  put(p.metadata, 312, 2);
  put(p.metadata, 416, static_cast<int32_t>(blocks.size()));
  for (size_t b = 0; b < blocks.size(); ++b) {
    put(p.metadata, 424 + 8 * b, blocks[b].size);
    put(p.metadata, 520 + 8 * b, blocks[b].dim);
  }
  put(p.metadata, 640, uint64_t{0});
  put(p.metadata, metadata_bytes - 4, static_cast<int32_t>(groups));

  const auto itemsize = static_cast<int64_t>(dtype_bytes(dtype));
  const auto* from = static_cast<const std::byte*>(weight.data());
  each_index(dims, [&](const Ints& index) {
    Ints rest = index;
    int64_t at = 0, step = 1;
    for (size_t b = blocks.size(); b-- > 0;) {
      int64_t& i = rest[static_cast<size_t>(blocks[b].dim)];
      at += i % blocks[b].size * step;
      step *= blocks[b].size;
      i /= blocks[b].size;
    }
    for (size_t d = 0; d < rank; ++d) at += rest[d] * strides[d];
    std::memcpy(static_cast<std::byte*>(storage->data()) + at * itemsize, from, static_cast<size_t>(itemsize));
    from += itemsize;
  });
  storage->set_opaque_metadata(p.metadata);
  storage->set_immutable(true);
  Ints sizes = dims, meaningless(dims.size(), 0);
  meaningless[0] = 1;
  p.tensor = Tensor(storage, dtype, sizes, meaningless, 0, Layout::kMkldnn);
  return p;
}

}  // namespace sconce::testing
