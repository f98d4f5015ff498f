// State that fake_runtime.cpp and fake_runtime_calls.cpp share.
#pragma once

#include <cuda.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "fake_runtime.h"

struct CUgraphNode_st {
  std::function<void()> work;
  // Replaces `work` for a kernel that copies pieces.
  std::vector<unsigned char> arguments;
  void (*pieces)(const std::vector<unsigned char>&) = nullptr;
  void run() const {
    if (pieces)
      pieces(arguments);
    else
      work();
  }
};
struct CUgraph_st {
  std::deque<std::unique_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::pair<cudaGraphNode_t, CUgraphNode_st>> nodes;  // in recording order
};
struct CUstream_st {
  int device = 0;
  std::deque<std::function<void()>> queue;
  uint64_t queued = 0, done = 0;
  bool recording = false, broken = false;
  cudaStreamCaptureMode mode{};
  std::thread::id by;
  std::unique_ptr<CUgraph_st> graph;
  std::set<void*> own;  // allocated during the recording
};
struct CUevent_st {
  cudaStream_t stream = nullptr;
  uint64_t at = 0;
  bool* shared = nullptr;  // flag of an event of another process; set when the event was seen to have happened
  bool looked = false;
};

namespace sconce::test::fake {

using Work = std::function<void()>;

inline constexpr int kDevices = 2;

struct Memory {
  size_t bytes;
  cudaMemoryType type;
  int device;
};
struct Thread {
  cudaError_t last = cudaSuccess;
  std::string last_of;
  int device = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::vector<CUcontext> contexts;  // pushed on top of its device's
  Thread();
  ~Thread();
};

extern std::recursive_mutex mutex;  // guards everything here
extern std::set<cudaStream_t> streams;
extern CUstream_st default_stream;
extern std::map<const char*, Memory> memory;
extern thread_local Thread mine;

void misuse(const std::string& what);

// The result of a call that would be `rule` by CUDA's rules. The only place that makes calls fail.
cudaError_t given(const char* call, cudaError_t rule);
// The same, and sets the thread's last error.
cudaError_t told(const char* call, cudaError_t rule = cudaSuccess);
// Driver errors have the same numbers, but are not the runtime's last error.
CUresult told_driver(const char* call, CUresult rule = CUDA_SUCCESS);

inline CUstream_st& of(cudaStream_t stream) { return stream ? *stream : default_stream; }
// A lost device does no more work.
void drain(CUstream_st& stream, uint64_t until = UINT64_MAX);
void drain_all();
void enqueue(CUstream_st& stream, Work work);

// CUDA's answers to calls that may wait for more than their stream, and to calls on a recorded stream.
cudaError_t unsafe();
cudaError_t refusal(CUstream_st& stream);

// The allocation that contains the address, or end().
std::map<const char*, Memory>::iterator piece_of(const void* address);
void take(void** data, size_t bytes, cudaMemoryType type, int device);
// A lost device loses its memory with the process, but we still count it.
void give_back(void* data, cudaMemoryType type);
// Pageable memory is read before the call returns, and written before it does; other memory when the stream gets there.
void copy(void* to, const void* from, size_t bytes, CUstream_st& stream);

}  // namespace sconce::test::fake
