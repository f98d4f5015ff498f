// Exceptions on a thread of gRPC, where they would end the process: memory may run out.
#pragma once

#include <new>

#include "server/grpc/boundary.h"

namespace sconce::server::rpc {

// Calls `work`. Returns why it failed: kResourceExhausted without memory, kInternal after any other exception; else
// kOk.
template <class Work>
GrpcCode outcome_of(const Work& work) noexcept {
  try {
    work();
    return GrpcCode::kOk;
  } catch (const std::bad_alloc&) {
    return GrpcCode::kResourceExhausted;
  } catch (...) {
    return GrpcCode::kInternal;
  }
}

// Likewise, if the reason does not matter. Returns false if `work` failed.
template <class Work>
bool has_memory(const Work& work) noexcept {
  return outcome_of(work) == GrpcCode::kOk;
}

}  // namespace sconce::server::rpc
