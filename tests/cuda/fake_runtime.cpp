#include "fake_runtime.h"

#include <cuda.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "src/cuda/graph_copies.h"

struct CUstream_st {
  bool recording = false, broken = false;
  cudaStreamCaptureMode mode{};
  std::thread::id by;
  std::set<void*> own;  // taken in the recording
};
struct CUgraph_st {};
struct CUgraphExec_st {};
struct CUgraphNode_st {};

namespace {

using sconce::test::fake_runtime;

std::recursive_mutex mutex;
std::set<cudaStream_t> streams;
thread_local cudaError_t last = cudaSuccess;
thread_local int device = 0;
thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;
CUgraphNode_st node;
cudaGraphNode_t last_node = &node;

cudaError_t told(cudaError_t error) {
  if (const cudaError_t sticks = fake_runtime().sticks; sticks != cudaSuccess) error = sticks;
  if (error != cudaSuccess) last = error;
  return error;
}

cudaError_t refuse(cudaStream_t stream) {
  stream->broken = true;
  return told(cudaErrorStreamCaptureUnsupported);
}

// Calls that may wait for more than their stream.
cudaError_t unsafe() {
  const std::lock_guard lock(mutex);
  for (const cudaStream_t stream : streams) {
    if (!stream->recording || mode_of_thread == cudaStreamCaptureModeRelaxed) continue;
    if (stream->mode == cudaStreamCaptureModeGlobal ||
        (stream->mode == cudaStreamCaptureModeThreadLocal && stream->by == std::this_thread::get_id()))
      return refuse(stream);
  }
  return told(cudaSuccess);
}

bool short_of_memory() {
  int left = fake_runtime().memory_fails;
  while (left > 0 && !fake_runtime().memory_fails.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

cudaError_t take(void** data, size_t bytes, std::atomic<int64_t>& live) {
  if (short_of_memory()) return told(cudaErrorMemoryAllocation);
  if (const cudaError_t error = told(cudaSuccess); error != cudaSuccess) return error;
  *data = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  ++live;
  return cudaSuccess;
}

cudaError_t give_back(void* data, std::atomic<int64_t>& live) {
  // Of a lost device memory is gone with the process; the test counts it all the same.
  std::free(data);
  if (data) --live;
  return told(cudaSuccess);
}

}  // namespace

namespace sconce::test {
FakeRuntime& fake_runtime() {
  static FakeRuntime runtime;
  return runtime;
}
}  // namespace sconce::test

namespace sconce::cuda {
void launch_copies(const CopyPieces&, int, cudaStream_t) {}
cudaKernelNodeParams copy_node(const CopyPieces&, int, void**) { return {}; }
}  // namespace sconce::cuda

extern "C" {

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "an error of the driver";
  return CUDA_SUCCESS;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = fake_runtime().sticks;
  return error;
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorIllegalAddress ? "an illegal memory access was encountered" : "another error";
}
cudaError_t cudaGetDevice(int* index) {
  *index = device;
  return told(cudaSuccess);
}
cudaError_t cudaSetDevice(int index) {
  device = index;
  return told(cudaSuccess);
}
cudaError_t cudaDeviceSynchronize() {
  ++fake_runtime().device_waits;
  const std::lock_guard lock(mutex);
  bool any = false;
  for (const cudaStream_t stream : streams)
    if (stream->recording) any = stream->broken = true;
  return told(any ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = told(cudaSuccess); error != cudaSuccess) return error;
  const std::lock_guard lock(mutex);
  streams.insert(*stream = new CUstream_st);
  ++fake_runtime().live_streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  streams.erase(stream);
  delete stream;
  --fake_runtime().live_streams;
  return told(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (stream->recording) return refuse(stream);
  return told(fake_runtime().of_stream.exchange(cudaSuccess));
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const std::lock_guard lock(mutex);
  stream->recording = true;
  stream->broken = false;
  stream->mode = mode;
  stream->by = std::this_thread::get_id();
  return told(cudaSuccess);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(mutex);
  stream->recording = false;
  *graph = nullptr;
  if (stream->broken) return told(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st;
  ++fake_runtime().live_graphs;
  return told(cudaSuccess);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(mutex);
  *status = !stream->recording ? cudaStreamCaptureStatusNone
            : stream->broken   ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
  return told(cudaSuccess);
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t** nodes, const cudaGraphEdgeData**,
                                     size_t* count) {
  *nodes = &last_node;
  *count = 1;
  return cudaStreamIsCapturing(stream, status);
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, mode_of_thread);
  return told(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  --fake_runtime().live_graphs;
  return told(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph, cudaGraph_t, unsigned long long) {
  *graph = new CUgraphExec_st;
  return told(cudaSuccess);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return told(cudaSuccess);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t, cudaGraphNode_t, const cudaKernelNodeParams*) {
  return told(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) { return told(cudaSuccess); }

cudaError_t cudaMalloc(void** data, size_t bytes) {
  if (const cudaError_t error = unsafe(); error != cudaSuccess) return error;
  return take(data, bytes, fake_runtime().live_device);
}
cudaError_t cudaFree(void* data) {
  const cudaError_t error = unsafe();
  return error == cudaSuccess || fake_runtime().sticks != cudaSuccess ? give_back(data, fake_runtime().live_device)
                                                                      : error;
}
cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const cudaError_t error = take(data, bytes, fake_runtime().live_device);
  if (stream->recording && error == cudaSuccess) stream->own.insert(*data);
  return error;
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  if (stream->recording && !stream->own.contains(data)) {
    stream->broken = true;
    return told(cudaErrorInvalidValue);
  }
  return give_back(data, fake_runtime().live_device);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  if (const cudaError_t error = unsafe(); error != cudaSuccess) return error;
  return take(data, bytes, fake_runtime().live_pinned);
}
cudaError_t cudaFreeHost(void* data) { return give_back(data, fake_runtime().live_pinned); }
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  *pool = nullptr;
  return told(cudaSuccess);
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return told(cudaSuccess); }

}  // extern "C"
