#include "server/grpc/documents.h"

#include <doctest/doctest.h>

#include <utility>

#include "sconce/error.h"
#include "server/grpc/status.h"
#include "tests/errors.h"

namespace sconce::server::rpc {
namespace {

using api::GrpcMethod;

TEST_CASE("grpc documents: names in messages are those of the route") {
  const RouteRequest ready = route_request(GrpcMethod::kModelReady, R"({"name":"m@v2","version":"3"})");
  CHECK(ready.model == "m@v2");
  CHECK(ready.version == "3");
  CHECK(ready.body.empty());
  CHECK(route_request(GrpcMethod::kSystemSharedMemoryUnregister, R"({"name":"r"})").region == "r");
  CHECK(route_request(GrpcMethod::kServerLive, "{}").body.empty());
}

TEST_CASE("grpc documents: bodies are those of HTTP") {
  CHECK(route_request(GrpcMethod::kRepositoryIndex, R"({"ready":true})").body == R"({"ready":true})");
  CHECK(route_request(GrpcMethod::kRepositoryModelLoad, R"({"model_name":"m","parameters":{"n":{"int64_param":"7"}}})")
            .body == R"({"parameters":{"n":7}})");
  CHECK(route_request(GrpcMethod::kSystemSharedMemoryRegister,
                      R"({"name":"r","key":"/k","byte_size":"18446744073709551615"})")
            .body == R"({"key":"/k","offset":0,"byte_size":18446744073709551615})");
  CHECK(route_request(GrpcMethod::kCudaSharedMemoryRegister, R"({"name":"r","raw_handle":"QUJD","byte_size":"1"})")
            .body == R"({"raw_handle":{"b64":"QUJD"},"device_id":0,"byte_size":1})");
}

TEST_CASE("grpc documents: settings change, or are asked for") {
  CHECK_FALSE(route_request(GrpcMethod::kTraceSetting, "{}").changes);
  const RouteRequest trace =
      route_request(GrpcMethod::kTraceSetting,
                    R"({"settings":{"trace_rate":{"value":["7"]},"trace_level":{"value":["OFF"]},"trace_count":{}}})");
  CHECK(trace.changes);
  CHECK(trace.body == R"({"trace_rate":"7","trace_level":["OFF"],"trace_count":null})");
  CHECK(route_request(GrpcMethod::kLogSettings, R"({"settings":{"log_info":{"bool_param":false}}})").body ==
        R"({"log_info":false})");
  CHECK(code_of([] {
          route_request(GrpcMethod::kTraceSetting, R"({"settings":{"trace_rate":{"value":["7","8"]}}})");
        }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([] { route_request(GrpcMethod::kRepositoryIndex, R"({"repository_name":"x"})"); }) ==
        ErrorCode::kUnsupported);
}

TEST_CASE("grpc documents: answers are the messages of their methods") {
  CHECK(answer_message(GrpcMethod::kModelConfig, R"({"name":"m"})") == R"({"config":{"name":"m"}})");
  CHECK(answer_message(GrpcMethod::kRepositoryIndex, "[]") == R"({"models":[]})");
  CHECK(answer_message(GrpcMethod::kSystemSharedMemoryStatus, R"([{"name":"r","byte_size":1}])") ==
        R"({"regions":{"r":{"name":"r","byte_size":1}}})");
  CHECK(answer_message(GrpcMethod::kTraceSetting, R"({"trace_rate":"1","trace_level":["OFF"]})") ==
        R"({"settings":{"trace_rate":{"value":["1"]},"trace_level":{"value":["OFF"]}}})");
  CHECK(answer_message(GrpcMethod::kLogSettings, R"({"log_info":true,"log_verbose_level":1,"log_format":"default"})") ==
        R"({"settings":{"log_info":{"bool_param":true},"log_verbose_level":{"uint32_param":1},)"
        R"("log_format":{"string_param":"default"}}})");
  CHECK(answer_message(GrpcMethod::kSystemSharedMemoryRegister, "") == "{}");
}

TEST_CASE("grpc status: every HTTP status of an error has its code") {
  constexpr std::pair<int, GrpcCode> kCodes[] = {{200, GrpcCode::kOk},
                                                 {400, GrpcCode::kInvalidArgument},
                                                 {401, GrpcCode::kUnauthenticated},
                                                 {403, GrpcCode::kPermissionDenied},
                                                 {404, GrpcCode::kNotFound},
                                                 {409, GrpcCode::kAlreadyExists},
                                                 {413, GrpcCode::kResourceExhausted},
                                                 {422, GrpcCode::kFailedPrecondition},
                                                 {429, GrpcCode::kUnavailable},
                                                 {499, GrpcCode::kCancelled},
                                                 {500, GrpcCode::kInternal},
                                                 {501, GrpcCode::kUnimplemented},
                                                 {503, GrpcCode::kUnavailable},
                                                 {504, GrpcCode::kDeadlineExceeded},
                                                 {507, GrpcCode::kResourceExhausted}};
  for (const auto& [status, code] : kCodes) CHECK(static_cast<int>(grpc_code(status)) == static_cast<int>(code));
}

}  // namespace
}  // namespace sconce::server::rpc
