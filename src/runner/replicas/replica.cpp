#include "src/runner/replicas/replica.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "src/aoti_abi/guard.h"
#include "src/device/compiled_threads.h"
#include "src/device/threads.h"
#include "src/runner/constants/device_memory.h"
#include "src/runner/constants/own_pages.h"
#include "src/tensor/copy.h"
#include "src/tensor/last_rows.h"

namespace sconce::runner {
namespace {

// Up to this size a graph reads and writes host memory itself, because the device's copy engine starts later.
constexpr size_t kStagedBytes = 64 << 10;

// Provides a container with the tensors of a set.
class FromSet final : public loader::ConstantSource {
 public:
  explicit FromSet(const std::vector<Tensor>& tensors) : tensors_(tensors) {}
  Tensor constant(size_t index, const Tensor&, bool, Device) override { return tensors_.at(index); }

 private:
  const std::vector<Tensor>& tensors_;
};

}  // namespace

Replica::Replica(Device device, Settings settings) : device_(device), settings_(std::move(settings)) {
  if (device.type != DeviceType::kCpu) stream_ = device_backend(device).make_lane(device, settings_.lane);
}

namespace {

// Folding runs the model's code, so it needs the same numbers of threads. Set them only then: a thread's first call
// makes libgomp allocate, which ends the process if there is no memory.
class FoldingThreads {
 public:
  FoldingThreads(int kernels, int compiled) {
    set_kernel_threads(kernels);
    set_compiled_threads(compiled);
  }
  ~FoldingThreads() {
    set_kernel_threads(kernels_);
    set_compiled_threads(compiled_);
  }

 private:
  const int kernels_ = kernel_threads(), compiled_ = compiled_threads();
};

size_t bytes_of(const Tensor& tensor) {
  return storage_bytes_needed(tensor.sizes(), tensor.strides(), 0, tensor.itemsize());
}

// Up to this size a copy costs less than a mapping.
constexpr size_t kMappedBytes = 256 << 10;

// A tensor like this one for a replica to write.
Tensor own_copy(const Tensor& tensor, const ConstantSpec& spec) {
  if (spec.assumed && tensor.storage()->immutable() && bytes_of(tensor) >= kMappedBytes)
    if (StoragePtr pages = own_pages(*tensor.storage()))
      return Tensor(std::move(pages), tensor.dtype(), tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return clone_preserve_strides(tensor);
}

// Gives `to`, which own_copy() made of such a tensor, the values of `from`. Pages that have them stay shared.
void copy_where_different(const Tensor& from, const Tensor& to) {
  constexpr size_t kPage = 4096;
  const size_t bytes = bytes_of(to);
  const auto* const source = static_cast<const std::byte*>(from.data());
  auto* const target = static_cast<std::byte*>(to.data());
  for (size_t at = 0; at < bytes; at += kPage) {
    const size_t count = std::min(kPage, bytes - at);
    if (std::memcmp(target + at, source + at, count) != 0) std::memcpy(target + at, source + at, count);
  }
}

Tensor row_of(const Tensor& tensor, int64_t row) {
  return tensor.as_strided(tensor.sizes().subspan(1), tensor.strides().subspan(1),
                           tensor.storage_offset() + row * tensor.stride(0));
}

// Replaces these tensors by copies. Those on a device share one piece of its memory, because a stream's pool would take
// 2 MiB for each container, whose buffers may be small.
void copy_buffers(std::vector<Tensor>& tensors, const std::vector<size_t>& which, const ConstantTable& table) {
  std::vector<size_t> there, offsets;
  size_t total = 0;
  for (const size_t i : which) {
    if (tensors[i].is_cpu()) {
      tensors[i] = own_copy(tensors[i], table.stored()[i].spec);
      continue;
    }
    there.push_back(i);
    offsets.push_back(place_on_device(bytes_of(tensors[i]), total));
  }
  if (there.empty()) return;
  const Device device = tensors[there.front()].device();
  const StoragePtr memory = device_backend(device).allocate_lasting(total, device);
  for (size_t k = 0; k < there.size(); ++k) {
    Tensor& tensor = tensors[there[k]];
    tensor = clone_in(tensor, part_of(memory, offsets[k], bytes_of(tensor)));
  }
}

}  // namespace

std::unique_ptr<ModelInstance> Replica::instantiate(const std::shared_ptr<const loader::Module>& module,
                                                    const ConstantTable& table, const ConstantSet& set,
                                                    const std::vector<bool>& reset, const ModelInstance* before,
                                                    const ConstantSet* active) const {
  auto instance = std::make_unique<ModelInstance>();
  std::vector<Tensor> tensors = set.on(device_, table, active);
  // Requests use the replica's stream, so this has its own.
  const std::unique_ptr<DeviceStream> stream =
      stream_ ? device_backend(device_).make_lane(device_, settings_.lane) : nullptr;
  const DeviceStream::Scope on_device(stream.get());
  if (table.any_mutated()) {
    if (before) instance->buffers = before->buffers;
    instance->buffers.resize(tensors.size());
    std::vector<size_t> own;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!table.stored()[i].spec.mutated || !tensors[i].defined()) continue;
      if (!instance->buffers[i].defined() || (i < reset.size() && reset[i]))
        own.push_back(i);
      else
        tensors[i] = instance->buffers[i];
    }
    copy_buffers(tensors, own, table);
    for (const size_t i : own) instance->buffers[i] = tensors[i];
  }
  FromSet source(tensors);
  instance->container = std::make_unique<loader::Container>(module, device_, source);
  if (instance->container->constants_given() == 0 && !tensors.empty()) {
    std::vector<std::pair<std::string, Tensor>> pairs;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].defined()) pairs.emplace_back(table.stored()[i].spec.name, tensors[i]);
    if (!pairs.empty()) instance->container->set_constants(pairs);
  }
  // Without folded constants there is nothing to compute, and a container would say so on std::cerr.
  if (table.any_folded() && set.missing(table).empty()) {
    const FoldingThreads threads(settings_.threads, settings_.compiled_threads);
    instance->container->fold(stream ? stream->stream() : nullptr);
  }
  if (stream) stream->synchronize();
  if (stream && settings_.graphs > 0) {
    const char* why = nullptr;
    if (!instance->container->can_be_recorded()) why = "the package is of a torch without RunSingleThreaded";
    for (size_t i = 0; i < settings_.input_devices.size(); ++i)
      if (reads_on_host(i)) why = "it reads inputs on the host";
    for (const StoredConstant& constant : table.stored())
      if (constant.spec.mutated && constant.spec.device.value_or(device_).type == DeviceType::kCpu)
        why = "it writes buffers on the host";
    if (why)
      graphs_->refused(why, true);
    else if (graphs_->recordable())  // what an earlier weight version could not, this one cannot
      instance->graphs = std::make_unique<GraphRuns>(static_cast<size_t>(settings_.graphs), graphs_);
  }
  return instance;
}

void Replica::restore(ModelInstance& instance, const ConstantTable& table, const ConstantSet& set,
                      const ConstantSet* active) {
  const DeviceStream::Scope on_device(stream_.get());
  const std::vector<Tensor>& values = set.on(device_, table, active);
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    Tensor& own = instance.buffers[i];
    if (!own.defined() || !values[i].defined()) continue;
    const IntSpan a = values[i].strides(), b = own.strides();
    if (table.stored()[i].spec.assumed && own.is_cpu() && std::equal(a.begin(), a.end(), b.begin(), b.end()))
      copy_where_different(values[i], own);
    else
      copy(values[i], own);
  }
  if (stream_) stream_->synchronize();
}

std::vector<Tensor> Replica::copies_of(const std::vector<Tensor>& buffers, const ConstantTable& table) const {
  const DeviceStream::Scope on_device(stream_.get());
  std::vector<Tensor> copies = buffers;
  std::vector<size_t> own;
  for (size_t i = 0; i < copies.size(); ++i)
    if (copies[i].defined()) own.push_back(i);
  copy_buffers(copies, own, table);
  return copies;
}

void Replica::move_rows(ModelInstance& instance, std::vector<Tensor>& aside, const ConstantTable& table,
                        const ConstantSet& set, const ConstantSet* active, const SequenceRows& rows) const {
  const DeviceStream::Scope on_device(stream_.get());
  const auto move = [&](std::span<const uint32_t> list, const std::vector<Tensor>& from,
                        const std::vector<Tensor>& to) {
    for (size_t i = 0; i < instance.buffers.size() && !list.empty(); ++i) {
      if (!instance.buffers[i].defined() || !from[i].defined()) continue;
      for (const uint32_t row : list) {
        Tensor there = row_of(to[i], row);
        copy(row_of(from[i], row), there);
      }
    }
  };
  move(rows.set_aside, instance.buffers, aside);
  move(rows.bring_back, aside, instance.buffers);
  if (!rows.reset.empty()) move(rows.reset, set.on(device_, table, active), instance.buffers);
}

void Replica::run(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                  const Delivery& delivery) {
  const CpuArena::Scope scope(arena_.get());
  ran_ = true;
  set_kernel_threads(settings_.threads);
  set_compiled_threads(settings_.compiled_threads);
  if (!stream_) return instance.container->run(inputs, outputs);
  const DeviceStream::Scope on_device(stream_.get());
  const Delivery to{delivery.device_outputs || !settings_.host_outputs, delivery.last_rows};
  if (!instance.graphs || !run_as_graph(instance, inputs, outputs, to)) run_on_device(instance, inputs, outputs, to);
}

void Replica::give_back_idle_memory() noexcept {
  const CpuArena::Scope scope(arena_.get());
  arena_->decay();
  // Device memory makes the next run quick, so free it only if there was none.
  if (stream_ && !std::exchange(ran_, false)) stream_->trim();
}

bool Replica::lost() noexcept {
  if (!stream_) return false;
  const char* const fault = stream_->fault();
  if (!fault) return false;
  failure_.store(fault, std::memory_order_relaxed);
  return true;
}

const char* Replica::failure() const noexcept {
  const char* const failure = failure_.load(std::memory_order_relaxed);
  return failure ? failure : "";
}

bool Delivery::rows_of(size_t output, const Tensor& made) const noexcept {
  return static_cast<int>(output) == last_rows.output && has_last_rows(made, last_rows.rows);
}

Tensor Replica::fetched(const Tensor& output) const {
  DeviceBackend& backend = device_backend(device_);
  // Elements that share memory or leave gaps arrive packed.
  std::vector<int64_t> strides(output.strides().begin(), output.strides().end());
  if (!output.is_dense()) contiguous_strides(output.sizes(), strides.data());
  const size_t bytes = storage_bytes_needed(output.sizes(), strides, 0, output.itemsize());
  Tensor here(backend.allocate_host(std::max<size_t>(bytes, 1)), output.dtype(), output.sizes(), strides);
  backend.copy_async(output, here);
  return here;
}

void Replica::bring_back(size_t i, const Tensor& sent, const Tensor& input) const {
  if (!may_write(i) || input.numel() == 0) return;
  DeviceBackend& backend = device_backend(device_);
  Tensor theirs = input;
  if (!input.is_cpu()) return backend.copy(sent, theirs);
  // The model may write this input but perhaps did not; then its memory may be read-only, so compare first.
  Tensor now = Tensor::empty(input.sizes(), input.dtype());
  backend.copy(sent, now);
  const Tensor before = contiguous(input);
  if (std::memcmp(now.data(), before.data(), now.bytes()) != 0) sconce::copy(now, theirs);
}

void Replica::run_on_device(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                            const Delivery& to) {
  DeviceBackend& backend = device_backend(device_);
  std::vector<Tensor> sent(inputs.begin(), inputs.end());
  for (size_t i = 0; i < sent.size(); ++i) {
    const Device wanted = reads_on_host(i) ? Device{} : device_;
    if (sent[i].device() == wanted) continue;
    Tensor there = Tensor::empty_strided(sent[i].sizes(), sent[i].strides(), sent[i].dtype(), wanted);
    backend.copy(sent[i], there);
    sent[i] = std::move(there);
  }
  instance.container->run(sent, outputs, stream_->stream());
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i].storage() != inputs[i].storage()) bring_back(i, sent[i], inputs[i]);
  std::vector<Tensor> made;  // kept until the stream has used them
  Tensor kept;
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& output = outputs[i];
    if (!output.defined() || output.is_cpu() || !to.to_host(i)) continue;
    Tensor here = to.rows_of(i, output) ? fetch_last_rows(output, to.last_rows.rows, kept) : fetched(output);
    made.push_back(std::exchange(output, std::move(here)));
  }
  stream_->synchronize();
}

bool Replica::record(ModelInstance& instance, GraphRuns::Shape& shape, std::span<const Tensor> inputs) {
  const bool recorded =
      aoti_abi::guard("recording a CUDA graph", [&] {
        instance.graphs->make_room(shape);
        shape.inputs.clear();
        for (const Tensor& input : inputs)
          shape.inputs.push_back(Tensor::empty_strided(input.sizes(), input.strides(), input.dtype(), device_));
        shape.staged.assign(inputs.size(), StoragePtr());
        shape.outputs.assign(instance.container->num_outputs(), Tensor());
        stream_->begin_capture(shape.inputs.size());
        instance.container->run(shape.inputs, shape.outputs, stream_->stream());
        instance.graphs->keep(shape, stream_->end_capture(shape.outputs.size()));
      }) == 0;
  if (recorded) return true;
  stream_->drop_capture();
  const auto error = aoti_abi::take_error();
  if (error && error->code == ErrorCode::kUnsupported)
    instance.graphs->refuse(error->text);
  else
    instance.graphs->postpone(shape, error ? error->text : "out of memory");
  return false;
}

bool Replica::run_as_graph(ModelInstance& instance, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                           const Delivery& to) {
  for (const Tensor& input : inputs)
    if (!input.defined() || (!input.is_cpu() && input.device() != device_)) return false;
  // Another input may have to see what the model writes to this one.
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t j = 0; j < inputs.size() && may_write(i); ++j)
      if (i != j && !inputs[i].is_cpu() && inputs[i].storage() == inputs[j].storage()) return false;
  GraphRuns::Shape* shape = instance.graphs->find(inputs);
  if (!shape || (!shape->graph && !(instance.graphs->wants_graph(*shape) && record(instance, *shape, inputs))))
    return false;
  copy_in(*shape, inputs);
  // The outputs may get the inputs' memory.
  if (std::less<>()(outputs.data() + outputs.size(), inputs.data()) ||
      std::less<>()(inputs.data() + inputs.size(), outputs.data()))
    for (Tensor& output : outputs) output = Tensor();
  copy_out(*shape, inputs, outputs, to);
  shape->graph->launch(shape->before, shape->after);
  instance.graphs->ran();
  DeviceBackend& backend = device_backend(device_);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!may_write(i)) continue;
    if (inputs[i].is_cpu()) {
      bring_back(i, shape->inputs[i], inputs[i]);
      continue;
    }
    Tensor theirs = inputs[i];
    backend.copy_async(shape->inputs[i], theirs);
  }
  Tensor kept;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& own = shape->outputs[i];
    if (!own.defined() || outputs[i].defined()) continue;
    outputs[i] = to.rows_of(i, own) ? fetch_last_rows(own, to.last_rows.rows, kept) : fetched(own);
  }
  stream_->synchronize();
  return true;
}

void Replica::copy_in(GraphRuns::Shape& shape, std::span<const Tensor> inputs) {
  DeviceBackend& backend = device_backend(device_);
  shape.before.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& input = inputs[i];
    const void* from = input.data();
    if (!input.is_dense() || (input.is_cpu() && input.bytes() > kStagedBytes)) {
      backend.copy_async(input, shape.inputs[i]);
      continue;
    }
    if (input.bytes() == 0) continue;
    if (input.is_cpu()) {
      if (!shape.staged[i]) shape.staged[i] = backend.allocate_host(input.bytes());
      from = std::memcpy(shape.staged[i]->data(), from, input.bytes());
    }
    shape.before.push_back({from, shape.inputs[i].data(), input.bytes()});
  }
}

void Replica::copy_out(GraphRuns::Shape& shape, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                       const Delivery& to) const {
  DeviceBackend& backend = device_backend(device_);
  shape.after.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& own = shape.outputs[i];
    if (!own.defined()) {
      outputs[i] = own;
    } else if (own.is_cpu()) {
      outputs[i] = clone_preserve_strides(own);
    } else if (to.to_host(i)) {
      outputs[i] = Tensor();
      const Tensor wanted = to.rows_of(i, own) ? rows_as_they_are(own, to.last_rows.rows) : own;
      if (!wanted.defined() || !wanted.is_dense() || wanted.bytes() > kStagedBytes)
        continue;  // fetched behind the graph
      outputs[i] = Tensor(backend.allocate_host(std::max<size_t>(wanted.bytes(), 1)), wanted.dtype(), wanted.sizes(),
                          wanted.strides());
      if (wanted.bytes() > 0) shape.after.push_back({wanted.data(), outputs[i].data(), wanted.bytes()});
    } else if (own.storage()->immutable()) {
      outputs[i] = own;
    } else {
      // Copy what the next launch overwrites, each storage once, as outputs may be views of one another.
      StoragePtr target;
      for (size_t j = 0; !target && j < i; ++j)
        if (shape.outputs[j].storage() == own.storage() && outputs[j].defined() && !outputs[j].is_cpu())
          target = outputs[j].storage();
      for (size_t input = 0; !target && input < inputs.size(); ++input)
        if (shape.inputs[input].storage() == own.storage() && !inputs[input].is_cpu() &&
            inputs[input].storage_offset() == 0 && inputs[input].storage()->bytes() >= own.storage()->bytes())
          target = inputs[input].storage();
      if (!target) {
        const size_t bytes = own.storage()->bytes();
        target = backend.allocate(bytes, device_);
        if (bytes > 0) shape.after.push_back({own.storage()->data(), target->data(), bytes});
      }
      outputs[i] = Tensor(target, own.dtype(), own.sizes(), own.strides(), own.storage_offset(), own.layout());
    }
  }
}

}  // namespace sconce::runner
