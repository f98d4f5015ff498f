// The current device of the calling thread and the stream that its work goes to.
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
  CachingAllocator* memory = nullptr;       // null: allocate from the device each time
  bool allow_tf32 = false;                  // option of the DeviceStream
  bool astray = false;                      // CUDA refused to switch back, so its current device differs
  bool capturing = false;                   // work of the stream is recorded and not executed
  int* noted = nullptr;                     // where kernels record errors; null: not read
  std::shared_ptr<DnnLane>* dnn = nullptr;  // cuDNN state of the thread's DeviceStream; null: no stream
  // Keeps the objects used by recorded work alive; null unless recording.
  std::vector<std::shared_ptr<const void>>* kept = nullptr;
};
// The state of the calling thread.
Current& current() noexcept;

inline cudaStream_t current_stream() noexcept { return current().stream; }

// Throws kUnsupported during a recording: a value that the host decides or reads now would be the same in every
// replay.
inline void refuse_capture(const char* what) {
  SCONCE_CHECK(!current().capturing, kUnsupported, "a CUDA graph cannot hold ", what);
}

// For objects that recorded work uses besides memory of the thread's allocator.
inline void keep_for_graph(std::shared_ptr<const void> object) {
  if (current().kept) current().kept->push_back(std::move(object));
}

// Errors that only a kernel can see. It notes them, and the host finds them after it has waited for the stream.
enum class Noted : int { kNothing, kIndex, kIndexPut, kScatter, kRegion };
// The address at which kernels of this thread's stream record an error. Call check_noted() after the launch: without a
// DeviceStream it waits and throws kInvalidArgument for a recorded error; a DeviceStream does so when it synchronises.
int* noted_by_kernels();
void check_noted();

// The device for a tensor that an operator makes: the thread's device if the call names none or no index. Throws
// kUnsupported for the host.
Device device_or_current(std::optional<Device> device);

// Makes CUDA's device equal to current(), which was restored. If CUDA refuses, the next user of a device sets it.
void go_back() noexcept;

// Sets CUDA's device for a scope that frees things: throws nothing and leaves current() alone.
class ReleaseScope {
 public:
  explicit ReleaseScope(int device) noexcept;
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

 private:
  int before_;
};

// Sets the thread's device for a scope. If the device stays the same, so do stream and memory.
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

class Lane final : public DeviceStream {
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
  bool recording_ = false;                // until CUDA is asked to end the recording
  CachingAllocator* recorded_ = nullptr;  // allocator of the work being recorded, else null
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<cudaGraphNode_t> copies_before_;
  std::shared_ptr<DnnLane> dnn_;  // shared_ptr, because the type is incomplete here
  Current before_;
};

}  // namespace sconce::cuda
