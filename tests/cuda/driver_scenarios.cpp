// The scenarios in which CUDA calls fail.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "driver_faults.h"
#include "fake_package.h"
#include "fake_runner.h"
#include "fake_runtime.h"
#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "sconce/model.h"
#include "src/aoti_abi/abi_types.h"
#include "src/aoti_abi/guard.h"
#include "src/cuda/memory/model_memory.h"
#include "src/cuda/memory/pinned_memory.h"
#include "src/cuda/memory/shared_memory.h"
#include "src/cuda/memory/upload.h"
#include "src/cuda/runtime/caching_allocator.h"
#include "src/cuda/runtime/copy.h"
#include "src/cuda/runtime/modules.h"
#include "src/cuda/runtime/stream.h"
#include "src/tensor/copy.h"

extern "C" {
AOTITorchError aoti_torch_create_cuda_guard(int32_t device_index, CUDAGuardOpaque** ret);
AOTITorchError aoti_torch_delete_cuda_guard(CUDAGuardOpaque* handle);
AOTITorchError aoti_torch_create_cuda_stream_guard(void* stream, int32_t device_index, CUDAStreamGuardOpaque** ret);
AOTITorchError aoti_torch_delete_cuda_stream_guard(CUDAStreamGuardOpaque* handle);
AOTITorchError aoti_torch_cuda_caching_allocator_raw_alloc(uint64_t bytes, void** ret);
AOTITorchError aoti_torch_cuda_caching_allocator_raw_delete(void* data);
AOTITorchError torch_cuda_stream_synchronize(void* stream, int32_t device_index);
sconce::DeviceBackend* sconce_cuda_backend(const char** reason);
}

namespace sconce::test {
namespace {

constexpr Device kFirst{DeviceType::kCuda, 0}, kSecond{DeviceType::kCuda, 1};
Device other(Device device) { return device == kFirst ? kSecond : kFirst; }
DeviceBackend& backend() { return device_backend(DeviceType::kCuda); }

// 0, 1, 2, ... in row-major order.
Tensor counted(const Ints& sizes, const Ints& strides, DType dtype = DType::kFloat32, float first = 0) {
  Tensor numbers = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < numbers.numel(); ++i) numbers.data_as<float>()[i] = first + static_cast<float>(i);
  Tensor all = Tensor::empty_strided(sizes, strides, dtype);
  copy(numbers, all);
  return all;
}
bool is_counted(const Tensor& tensor, float first = 0) {
  Tensor numbers = Tensor::empty(tensor.sizes(), DType::kFloat32);
  if (tensor.is_cpu())
    copy(tensor, numbers);
  else
    backend().copy(tensor, numbers);
  for (int64_t i = 0; i < numbers.numel(); ++i)
    if (numbers.data_as<float>()[i] != first + static_cast<float>(i)) return false;
  return true;
}
void must_be_on(Device device, const Tensor& tensor) {
  must(device_of_memory(tensor.data()) == device.index, "memory is of another device than it says");
}

void lanes(Device device) {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  {
    const DeviceStream::Scope scope(lane.get());
    Tensor a = Tensor::empty(Ints{100}, DType::kFloat32, device);
    must_be_on(device, a);
    a = Tensor();
    a = Tensor::empty(Ints{90}, DType::kFloat32, device);
    const Tensor b = Tensor::empty(Ints{5000}, DType::kFloat64, device);
    must_be_on(device, b);
    lane->synchronize();
    a = Tensor();
    lane->trim();
    backend().wait(device);
  }
  lane->fault();
}

void memory(Device device) {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  StoragePtr outlives;
  {
    const DeviceStream::Scope scope(lane.get());
    outlives = backend().allocate(3000, device);
    backend().allocate(70'000, device);  // cached after this
    must(backend().memory(device).cached > 0, "what came back is not kept");
    cuda::CachingAllocator::trim_all(device.index);
    backend().allocate(70'000, device);
  }
  const StoragePtr lasting = backend().allocate_lasting(1000, device), there = backend().allocate(10, other(device));
  must(device_of_memory(lasting->data()) == device.index, "lasting memory is of another device");
  must(device_of_memory(there->data()) == other(device).index, "memory is of another device");
  backend().trim(device);
  must(backend().capability(device) == 90, "the capability");
  must(backend().name(device) == "made up", "the name");
}

void pinned(Device device) {
  cuda::PinnedMemory all;
  StoragePtr a = all.allocate(100), b = all.allocate(100'000);
  std::memset(b->data(), 1, 100'000);
  a = all.allocate(5000);
  all.trim();
  all.trim();
  a = b = StoragePtr();
  a = all.allocate(6000);
  a = StoragePtr();
  all.trim();
  all.trim();
  backend().allocate_host(300);
  backend().trim(device);
}

void upload_to(DeviceBackend& to, Device device, size_t count) {
  std::vector<float> from(count);
  for (size_t i = 0; i < count; ++i) from[i] = static_cast<float>(i);
  static const int file = [] {
    const int made = memfd_create("weights", MFD_CLOEXEC);
    const float values[] = {7, 8, 9, 10};
    SCONCE_CHECK(write(made, values, sizeof values) == sizeof values, kIo, "the file of the test");
    return made;
  }();
  const StoragePtr memory = backend().allocate_lasting((count + 3) * sizeof(float), device);
  auto* const there = static_cast<float*>(memory->data());
  const Upload uploads[] = {{reinterpret_cast<const std::byte*>(from.data()), count * sizeof(float), there},
                            {nullptr, 3 * sizeof(float), there + count, file, sizeof(float)}};
  to.upload(uploads, device, {});
  std::vector<float> back(count + 3);
  const int64_t sizes[] = {static_cast<int64_t>(back.size())}, strides[] = {1};
  Tensor here = Tensor::from_blob(back.data(), sizes, strides, DType::kFloat32);
  backend().copy(Tensor(memory, DType::kFloat32, sizes, strides), here);
  for (size_t i = 0; i < count; ++i) must(back[i] == from[i], "what was uploaded is not there");
  must(back[count] == 8 && back[count + 2] == 10, "what was uploaded of a file is not there");
}
void uploads(Device device) { upload_to(backend(), device, 200'000); }
void uploads_of_threads(Device device) { upload_to(backend(), device, 5 << 20); }

void first_backend(Device device) {
  const char* reason = "";
  const std::unique_ptr<DeviceBackend> own(sconce_cuda_backend(&reason));
  SCONCE_CHECK(own, kUnavailable, "CUDA devices cannot be used: ", reason);
  must(own->count() == 2, "the number of devices");
  upload_to(*own, device, 3000);
  own->allocate_host(100);
  own->trim(device);
  own->trim(device);
}

void copies(Device device) {
  const Ints sizes{3, 4}, rows{4, 1}, columns{1, 3};
  const auto empty = [&](const Ints& strides, DType dtype, Device where) {
    return Tensor::empty_strided(sizes, strides, dtype, where);
  };
  Tensor plain = empty(rows, DType::kFloat32, device);
  backend().copy(counted(sizes, rows), plain);
  must_be_on(device, plain);
  Tensor turned = empty(rows, DType::kFloat32, device);
  backend().copy(counted(sizes, columns), turned);  // packed on the host first
  Tensor wide = empty(columns, DType::kFloat64, device);
  backend().copy(turned, wide);
  Tensor back = empty(rows, DType::kFloat64, Device{});
  backend().copy(wide, back);
  must(is_counted(back), "copies to the device, there, and back");
  must(is_counted(plain), "a copy and back");
  Tensor gaps = Tensor::empty_strided(sizes, Ints{8, 2}, DType::kFloat32, device);
  backend().copy(counted(sizes, rows), gaps);
  must(is_counted(gaps), "a copy to memory with gaps");
  Tensor there = empty(columns, DType::kFloat32, other(device));
  backend().copy(plain, there);
  must_be_on(other(device), there);
  must(is_counted(there), "a copy between devices");
  const float seven = 7;
  backend().fill(plain, &seven);
  must(!is_counted(plain), "a fill");
  // After a copy returns, its host memory may be reused.
  Tensor pinned(backend().allocate_host(48), DType::kFloat32, sizes, rows);
  copy(counted(sizes, rows), pinned);
  backend().copy(pinned, plain);
  std::memset(pinned.data(), 0, 48);
  must(is_counted(plain), "a copy of pinned memory that was touched when it returned");
  Tensor fetched(backend().allocate_host(48), DType::kFloat32, sizes, rows);
  backend().copy(plain, fetched);
  must(is_counted(fetched), "a copy to pinned memory");
  Tensor again = empty(rows, DType::kFloat32, device);
  transfer(plain, again);
  must(is_counted(again), "a transfer");
}
void copies_in_lane(Device device) {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  const DeviceStream::Scope scope(lane.get());
  copies(device);
  lane->synchronize();
}

// Rows whose numbers ascend, on the device and as ranks of the host.
void last_rows_of(Device device) {
  const Ints sizes{4, 40'000}, strides{1, 4};
  Tensor there = Tensor::empty_strided(sizes, strides, DType::kFloat32, device);
  backend().copy(counted(sizes, strides), there);
  const Tensor rows = last_rows(there, {.parts = 2});
  must(rows.is_cpu() && rows.size(0) == 2, "the last rows");
  must(rows.data_as<float>()[0] == 40'000 && rows.data_as<float>()[79'999] == 159'999, "the last rows' numbers");
  const Tensor ranks = last_rows(there, {.parts = 2, .largest = 3});
  must(ranks.data_as<uint64_t>()[0] == rank_of(79'999, 39'999), "the largest of a row");
  must(ranks.data_as<uint64_t>()[5] == rank_of(159'997, 39'997), "the third largest of a row");
}
void last_rows_in_lane(Device device) {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  const DeviceStream::Scope scope(lane.get());
  last_rows_of(device);
  lane->synchronize();
}

void graphs(Device device) {
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  const DeviceStream::Scope scope(lane.get());
  const Ints sizes{40}, one{1};
  Tensor in = Tensor::empty(sizes, DType::kFloat32, device), out = Tensor::empty(sizes, DType::kFloat64, device);
  std::unique_ptr<DeviceGraph> graph;
  try {
    lane->begin_capture(1);
    Tensor middle = Tensor::empty(sizes, DType::kFloat64, device);
    backend().copy_async(in, middle);
    backend().copy_async(middle, out);
    graph = lane->end_capture(1);
  } catch (...) {
    lane->drop_capture();
    // The lane works again.
    const bool lost = fake_runtime().sticks != cudaSuccess;
    fake_runtime().mend();
    if (!lost) {
      backend().copy(counted(sizes, one), in);
      must(is_counted(in), "a copy on a lane whose recording failed");
    }
    throw;
  }
  for (const float first : {1.F, 100.F}) {
    const StoragePtr from = backend().allocate_host(160), to = backend().allocate_host(320);
    Tensor source(from, DType::kFloat32, sizes, one), target(to, DType::kFloat64, sizes, one);
    copy(counted(sizes, one, DType::kFloat32, first), source);
    const DeviceCopy before[] = {{from->data(), in.data(), 160}}, after[] = {{out.data(), to->data(), 320}};
    graph->launch(before, after);
    lane->synchronize();
    must(is_counted(target, first), "a recorded graph");
  }
}

void shared(Device device) {
  alignas(256) static unsigned char theirs[2][4096];
  std::array<std::byte, kDeviceMemoryHandleBytes> handle{};
  const void* const address = theirs[device.index];
  const int index = device.index;
  std::memcpy(handle.data(), &address, sizeof address);
  std::memcpy(handle.data() + sizeof address, &index, sizeof index);
  const StoragePtr opened = backend().open_shared(handle, device);
  must(opened->data() == address && opened->bytes() == 4096, "shared memory");
  Tensor there(opened, DType::kFloat32, Ints{5}, Ints{1});
  backend().copy(counted(Ints{5}, Ints{1}), there);
  must(is_counted(there), "shared memory's numbers");
  bool waited = false;
  std::array<std::byte, kDeviceEventHandleBytes> event{};
  const bool* const flag = &waited;
  std::memcpy(event.data(), &flag, sizeof flag);
  backend().wait_for_shared(event, device);
  must(waited, "the other process's event");
}

// Like a model, throws the runtime's errors.
void checked(cudaError_t error) {
  SCONCE_CHECK(error == cudaSuccess, kModelFailed, "CUDA error: ", cudaGetErrorString(error));
}
void checked(AOTITorchError error) {
  if (error == 0) return;
  const auto failure = aoti_abi::take_error();
  throw Error(failure ? failure->code : ErrorCode::kInternal, failure ? failure->text : "no reason");
}

struct Noting final : DeviceLoading {
  bool note_copy(void*, const void*, size_t bytes) noexcept override {
    noted += bytes;
    return true;
  }
  size_t noted = 0;
};

void models_memory(Device device) {
  const cuda::DeviceScope scope(device);
  struct Owned {
    void* data = nullptr;
    ~Owned() {
      if (data) cuda::model_free(data);
    }
  };
  {
    Noting loading;
    Owned constants;
    checked(cuda::model_malloc(&constants.data, 1000));
    checked(cuda::model_memcpy(constants.data, &loading, 8, cudaMemcpyHostToDevice));
    checked(cuda::model_memcpy_async(constants.data, &loading, 8, cudaMemcpyHostToDevice, nullptr));
    must(loading.noted == 16, "copies of constants are noted");
  }
  Owned memory;
  checked(cuda::model_malloc(&memory.data, 64));
  const int values[] = {3, 4};
  int back[2] = {};
  checked(cuda::model_memcpy(memory.data, values, sizeof values, cudaMemcpyHostToDevice));
  checked(cuda::model_memcpy_async(back, memory.data, sizeof back, cudaMemcpyDeviceToHost, nullptr));
  backend().wait(device);
  must(back[0] == 3 && back[1] == 4, "the model's own copies");
}

void modules(Device device) {
  struct Files final : DeviceFiles {
    const char image[8] = "cubin";
    std::span<const std::byte> find(std::string_view name) const override {
      return name == "a.cubin" ? std::as_bytes(std::span(image)) : std::span<const std::byte>();
    }
  } files, more;
  struct Forget {
    const DeviceFiles& files;
    ~Forget() { backend().forget(files); }
  } const first{files}, second{more};
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  const DeviceStream::Scope scope(lane.get());
  CUmodule module = nullptr, again = nullptr;
  const auto load = [](CUmodule* into, const DeviceFiles& of) {
    const DeviceFiles::Scope theirs(&of);
    const CUresult error = cuda::load_module_file(into, "/tmp/a.cubin");
    SCONCE_CHECK(error == CUDA_SUCCESS, kModelFailed,
                 "CUDA driver error: ", cudaGetErrorString(static_cast<cudaError_t>(error)));
  };
  load(&module, files);
  load(&again, files);
  must(module && module == again, "a module is loaded once");
  load(&again, more);
  must(again != module, "another model's is another");
  cuda::unload_module(module);
}

void models_streams(Device device) {
  CUDAGuardOpaque* guard = nullptr;
  checked(aoti_torch_create_cuda_guard(device.index, &guard));
  const std::unique_ptr<CUDAGuardOpaque, decltype(&aoti_torch_delete_cuda_guard)> there(guard,
                                                                                        &aoti_torch_delete_cuda_guard);
  must(device_of_thread() == device.index, "a guard's device");
  CUDAStreamGuardOpaque* stream = nullptr;
  checked(aoti_torch_create_cuda_stream_guard(nullptr, other(device).index, &stream));
  const std::unique_ptr<CUDAStreamGuardOpaque, decltype(&aoti_torch_delete_cuda_stream_guard)> on(
      stream, &aoti_torch_delete_cuda_stream_guard);
  must(device_of_thread() == other(device).index, "a stream guard's device");
  void* data = nullptr;
  checked(aoti_torch_cuda_caching_allocator_raw_alloc(100, &data));
  struct Back {
    void* data;
    ~Back() { aoti_torch_cuda_caching_allocator_raw_delete(data); }
  } const back{data};
  checked(torch_cuda_stream_synchronize(nullptr, other(device).index));
}

// The word in which kernels note errors.
void notes(Device device) {
  {
    const cuda::DeviceScope scope(device);
    *cuda::noted_by_kernels() = 0;
    cuda::check_noted();
  }
  const std::unique_ptr<DeviceStream> lane = backend().make_lane(device);
  const DeviceStream::Scope scope(lane.get());
  *cuda::noted_by_kernels() = static_cast<int>(cuda::Noted::kScatter);
  cuda::check_noted();
  try {
    lane->synchronize();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    return;
  }
  throw Wrong("what a kernel noted is not told");
}

const std::shared_ptr<const Package>& package() {
  static const TempFolder folder;
  static const std::shared_ptr<const Package> opened = [] {
    fake::write_directory(folder.path() / "package", {{"model", fake::model("fake_cuda")}}, true);
    return Package::open(folder.path() / "package");
  }();
  return opened;
}

// Every replica answers correctly. Inputs differ, so that a graph cannot answer with old ones.
void must_answer(Model& model, const std::vector<float>& w, const std::vector<float>& b, int rounds = 1) {
  for (int i = 0; i < rounds; ++i)
    for (const uint64_t affinity : {1, 2, 3, 4}) {
      const float x = static_cast<float>(10 * i) + static_cast<float>(affinity);
      const std::vector<Tensor> inputs{filled({2, 4}, x)};
      std::vector<Tensor> outputs(1);
      model.run(inputs, outputs, affinity);
      for (size_t c = 0; c < 8; ++c)
        must(outputs[0].data_as<float>()[c] == x * w[c % 4] + b[c % 4], "the model's answer");
    }
}
const std::vector<float> kW{1, 2, 3, 4}, kB{0, 10, 20, 30}, kNewW{9, 8, 7, 6};

// Lets act use a model. If it throws, the model must still answer, unless the device is lost.
template <class F>
void with_model(std::vector<Device> devices, int graphs, F&& act) {
  LoadOptions options;
  options.devices = std::move(devices);
  options.cuda_graphs = graphs;
  const std::shared_ptr<Model> model = Model::load(package(), options);
  try {
    act(*model);
  } catch (const Error&) {
    const bool lost = fake_runtime().sticks != cudaSuccess;
    fake_runtime().mend();
    // Only weight version 2 has new weights, not the first and not what a rollback restores.
    if (!lost && !model->failed()) must_answer(*model, model->weight_version() == 2 ? kNewW : kW, kB);
    throw;
  }
}

void model_runs(Device device) {
  with_model({device}, 0, [](Model& model) {
    must_answer(model, kW, kB);
    model.give_back_idle_memory();
    model.give_back_idle_memory();
    must_answer(model, kW, kB);
  });
}
void model_graphs(Device device) {
  with_model({device}, 2, [](Model& model) {
    must_answer(model, kW, kB, 4);
    must(fake_runtime().fired().empty() == false || model.replicas().at(0).graph_runs > 0, "a graph is used");
  });
}
void model_updates(Device device) {
  with_model({device, other(device)}, 2, [](Model& model) {
    must_answer(model, kW, kB);
    stage(model, {{"scale.w", kNewW}}, {.full = false});
    must_answer(model, kW, kB);
    model.commit_weights();
    must_answer(model, kNewW, kB);
    model.rollback_weights();
    must_answer(model, kW, kB);
    model.release_previous();
  });
}
void model_replicas(Device device) {
  with_model({device}, 0, [&](Model& model) {
    model.add_replica(other(device));
    must_answer(model, kW, kB);
    model.remove_replica(0);
    must_answer(model, kW, kB);
    must(model.extract_constants(WeightState::kActive).at("scale.w").data_as<float>()[1] == 2, "extracted constants");
  });
}

}  // namespace

std::vector<Scenario> driver_scenarios() {
  return {{"a lane", lanes},
          {"memory", memory},
          {"pinned memory", pinned},
          {"uploads", uploads},
          {"uploads of several threads", uploads_of_threads},
          {"the backend", first_backend},
          {"copies", copies},
          {"copies in a lane", copies_in_lane},
          {"last rows", last_rows_of},
          {"last rows in a lane", last_rows_in_lane},
          {"graphs", graphs},
          {"shared memory", shared},
          {"memory of models", models_memory},
          {"modules", modules},
          {"streams of models", models_streams},
          {"notes of kernels", notes},
          {"a model that runs", model_runs},
          {"a model's graphs", model_graphs},
          {"a model's updates", model_updates},
          {"a model's replicas", model_replicas}};
}

}  // namespace sconce::test
