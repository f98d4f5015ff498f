// Prepares text from outside (a client's request, a name in a file) for errors and logs. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sconce {

constexpr size_t kExcerptBytes = 200;

// Returns at most kExcerptBytes bytes of valid UTF-8, with an ellipsis if the text was cut. Control characters and
// bytes that are not UTF-8 become \xNN, a NUL becomes \0. Reads only as much of the text as it returns.
std::string excerpt(std::string_view text);

// Cuts a message to at most `most` bytes (3 or more) between characters and adds an ellipsis.
std::string shortened(std::string message, size_t most);

}  // namespace sconce
