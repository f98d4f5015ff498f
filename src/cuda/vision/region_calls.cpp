#include "src/cuda/vision/region_calls.h"

#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"

namespace sconce::cuda {

std::array<Tensor, 2> over_regions(const char* name, RegionLaunch launch, const RegionGeometry& g, const Tensor& input,
                                   const Tensor& rois, bool also) {
  SCONCE_CHECK(input.device() == rois.device(), kInvalidArgument, name, ": input is on ", to_string(input.device()),
               ", rois on ", to_string(rois.device()));
  const DeviceScope scope(input.device());
  std::array<Tensor, 2> out{Tensor::empty(region_sizes(g), input.dtype(), input.device())};
  if (also) out[1] = Tensor::empty(region_sizes(g), DType::kInt32, input.device());
  if (out[0].numel() == 0) return out;
  const Tensor in = cuda::contiguous(input), boxes = cuda::contiguous(rois);
  const RegionCall call{g,
                        static_cast<int>(input.dtype()),
                        in.data(),
                        boxes.data(),
                        out[0].data(),
                        also ? out[1].data_as<int32_t>() : nullptr,
                        noted_by_kernels(),
                        static_cast<int>(Noted::kRegion)};
  check_launch(name, launch(call, current_stream()), input.dtype());
  check_noted();
  return out;
}

}  // namespace sconce::cuda
