// The places where untrusted bytes enter, as functions of bytes. They may refuse by sconce::Error. Any other exception,
// or an Error whose code blames us, is a bug.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::fuzz {

struct Entry {
  const char* name;
  // True if the bytes were accepted, false if they were refused.
  bool (*run)(std::string_view bytes);
  // Valid or nearly valid inputs to start from, all different.
  std::vector<std::string> (*seeds)();
};

std::span<const Entry> entries();
// Null if there is none.
const Entry* find_entry(std::string_view name);

std::vector<std::string> package_seeds();
std::vector<std::string> library_seeds();
std::vector<std::string> source_seeds();
std::vector<std::string> call_spec_seeds();
std::vector<std::string> tensor_file_seeds();
std::vector<std::string> weight_stream_seeds();
std::vector<std::string> weight_file_seeds();
std::vector<std::string> pickle_seeds();
std::vector<std::string> json_seeds();
std::vector<std::string> infer_seeds();
std::vector<std::string> call_seeds();
std::vector<std::string> generate_seeds();
std::vector<std::string> predict_seeds();
std::vector<std::string> compressed_seeds();
std::vector<std::string> request_seeds();
std::vector<std::string> triton_seeds();
std::vector<std::string> pipeline_seeds();

}  // namespace sconce::fuzz
