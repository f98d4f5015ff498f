#include "server/grpc/library/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status_code_enum.h>
#include <health.pb.h>
#include <inference.pb.h>
#include <reflection.pb.h>

#include <set>
#include <string>
#include <vector>

namespace sconce::server::rpc {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

// The files of this server's services. The references register their descriptors in the pool.
const FileDescriptor* const* services() {
  static const FileDescriptor* const files[] = {inference::ModelInferRequest::descriptor()->file(),
                                                grpc::health::v1::HealthCheckRequest::descriptor()->file(),
                                                ServerReflectionRequest::descriptor()->file(), nullptr};
  return files;
}

void not_found(ServerReflectionResponse& answer, const std::string& what) {
  answer.mutable_error_response()->set_error_code(grpc::NOT_FOUND);
  answer.mutable_error_response()->set_error_message(what + " not found");
}

// Adds the file after its imports, unless the answer already has it.
void add_file(const FileDescriptor& file, std::set<std::string>& added, ServerReflectionResponse& answer) {
  if (!added.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto described;
  file.CopyTo(&described);
  answer.mutable_file_descriptor_response()->add_file_descriptor_proto(described.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) add_file(*file.dependency(i), added, answer);
}

void give_file(const FileDescriptor* file, const std::string& asked, ServerReflectionResponse& answer) {
  std::set<std::string> added;
  file != nullptr ? add_file(*file, added, answer) : not_found(answer, asked);
}

void give_extension(const DescriptorPool& pool, const ServerReflectionRequest& request,
                    ServerReflectionResponse& answer) {
  const auto& asked = request.file_containing_extension();
  const auto* const type = pool.FindMessageTypeByName(asked.containing_type());
  const FieldDescriptor* const field =
      type == nullptr ? nullptr : pool.FindExtensionByNumber(type, asked.extension_number());
  give_file(field == nullptr ? nullptr : field->file(), asked.containing_type(), answer);
}

void give_extensions(const DescriptorPool& pool, const std::string& name, ServerReflectionResponse& answer) {
  const auto* const type = pool.FindMessageTypeByName(name);
  if (type == nullptr) return not_found(answer, name);
  std::vector<const FieldDescriptor*> fields;
  pool.FindAllExtensions(type, &fields);
  auto& extensions = *answer.mutable_all_extension_numbers_response();
  extensions.set_base_type_name(name);
  for (const FieldDescriptor* const field : fields) extensions.add_extension_number(field->number());
}

void give_services(ServerReflectionResponse& answer) {
  auto& list = *answer.mutable_list_services_response();
  for (const FileDescriptor* const* file = services(); *file != nullptr; ++file) {
    for (int i = 0; i < (*file)->service_count(); ++i) list.add_service()->set_name((*file)->service(i)->full_name());
  }
}

}  // namespace

bool reflect(grpc::ByteBuffer& message, grpc::ByteBuffer& to) {
  ServerReflectionRequest request;
  if (message.Length() > 0) {
    grpc::ProtoBufferReader reader(&message);
    if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) return false;
  }
  services();
  ServerReflectionResponse answer;
  answer.set_valid_host(request.host());
  *answer.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      give_file(pool.FindFileByName(request.file_by_filename()), request.file_by_filename(), answer);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      give_file(pool.FindFileContainingSymbol(request.file_containing_symbol()), request.file_containing_symbol(),
                answer);
      break;
    case ServerReflectionRequest::kFileContainingExtension:
      give_extension(pool, request, answer);
      break;
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      give_extensions(pool, request.all_extension_numbers_of_type(), answer);
      break;
    case ServerReflectionRequest::kListServices:
      give_services(answer);
      break;
    default:
      answer.mutable_error_response()->set_error_code(grpc::INVALID_ARGUMENT);
      answer.mutable_error_response()->set_error_message("the request asks for nothing");
  }
  const grpc::Slice slice(answer.SerializeAsString());
  grpc::ByteBuffer bytes(&slice, 1);
  to.Swap(&bytes);
  return true;
}

}  // namespace sconce::server::rpc
