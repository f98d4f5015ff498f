// Converts messages of the methods other than inference to JSON and back.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <string>
#include <string_view>

#include "server/api/methods.h"

namespace sconce::server::rpc {

// False if the bytes are not the method's request.
bool request_to_json(api::GrpcMethod method, grpc::ByteBuffer& request, std::string& json);
// False if the text is not the method's answer. Members without a field in the message are omitted.
bool answer_from_json(api::GrpcMethod method, std::string_view json, grpc::ByteBuffer& answer);

}  // namespace sconce::server::rpc
