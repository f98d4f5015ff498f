// The stream that work of the calling thread goes to. A thread has one current device, and one current stream for it.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "src/device/device_backend.h"

namespace sconce::cuda {

class CachingAllocator;
class DnnLane;

struct Current {
  int device = 0;
  cudaStream_t stream = nullptr;            // null: the device's legacy default stream
  CachingAllocator* memory = nullptr;       // null: memory is taken from the device each time
  bool allow_tf32 = false;                  // of the lane
  bool astray = false;                      // CUDA has another device for the thread: it refused to go back
  bool capturing = false;                   // work of the stream is recorded, not done
  int* noted = nullptr;                     // where kernels note what is wrong; null: nobody will look
  std::shared_ptr<DnnLane>* dnn = nullptr;  // where cuDNN's things of the lane are; null: no lane
  // What must live as long as the work that is recorded; null while none is.
  std::vector<std::shared_ptr<const void>>* kept = nullptr;
};
// Of the calling thread.
Current& current() noexcept;

inline cudaStream_t current_stream() noexcept { return current().stream; }

// kUnsupported where work is recorded: what the host would decide or read now would be the same in every replay.
inline void refuse_capture(const char* what) {
  SCONCE_CHECK(!current().capturing, kUnsupported, "a CUDA graph cannot hold ", what);
}

// For what recorded work uses besides memory of the thread's allocator.
inline void keep_for_graph(std::shared_ptr<const void> object) {
  if (current().kept) current().kept->push_back(std::move(object));
}

// What only kernels see, and note for the host to find when it has waited for the stream.
enum class Noted : int { kNothing, kIndex, kIndexPut, kScatter };
// Where kernels of this thread's stream note it. After their launch, check_noted(): without a lane it waits and throws
// what was noted; a lane does when it synchronises. kInvalidArgument.
int* noted_by_kernels();
void check_noted();

// Where an operator that makes tensors puts them: on the thread's device if the call names none or no index.
// kUnsupported for the host.
Device device_or_current(std::optional<Device> device);

// current() is as it was before: CUDA's device becomes it too. Where CUDA refuses, who needs a device next sets it.
void go_back() noexcept;

// Makes a device that of the thread for what gives back: throws nothing, and leaves current() alone.
class ReleaseScope {
 public:
  explicit ReleaseScope(int device) noexcept;
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

 private:
  int before_;
};

// Makes a device that of the thread, for a scope; stream and memory are as they were if it is the same device.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  Current before_;
  bool changed_;
};

class Lane final : public DeviceLane {
 public:
  explicit Lane(Device device, LaneOptions options = {});
  ~Lane() override;
  void enter() override;
  void leave() noexcept override;
  void* stream() const noexcept override { return stream_; }
  void synchronize() override;
  const char* fault() noexcept override;
  void trim() noexcept override;
  void begin_capture(size_t reserved_before) override;
  std::unique_ptr<DeviceGraph> end_capture(size_t reserved_after) override;
  void drop_capture() noexcept override;

 private:
  Device device_;
  LaneOptions options_;
  cudaStream_t stream_ = nullptr;
  CachingAllocator* memory_;
  int* noted_ = nullptr;                  // pinned
  bool recording_ = false;                // until CUDA was asked to end it
  CachingAllocator* recorded_ = nullptr;  // while work is recorded: where its memory comes from
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<cudaGraphNode_t> copies_before_;
  std::shared_ptr<DnnLane> dnn_;  // shared: of a type that is not known here
  Current before_;
};

}  // namespace sconce::cuda
