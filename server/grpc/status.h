// Errors as gRPC's status codes.
#pragma once

#include "server/grpc/boundary.h"

namespace sconce::server::rpc {

// The code for an HTTP status, which every error of the server has. Same as Triton's, where Triton has that error: a
// full queue or a missing model is kUnavailable.
constexpr GrpcCode grpc_code(int http_status) noexcept {
  switch (http_status) {
    case 200:
    case 202:
      return GrpcCode::kOk;
    case 401:
      return GrpcCode::kUnauthenticated;
    case 403:
      return GrpcCode::kPermissionDenied;
    case 404:
      return GrpcCode::kNotFound;
    case 408:
    case 504:
      return GrpcCode::kDeadlineExceeded;
    case 409:
      return GrpcCode::kAlreadyExists;
    case 412:
    case 422:
      return GrpcCode::kFailedPrecondition;
    case 413:
    case 507:
      return GrpcCode::kResourceExhausted;
    case 429:
    case 503:
      return GrpcCode::kUnavailable;
    case 499:
      return GrpcCode::kCancelled;
    case 405:
    case 415:
    case 501:
      return GrpcCode::kUnimplemented;
    default:
      return http_status >= 500 ? GrpcCode::kInternal : GrpcCode::kInvalidArgument;
  }
}

}  // namespace sconce::server::rpc
