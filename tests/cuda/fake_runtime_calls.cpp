// The fake CUDA functions.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "fake_runtime_state.h"

using namespace sconce::test::fake;
using sconce::test::fake_runtime;

#define RETURN_IF_FAILED(...) \
  if (const cudaError_t error = told(__func__ __VA_OPT__(, ) __VA_ARGS__); error != cudaSuccess) return error

// Every function holds the lock, so its effect and its result are one step.
#define LOCKED const std::lock_guard lock(mutex)

extern "C" {

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "another error";
  }
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = cudaGetErrorString(static_cast<cudaError_t>(error));
  return CUDA_SUCCESS;
}
cudaError_t cudaGetLastError() {
  LOCKED;
  const cudaError_t error = given(__func__, mine.last);
  mine.last = fake_runtime().sticks;
  mine.last_of = __func__;
  return error;
}

cudaError_t cudaGetDeviceCount(int* devices) {
  RETURN_IF_FAILED();
  *devices = kDevices;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* index) {
  RETURN_IF_FAILED();
  *index = mine.device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int index) {
  RETURN_IF_FAILED(index < 0 || index >= kDevices ? cudaErrorInvalidDevice : cudaSuccess);
  mine.device = index;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  RETURN_IF_FAILED();
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  RETURN_IF_FAILED();
  *properties = {};
  std::strcpy(properties->name, "made up");
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  RETURN_IF_FAILED();
  *free = *total = size_t{1} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  LOCKED;
  ++fake_runtime().device_waits;
  bool any = false;
  for (const cudaStream_t stream : streams)
    if (stream->recording) any = stream->broken = true;
  drain_all();
  return told(__func__, any ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  RETURN_IF_FAILED();
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return told(__func__); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  LOCKED;
  RETURN_IF_FAILED();
  streams.insert(*stream = new CUstream_st);
  (*stream)->device = mine.device;
  ++fake_runtime().live_streams;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  LOCKED;
  if (streams.erase(stream)) {
    drain(*stream);
    delete stream;
    --fake_runtime().live_streams;
  } else {
    misuse("a stream is destroyed that is not there");
  }
  return told(__func__);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  LOCKED;
  if (of(stream).recording) return told(__func__, refusal(of(stream)));
  const cudaError_t error = told(__func__);
  drain(of(stream));
  return error;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  LOCKED;
  RETURN_IF_FAILED();
  enqueue(of(stream), [other = event->stream, at = event->at] {
    if (streams.contains(other) || !other) drain(of(other), at);
  });
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  LOCKED;
  RETURN_IF_FAILED();
  stream->graph = std::make_unique<CUgraph_st>();
  stream->recording = true;
  stream->broken = false;
  stream->mode = mode;
  stream->by = std::this_thread::get_id();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  LOCKED;
  stream->recording = false;
  stream->own.clear();
  std::unique_ptr<CUgraph_st> recorded = std::move(stream->graph);
  *graph = nullptr;
  RETURN_IF_FAILED(stream->broken ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
  *graph = recorded.release();
  ++fake_runtime().live_graphs;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  LOCKED;
  RETURN_IF_FAILED();
  *status = !stream->recording ? cudaStreamCaptureStatusNone
            : stream->broken   ? cudaStreamCaptureStatusInvalidated
                               : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long*,
                                     cudaGraph_t*, const cudaGraphNode_t** nodes, const cudaGraphEdgeData**,
                                     size_t* waits) {
  LOCKED;
  RETURN_IF_FAILED();
  static cudaGraphNode_t last;
  last = stream->graph && !stream->graph->nodes.empty() ? stream->graph->nodes.back().get() : nullptr;
  *nodes = &last;
  *waits = last ? 1 : 0;
  *status = stream->broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  RETURN_IF_FAILED();
  std::swap(*mode, mine.mode);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  RETURN_IF_FAILED();
  *event = new CUevent_st;
  ++fake_runtime().live_events;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  --fake_runtime().live_events;
  return told(__func__);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LOCKED;
  RETURN_IF_FAILED();
  event->stream = stream;
  event->at = of(stream).queued;
  return cudaSuccess;
}
// Used for events of other processes only. The second query finds that the event has happened.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  RETURN_IF_FAILED();
  if (!event->shared) misuse("an event of our own is asked whether it happened");
  if (event->looked) {
    *event->shared = true;
    return cudaSuccess;
  }
  event->looked = true;
  return told(__func__, cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LOCKED;
  const cudaError_t error = told(__func__);
  if (streams.contains(event->stream) || !event->stream) drain(of(event->stream), event->at);
  return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  --fake_runtime().live_graphs;
  return told(__func__);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* graph, cudaGraph_t recorded, unsigned long long) {
  LOCKED;
  RETURN_IF_FAILED();
  *graph = new CUgraphExec_st;
  for (const auto& node : recorded->nodes) (*graph)->nodes.emplace_back(node.get(), *node);
  ++fake_runtime().live_graph_execs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  --fake_runtime().live_graph_execs;
  return told(__func__);
}
// Our kernels take one argument, by value.
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t graph, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  LOCKED;
  const auto found =
      std::find_if(graph->nodes.begin(), graph->nodes.end(), [&](const auto& each) { return each.first == node; });
  RETURN_IF_FAILED(found == graph->nodes.end() || !found->second.pieces ? cudaErrorInvalidValue : cudaSuccess);
  std::memcpy(found->second.arguments.data(), params->kernelParams[0], found->second.arguments.size());
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  LOCKED;
  RETURN_IF_FAILED();
  for (const auto& [_, node] : graph->nodes) enqueue(of(stream), [node] { node.run(); });
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  LOCKED;
  RETURN_IF_FAILED(unsafe());
  take(data, bytes, cudaMemoryTypeDevice, mine.device);
  return cudaSuccess;
}
cudaError_t cudaFree(void* data) {
  LOCKED;
  const cudaError_t rule = unsafe();
  if (rule == cudaSuccess || fake_runtime().sticks != cudaSuccess) {
    drain_all();
    give_back(data, cudaMemoryTypeDevice);
  }
  return told(__func__, rule);
}
cudaError_t cudaMallocAsync(void** data, size_t bytes, cudaStream_t stream) {
  LOCKED;
  RETURN_IF_FAILED();
  take(data, bytes, cudaMemoryTypeDevice, of(stream).device);
  if (of(stream).recording) of(stream).own.insert(*data);
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  LOCKED;
  CUstream_st& where = of(stream);
  if (where.recording && !where.own.contains(data)) {
    where.broken = true;
    return told(__func__, cudaErrorInvalidValue);
  }
  drain_all();
  give_back(data, cudaMemoryTypeDevice);
  return told(__func__);
}
cudaError_t cudaHostAlloc(void** data, size_t bytes, unsigned) {
  LOCKED;
  RETURN_IF_FAILED(unsafe());
  take(data, bytes, cudaMemoryTypeHost, mine.device);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  LOCKED;
  drain_all();
  give_back(data, cudaMemoryTypeHost);
  return told(__func__);
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  RETURN_IF_FAILED();
  *pool = nullptr;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return told(__func__); }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return told(__func__); }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  LOCKED;
  RETURN_IF_FAILED();
  const auto piece = piece_of(address);
  *attributes = {};
  attributes->type = piece == memory.end() ? cudaMemoryTypeUnregistered : piece->second.type;
  attributes->device = piece == memory.end() ? -2 : piece->second.device;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  LOCKED;
  RETURN_IF_FAILED();
  copy(to, from, bytes, of(stream));
  return cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, cudaStream_t stream) {
  LOCKED;
  RETURN_IF_FAILED();
  copy(to, from, bytes, of(stream));
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  LOCKED;
  RETURN_IF_FAILED(unsafe());
  copy(to, from, bytes, default_stream);
  drain(default_stream);
  return cudaSuccess;
}

// A handle holds the address of 4096 bytes of the test's host memory, and their device.
cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t handle, unsigned) {
  LOCKED;
  RETURN_IF_FAILED();
  int device = 0;
  std::memcpy(data, &handle, sizeof *data);
  std::memcpy(&device, reinterpret_cast<const char*>(&handle) + sizeof *data, sizeof device);
  memory[static_cast<const char*>(*data)] = {4096, cudaMemoryTypeDevice, device};
  ++fake_runtime().live_shared;
  return cudaSuccess;
}
// A handle holds the address of a flag in the test, which is set when a stream waits for the event.
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  RETURN_IF_FAILED();
  *event = new CUevent_st;
  std::memcpy(&(*event)->shared, &handle, sizeof(*event)->shared);
  ++fake_runtime().live_events;
  return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void* data) {
  LOCKED;
  drain_all();
  if (memory.erase(static_cast<const char*>(data)))
    --fake_runtime().live_shared;
  else
    misuse("shared memory is closed that is not open");
  return told(__func__);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  LOCKED;
  const auto piece = piece_of(reinterpret_cast<const void*>(address));
  const CUresult rule = piece == memory.end() ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
  if (const CUresult error = told_driver("cuMemGetAddressRange", rule); error != CUDA_SUCCESS) return error;
  *base = reinterpret_cast<CUdeviceptr>(piece->first);
  *bytes = piece->second.bytes;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  LOCKED;
  if (const CUresult error = told_driver(__func__); error != CUDA_SUCCESS) return error;
  *context = mine.contexts.empty() ? reinterpret_cast<CUcontext>(static_cast<intptr_t>(mine.device + 1))
                                   : mine.contexts.back();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  LOCKED;
  if (const CUresult error = told_driver("cuCtxPushCurrent"); error != CUDA_SUCCESS) return error;
  mine.contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  LOCKED;
  if (mine.contexts.empty()) {
    misuse("a context is popped that was not pushed");
    return told_driver("cuCtxPopCurrent", CUDA_ERROR_INVALID_CONTEXT);
  }
  // Like other functions that free, it has done so even if it fails.
  *context = mine.contexts.back();
  mine.contexts.pop_back();
  return told_driver("cuCtxPopCurrent");
}
CUresult cuModuleLoadData(CUmodule* module, const void*) {
  LOCKED;
  if (const CUresult error = told_driver(__func__); error != CUDA_SUCCESS) return error;
  *module = reinterpret_cast<CUmodule>(new char);
  ++fake_runtime().live_modules;
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  LOCKED;
  delete reinterpret_cast<char*>(module);
  --fake_runtime().live_modules;
  return told_driver(__func__);
}

}  // extern "C"
