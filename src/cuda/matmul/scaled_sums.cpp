#include "src/cuda/matmul/scaled_sums.h"

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {
namespace {

Tensor as_float(const Tensor& t) { return moved_to(t, DType::kFloat32, t.device()); }

}  // namespace

bool is_scaled_float8(DType dtype) { return dtype == DType::kFloat8E4M3FN || dtype == DType::kFloat8E5M2; }

bool aligned(const Tensor& t, size_t bytes) { return reinterpret_cast<uintptr_t>(t.data()) % bytes == 0; }

PerLine per_line(const Tensor& t, int64_t stride) { return {t.data(), stride, static_cast<int>(t.dtype())}; }

Tensor sums_of(const char* name, const Tensor& a, const Tensor& b) {
  const int64_t sizes[] = {a.size(0), b.size(1)};
  Tensor sums = Tensor::empty(sizes, DType::kFloat32, a.device());
  Tensor target = as_batch(sums);
  const bool half = a.dtype() == b.dtype() && (a.dtype() == DType::kFloat16 || a.dtype() == DType::kBFloat16);
  if (half && try_product(name, as_batch(a), as_batch(b), nullptr, 0, 1, target)) return sums;
  product(name, as_batch(as_float(a)), as_batch(as_float(b)), nullptr, 0, 1, target);
  return sums;
}

void store(const Tensor& sums, const PerLine& by_row, const PerLine& by_column, const PerLine& bias,
           const PerLine& factor, Tensor& out) {
  launch_scaled_sums({sums.data_as<float>(), sums.size(0), sums.size(1), by_row, by_column, bias, factor, out.data(),
                      static_cast<int>(out.dtype()), out.stride(0), out.stride(1)},
                     current_stream());
  SCONCE_CUDA(cudaGetLastError());
}

bool try_scaled(const char* name, const Tensor& a, const Tensor& b, const ProductScales& scales, Tensor& out) {
  if (a.size(1) == 0 || a.size(1) % 16 != 0 || b.size(1) % 16 != 0 || !aligned(a, 16) || !aligned(b, 16) ||
      !aligned(out, 16) || (scales.by_row && (!aligned(*scales.a, 16) || !aligned(*scales.b, 16))))
    return false;
  Tensor target = as_batch(out);
  return try_product(name, as_batch(a), as_batch(b), nullptr, 0, 1, target, &scales);
}

}  // namespace sconce::cuda
