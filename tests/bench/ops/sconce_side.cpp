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

}  // namespace bench
