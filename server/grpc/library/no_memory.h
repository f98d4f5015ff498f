// Where memory may run out on a thread of gRPC.
#pragma once

#include <new>

namespace sconce::server {

// Returns false if `work` ran out of memory.
template <class Work>
bool has_memory(const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace sconce::server
