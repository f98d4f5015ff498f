// What OpeningAhead (src/device/open_ahead.h) calls. A library that is opened in vain costs memory and no time, so only
// what a model is about to use is opened.
#include "src/device/open_ahead.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "src/cuda/matmul/matmul_few_rows_kernels.h"
#include "src/device/lazy_library.h"

SCONCE_LAZY_LIBRARY(cublasLt);
SCONCE_LAZY_LIBRARY(cudnn);

namespace sconce::cuda {
namespace {

// Parts of functions' names. Products of few rows need no library.
constexpr std::string_view kConvolutions[] = {"_convolution", "_cudnn_rnn"};
constexpr std::string_view kProducts[] = {"_mm_out", "_addmm_out", "_addmm_activation", "_mm_plus_mm"};
constexpr std::string_view kOtherProducts[] = {"_bmm_out", "_baddbmm_out", "_scaled_mm", "_int_mm", "_grouped_mm"};

bool any_of(std::span<const char* const> imports, std::span<const std::string_view> parts) {
  return std::ranges::any_of(imports, [&](std::string_view name) {
    return name.starts_with("aoti_torch_") &&
           std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != name.npos; });
  });
}

}  // namespace
}  // namespace sconce::cuda

extern "C" void sconce_cuda_make_context(int device) {
  cudaSetDevice(device);
  cudaGetLastError();  // of this thread
}

extern "C" void sconce_cuda_open_libraries(const char* const* imports, size_t count, int64_t rows) {
  using namespace sconce::cuda;
  const std::span<const char* const> names(imports, count);
  const bool convolves = any_of(names, kConvolutions);
  // cuDNN's own parts need cuBLASLt as well.
  if (convolves || any_of(names, kOtherProducts) || (rows > kMaxFewRows && any_of(names, kProducts)))
    sconce::try_open_library(sconce_lazy_cublasLt);
  if (!convolves || !sconce::try_open_library(sconce_lazy_cudnn)) return;
  for (const char* part : {"libcudnn_graph.so.9", "libcudnn_engines_precompiled.so.9", "libcudnn_heuristic.so.9",
                           "libcudnn_engines_runtime_compiled.so.9"})
    sconce::keep_open(part);
}
