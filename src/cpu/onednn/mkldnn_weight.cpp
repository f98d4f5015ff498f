#include "src/cpu/onednn/mkldnn_weight.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "sconce/check.h"
#include "src/cpu/onednn/plan_table.h"
#include "src/cpu/vector/post_ops.h"

namespace sconce {
namespace {

constexpr size_t kMaxDims = 12;

// Offsets within the descriptor (x86-64).
enum Field : size_t {
  kInitialised = 0,   // bool
  kDimCount = 4,      // int32
  kDims = 8,          // int64[12]
  kDataType = 104,    // int32: 1 float16, 2 bfloat16, 3 float32, 5 int8
  kPaddedDims = 112,  // int64[12]
  kPaddedOffsets = 208,
  kOffset = 304,       // int64
  kFormatKind = 312,   // int32: 2 blocked
  kStrides = 320,      // int64[12], between blocks
  kBlockCount = 416,   // int32
  kBlocks = 424,       // int64[12]
  kBlockDims = 520,    // int64[12]
  kExtraFlags = 640,   // uint64: 1 sums for signed inputs, 2 scale adjusted, 8 sums for zero points
  kScaleAdjust = 652,  // float
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  int32_t int32(size_t offset) const { return value<int32_t>(offset); }
  int64_t int64(size_t offset, size_t index = 0) const { return value<int64_t>(offset + 8 * index); }
  template <class T>
  T value(size_t offset) const {
    T v;
    std::memcpy(&v, bytes_.data() + offset, sizeof v);
    return v;
  }

 private:
  std::span<const std::byte> bytes_;
};

DType dtype_of(int32_t number) {
  switch (number) {
    case 1:
      return DType::kFloat16;
    case 2:
      return DType::kBFloat16;
    case 3:
      return DType::kFloat32;
    case 5:
      return DType::kInt8;
    default:
      SCONCE_FAIL(kUnsupported, "packed weight: oneDNN data type ", number, " is not supported");
  }
}

constexpr char kKind = 0;

}  // namespace

int64_t BlockedWeight::numel() const noexcept {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

BlockedWeight parse_blocked_weight(std::span<const std::byte> metadata, size_t storage_bytes) {
  SCONCE_CHECK(metadata.size() == 668 || metadata.size() == 772, kUnsupported, "packed weight: its description has ",
               metadata.size(), " bytes, those of PyTorch 2.6 to 2.15 have 668 or 772");
  const Reader r(metadata);
  BlockedWeight w;
  const int32_t dims = r.int32(kDimCount), blocks = r.int32(kBlockCount);
  SCONCE_CHECK(metadata[kInitialised] == std::byte{1} && dims >= 1 && dims <= static_cast<int32_t>(kMaxDims),
               kCorruptPackage, "packed weight: its description has ", dims, " dimensions");
  SCONCE_CHECK(r.int32(kFormatKind) == 2, kUnsupported, "packed weight: oneDNN format kind ", r.int32(kFormatKind),
               " is not a blocked one");
  const int64_t extra = r.int64(kExtraFlags);
  w.dtype = dtype_of(r.int32(kDataType));
  SCONCE_CHECK(extra == 0 || (w.dtype == DType::kInt8 && (extra & ~int64_t{1 | 2 | 8}) == 0), kUnsupported,
               "packed weight: oneDNN extra data ", extra, " is not supported");
  if (extra & 2) w.scale_adjust = r.value<float>(kScaleAdjust);
  SCONCE_CHECK(w.scale_adjust > 0 && w.scale_adjust <= 1, kCorruptPackage, "packed weight: its scale is adjusted by ",
               w.scale_adjust);
  SCONCE_CHECK(blocks >= 0 && blocks <= static_cast<int32_t>(kMaxDims), kCorruptPackage,
               "packed weight: its description has ", blocks, " blocks");
  w.groups = r.int32(metadata.size() - 4);
  w.first = r.int64(kOffset);
  const auto limit = static_cast<int64_t>(storage_bytes / dtype_bytes(w.dtype));

  // Elements of the inner blocks lie side by side, the last block's closest.
  std::vector<int64_t> inner(static_cast<size_t>(dims), 1);  // block elements along a dimension
  std::vector<int64_t> block_size, block_step;
  std::vector<size_t> block_dim;
  int64_t step = 1;
  for (int32_t b = blocks; b-- > 0;) {
    const int64_t size = r.int64(kBlocks, static_cast<size_t>(b)), dim = r.int64(kBlockDims, static_cast<size_t>(b));
    SCONCE_CHECK(size >= 1 && size <= limit && dim >= 0 && dim < dims, kCorruptPackage, "packed weight: block ", b,
                 " has size ", size, " along dimension ", dim);
    block_size.push_back(size);
    block_dim.push_back(static_cast<size_t>(dim));
    block_step.push_back(step);
    inner[static_cast<size_t>(dim)] *= size;
    SCONCE_CHECK(!__builtin_mul_overflow(step, size, &step) && step <= limit, kCorruptPackage,
                 "packed weight: its blocks exceed the ", storage_bytes, " bytes of the storage");
  }
  bool before_any = false;
  bool sound = w.first >= 0 && w.first < std::max<int64_t>(limit, 1);
  int64_t last = sound ? w.first + step - 1 : 0, numel = 1;  // the farthest element, paddings included
  for (int32_t d = 0; d < dims && sound; ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t size = r.int64(kDims, i), padded = r.int64(kPaddedDims, i), stride = r.int64(kStrides, i);
    const int64_t before = r.int64(kPaddedOffsets, i);
    int64_t reach = 0;
    sound = size >= 1 && before >= 0 && padded >= size && before <= padded - size && padded <= limit && stride >= 0 &&
            stride <= limit && !__builtin_mul_overflow(numel, size, &numel) && numel <= limit &&
            padded % inner[i] == 0 && !__builtin_mul_overflow(padded / inner[i] - 1, stride, &reach) &&
            !__builtin_add_overflow(last, reach, &last) && last < limit;
    if (!sound) break;
    w.dims.push_back(size);
    w.padded.push_back(padded);
    w.strides.push_back(stride);
    before_any |= before != 0;
    auto& at = w.at.emplace_back();
    at.reserve(static_cast<size_t>(size));
    for (int64_t p = before; p < before + size; ++p) {
      int64_t rest = p, offset = 0;
      for (size_t b = 0; b < block_size.size(); ++b)
        if (block_dim[b] == i) {
          offset += rest % block_size[b] * block_step[b];
          rest /= block_size[b];
        }
      at.push_back(offset + rest * stride);
    }
  }
  SCONCE_CHECK(sound, kCorruptPackage, "packed weight: its description does not fit the ", storage_bytes,
               " bytes of the storage");
  w.extent = last + 1;
  if (before_any) w.strides.clear();
  w.block_sizes.assign(block_size.rbegin(), block_size.rend());
  w.block_dims.assign(block_dim.rbegin(), block_dim.rend());
  std::vector<int64_t> words{static_cast<int64_t>(w.dtype), w.groups, w.first};
  for (const auto* part : {&w.dims, &w.padded, &w.strides, &w.block_sizes, &w.block_dims}) {
    words.push_back(static_cast<int64_t>(part->size()));
    words.insert(words.end(), part->begin(), part->end());
  }
  w.layout_hash = hash_words(words);
  SCONCE_CHECK(w.groups >= 1 && (w.groups == 1 || w.dims[0] == w.groups), kCorruptPackage, "packed weight: ", w.groups,
               " groups, but dimensions ", to_string(w.dims));
  return w;
}

// f(first, offsets): the runs of the last dimension of several elements, in row-major order.
template <class F>
static void each_row(const BlockedWeight& w, F f) {
  size_t rank = w.dims.size();
  int64_t first = w.first;
  for (; rank > 1 && w.dims[rank - 1] == 1; --rank) first += w.at[rank - 1][0];
  std::vector<int64_t> index(rank, 0);
  for (;;) {
    int64_t base = first;
    for (size_t d = 0; d + 1 < rank; ++d) base += w.at[d][static_cast<size_t>(index[d])];
    f(base, w.at[rank - 1]);
    size_t d = rank - 1;
    while (d > 0 && ++index[d - 1] == w.dims[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

void BlockedWeight::to_floats(const void* data, float* out) const {
  const auto itemsize = static_cast<int64_t>(dtype_bytes(dtype));
  each_row(*this, [&](int64_t base, const std::vector<int64_t>& inner) {
    const auto* row = static_cast<const std::byte*>(data) + base * itemsize;
    if (dtype == DType::kFloat32) {
      for (const int64_t offset : inner) *out++ = reinterpret_cast<const float*>(row)[offset];
    } else {
      for (const int64_t offset : inner) gather_floats(dtype, row + offset * itemsize, 1, out++, 1);
    }
  });
}

void BlockedWeight::to_bytes(const void* data, int8_t* out) const {
  each_row(*this, [&](int64_t base, const std::vector<int64_t>& inner) {
    for (const int64_t offset : inner) *out++ = static_cast<const int8_t*>(data)[base + offset];
  });
}

const BlockedWeight& blocked_weight(const Tensor& tensor, BlockedWeight& own) {
  Storage& storage = *tensor.storage();
  const auto parse = [](const Storage& packed) {
    const auto* metadata = packed.opaque_metadata();
    SCONCE_CHECK(metadata, kInvalidArgument, "packed weight: the tensor has no description of its layout");
    return parse_blocked_weight(*metadata, packed.bytes());
  };
  if (!storage.immutable()) return own = parse(storage);
  const auto how = [&parse]() -> Storage::Derive {
    return [parse](Storage& from) { return std::make_shared<BlockedWeight>(parse(from)); };
  };
  return *static_cast<const BlockedWeight*>(storage.derived({&kKind, {}}, std::ref(how)));
}

}  // namespace sconce
