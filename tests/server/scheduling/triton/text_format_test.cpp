#include "server/scheduling/triton/text_format.h"

#include <doctest/doctest.h>

#include "tests/errors.h"

namespace sconce::server::scheduling {
namespace {

// A tree on one line: name=word, name="string", name{...}.
std::string shown(const TextMessage& message) {
  std::string text;
  for (const TextField& field : message.fields) {
    if (!text.empty()) text += ' ';
    text += field.name;
    switch (field.kind) {
      case TextField::Kind::kWord:
        text += "=" + field.text;
        break;
      case TextField::Kind::kString:
        text += "=\"" + field.text + "\"";
        break;
      case TextField::Kind::kMessage:
        text += "{" + shown(field.message) + "}";
        break;
    }
  }
  return text;
}

std::string read(std::string_view text) { return shown(parse_text_format(text)); }

}  // namespace

TEST_CASE("text format: scalars, messages, lists, separators and comments") {
  CHECK(read("") == "");
  CHECK(read("# only a comment") == "");
  CHECK(read("a: 1 b: -2.5e3 c: TYPE_FP32 d: true") == "a=1 b=-2.5e3 c=TYPE_FP32 d=true");
  CHECK(read("a: - 1") == "a=-1");
  CHECK(read("a { b: 1 } c: { d: 2 } e < f: 3 >") == "a{b=1} c{d=2} e{f=3}");
  CHECK(read("a: 1, b: 2; c { } , d: 3") == "a=1 b=2 c{} d=3");
  CHECK(read("dims: [ -1, 3, 224 ] none: [] m [ { a: 1 }, { } ]") == "dims=-1 dims=3 dims=224 m{a=1} m{}");
  CHECK(read("a: 1 # two\n# three\nb: 2") == "a=1 b=2");
  CHECK(read("[x.y.z] { a: 1 }") == "[x.y.z]{a=1}");
}

TEST_CASE("text format: strings") {
  CHECK(read(R"(a: "x" b: 'y' c: "x'" d: 'y"')") == R"(a="x" b="y" c="x'" d="y"")");
  CHECK(read("a: \"x\"\n  'y' # between\n \"z\"") == "a=\"xyz\"");
  CHECK(read(R"(a: "\n\t\\\"\'\101\x41\u00e9\U0001F600")") == "a=\"\n\t\\\"'AA\xc3\xa9\xf0\x9f\x98\x80\"");
  CHECK(parse_text_format(R"(a: "\0")").fields[0].text == std::string(1, '\0'));
}

TEST_CASE("text format: lines of fields") {
  const TextMessage message = parse_text_format("a: 1\nb {\n  c: 2\n}\n\nd: 'x'");
  CHECK(message.fields[0].line == 1);
  CHECK(message.fields[1].line == 2);
  CHECK(message.fields[1].message.fields[0].line == 3);
  CHECK(message.fields[2].line == 6);
}

TEST_CASE("text format: what is malformed is refused, with its line") {
  const auto refusal = [](std::string_view text) { return error_from([&] { parse_text_format(text); }); };
  CHECK(refusal("a") == "line 1: expected ':' or '{' after 'a'");
  CHECK(refusal("\n\na:") == "line 3: expected a value of 'a'");
  CHECK(refusal("a {\nb: 1") == "line 2: a message that began at line 1 is not closed");
  CHECK(refusal("}") == "line 1: expected a field's name, got '}'");
  CHECK(refusal("a { b: 1 >") == "line 1: expected a field's name, got '>'");
  CHECK(refusal("a: \"x") == "line 1: a string is not closed");
  CHECK(refusal("a: \"x\ny\"") == "line 1: a string is not closed");
  CHECK(refusal("a: \"\\q\"") == "line 1: unknown escape '\\q'");
  CHECK(refusal("a: \"\\xg\"") == "line 1: an escape lacks digits");
  CHECK(refusal("a: \"\\777\"") == "line 1: an octal escape is more than \\377");
  CHECK(refusal("a: \"\\ud800\"") == "line 1: an escape is no Unicode character");
  CHECK(refusal("a: \"\\") == "line 1: a string is not closed");
  CHECK(refusal("a: [1, 2") == "line 1: expected ',' or ']' in the list 'a'");
  CHECK(refusal("[a.b") == "line 1: an extension's name is not closed");
  CHECK(refusal(std::string_view("a: 1\0b: 2", 9)) == "line 1: a NUL byte");
}

TEST_CASE("text format: hostile sizes are refused") {
  std::string deep, wide;
  for (int i = 0; i < 31; ++i) deep += "a{";
  for (int i = 0; i < 31; ++i) deep += "}";
  CHECK_NOTHROW(parse_text_format(deep));
  CHECK_THROWS_WITH(parse_text_format("a{" + deep + "}"), "line 1: messages are nested deeper than 32 levels");
  CHECK_THROWS_WITH(parse_text_format(std::string(500'000, '{')), "line 1: expected a field's name, got '{'");
  for (int i = 0; i < 70'000; ++i) wide += "a:1 ";
  CHECK_THROWS_WITH(parse_text_format(wide), "line 1: more than 65536 fields");
  CHECK_THROWS_AS(parse_text_format(std::string((1 << 20) + 1, ' ')), Error);
}

}  // namespace sconce::server::scheduling
