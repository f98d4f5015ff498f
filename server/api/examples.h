// Example requests for the first page. Each works when pasted, with the model's own names, datatypes and sizes. All
// values are zeros.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/registry/served_model.h"

namespace sconce::server::api {

// How the reader of the page reaches the server.
struct Reach {
  std::string url;   // "http://host:8000"; empty: no HTTP
  std::string grpc;  // "host:8001"; empty: no gRPC
  bool tls = false;
  bool token = false;  // requests need a token; examples take it from the environment variable SCONCE_TOKEN
};

struct Example {
  enum class Language : int8_t { kShell, kPython };
  std::string title;
  Language language = Language::kShell;
  std::string text;  // lines, each with its end
};

// For a model whose package does not describe its inputs.
constexpr std::string_view kNoExamples =
    "The package does not record datatypes and shapes of all inputs, so there is no example.";

// Sizes of each input in a request that fits the signature: 1 row, or the package's minimum, and 16 in other variable
// dimensions, within their range. nullopt if the package does not describe an input.
std::optional<std::vector<std::vector<int64_t>>> example_sizes(const scheduling::ModelSignature& model);

std::vector<Example> examples_of(const registry::ServedModel& model, const Reach& reach);

}  // namespace sconce::server::api
