// StoreError: the error that a store reports for a refused request, and advice for the user. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sconce::server::registry {

struct StoreError {
  std::string code;     // such as AccessDenied; empty: none
  std::string message;  // shortened
  std::string region;   // that the store expects; empty: not given
  bool empty() const noexcept { return code.empty() && message.empty(); }
};

// text: the beginning of the body, XML or JSON of any store. fields: of the answer's header, names in lower case.
StoreError parse_store_error(std::string_view text, const std::map<std::string, std::string>& fields);
// The text of the first element with that name, if it has no child elements; else empty.
std::string xml_text(std::string_view xml, const std::string& name);
// Advice, as the end of a sentence; empty: none known.
std::string remedy_for(const StoreError& error);

}  // namespace sconce::server::registry
