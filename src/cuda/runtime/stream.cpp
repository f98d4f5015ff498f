#include "src/cuda/runtime/stream.h"

#include <new>
#include <utility>

#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/error.h"
#include "src/cuda/runtime/graph.h"
#include "src/cuda/runtime/graph_copies.h"
#include "src/cuda/runtime/handle.h"

namespace sconce::cuda {

Current& current() noexcept {
  static thread_local Current mine;
  return mine;
}

Device device_or_current(std::optional<Device> device) {
  const Device here{DeviceType::kCuda, static_cast<int8_t>(current().device)};
  if (!device) return here;
  SCONCE_CHECK(device->type == DeviceType::kCuda, kUnsupported, "a CUDA operator cannot make a tensor on device ",
               to_string(*device));
  return device->index < 0 ? here : *device;
}

void go_back() noexcept {
  Current& now = current();
  now.astray = cudaSetDevice(now.device) != cudaSuccess;
  if (now.astray) cudaGetLastError();  // a later call must not report it
}

DeviceScope::DeviceScope(Device device) : before_(current()), changed_(device.index != before_.device) {
  if (!changed_ && !before_.astray) return;
  SCONCE_CUDA(cudaSetDevice(device.index));
  current().astray = false;
  if (!changed_) return;
  current() = {.device = device.index, .allow_tf32 = before_.allow_tf32};
}
DeviceScope::~DeviceScope() {
  if (!changed_) return;
  current() = before_;
  go_back();
}

ReleaseScope::ReleaseScope(int device) noexcept : before_(current().device) {
  cudaGetDevice(&before_);
  cudaSetDevice(device);
}
ReleaseScope::~ReleaseScope() {
  cudaGetLastError();  // e.g. of a lost device, which its next user will see again
  if (cudaSetDevice(before_) == cudaSuccess) return;
  cudaGetLastError();
  current().astray = true;
}

namespace {

void throw_noted(int& word) {
  switch (static_cast<Noted>(std::exchange(word, 0))) {
    case Noted::kIndex:
      SCONCE_FAIL(kInvalidArgument, "index: an index is out of bounds");
    case Noted::kIndexPut:
      SCONCE_FAIL(kInvalidArgument, "index_put: an index is out of bounds");
    case Noted::kScatter:
      SCONCE_FAIL(kInvalidArgument, "scatter: an index is out of bounds");
    case Noted::kRegion:
      SCONCE_FAIL(kInvalidArgument, "a region is of an image that the input does not have");
    default:
      break;
  }
}

int* pinned_word() {
  void* memory = nullptr;
  SCONCE_CUDA(cudaHostAlloc(&memory, sizeof(int), cudaHostAllocPortable));
  return new (memory) int(0);
}

}  // namespace

int* noted_by_kernels() {
  if (int* lanes = current().noted) return lanes;
  static thread_local int* own = nullptr;  // one word per thread, never freed
  if (!own) own = pinned_word();
  return own;
}

void check_noted() {
  if (current().noted) return;
  SCONCE_CUDA(cudaStreamSynchronize(current_stream()));
  throw_noted(*noted_by_kernels());
}

Lane::Lane(Device device, LaneOptions options) : device_(device), options_(options), memory_(nullptr) {
  const DeviceScope scope(device);
  SCONCE_CUDA(cudaSetDevice(device.index));  // on a thread's first use this makes the device's context current
  struct Undo {
    Lane& lane;
    ~Undo() {
      if (lane.memory_) return;
      if (lane.noted_) SCONCE_CUDA_RELEASE(cudaFreeHost(lane.noted_));
      if (lane.stream_) SCONCE_CUDA_RELEASE(cudaStreamDestroy(lane.stream_));
    }
  } const undo{*this};
  SCONCE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  noted_ = pinned_word();
  memory_ = CachingAllocator::create(device.index, stream_);
}

Lane::~Lane() {
  const ReleaseScope scope(device_.index);
  cudaStreamSynchronize(stream_);
  dnn_.reset();
  memory_->orphan();
  SCONCE_CUDA_RELEASE(cudaStreamDestroy(stream_));
  SCONCE_CUDA_RELEASE(cudaFreeHost(noted_));
}

void Lane::enter() {
  before_ = current();
  SCONCE_CUDA(cudaSetDevice(device_.index));
  current() = {.device = device_.index,
               .stream = stream_,
               .memory = memory_,
               .allow_tf32 = options_.allow_tf32,
               .noted = noted_,
               .dnn = &dnn_};
}

void Lane::leave() noexcept {
  current() = before_;
  current().astray = false;
  if (before_.device != device_.index) go_back();
}

void Lane::synchronize() {
  SCONCE_CUDA(cudaStreamSynchronize(stream_));
  if (*noted_) [[unlikely]]
    throw_noted(*noted_);
}

const char* Lane::fault() noexcept {
  const ReleaseScope scope(device_.index);
  cudaGetLastError();
  // If another thread is recording on the stream, leave it alone: it will see the error itself.
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone) return nullptr;
  cudaError_t error = cudaStreamSynchronize(stream_);
  if (ends_device(error)) {
    cudaGetLastError();
    error = cudaStreamSynchronize(stream_);  // an error that persists comes back here
  }
  *noted_ = 0;  // what kernels of the failed run noted must not fail the next run
  return ends_device(error) ? cudaGetErrorString(error) : nullptr;
}

void Lane::trim() noexcept { memory_->trim(); }

void Lane::begin_capture(size_t reserved_before) {
  cudaGetLastError();                       // a launch must not report an older error
  launch_copies(CopyPieces{}, 1, stream_);  // loads the kernel, which is impossible during a recording
  SCONCE_CUDA(cudaGetLastError());
  CachingAllocator::check_capture_mode();
  memory_->set_recorded(true);
  recorded_ = CachingAllocator::create_for_graph(device_.index);
  SCONCE_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  recording_ = true;
  kept_.clear();
  copies_before_ = record_copies(reserved_before, stream_);
  current().memory = recorded_;
  current().capturing = true;
  current().kept = &kept_;
}

std::unique_ptr<DeviceGraph> Lane::end_capture(size_t reserved_after) {
  std::vector<cudaGraphNode_t> copies_after = record_copies(reserved_after, stream_);
  Handle<cudaGraph_t, cudaGraphDestroy> recorded;
  recording_ = false;
  SCONCE_CUDA(cudaStreamEndCapture(stream_, &recorded.value));
  memory_->set_recorded(false);
  current().memory = memory_;
  current().capturing = false;
  current().kept = nullptr;
  auto graph = std::make_unique<Graph>(recorded.value, recorded_, stream_, std::exchange(kept_, {}),
                                       std::move(copies_before_), std::move(copies_after));
  recorded.value = nullptr;
  recorded_ = nullptr;
  return graph;
}

void Lane::drop_capture() noexcept {
  current().memory = memory_;
  current().capturing = false;
  current().kept = nullptr;
  kept_.clear();
  if (std::exchange(recording_, false)) {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph) cudaGraphDestroy(graph);
  }
  cudaGetLastError();
  memory_->set_recorded(false);
  if (recorded_) std::exchange(recorded_, nullptr)->orphan();
}

}  // namespace sconce::cuda
