// Fakes the functions of CUDA's runtime and driver that our host code calls, on two made-up devices. They follow CUDA's
// rules for recorded streams, and a test decides which call fails. Device memory is host memory. Work of a stream is
// done only when somebody waits for it, as late as a real device may.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sconce::test {

// Calls give `error` from the `at`th on, counted from fail(); with a name, only calls of that function. A sticky error
// is returned by every later call until mend(). A failing call that frees still frees, because CUDA then reports an
// error of earlier work.
struct Fault {
  cudaError_t error = cudaSuccess;
  const char* call = nullptr;
  int64_t at = 1, times = 1;
  bool sticks = false;
};
inline constexpr int64_t kForGood = INT64_MAX;

struct FakeRuntime {
  std::atomic<cudaError_t> sticks{cudaSuccess};  // returned by every call
  std::atomic<int64_t> live_device{0}, live_pinned{0}, live_streams{0}, live_graphs{0}, live_graph_execs{0},
      live_events{0}, live_shared{0}, live_modules{0};  // counts of live objects
  std::atomic<int> device_waits{0};                     // calls of cudaDeviceSynchronize

  // Replaces the current fault.
  void fail(const Fault& fault);
  void mend();
  std::string fired();               // first function that failed since fail(), or ""
  int64_t calls();                   // since fail()
  std::vector<std::string> trace();  // their names, the first 100,000

  // Describes misuse of the runtime: memory freed twice, a thread left on another device or in another capture mode, an
  // error left for the next call to report. Empty if none. Clears the record. With `modes` false, ignores capture
  // modes.
  std::string misuse(bool modes = true);
};
FakeRuntime& fake_runtime();

// The device of the calling thread, and of memory; -1 for memory on no device.
int device_of_thread();
int device_of_memory(const void* data);

// Launches a kernel: counted and failed like the runtime's functions; cudaGetLastError() reports its error.
cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work);
// By the driver's function, whose errors cudaGetLastError() does not report.
cudaError_t launch_by_driver(const char* name, cudaStream_t stream, std::function<void()> work);
// The same for fake_kernels.cpp's kernel that copies pieces, whose node a graph can change.
cudaError_t launch_pieces(const char* name, cudaStream_t stream, std::vector<unsigned char> arguments,
                          void (*work)(const std::vector<unsigned char>& arguments));

}  // namespace sconce::test
