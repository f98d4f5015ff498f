#include "src/custom_ops/device_calls.h"

#include <deque>
#include <utility>

#include "src/device/device_backend.h"

namespace sconce::custom_ops {
namespace {

// All bytes of a storage, as a tensor.
Tensor bytes_of(const StoragePtr& storage) {
  const auto count = static_cast<int64_t>(storage->bytes());
  const int64_t one = 1;
  return Tensor(storage, DType::kUInt8, IntSpan(&count, 1), IntSpan(&one, 1));
}

Tensor over(const StoragePtr& storage, const Tensor& like) {
  return Tensor(storage, like.dtype(), like.sizes(), like.strides(), like.storage_offset(), like.layout());
}

class HostCall {
 public:
  HostCall(const Schema& schema, Device target) : schema_(schema), target_(target) {}

  // An argument for the kernel, with tensors copied to the host.
  Value fetched(Value& argument) {
    if (argument.is_tensor()) {
      Tensor& tensor = argument.tensor();
      if (!tensor.defined() || tensor.is_cpu()) return Value::borrow(tensor);
      Tensor& twin = twins_.emplace_back(Twin{&tensor, over(host_of(tensor.storage()), tensor)}).host;
      return Value::borrow(twin);
    }
    if (Value::List* items = argument.get_if<Value::List>()) {
      Value::List list;
      list.reserve(items->size());
      for (Value& item : *items) list.push_back(fetched(item));
      return Value(std::move(list));
    }
    if (const Device* device = argument.get_if<Device>(); device && device->type != DeviceType::kCpu)
      return Value(Device{});
    return argument;
  }

  // After the call: copies back what the kernel wrote, and gives the arguments the sizes and storage that it set.
  void send_written(std::span<Value> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!schema_.arguments[i].written) continue;
      for_each_tensor(arguments[i], [&](Tensor& tensor) {
        for (Twin& twin : twins_) {
          if (twin.device != &tensor) continue;
          for (Memory& memory : memories_)
            if (memory.host == twin.host.storage() && !memory.sent) {
              Tensor there = bytes_of(memory.device);
              if (memory.host->bytes() == memory.device->bytes())
                device_backend(memory.device->device()).copy(bytes_of(memory.host), there);
              memory.sent = true;
            }
          tensor = on_device(twin.host);
        }
      });
    }
  }
  // A result for the caller, with tensors copied to the device.
  void send(Value& result) {
    if (Value::List* items = result.get_if<Value::List>()) {
      for (Value& item : *items) send(item);
      return;
    }
    if (!result.is_tensor()) return;
    Tensor& tensor = result.tensor();
    for (Twin& twin : twins_)
      if (&twin.host == &tensor) {
        result = Value::borrow(*twin.device);
        return;
      }
    if (tensor.defined() && tensor.is_cpu() && target_.type != DeviceType::kCpu) result = Value(on_device(tensor));
  }

 private:
  struct Memory {
    StoragePtr device, host;
    bool sent = false;
  };
  struct Twin {
    Tensor* device;
    Tensor host;
  };

  template <class F>
  static void for_each_tensor(Value& value, const F& f) {
    if (value.is_tensor()) f(value.tensor());
    if (Value::List* items = value.get_if<Value::List>())
      for (Value& item : *items) for_each_tensor(item, f);
  }

  const StoragePtr& host_of(const StoragePtr& device) {
    for (const Memory& memory : memories_)
      if (memory.device == device) return memory.host;
    const auto count = static_cast<int64_t>(device->bytes());
    Tensor here = Tensor::empty(IntSpan(&count, 1), DType::kUInt8);
    if (count > 0) device_backend(device->device()).copy(bytes_of(device), here);
    return memories_.emplace_back(Memory{device, here.storage()}).host;
  }
  Tensor on_device(const Tensor& host) {
    for (const Memory& memory : memories_)
      if (memory.host == host.storage() && memory.device->device() == target_ &&
          memory.host->bytes() <= memory.device->bytes())
        return over(memory.device, host);
    const StoragePtr there = device_backend(target_).allocate(host.storage()->bytes(), target_);
    if (host.storage()->bytes() > 0) {
      Tensor bytes = bytes_of(there);
      device_backend(target_).copy(bytes_of(host.storage()), bytes);
    }
    memories_.push_back({there, host.storage(), true});
    return over(there, host);
  }

  const Schema& schema_;
  const Device target_;
  std::deque<Twin> twins_;
  std::deque<Memory> memories_;
};

Device device_in(Value& value) noexcept {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    return tensor.defined() ? tensor.device() : Device{};
  }
  if (Value::List* items = value.get_if<Value::List>())
    for (Value& item : *items)
      if (const Device device = device_in(item); device.type != DeviceType::kCpu) return device;
  return {};
}

}  // namespace

Device device_of(std::span<Value> arguments) noexcept {
  for (Value& argument : arguments) {
    if (const Device* asked = argument.get_if<Device>(); asked && asked->type != DeviceType::kCpu) return *asked;
    if (const Device device = device_in(argument); device.type != DeviceType::kCpu) return device;
  }
  return {};
}

void call_on_host(const Schema& schema, BoxedKernel kernel, std::span<Value> arguments, std::span<Value> results) {
  Device target = device_of(arguments);
  for (const Value& argument : arguments)
    if (const Device* asked = argument.get_if<Device>()) target = *asked;
  if (target.type != DeviceType::kCpu && target.index < 0) target.index = 0;
  HostCall call(schema, target);
  std::vector<Value> fetched;
  fetched.reserve(arguments.size());
  for (Value& argument : arguments) fetched.push_back(call.fetched(argument));
  kernel(fetched, results);
  call.send_written(arguments);
  for (Value& result : results) call.send(result);
}

}  // namespace sconce::custom_ops
