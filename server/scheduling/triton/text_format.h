// Protobuf's text format, parsed to a tree of fields without a schema. Pure function; safe on hostile text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::scheduling {

struct TextField;

struct TextMessage {
  std::vector<TextField> fields;  // in the order of the text; a list [a, b] becomes two fields with one name
};

struct TextField {
  // kWord: a number, true, or the name of an enum's value, verbatim.
  enum class Kind : int8_t { kWord, kString, kMessage };
  std::string name;  // an extension's name includes its brackets
  Kind kind = Kind::kWord;
  std::string text;     // of a word or a string; escapes in strings are decoded
  TextMessage message;  // of a message
  int line = 0;         // from 1
};

// kInvalidArgument names the line. Nesting is limited to 32 messages, the text to 1 MiB and 65536 fields.
TextMessage parse_text_format(std::string_view text);

}  // namespace sconce::server::scheduling
