#include "src/cpu/convolution/direct/convolution_format.h"

#include "src/device/compiled_threads.h"
#include "src/device/cpu_isa.h"

namespace sconce {

bool onednn_takes(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
      return true;
    case DType::kBFloat16:
      return has_avx512();
    case DType::kFloat16:
      return has_avx512_fp16();
    default:
      return false;
  }
}

namespace {

// ConvParams::use_mkldnn.
bool uses_onednn(const ConvolutionShape& s, DType dtype) {
  if (!onednn_takes(dtype)) return false;
  if (s.transposed)
    for (size_t i = static_cast<size_t>(3 - s.spatial); i < 3; ++i)
      if (s.output_padding[i] >= s.stride[i]) return false;
  if (dtype != DType::kFloat32) return true;
  // As ATen, which looks at the last two dimensions of the kernel and the first two of the image.
  const size_t first = s.spatial == 3 ? 0 : 1;
  const bool plain = s.stride == Dims3{1, 1, 1} && s.dilation == Dims3{1, 1, 1};
  const bool point = s.kernel[2] == 1 && s.kernel[1] == 1;
  // The code that reads the result was compiled for the layout that ATen chose on the compiling machine, with that
  // machine's number of threads. A package without split loops does not record the number; we assume several.
  return (!plain || s.batch >= 16 || !point || compiled_threads() != 1) &&
         (s.groups > 1 || (s.kernel[2] > 3 && s.kernel[1] > 3) || s.batch > 1 ||
          s.batch * s.in_channels * s.input[first] * s.input[first + 1] > 20480);
}

}  // namespace

bool convolution_backend_is_channels_last(const ConvolutionShape& s, const Tensor& input, const Tensor& weight) {
  if (!convolution_operands_are_channels_last(s, input, weight)) return false;
  // Only oneDNN has three-dimensional convolutions over channels-last tensors.
  return s.spatial < 3 || uses_onednn(s, input.dtype());
}

bool convolution_is_channels_last(const ConvolutionShape& s, const Tensor& input, const Tensor& weight) {
  if (!convolution_backend_is_channels_last(s, input, weight)) return false;
  if (s.groups == 1 || uses_onednn(s, input.dtype())) return true;
  // Groups are computed one by one and joined in the format that their sizes tell.
  const int64_t sizes[4] = {s.batch, s.out_group(), s.output[1], s.output[2]};
  int64_t strides[4];
  channels_last_strides(sizes, strides);
  return is_channels_last(sizes, strides);
}

}  // namespace sconce
