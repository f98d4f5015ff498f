// The allocator from which flex attention's kernels take scratch memory. Compiled code reads its vtable and fields, so
// layouts match c10/core/Allocator.h, c10/util/UniqueVoidPtr.h and c10/core/Device.h, torch 2.6 to 2.15.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "sconce/storage.h"
#include "src/device/cpu_arena.h"

namespace c10 {

using Deleter = void (*)(void*);

struct DataPtr {
  void* data;
  std::unique_ptr<void, Deleter> context;
  int8_t device_type = 0, device_index = -1;  // CPU
};
static_assert(sizeof(DataPtr) == 32);

// The virtual functions are in torch's order.
struct Allocator {
  virtual ~Allocator() = default;
  virtual DataPtr allocate(size_t bytes) = 0;
  virtual bool is_simple_data_ptr(const DataPtr& pointer) const = 0;
  virtual Deleter raw_deleter() const = 0;
  virtual void copy_data(void* to, const void* from, size_t bytes) const = 0;
};

namespace {

void release(void* storage) { static_cast<sconce::Storage*>(storage)->release(); }

class ArenaAllocator final : public Allocator {
 public:
  DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, {nullptr, &release}};
    const sconce::StoragePtr storage = sconce::allocate_cpu(bytes);
    storage->retain();
    return {storage->data(), {storage.get(), &release}};
  }
  bool is_simple_data_ptr(const DataPtr& pointer) const override { return pointer.data == pointer.context.get(); }
  // Null, because freeing needs the storage, not just the address.
  Deleter raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

ArenaAllocator allocator;

}  // namespace

Allocator* GetCPUAllocator() { return &allocator; }

}  // namespace c10

namespace at {

c10::Allocator* getCPUAllocator() { return &c10::allocator; }

}  // namespace at
