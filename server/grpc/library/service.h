// The service inference.GRPCInferenceService: each call becomes one of the program's (boundary.h).
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/service_type.h>

#include <memory>

#include "server/grpc/boundary.h"

namespace sconce::server {

std::unique_ptr<grpc::Service> make_service(GrpcHost& host, const GrpcOptions& options);

}  // namespace sconce::server
