// The service grpc.reflection.v1alpha.ServerReflection: what messages and methods this server has.
#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace sconce::server {

// Answers one message of ServerReflectionInfo. Returns false if it is none. std::bad_alloc
bool reflect(grpc::ByteBuffer& request, grpc::ByteBuffer& answer);

}  // namespace sconce::server
