// Text of URLs. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sconce::server {

// For a path in a URL: slashes stay.
std::string encoded_path(std::string_view path);
// For a value in a query: nothing but letters, digits and -._~ stays.
std::string encoded_value(std::string_view value);
// What forms encode: "a+b%2Bc" is "a b+c". nullopt for what is no encoding.
std::optional<std::string> decoded_form(std::string_view text);
// Whether a URL with http names this host by a loopback address.
bool is_plain_loopback(std::string_view url) noexcept;
// Scheme, host and port, as text.
std::string_view origin_of(std::string_view url) noexcept;
// Host and port.
std::string_view authority_of(std::string_view url) noexcept;

}  // namespace sconce::server
