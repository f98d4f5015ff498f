// What the functions of fake_runtime_calls.cpp share with fake_runtime.cpp.
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
  // Of a kernel that copies pieces, in place of `work`.
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
  std::vector<std::pair<cudaGraphNode_t, CUgraphNode_st>> nodes;  // in the order of the recording
};
struct CUstream_st {
  int device = 0;
  std::deque<std::function<void()>> queue;
  uint64_t queued = 0, done = 0;
  bool recording = false, broken = false;
  cudaStreamCaptureMode mode{};
  std::thread::id by;
  std::unique_ptr<CUgraph_st> graph;
  std::set<void*> own;  // taken in the recording
};
struct CUevent_st {
  cudaStream_t stream = nullptr;
  uint64_t at = 0;
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
  std::vector<CUcontext> contexts;  // pushed on that of its device
  Thread();
  ~Thread();
};

extern std::recursive_mutex mutex;  // of everything here
extern std::set<cudaStream_t> streams;
extern CUstream_st default_stream;
extern std::map<const char*, Memory> memory;
extern thread_local Thread mine;

void misuse(const std::string& what);

// What a call gives, of which the rules of CUDA say `rule`. The only place that fails calls.
cudaError_t given(const char* call, cudaError_t rule);
// The same, and the thread's last error.
cudaError_t told(const char* call, cudaError_t rule = cudaSuccess);
// The driver's errors have the same numbers, and are not the runtime's last one.
CUresult told_driver(const char* call, CUresult rule = CUDA_SUCCESS);

inline CUstream_st& of(cudaStream_t stream) { return stream ? *stream : default_stream; }
// Of a lost device nothing is done any more.
void drain(CUstream_st& stream, uint64_t until = UINT64_MAX);
void drain_all();
void enqueue(CUstream_st& stream, Work work);

// What CUDA says of calls that may wait for more than their stream, and of a stream that is recorded.
cudaError_t unsafe();
cudaError_t refusal(CUstream_st& stream);

// The piece that the address is in; end() where there is none.
std::map<const char*, Memory>::iterator piece_of(const void* address);
void take(void** data, size_t bytes, cudaMemoryType type, int device);
// Of a lost device memory is gone with the process; the test counts it all the same.
void give_back(void* data, cudaMemoryType type);
// Pageable memory is read before the call returns, and written before it does; all other when the stream is there.
void copy(void* to, const void* from, size_t bytes, CUstream_st& stream);

}  // namespace sconce::test::fake
