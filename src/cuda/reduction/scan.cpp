// Scans along a dimension. Match aten::cumsum, cumprod, cummax, cummin and logcumsumexp (torch 2.15, CUDA). Results are
// row-major; half types sum in float32.
#include "src/cuda/reduction/scan_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/scratch.h"
#include "src/cuda/runtime/stream.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rows/slices.h"
#include "src/tensor/strided_loop.h"

namespace sconce::cuda {
namespace {

// If a strided scan would keep only few threads busy, the rows are copied to be contiguous first.
constexpr int64_t kFewColumns = 4096, kShort = 64;

void scan(const char* name, Scan kind, const Tensor& self, int64_t dim, Tensor& out, Tensor* positions) {
  if (self.numel() == 0) return;
  const DeviceScope scope(self.device());
  if (self.dim() == 0) {
    copy(self, out, false);
    const int64_t zero = 0;
    if (positions) fill(*positions, &zero);
    return;
  }
  SCONCE_CHECK(!positions || self.size(dim) <= UINT32_MAX, kUnsupported, name, ": ", self.size(dim),
               " elements along a dimension on CUDA");
  ScanCall call{kind, static_cast<int>(out.dtype()), nullptr, out.data(), nullptr, 1, self.size(dim), 1};
  for (int64_t d = 0; d < self.dim(); ++d) (d < dim ? call.outer : call.inner) *= d == dim ? 1 : self.size(d);
  const bool turned = call.inner > 1 && call.outer * call.inner < kFewColumns && call.length > kShort;
  const Tensor source = turned ? contiguous(move_last(self, dim)) : contiguous(self);
  Tensor turned_out, turned_positions;
  call.in = source.data();
  if (turned) {
    call.outer *= call.inner;
    call.inner = 1;
    turned_out = Tensor::empty(source.sizes(), out.dtype(), out.device());
    call.out = turned_out.data();
    if (positions) turned_positions = Tensor::empty(source.sizes(), DType::kInt64, out.device());
  }
  if (positions) call.positions = (turned ? turned_positions : *positions).data_as<int64_t>();
  with_scratch(name, out.dtype(), self.device(),
               [&](void* memory, size_t& bytes) { return launch_scan(memory, bytes, call, current_stream()); });
  if (!turned) return;
  Tensor values = move_last(out, dim);
  copy(turned_out, values, false);
  if (!positions) return;
  Tensor at = move_last(*positions, dim);
  copy(turned_positions, at, false);
}

Tensor cumulate(const char* name, Scan kind, const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  dim = wrap_dim(name, dim, self.dim());
  const DType to = dtype ? *dtype : is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype();
  Tensor out = Tensor::empty(self.sizes(), to, self.device());
  scan(name, kind, converted(self, to), dim, out, nullptr);
  return out;
}

std::array<Tensor, 2> extremes(const char* name, Scan kind, const Tensor& self, int64_t dim) {
  dim = wrap_dim(name, dim, self.dim());
  std::array<Tensor, 2> out{Tensor::empty(self.sizes(), self.dtype(), self.device()),
                            Tensor::empty(self.sizes(), DType::kInt64, self.device())};
  scan(name, kind, self, dim, out[0], &out[1]);
  return out;
}

}  // namespace

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate("cumsum", Scan::kSum, self, dim, dtype);
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return cumulate("cumprod", Scan::kProduct, self, dim, dtype);
}
std::array<Tensor, 2> cummax(const Tensor& self, int64_t dim) { return extremes("cummax", Scan::kMost, self, dim); }
std::array<Tensor, 2> cummin(const Tensor& self, int64_t dim) { return extremes("cummin", Scan::kLeast, self, dim); }
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  dim = wrap_dim("logcumsumexp", dim, self.dim());
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  scan("logcumsumexp", Scan::kLogSumExp, self, dim, out, nullptr);
  return out;
}

}  // namespace sconce::cuda
