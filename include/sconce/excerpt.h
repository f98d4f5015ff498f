// Excerpt: text of a stranger (a client's request, a name in a file) as errors and logs may repeat it. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sconce {

constexpr size_t kExcerptBytes = 200;

// Valid UTF-8 of at most that many bytes, an ellipsis at the end where something was cut off. Control characters and
// what is not UTF-8 become \xNN, a NUL becomes \0. Looks at no more of the text than it repeats.
std::string excerpt(std::string_view text);

// The start of a message, of at most so many bytes (3 or more), cut between characters, with an ellipsis.
std::string shortened(std::string message, size_t most);

}  // namespace sconce
