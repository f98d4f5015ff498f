#include "src/tensor/last_rows.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "sconce/check.h"
#include "sconce/float_types.h"
#include "src/device/device_backend.h"
#include "src/tensor/copy.h"

namespace sconce {
namespace {

// Null: the tensor matches.
const char* lack(const Tensor& tensor, const LastRows& wanted) noexcept {
  if (!tensor.defined() || tensor.layout() != Layout::kStrided || tensor.dim() == 0 || tensor.numel() == 0)
    return "there are no rows";
  if (tensor.dtype() != DType::kFloat32 && tensor.dtype() != DType::kFloat16 && tensor.dtype() != DType::kBFloat16)
    return "rows are float32, float16 or bfloat16";
  if (tensor.size(tensor.dim() - 1) > UINT32_MAX) return "a row is too long";
  if (wanted.parts < 1 || (tensor.dim() == 1 ? 1 : tensor.size(0)) % wanted.parts != 0)
    return "the first dimension does not have so many equal parts";
  if (wanted.largest < 0 || wanted.largest > kMaxLargest) return "so many largest numbers cannot be asked for";
  return nullptr;
}

// The rows as a view [parts, V].
Tensor rows_of(const Tensor& tensor, int64_t parts) {
  const int64_t last = tensor.dim() - 1;
  int64_t offset = tensor.storage_offset(), between = 0;
  if (last > 0) {
    const int64_t each = tensor.size(0) / parts;
    offset += (each - 1) * tensor.stride(0);
    between = each * tensor.stride(0);
  }
  for (int64_t d = 1; d < last; ++d) offset += (tensor.size(d) - 1) * tensor.stride(d);
  const int64_t sizes[] = {parts, tensor.size(last)}, strides[] = {between, tensor.stride(last)};
  return tensor.as_strided(sizes, strides, offset);
}

template <class T>
void rank_largest(const Tensor& rows, Tensor& ranks) {
  const auto count = static_cast<std::ptrdiff_t>(ranks.size(1));
  std::vector<uint64_t> all(static_cast<size_t>(rows.size(1)));
  for (int64_t row = 0; row < rows.size(0); ++row) {
    const T* const from = rows.data_as<T>() + row * rows.stride(0);
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = rank_of(static_cast<float>(from[static_cast<int64_t>(i) * rows.stride(1)]), static_cast<uint32_t>(i));
    std::partial_sort(all.begin(), all.begin() + count, all.end(), std::greater<>());
    std::copy_n(all.begin(), count, ranks.data_as<uint64_t>() + row * count);
  }
}

}  // namespace

std::string why_no_last_rows(const Tensor& tensor, const LastRows& wanted) {
  const char* const why = lack(tensor, wanted);
  if (!why) return {};
  return (tensor.defined() ? describe(tensor) : std::string("no tensor")) + ", " + std::to_string(wanted.parts) +
         " parts, " + std::to_string(wanted.largest) + " largest: " + why;
}

bool has_last_rows(const Tensor& tensor, const LastRows& wanted) noexcept { return !lack(tensor, wanted); }

Tensor rows_as_they_are(const Tensor& tensor, const LastRows& wanted) {
  const bool ranks = wanted.largest > 0 && tensor.size(tensor.dim() - 1) > wanted.largest;
  return ranks ? Tensor() : rows_of(tensor, wanted.parts);
}

Tensor fetch_last_rows(const Tensor& tensor, const LastRows& wanted, Tensor& kept) {
  const Tensor rows = rows_of(tensor, wanted.parts);
  const bool whole = rows_as_they_are(tensor, wanted).defined();
  const DType dtype = whole ? tensor.dtype() : DType::kUInt64;
  const int64_t sizes[] = {wanted.parts, whole ? rows.size(1) : wanted.largest}, strides[] = {sizes[1], 1};
  if (tensor.is_cpu()) {
    Tensor here = Tensor::empty(sizes, dtype);
    if (whole)
      copy(rows, here);
    else if (tensor.dtype() == DType::kFloat32)
      rank_largest<float>(rows, here);
    else if (tensor.dtype() == DType::kFloat16)
      rank_largest<Half>(rows, here);
    else
      rank_largest<BFloat16>(rows, here);
    return here;
  }
  DeviceBackend& backend = device_backend(tensor.device());
  Tensor here(backend.allocate_host(static_cast<size_t>(sizes[0] * sizes[1]) * dtype_bytes(dtype)), dtype, sizes,
              strides);
  if (!whole) {
    backend.rank_largest(rows, here, kept);
    return here;
  }
  kept = rows;
  if (!rows.is_contiguous()) {  // packed on the device, because packing on the host would have to wait
    kept = Tensor::empty(sizes, dtype, tensor.device());
    backend.copy_async(rows, kept);
  }
  backend.copy_async(kept, here);
  return here;
}

Tensor last_rows(const Tensor& tensor, const LastRows& wanted) {
  const std::string why = why_no_last_rows(tensor, wanted);
  SCONCE_CHECK(why.empty(), kInvalidArgument, "last rows of ", why);
  Tensor kept;
  Tensor here = fetch_last_rows(tensor, wanted, kept);
  if (!tensor.is_cpu()) device_backend(tensor.device()).wait(tensor.device());
  return here;
}

}  // namespace sconce
