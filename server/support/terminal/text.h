// Text formatting for people. Colours are used only if standard output is a terminal and NO_COLOR is not set.
// Immutable.
#pragma once

#include <string>
#include <string_view>

namespace sconce::server {

bool on_terminal();
std::string bold(std::string_view text);
std::string faint(std::string_view text);
std::string red(std::string_view text);
std::string green(std::string_view text);

// "312 KiB", "1.50 GiB", "17 B".
std::string format_bytes(uint64_t bytes);
// "5.90 us", "1.80 ms", "2.10 s".
std::string format_seconds(double seconds);

}  // namespace sconce::server
