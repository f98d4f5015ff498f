// The places where bytes of strangers come in, each as a function of some bytes. sconce::Error is how they refuse;
// anything else that comes out of them, and an Error with a code that blames us, is a bug.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::fuzz {

struct Entry {
  const char* name;
  // True if the bytes were taken, false if they were refused.
  bool (*run)(std::string_view bytes);
  // Input that is right, or nearly so, to begin with. No two are equal.
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
std::vector<std::string> json_seeds();
std::vector<std::string> infer_seeds();
std::vector<std::string> call_seeds();
std::vector<std::string> generate_seeds();
std::vector<std::string> predict_seeds();
std::vector<std::string> compressed_seeds();
std::vector<std::string> request_seeds();

}  // namespace sconce::fuzz
