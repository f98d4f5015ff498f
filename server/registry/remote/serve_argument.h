// An argument of the setting `serve`: URL or NAME=URL if it is remote. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "server/support/config.h"

namespace sconce::server::registry {

// Whether the text begins with letters and "://", like an address.
inline bool looks_remote(std::string_view text) noexcept {
  const size_t colon = text.find("://");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return colon != std::string_view::npos && colon > 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), is_plain);
}

struct ServeArgument {
  explicit ServeArgument(const std::string& argument) : url(argument) {
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || !is_model_name(argument.substr(0, equals))) return;
    name = argument.substr(0, equals);
    url = argument.substr(equals + 1);
  }
  bool is_remote() const noexcept { return looks_remote(url); }

  std::string name, url;  // name: empty if the argument has none
};

}  // namespace sconce::server::registry
