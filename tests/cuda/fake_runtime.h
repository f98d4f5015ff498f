// The functions of CUDA's runtime and driver that our host code calls, on two devices that are made up: what they
// answer follows the rules of CUDA for streams that are recorded, and a test says what fails. Memory of a device is the
// host's. Work of a stream is done when somebody waits for it, as late as a device may do it.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sconce::test {

// Calls from the `at`th on, counted from fail(), give `error`; with a name those of that function alone. One that
// sticks is what every later call gives, until mend(). A function that gives something back has done so all the same:
// CUDA tells there what work before it met.
struct Fault {
  cudaError_t error = cudaSuccess;
  const char* call = nullptr;
  int64_t at = 1, times = 1;
  bool sticks = false;
};
inline constexpr int64_t kForGood = INT64_MAX;

struct FakeRuntime {
  std::atomic<cudaError_t> sticks{cudaSuccess};  // what every call gives
  std::atomic<int64_t> live_device{0}, live_pinned{0}, live_streams{0}, live_graphs{0}, live_graph_execs{0},
      live_events{0}, live_shared{0}, live_modules{0};  // pieces
  std::atomic<int> device_waits{0};                     // cudaDeviceSynchronize

  // Replaces the fault that was there.
  void fail(const Fault& fault);
  void mend();
  std::string fired();               // the function that failed first since fail(); empty: none
  int64_t calls();                   // since fail()
  std::vector<std::string> trace();  // their names, of the first 100,000

  // What is wrong with how the runtime was used: memory given back twice, a thread left with another device or mode of
  // capture than it had, an error left behind for the next call that asks. Empty: nothing. Forgets it.
  // `modes` false: modes of capture are left as they are.
  std::string misuse(bool modes = true);
};
FakeRuntime& fake_runtime();

// The device that the calling thread has, and that memory is on; -1 for memory that is no device's.
int device_of_thread();
int device_of_memory(const void* data);

// A kernel's launch: counted and failed as the runtime's functions are, its error is that of cudaGetLastError().
cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work);
// By the driver's function, whose errors are not the runtime's last one.
cudaError_t launch_by_driver(const char* name, cudaStream_t stream, std::function<void()> work);
// The same for a kernel that copies pieces, whose node a graph can change: fake_kernels.cpp.
cudaError_t launch_pieces(const char* name, cudaStream_t stream, std::vector<unsigned char> arguments,
                          void (*work)(const std::vector<unsigned char>& arguments));

}  // namespace sconce::test
