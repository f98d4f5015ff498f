#include "server/support/json_cursor.h"

#include <malloc.h>

#include <string>
#include <vector>

#include "tests/errors.h"

using namespace sconce;
using namespace sconce::server;

namespace {

std::string skip_error(std::string_view text) {
  return error_from([&] {
    JsonCursor in(text);
    in.skip();
    in.finish();
  });
}

}  // namespace

TEST_CASE("json_cursor: members and elements in order") {
  JsonCursor in(
      R"( { "id" : "a\u00e9\ud83d\ude00\n" , "shape":[1, 20 ,18446744073709551615], "on":true, "none": null } )");
  std::vector<std::string> keys;
  std::vector<uint64_t> shape;
  std::string id;
  bool on = false, none = false;
  in.object("the request", [&](std::string_view key) {
    keys.emplace_back(key);
    if (key == "id") id = in.string("id");
    if (key == "shape") in.array("shape", [&](size_t) { shape.push_back(in.unsigned_integer("a size")); });
    if (key == "on") on = in.boolean("on");
    if (key == "none") none = in.consume_null();
  });
  in.finish();
  CHECK(keys == std::vector<std::string>{"id", "shape", "on", "none"});
  CHECK(shape == std::vector<uint64_t>{1, 20, UINT64_MAX});
  CHECK(id == "a\xc3\xa9\xf0\x9f\x98\x80\n");
  CHECK(on);
  CHECK(none);
}

TEST_CASE("json_cursor: keys with escapes are not kept") {
  constexpr int kKeys = 20'000;
  const std::string long_key = "\"\\u0041" + std::string(100, 'k') + "\":0";
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i) text += (i == 0 ? "" : ",") + (i % 2 == 0 ? std::string("\"\\n\":0") : long_key);
  text += "}";
  const size_t before = mallinfo2().uordblks;
  JsonCursor in(text);
  int seen = 0;
  in.object("the request", [&](std::string_view key) {
    seen += key == "\n" || key == "A" + std::string(100, 'k');
    in.skip();
  });
  in.finish();
  CHECK(seen == kKeys);
  const size_t kept = mallinfo2().uordblks - before;  // 0 under sanitizers
  CHECK(kept < 16 * 1024);
}

TEST_CASE("json_cursor: values with escapes are kept in as many bytes as they have") {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) text += i == 0 ? R"("\u0041b")" : R"(,"\u0041b")";
  text += "]";
  const size_t before = mallinfo2().uordblks;
  JsonCursor in(text);
  std::string_view first, last;
  in.array("list", [&](size_t i) { (i == 0 ? first : last) = in.string("value"); });
  in.finish();
  CHECK(first == "Ab");
  CHECK(last == "Ab");
  CHECK(mallinfo2().uordblks - before < 2 * text.size());
}

TEST_CASE("json_cursor: outer keys with escapes are there while inner ones are read") {
  JsonCursor in(R"({"\u0061":{"\u0062":{"\u0063":1,"\u0064":2},"\u0065":3},"\u0066":4})");
  std::vector<std::string> seen;
  in.object("a", [&](std::string_view a) {
    if (in.peek() != '{') return (void)in.skip();
    in.object("b", [&](std::string_view b) {
      if (in.peek() != '{') return (void)in.skip();
      in.object("c", [&](std::string_view c) {
        in.skip();
        seen.push_back(std::string(a) + std::string(b) + std::string(c));
      });
      seen.push_back(std::string(a) + std::string(b));
    });
    seen.emplace_back(a);
  });
  CHECK(seen == std::vector<std::string>{"abc", "abd", "ab", "a"});
}

TEST_CASE("json_cursor: views of strings with escapes stay valid") {
  JsonCursor in(R"(["a\tb", "c\td", "e\tf"])");
  std::vector<std::string_view> views;
  in.array("list", [&](size_t) { views.push_back(in.string("name")); });
  CHECK(views[0] == "a\tb");
  CHECK(views[1] == "c\td");
  CHECK(views[2] == "e\tf");
}

TEST_CASE("json_cursor: skip accepts what RFC 8259 accepts, and number tokens") {
  for (const char* text : {"{}", "[]", "[[],{}]", "0", "-0", "-1.5e+10", "1E5", "\"\"", "true", "false", "null", "NaN",
                           "Infinity", "-Infinity", "{\"a\":{\"b\":[1,2,{\"c\":\"]}\"}]},\"d\":[]}", " [ 1 , 2 ] "}) {
    CAPTURE(text);
    CHECK(skip_error(text) == "no error");
  }
}

TEST_CASE("json_cursor: skip refuses malformed text and says where") {
  for (const char* text :
       {"",           " ",     "[",     "{",    "]",         "[1,]", "[,1]",    "[1 2]",       "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "{a:1}", "{1:1}", "[1}",  "{\"a\":1]", "01",   "-",       "1.",          ".5",      "1e",
        "1e+",        "+1",    "nul",   "tru",  "truth",     "\"",   "\"\\x\"", "\"\\u12g4\"", "\"\\u12", "\"a\nb\"",
        "1 2",        "[1]]",  "nan",   "-NaN", "'a'",       "0x10"}) {
    CAPTURE(text);
    CHECK(contains(skip_error(text), " at byte "));
  }
  CHECK(skip_error("[1, 2, x]") == "JSON: expected a value at byte 7");
}

TEST_CASE("json_cursor: strings must be UTF-8") {
  for (const char* bytes : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "\xc3", "\xe2\x82", "\x80"}) {
    CAPTURE(bytes);
    const std::string text = '"' + std::string(bytes) + '"';
    CHECK(skip_error(text) == "JSON: string is not valid UTF-8 at byte 1");
  }
  CHECK(skip_error("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"") == "no error");
  CHECK(contains(error_from([] { JsonCursor("\"\\ud800\"").string("x"); }), "unpaired surrogate"));
  CHECK(contains(error_from([] { JsonCursor("\"\\udc00\\ud800\"").string("x"); }), "unpaired"));
}

TEST_CASE("json_cursor: nesting limit, in skip and in unchecked skip") {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(skip_error(nested(100)) == "no error");
  CHECK(skip_error(nested(101)) == "JSON: nested deeper than 100 levels at byte 100");
  CHECK(error_from([&] { JsonCursor(nested(100)).skip_unchecked(); }) == "no error");
  CHECK(error_from([&] { JsonCursor(nested(101)).skip_unchecked(); }) ==
        "JSON: nested deeper than 100 levels at byte 100");
  const std::string hundred_megabytes(100'000'000, '[');
  CHECK(skip_error(hundred_megabytes) == "JSON: nested deeper than 100 levels at byte 100");
  CHECK(error_from([&] { JsonCursor(hundred_megabytes).skip_unchecked(); }) ==
        "JSON: nested deeper than 100 levels at byte 100");
  std::string objects;
  for (int i = 0; i < 101; ++i) objects += "{\"a\":";
  CHECK(contains(skip_error(objects), "nested deeper"));
}

TEST_CASE("json_cursor: unchecked skip finds the end behind strings and long rows") {
  std::string row = "[";
  for (int i = 0; i < 100; ++i) row += "123456,";
  row += "0]";
  const std::string text = "[" + row + ",\"]]\\\"]\"," + row + "{\"k\":" + row + "}] tail";
  JsonCursor in(text);
  CHECK(in.skip_unchecked() == std::string_view(text).substr(0, text.size() - 5));
  CHECK(error_from([&] { JsonCursor(std::string_view(text).substr(0, text.size() - 6)).skip_unchecked(); }) ==
        "JSON: array or object without an end, text ends at byte " + std::to_string(text.size() - 6));
}

TEST_CASE("json_cursor: typed reads refuse other types") {
  CHECK(error_from([] { JsonCursor("-1").unsigned_integer("priority"); }) ==
        "JSON: priority must be an unsigned integer at byte 0");
  for (const char* text : {"1.0", "1e3", "18446744073709551616", "007"}) {
    CAPTURE(text);
    CHECK(error_from([&] { JsonCursor(text).unsigned_integer("x"); }) ==
          "JSON: x must be an unsigned integer of 64 bits at byte 0");
  }
  CHECK(error_from([] { JsonCursor("1").boolean("flag"); }) == "JSON: flag must be true or false at byte 0");
  CHECK(error_from([] { JsonCursor("1").string("name"); }) == "JSON: name must be a string at byte 0");
  CHECK(error_from([] { JsonCursor("").string("name"); }) == "JSON: name must be a string, text ends at byte 0");
  CHECK(error_from([] { JsonCursor("[]").object("body", [](std::string_view) {}); }) ==
        "JSON: body must be an object at byte 0");
  CHECK(JsonCursor("-2.5e1").number("x") == -25.0);
}

TEST_CASE("json_cursor: raw strings and escaping") {
  JsonCursor in("\"a\\u0041\"");
  CHECK(in.raw_string("id") == "\"a\\u0041\"");
  std::string out;
  append_json_string(out,
                     "a\"\\\n\x01\xc3\xa9\xff"
                     "b\x7f");
  CHECK(out ==
        "\"a\\\"\\\\\\u000a\\u0001\xc3\xa9\xef\xbf\xbd"
        "b\\u007f\"");
}

TEST_CASE("json cursor: what is special in a string is seen at every place of a block, and near the end of the text") {
  for (size_t before = 0; before < 40; ++before) {
    const std::string start = '"' + std::string(before, 'a');
    for (const size_t after : {0, 1, 40}) {
      const std::string end(after, ' ');
      CHECK(JsonCursor(start + '"' + end).string("x") == std::string(before, 'a'));
      CHECK(JsonCursor(start + "\\n\"" + end).string("x") == std::string(before, 'a') + '\n');
      CHECK(JsonCursor(start + "\u00e9\x7f\"" + end).string("x") == std::string(before, 'a') + "\u00e9\x7f");
      CHECK(contains(error_from([&] { JsonCursor(start + "\x1f\"" + end).string("x"); }), "control character"));
      CHECK(contains(error_from([&] { JsonCursor(start + "\xff\"" + end).string("x"); }), "not valid UTF-8"));
      CHECK(contains(error_from([&] { JsonCursor(start + std::string(after, 'a')).string("x"); }), "without an end"));
    }
  }
}
