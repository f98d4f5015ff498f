// Parsing and encoding of URLs. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sconce::server::http {

// Encodes a path of a URL; slashes stay.
std::string encoded_path(std::string_view path);
// Encodes a value of a query; only letters, digits and -._~ stay.
std::string encoded_value(std::string_view value);
// Decodes %XX; what is no escape stays.
std::string percent_decoded(std::string_view text);
// Decodes form encoding: "a+b%2Bc" is "a b+c". nullopt for a malformed encoding.
std::optional<std::string> decoded_form(std::string_view text);
// Whether the URL is http to a loopback address of this host.
bool is_plain_loopback(std::string_view url) noexcept;
// Scheme, host and port, as text.
std::string_view origin_of(std::string_view url) noexcept;
// Host and port.
std::string_view authority_of(std::string_view url) noexcept;

}  // namespace sconce::server::http
