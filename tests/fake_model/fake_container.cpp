#include "fake_container.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "fake_loop.h"

extern "C" [[gnu::weak]] int omp_get_max_threads();
// Of a CUDA device whose work is done later than it is asked for: tests/cuda/fake_kernels.cpp.
// Null, or why not.
extern "C" [[gnu::weak]] const char* fake_cuda_launch(void (*work)(const void* arguments), const void* arguments,
                                                      size_t bytes);

namespace fake {
namespace {

// As the generated code's macro does: the text of the call, not the reason.
#define CHECK_CALL(call)                                                                        \
  if ((call) != 0)                                                                              \
  throw std::runtime_error(std::string(#call) + " API call failed at " + __FILE__ + ", line " + \
                           std::to_string(__LINE__))

constexpr int32_t kCudaDeviceType = 1;  // c10::DeviceType

Blob allocate(size_t bytes) {
  Blob blob(static_cast<unsigned char*>(std::malloc(bytes)));
  if (!blob) throw std::bad_alloc();
  return blob;
}

size_t blob_size() {
  size_t size = 0;
  for (const ConstantInfo& info : kConstants)
    if (!info.folded) size += info.data_size();
  return size;
}

Handle from_blob(void* data, const ConstantInfo& info, int32_t device_index) {
  const int64_t stride = 1;
  AtenTensorHandle handle;
  CHECK_CALL(aoti_torch_create_tensor_from_blob_v2(data, 1, &info.size, &stride, 0, aoti_torch_dtype_float32(),
                                                   kCuda ? kCudaDeviceType : aoti_torch_device_type_cpu(), device_index,
                                                   &handle, aoti_torch_layout_strided(), nullptr, 0));
  return Handle(handle);
}

// Smallest and largest value.
std::pair<float, float> range_of(const float* values) {
  using Lanes [[gnu::vector_size(32)]] = float;
  constexpr int64_t kLanes = 8, kWhole = kFeatures / kLanes * kLanes;
  float least = values[0], most = values[0];
  Lanes low = Lanes{} + least, high = low;
  for (int64_t i = 0; i < kWhole; i += kLanes) {
    Lanes next;
    std::memcpy(&next, values + i, sizeof(next));
    low = next < low ? next : low;
    high = next > high ? next : high;
  }
  for (int64_t i = 0; i < kLanes; ++i) {
    least = std::min(least, low[i]);
    most = std::max(most, high[i]);
  }
  for (int64_t i = kWhole; i < kFeatures; ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  return {least, most};
}

// y = x * w + b for all rows, as a kernel's arguments.
struct Rows {
  const float *x, *w, *b;
  float* y;
  int64_t rows, row_stride, column_stride;
  float extra;
};
void compute_rows(const void* arguments) {
  const Rows& r = *static_cast<const Rows*>(arguments);
  for (int64_t row = 0; row < r.rows; ++row)
    for (int64_t i = 0; i < kFeatures; ++i)
      r.y[row * kFeatures + i] = r.x[row * r.row_stride + i * r.column_stride] * r.w[i] + r.b[i] + r.extra;
}

// Counts down to the call that is to fail.
bool due(std::atomic<int64_t>& counter) {
  int64_t left = counter.load();
  while (left > 0 && !counter.compare_exchange_weak(left, left - 1)) {
  }
  return left == 1;
}

volatile uintptr_t unmapped = 16;  // the compiler does not see that nothing is there

[[gnu::noinline]] int overflow_stack(volatile int* caller) {
  volatile int own[8];
  own[0] = *caller + 1;
  return own[0] < 0 ? 0 : overflow_stack(own) + own[0];
}

const void* volatile taken;  // the compiler does not see that nothing reads the memory

// As the body of a parallel region: no exception may pass, so this frame is abandoned, and the vector with it.
[[gnu::noinline]] void lose_memory(const char* where) noexcept {
  std::vector<char> scratch;
  scratch.reserve(kFakeLoss);
  taken = scratch.data();
  aoti_torch_check(false, where, __FILE__, __LINE__, "Expected u0 <= 8 but received 9");
}

// By a signal, if the kind is one of those.
void fail_by_signal(FakeFailure kind) {
  if (kind == FakeFailure::kAccess) *reinterpret_cast<volatile int*>(unmapped) = 1;
  if (kind == FakeFailure::kLibrary) std::memset(reinterpret_cast<void*>(unmapped), 1, unmapped);
  if (kind == FakeFailure::kEnd) std::abort();
  if (kind == FakeFailure::kOverflow) {
    volatile int none = 0;
    overflow_stack(&none);
  }
}

// Returns false if the failure is one that the model does not notice.
bool fail(AtenTensorHandle tensor, const char* where) {
  int64_t size;
  switch (knobs().fail_kind.load()) {
    case FakeFailure::kException:
      break;
    case FakeFailure::kCheck:
      aoti_torch_check(false, where, __FILE__, __LINE__, "Expected u0 <= 8 but received 9");
      break;
    case FakeFailure::kShim:
      CHECK_CALL(aoti_torch_get_size(tensor, 99, &size));
      break;
    case FakeFailure::kUnchecked:
      aoti_torch_get_size(tensor, 99, &size);
      return false;
    case FakeFailure::kUnknown:
      throw 42;
    case FakeFailure::kLoss:
      lose_memory(where);
      break;
    case FakeFailure::kHang:
      for (;;) ::pause();
    case FakeFailure::kEnd:
    case FakeFailure::kAccess:
    case FakeFailure::kOverflow:
    case FakeFailure::kLibrary:
      fail_by_signal(knobs().fail_kind);
  }
  throw std::runtime_error(std::string("fake model: told to fail in ") + where);
}

}  // namespace

Handle::Handle(AtenTensorHandle handle) : handle_(handle) {
  if (handle_) ++knobs().live_tensors;
}
Handle::Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
Handle& Handle::operator=(Handle&& other) noexcept {
  if (this == &other) return *this;
  reset();
  handle_ = std::exchange(other.handle_, nullptr);
  return *this;
}
AtenTensorHandle Handle::release() {
  if (handle_) --knobs().live_tensors;
  return std::exchange(handle_, nullptr);
}
void Handle::reset() {
  if (AtenTensorHandle handle = release()) aoti_torch_delete_tensor_object(handle);
}
float* Handle::data() const {
  void* data;
  CHECK_CALL(aoti_torch_get_data_ptr(handle_, &data));
  return static_cast<float*>(data);
}

Container::Container(size_t models, const std::string& device) : idle_(models) {
  check_device(device);
  if (const size_t colon = device.find(':'); colon != std::string::npos)
    device_index_ = std::stoi(device.substr(colon + 1));
  ++knobs().creates;
  if (due(knobs().fail_in_creates)) fail(nullptr, "create");
  if (kIncludeWeights) load(active());
  active().state = State::kInitialized;
  ++knobs().live_containers;
}

Container::Container(size_t models, const std::string&, const Constants& constants) : idle_(models) {
  ++knobs().creates;
  if (due(knobs().fail_in_creates)) fail(nullptr, "create");
  update(constants, false, false, true);
  fold(false);
  ++knobs().live_containers;
}

Container::~Container() { --knobs().live_containers; }

// Copies the stored weights to the heap, one after another.
void Container::load(Set& set) {
  set.blob = allocate(blob_size());
  size_t offset = 0;
  for (size_t i = 0; i < kConstantCount; ++i) {
    if (kConstants[i].folded) continue;
    std::memcpy(set.blob.get() + offset, stored_.get() + offset, kConstants[i].data_size());
    // Constants that are there already stay, as with emplace().
    if (!set.tensors.count(kConstants[i].name))
      put(set, i, from_blob(set.blob.get() + offset, kConstants[i], device_index_));
    offset += kConstants[i].data_size();
  }
}

void Container::put(Set& set, size_t constant, Handle tensor) {
  set.data[constant] = tensor.data();
  set.tensors[kConstants[constant].name] = std::move(tensor);
}

void Container::update_from_blob(const unsigned char* blob) {
  set_external_constants(blob);
#ifdef FAKE_EXTERNAL
  load(active());  // a second time it leaves the tensors of the first dangling
#endif
}

void Container::check_full(const Constants& constants) const {
  for (const ConstantInfo& info : kConstants) {
    if (info.folded || constants.count(info.name)) continue;
    if (info.type != kBuffer && info.type != kTensorConstant)
      throw std::runtime_error(std::string("Cannot find constants ") + info.name + " in constants_map!");
    std::cerr << "[WARNING] Found constant or module state buffer or empty module state parameter " << info.name
              << " in model, but not provided by user!\n";
  }
}

void Container::update(const Constants& constants, bool use_inactive, bool full, bool user_managed) {
  ++knobs().updates;
  if (due(knobs().fail_in_updates)) fail(nullptr, "update");
  if (full) check_full(constants);
  Set& target = use_inactive ? inactive() : active();
  Set& source = use_inactive ? active() : inactive();
  target.state = State::kInitialized;
  size_t offset = 0;
  for (size_t i = 0; i < kConstantCount; ++i) {
    const ConstantInfo& info = kConstants[i];
    if (info.folded) continue;
    const size_t at = std::exchange(offset, offset + info.data_size());
    const auto given = constants.find(info.name);
    AtenTensorHandle tensor = given == constants.end() ? nullptr : given->second;
    if (!tensor && use_inactive && (info.type == kBuffer || info.type == kTensorConstant)) {
      const auto kept = source.tensors.find(info.name);
      if (kept != source.tensors.end()) tensor = kept->second.get();
    }
    if (!tensor) continue;
    if (user_managed) {
      AtenTensorHandle alias;
      CHECK_CALL(aoti_torch_new_tensor_handle(tensor, &alias));
      put(target, i, Handle(alias));
      continue;
    }
    void* from;
    int64_t bytes;
    CHECK_CALL(aoti_torch_get_data_ptr(tensor, &from));
    CHECK_CALL(aoti_torch_get_storage_size(tensor, &bytes));
    if (static_cast<size_t>(bytes) > info.data_size()) throw std::runtime_error("constant is larger than its place");
    if (!target.blob) target.blob = allocate(blob_size());
    std::memcpy(target.blob.get() + at, from, static_cast<size_t>(bytes));
    put(target, i, from_blob(target.blob.get() + at, info, device_index_));
  }
}

void Container::fold_set(Set& set) {
  ++knobs().folds;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  knobs().fold_cpus = CPU_COUNT(&cores);
  knobs().fold_threads = omp_get_max_threads ? omp_get_max_threads() : 0;
  if (due(knobs().fail_in_folds)) fail(nullptr, "constant folding");
  if (kHasFolded) {
    if (!set.data[kW]) throw std::runtime_error("constant folding: scale_w was never given");
    const int64_t size = kFeatures, stride = 1;
    AtenTensorHandle handle;
    CHECK_CALL(aoti_torch_empty_strided(1, &size, &stride, aoti_torch_dtype_float32(), aoti_torch_device_type_cpu(), 0,
                                        &handle));
    Handle folded(handle);
    for (int64_t i = 0; i < kFeatures; ++i) folded.data()[i] = 2 * set.data[kW][i];
    put(set, kW2, std::move(folded));
    if (kHasState) *set.data[kSteps] = kFoldedSteps;
  }
  set.state = State::kFolded;
}

void Container::fold(bool use_inactive) {
  const std::unique_lock lock(execution_);
  fold_set(use_inactive ? inactive() : active());
}

void Container::swap() {
  const std::unique_lock lock(execution_);
  active_ = 1 - active_;
}

void Container::free_inactive() {
  Set& set = inactive();
  set.state = State::kNone;
  set.blob.reset();
  if (kHasFolded) set.tensors.erase(kConstants[kW2].name);
}

std::vector<std::pair<const char*, AtenTensorHandle>> Container::extract(bool use_inactive) const {
  const Set& set = sets_[use_inactive ? 1 - active_ : active_];
  std::vector<std::pair<const char*, AtenTensorHandle>> result;
  for (const ConstantInfo& info : kConstants) {
    const auto found = set.tensors.find(info.name);
    if (!info.folded && found != set.tensors.end()) result.emplace_back(info.fqn, found->second.get());
  }
  return result;
}

const std::vector<AOTInductorConstantMapEntry>& Container::extract_entries(bool use_inactive) {
  entries_.clear();
  for (const auto& [fqn, handle] : extract(use_inactive)) entries_.push_back({fqn, handle});
  return entries_;
}

void Container::run(AtenTensorHandle* inputs, AtenTensorHandle* outputs, bool shared) {
  if (!shared) {
    if (active().state == State::kInitialized) fold_set(active());
    if (active().state != State::kFolded) throw std::runtime_error("Unknown constant state: ConstantState::NONE");
    return run_model(inputs, outputs);
  }
  std::shared_lock running(execution_);
  if (active().state == State::kInitialized) {
    running.unlock();
    {
      const std::unique_lock folding(execution_);
      if (active().state == State::kInitialized) fold_set(active());
    }
    running.lock();
  }
  if (active().state != State::kFolded) throw std::runtime_error("Unknown constant state: ConstantState::NONE");
  std::unique_lock pool(pool_);
  returned_.wait(pool, [&] { return idle_ > 0; });
  --idle_;
  pool.unlock();
  struct Return {
    Container& container;
    ~Return() {
      const std::lock_guard lock(container.pool_);
      ++container.idle_;
      container.returned_.notify_one();
    }
  } give_back{*this};
  run_model(inputs, outputs);
}

void Container::run_model(AtenTensorHandle* inputs, AtenTensorHandle* outputs) {
  if (kLoop) return run_loop(inputs, outputs, kCuda ? kCudaDeviceType : aoti_torch_device_type_cpu(), device_index_);
  struct Running {
    Running() {
      const int64_t now = ++knobs().running;
      int64_t most = knobs().most_running.load();
      while (now > most && !knobs().most_running.compare_exchange_weak(most, now)) {
      }
    }
    ~Running() { --knobs().running; }
  } running;
  ++knobs().runs;
  Handle x(std::exchange(inputs[0], nullptr));
  int64_t rank, *sizes, *strides;
  int32_t dtype;
  CHECK_CALL(aoti_torch_get_dim(x.get(), &rank));
  CHECK_CALL(aoti_torch_get_sizes(x.get(), &sizes));
  CHECK_CALL(aoti_torch_get_strides(x.get(), &strides));
  CHECK_CALL(aoti_torch_get_dtype(x.get(), &dtype));
  if (rank != 2 || sizes[1] != kColumns || dtype != aoti_torch_dtype_float32())
    throw std::runtime_error("input_handles[0]: unmatched dtype or dim value, expected float32 [B, " +
                             std::to_string(kColumns) + "]");
  if (int32_t type; kCuda) {
    CHECK_CALL(aoti_torch_get_device_type(x.get(), &type));
    if (type != kCudaDeviceType) throw std::runtime_error("input_handles[0]: unmatched device type");
  }
  const float* in = x.data();
  const float first = sizes[0] > 0 ? in[0] : 0;
  const int64_t sleep = first == kFakeSleepInput ? 50'000 : knobs().sleep_us.load();
  if (sleep > 0) std::this_thread::sleep_for(std::chrono::microseconds(sleep));
  wait_while_held(sizes[0] > 0 ? in[1] : 0);
  const bool told = due(knobs().fail_in_runs);
  if (first == kFakeFailInput) fail_by_signal(knobs().fail_kind);
  if (first == kFakeFailInput) throw std::runtime_error("fake model: told to fail by its input");
  if (told && !fail(x.get(), "run")) return;

  Set& set = active();
  const float* w = set.data[kHasFolded ? kW2 : kW];
  const float* b = set.data[kB];
  float* steps = kHasState ? set.data[kSteps] : nullptr;
  if (!w || !b || (kHasState && !steps)) throw std::runtime_error("the constants were never given");
  const void* used[4] = {set.data[kW], b, steps, kHasFolded ? w : nullptr};
  for (size_t i = 0; i < 4; ++i) knobs().constants[i] = used[i];

  const int64_t out_sizes[] = {sizes[0], kColumns}, out_strides[] = {kColumns, 1};
  AtenTensorHandle handle;
  const int32_t device_type = kCuda ? kCudaDeviceType : aoti_torch_device_type_cpu();
  CHECK_CALL(aoti_torch_empty_strided(2, out_sizes, out_strides, aoti_torch_dtype_float32(), device_type, device_index_,
                                      &handle));
  Handle y(handle);
  float* out = sizes[0] > 0 ? y.data() : nullptr;
  const float extra = !steps ? 0 : kHasFolded ? *steps : (*steps)++;
  if (kSummary) {
    const auto [w_low, w_high] = range_of(w);
    const auto [b_low, b_high] = range_of(b);
    const float summary[] = {w_low, w_high, b_low, b_high};
    for (int64_t r = 0; r < sizes[0]; ++r)
      for (int64_t i = 0; i < 4; ++i) out[r * 4 + i] = in[r * strides[0] + i * strides[1]] + summary[i];
    outputs[0] = y.release();
    return;
  }
  const Rows all{in, w, b, out, sizes[0], strides[0], strides[1], extra};
  if (kCuda && fake_cuda_launch) {
    if (const char* const why = fake_cuda_launch(&compute_rows, &all, sizeof all))
      throw std::runtime_error(std::string("CUDA driver error: ") + why);
  } else {
    compute_rows(&all);
  }
  if (knobs().write_input && sizes[0] > 0) x.data()[0] += 1;
  outputs[0] = (knobs().return_input ? x : y).release();
}

}  // namespace fake
