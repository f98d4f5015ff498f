// The tokens of generated C++.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sconce::rows {

enum class TokenKind : uint8_t { kEnd, kWord, kNumber, kString, kMark };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;    // marks: "::", "+=", "&&"
  std::string_view origin;  // what the last comment before it says after "Original ATen: "
};

// Splits the text; comments and preprocessor lines are left out. The last token is kEnd.
std::vector<Token> tokens_of(std::string_view text);

}  // namespace sconce::rows
