#include "server/grpc/library/methods.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>
#include <inference.pb.h>

#include <memory>

namespace sconce::server::rpc {
namespace {

using google::protobuf::Message;

struct Messages {
  const Message& (*request)();
  const Message& (*answer)();
};

template <class M>
const Message& prototype() {
  return M::default_instance();
}

constexpr Messages kMessages[] = {
#define METHOD(name, method, path) {&prototype<inference::name##Request>, &prototype<inference::name##Response>},
#include "server/api/methods.def"
#undef METHOD
};

}  // namespace

bool request_to_json(api::GrpcMethod method, grpc::ByteBuffer& request, std::string& json) {
  const std::unique_ptr<Message> message(kMessages[static_cast<size_t>(method)].request().New());
  if (request.Length() > 0) {
    grpc::ProtoBufferReader reader(&request);
    if (!reader.status().ok() || !message->ParseFromZeroCopyStream(&reader)) return false;
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  return google::protobuf::util::MessageToJsonString(*message, &json, options).ok();
}

bool answer_from_json(api::GrpcMethod method, std::string_view json, grpc::ByteBuffer& answer) {
  const std::unique_ptr<Message> message(kMessages[static_cast<size_t>(method)].answer().New());
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const google::protobuf::StringPiece text(json.data(), json.size());
  if (!google::protobuf::util::JsonStringToMessage(text, message.get(), options).ok()) return false;
  const grpc::Slice slice(message->SerializeAsString());
  grpc::ByteBuffer bytes(&slice, 1);
  answer.Swap(&bytes);
  return true;
}

}  // namespace sconce::server::rpc
