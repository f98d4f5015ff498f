// gRPC's statuses of the program's statuses, and of exceptions.
#pragma once

#include <grpcpp/support/status.h>

#include "server/grpc/boundary.h"

namespace sconce::server::rpc {

inline const GrpcStatus kTooManyCalls{GrpcCode::kUnavailable,
                                      "too many calls are under way (setting grpc_calls): try again later"};

// std::bad_alloc
inline grpc::Status status_of(const GrpcStatus& status) {
  return {static_cast<grpc::StatusCode>(status.code), status.message};
}

// After outcome_of(). They allocate nothing: each text fits into a string's own memory.
inline GrpcStatus own_status_after(GrpcCode problem) noexcept {
  return {problem, problem == GrpcCode::kResourceExhausted ? "no memory" : "internal error"};
}
inline grpc::Status status_after(GrpcCode problem) noexcept { return status_of(own_status_after(problem)); }

}  // namespace sconce::server::rpc
