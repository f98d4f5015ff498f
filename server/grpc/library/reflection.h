// The service grpc.reflection.v1alpha.ServerReflection: the messages and methods of this server.
#pragma once

#include <grpcpp/support/byte_buffer.h>

namespace sconce::server::rpc {

// Answers one message of ServerReflectionInfo. Returns false for a malformed message. std::bad_alloc
bool reflect(grpc::ByteBuffer& request, grpc::ByteBuffer& answer);

}  // namespace sconce::server::rpc
