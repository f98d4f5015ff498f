// The methods of the gRPC service, numbered. Includes only std headers, because libsconce_grpc uses it too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sconce::server::api {

enum class GrpcMethod : uint8_t {
#define METHOD(name, method, path) k##name,
#include "server/api/methods.def"
#undef METHOD
  kModelInfer,
  kModelStreamInfer,
};

constexpr std::array kGrpcMethodNames{
#define METHOD(name, method, path) std::string_view(#name),
#include "server/api/methods.def"
#undef METHOD
    std::string_view("ModelInfer"),
    std::string_view("ModelStreamInfer"),
};
constexpr size_t kGrpcMethods = kGrpcMethodNames.size();

}  // namespace sconce::server::api
