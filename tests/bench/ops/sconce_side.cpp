// Linked with Sconce: as a lane of the server runs a model, results come from the replica's arena.
#include "src/device/cpu_arena.h"
#include "tests/bench/ops/calls.h"

namespace bench {

std::shared_ptr<void> enter_library() {
  struct Lane {
    sconce::CpuArena::Ptr arena = sconce::CpuArena::create();
    sconce::CpuArena::Scope scope{arena.get()};
  };
  return std::make_shared<Lane>();
}

T constant(T t) {
  sconce::shim::tensor_of(t.get())->storage()->set_immutable(true);
  return t;
}

T opaque(void* data, size_t bytes, DType dtype, const Sizes& sizes, const Sizes& strides,
         const std::vector<uint8_t>& description) {
  using namespace sconce;
  auto storage = StoragePtr::adopt(new Storage(data, bytes, Device{}, nullptr, nullptr));
  const auto* const first = reinterpret_cast<const std::byte*>(description.data());
  storage->set_opaque_metadata({first, first + description.size()});
  storage->set_immutable(true);
  return T(shim::new_handle(
      Tensor(std::move(storage), static_cast<sconce::DType>(dtype), sizes, strides, 0, Layout::kMkldnn)));
}

}  // namespace bench
