// StoreError: what a store says of a request that it refuses, and what its user can do. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sconce::server {

struct StoreError {
  std::string code;     // such as AccessDenied; empty: it says none
  std::string message;  // short
  std::string region;   // that the store expects; empty: it says none
  bool empty() const noexcept { return code.empty() && message.empty(); }
};

// Most bytes of the text of an error that are read.
constexpr size_t kMaxErrorText = 8 << 10;

// text: the begin of the body, XML or JSON of any store. fields: of the answer's head, names in lower case.
StoreError parse_store_error(std::string_view text, const std::map<std::string, std::string>& fields);
// The text of the first element of that name, if no element is inside; else empty.
std::string xml_text(std::string_view xml, const std::string& name);
// What helps, as the end of a sentence; empty: nobody knows.
std::string remedy_for(const StoreError& error);

}  // namespace sconce::server
