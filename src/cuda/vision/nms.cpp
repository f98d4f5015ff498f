#include "src/cuda/indexing/index.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/stream.h"
#include "src/cuda/vision/vision.h"
#include "src/cuda/vision/vision_kernels.h"
#include "src/operators/cuda_ops.h"
#include "src/tensor/rules/boxes.h"

namespace sconce::cuda {
namespace {

Tensor integers(int64_t count, Device device) { return Tensor::empty(IntSpan(&count, 1), DType::kInt64, device); }

}  // namespace

Tensor nms(const Tensor& dets, const Tensor& scores, double iou_threshold) {
  check_boxes("nms", dets, scores);
  SCONCE_CHECK(dets.device() == scores.device(), kInvalidArgument, "nms: dets are on ", to_string(dets.device()),
               ", scores on ", to_string(scores.device()));
  refuse_capture("results whose size depends on values");
  const DeviceScope scope(dets.device());
  const int64_t count = dets.size(0);
  if (count == 0) return integers(0, dets.device());
  const Tensor order = sort_stable(scores, true, 0, true)[1];
  const Tensor* const index = &order;
  const Tensor* const* const indices = &index;
  const Tensor boxes = cuda::contiguous(index_Tensor(dets, {&indices, 1}));
  const int64_t words = (count + kBoxesOfWord - 1) / kBoxesOfWord;
  const Tensor overlaps = integers(count * words, dets.device());
  check_launch("nms_kernel",
               launch_overlaps(static_cast<int>(dets.dtype()), boxes.data(), count, static_cast<float>(iou_threshold),
                               static_cast<uint64_t*>(overlaps.data()), current_stream()),
               dets.dtype());
  const Tensor removed = zeros(IntSpan(&words, 1), DType::kInt64, dets.device());
  Tensor kept = integers(count, dets.device()), found = integers(1, dets.device());
  launch_kept(static_cast<const uint64_t*>(overlaps.data()), order.data_as<int64_t>(), count,
              static_cast<uint64_t*>(removed.data()), kept.data_as<int64_t>(), found.data_as<int64_t>(),
              current_stream());
  SCONCE_CUDA(cudaGetLastError());
  int64_t size = 0;
  SCONCE_CUDA(cudaMemcpyAsync(&size, found.data(), sizeof size, cudaMemcpyDeviceToHost, current_stream()));
  SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  const int64_t one = 1;
  return kept.as_strided(IntSpan(&size, 1), IntSpan(&one, 1), 0);
}

}  // namespace sconce::cuda
