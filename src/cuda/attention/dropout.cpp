// Matches aten::native_dropout (torch 2.11, CUDA).
#include "src/cuda/random/draws.h"
#include "src/cuda/random/random_kernels.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/tensor/factory.h"
#include "src/operators/cuda_ops.h"

namespace sconce::cuda {

std::array<Tensor, 2> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  SCONCE_CHECK(!is_complex(input.dtype()), kUnsupported, "native_dropout: not implemented for '",
               dtype_name(input.dtype()), "' on CUDA");
  check_drawn_dtype("native_dropout", input);
  const DeviceScope scope(input.device());
  Tensor out = make_like("native_dropout", input, {}, {}, {}, {}, {});
  Tensor mask = make_like("native_dropout", input, DType::kBool, {}, {}, {}, {});
  const int64_t count = input.numel();
  if (const bool trains = train.value_or(true); count == 0 || !trains || p == 1) {
    const unsigned char none[16] = {};
    const bool one = !trains;
    fill(mask, &one);
    if (one)
      copy(input, out, false);
    else
      fill(out, none);
    return {std::move(out), std::move(mask)};
  }
  int vector = 1;
  if (input.is_dense()) {
    const auto address = reinterpret_cast<uintptr_t>(input.data());
    // ATen loads 16 bytes at a time.
    for (vector = 16 / static_cast<int>(input.itemsize()); vector > 1; vector /= 2)
      if (address % (static_cast<size_t>(vector) * input.itemsize()) == 0) break;
    while (vector > 1 && count % vector != 0) vector /= 2;
  }
  const Draw draw = draw_for(count, 4);
  const auto launch = [&](const Tensor& from, Tensor& to, Tensor& kept) {
    launch_dropout(from.data(), to.data(), kept.data_as<bool>(), static_cast<int>(input.dtype()), count, 1 - p, vector,
                   draw, current_stream());
    SCONCE_CUDA(cudaGetLastError());
  };
  if (vector > 1 || input.is_contiguous()) {
    launch(input, out, mask);
    return {std::move(out), std::move(mask)};
  }
  // With single elements ATen follows the order of indices, with vectors that of memory.
  Tensor row_major = Tensor::empty(input.sizes(), input.dtype(), input.device()),
         kept = Tensor::empty(input.sizes(), DType::kBool, input.device());
  launch(contiguous(input), row_major, kept);
  copy(row_major, out, false);
  copy(kept, mask, false);
  return {std::move(out), std::move(mask)};
}

}  // namespace sconce::cuda
