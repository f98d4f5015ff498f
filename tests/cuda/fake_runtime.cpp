#include "fake_runtime.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "fake_runtime_state.h"

namespace sconce::test::fake {

std::recursive_mutex mutex;
std::set<cudaStream_t> streams;
CUstream_st default_stream;
std::map<const char*, Memory> memory;
thread_local Thread mine;

namespace {

Fault fault;
int64_t count = 0, matched = 0;
std::string first_fired, misused;
std::vector<std::string> names;

std::set<Thread*>& threads() {
  static std::set<Thread*> all;
  return all;
}

}  // namespace

Thread::Thread() {
  const std::lock_guard lock(mutex);
  threads().insert(this);
}
Thread::~Thread() {
  const std::lock_guard lock(mutex);
  threads().erase(this);
}

void misuse(const std::string& what) {
  if (misused.empty()) misused = what;
}

cudaError_t given(const char* call, cudaError_t rule) {
  const std::lock_guard lock(mutex);
  ++count;
  if (names.size() < 100'000) names.emplace_back(call);
  cudaError_t error = rule;
  if (fault.error != cudaSuccess && (!fault.call || std::strcmp(fault.call, call) == 0)) {
    ++matched;
    if (matched >= fault.at && matched - fault.at < fault.times) {
      error = fault.error;
      if (first_fired.empty()) first_fired = call;
      if (fault.sticks) fake_runtime().sticks = error;
    }
  }
  if (const cudaError_t sticks = fake_runtime().sticks; sticks != cudaSuccess) error = sticks;
  return error;
}
cudaError_t told(const char* call, cudaError_t rule) {
  const cudaError_t error = given(call, rule);
  if (error != cudaSuccess) {
    mine.last = error;
    mine.last_of = call;
  }
  return error;
}
CUresult told_driver(const char* call, CUresult rule) {
  return static_cast<CUresult>(given(call, static_cast<cudaError_t>(rule)));
}

void drain(CUstream_st& stream, uint64_t until) {
  while (!stream.queue.empty() && stream.done < until) {
    const Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.done;
    if (fake_runtime().sticks == cudaSuccess) work();
  }
}
void drain_all() {
  drain(default_stream);
  for (const cudaStream_t stream : streams) drain(*stream);
}

void enqueue(CUstream_st& stream, Work work) {
  if (stream.recording) {
    stream.graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
    stream.graph->nodes.back()->work = std::move(work);
    return;
  }
  stream.queue.push_back(std::move(work));
  ++stream.queued;
}

cudaError_t refusal(CUstream_st& stream) {
  stream.broken = true;
  return cudaErrorStreamCaptureUnsupported;
}
cudaError_t unsafe() {
  for (const cudaStream_t stream : streams) {
    if (!stream->recording || mine.mode == cudaStreamCaptureModeRelaxed) continue;
    if (stream->mode == cudaStreamCaptureModeGlobal ||
        (stream->mode == cudaStreamCaptureModeThreadLocal && stream->by == std::this_thread::get_id()))
      return refusal(*stream);
  }
  return cudaSuccess;
}

std::map<const char*, Memory>::iterator piece_of(const void* address) {
  const auto* const at = static_cast<const char*>(address);
  auto piece = memory.upper_bound(at);
  if (piece == memory.begin()) return memory.end();
  --piece;
  return at < piece->first + piece->second.bytes ? piece : memory.end();
}
static bool is_pageable(const void* address) { return piece_of(address) == memory.end(); }

static std::atomic<int64_t>& live(cudaMemoryType type) {
  return type == cudaMemoryTypeHost ? fake_runtime().live_pinned : fake_runtime().live_device;
}
void take(void** data, size_t bytes, cudaMemoryType type, int device) {
  *data = std::aligned_alloc(256, (bytes + 256) / 256 * 256);
  std::memset(*data, 0xFF, bytes);  // NaN, which no test expects
  memory[static_cast<const char*>(*data)] = {std::max<size_t>(bytes, 1), type, device};
  ++live(type);
}
void give_back(void* data, cudaMemoryType type) {
  if (!data) return;
  const auto piece = memory.find(static_cast<const char*>(data));
  if (piece == memory.end() || piece->second.type != type) return misuse("memory is given back that is not there");
  memory.erase(piece);
  std::free(data);
  --live(type);
}

void copy(void* to, const void* from, size_t bytes, CUstream_st& stream) {
  if (!stream.recording && is_pageable(from) && !is_pageable(to)) {
    const auto* const begin = static_cast<const unsigned char*>(from);
    const auto staged = std::make_shared<std::vector<unsigned char>>(begin, begin + bytes);
    return enqueue(stream, [=] { std::memcpy(to, staged->data(), staged->size()); });
  }
  enqueue(stream, [=] { std::memmove(to, from, bytes); });
  if (!stream.recording && is_pageable(to)) drain(stream);
}

}  // namespace sconce::test::fake

namespace sconce::test {

using namespace fake;

FakeRuntime& fake_runtime() {
  static FakeRuntime runtime;
  return runtime;
}

void FakeRuntime::fail(const Fault& wanted) {
  const std::lock_guard lock(mutex);
  mend();
  fault = wanted;
  count = matched = 0;
  first_fired.clear();
  names.clear();
}
void FakeRuntime::mend() {
  const std::lock_guard lock(mutex);
  fault = {};
  if (sticks.exchange(cudaSuccess) == cudaSuccess) return;
  for (Thread* const thread : threads()) thread->last = cudaSuccess;
}
std::string FakeRuntime::fired() {
  const std::lock_guard lock(mutex);
  return first_fired;
}
int64_t FakeRuntime::calls() {
  const std::lock_guard lock(mutex);
  return count;
}
std::vector<std::string> FakeRuntime::trace() {
  const std::lock_guard lock(mutex);
  return names;
}
std::string FakeRuntime::misuse(bool modes) {
  const std::lock_guard lock(mutex);
  for (Thread* const thread : threads()) {
    if (thread->last != cudaSuccess)
      fake::misuse("a thread has the error of " + thread->last_of + " left, which a later call would be blamed for");
    thread->last = cudaSuccess;
    if (modes && std::exchange(thread->mode, cudaStreamCaptureModeGlobal) != cudaStreamCaptureModeGlobal)
      fake::misuse("a thread is left with another mode of capture");
    if (!thread->contexts.empty()) fake::misuse("a thread is left with another context");
    thread->contexts.clear();
  }
  return std::exchange(misused, {});
}

int device_of_thread() { return mine.device; }
int device_of_memory(const void* data) {
  const std::lock_guard lock(mutex);
  const auto piece = piece_of(data);
  return piece == memory.end() || piece->second.type != cudaMemoryTypeDevice ? -1 : piece->second.device;
}

cudaError_t launch(const char* name, cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = told(name); error != cudaSuccess) return error;
  enqueue(of(stream), std::move(work));
  return cudaSuccess;
}
cudaError_t launch_by_driver(const char* name, cudaStream_t stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = given(name, cudaSuccess); error != cudaSuccess) return error;
  enqueue(of(stream), std::move(work));
  return cudaSuccess;
}
cudaError_t launch_pieces(const char* name, cudaStream_t stream, std::vector<unsigned char> arguments,
                          void (*work)(const std::vector<unsigned char>& arguments)) {
  const std::lock_guard lock(mutex);
  if (const cudaError_t error = told(name); error != cudaSuccess) return error;
  CUstream_st& where = of(stream);
  if (!where.recording) {
    enqueue(where, [=] { work(arguments); });
    return cudaSuccess;
  }
  where.graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  where.graph->nodes.back()->arguments = std::move(arguments);
  where.graph->nodes.back()->pieces = work;
  return cudaSuccess;
}

}  // namespace sconce::test
