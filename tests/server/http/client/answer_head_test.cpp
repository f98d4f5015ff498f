#include "server/http/client/answer_head.h"

#include <doctest/doctest.h>

#include <string>

namespace sconce::server::http {
namespace {

TEST_CASE("a head is read line by line, and a later one takes its place") {
  AnswerHead head;
  for (const char* line :
       {"HTTP/1.1 100 Continue\r\n", "X-Old: 1\r\n", "\r\n", "HTTP/2 206\r\n", "ETag:  \"a b\" \r\n", "\r\n"})
    CHECK(!head.take(line));
  CHECK(head.status == 206);
  CHECK(head.field("etag") == "\"a b\"");
  CHECK(head.field("x-old").empty());
  CHECK(head.bytes == 64);
}

TEST_CASE("a head without end is refused, in long lines and in short ones, of one field and of many") {
  AnswerHead head;
  const std::string line = "X: " + std::string(1000, 'a') + "\r\n";
  const char* wrong = nullptr;
  size_t lines = 0;
  for (; !wrong && lines < 10'000; ++lines) wrong = head.take(lines % 2 ? line : "HTTP/1.1 100 Continue\r\n");
  CHECK(wrong == std::string("the head of the answer is too long"));
  CHECK(lines < 600);
  AnswerHead many;
  wrong = nullptr;
  for (lines = 0; !wrong && lines < 10'000; ++lines) wrong = many.take("X" + std::to_string(lines) + ": 1\r\n");
  CHECK(wrong == std::string("the head of the answer has too many fields"));
  CHECK(lines == AnswerHead::kMaxFields + 1);
}

TEST_CASE("a field that would begin another one when it is sent back is refused") {
  for (const std::string& line :
       {std::string("ETag: \"a\rX-Evil: 1\"\r\n"), std::string("ETag: \"a\0b\"\r\n", 13), std::string("E\vTag: 1\n")})
    CHECK(AnswerHead().take(line) == std::string("the head of the answer has a control character"));
  AnswerHead head;
  CHECK(!head.take("Server:\ta\tb\r\n"));
  CHECK(!head.take("X-Name: \xc3\xa9\r\n"));
}

TEST_CASE("a range says which bytes come, and of how many") {
  const auto range = parse_content_range("bytes 5-9/18446744073709551615");
  REQUIRE(range);
  CHECK(range->begin == 5);
  CHECK(range->end == 10);
  CHECK(range->total == UINT64_MAX);
  for (const char* wrong : {"", "bytes", "bytes */10", "bytes 5-9/*", "bytes 9-5/10", "bytes 5-10/10",
                            "bytes 0-18446744073709551615/1", "bytes 0-9/18446744073709551616", "bytes -1-9/10",
                            "bytes 0 - 9/10", "bytes 0-9/10/", "items 0-9/10", "bytes 0/9-10", "bytes 0-0/0"})
    CHECK_FALSE(parse_content_range(wrong));
}

TEST_CASE("validators and links") {
  CHECK(without_quotes("\"x\"") == "x");
  CHECK(without_quotes("W/\"x\"") == "x");
  CHECK(without_quotes("\"") == "\"");
  CHECK(without_quotes("W/") == "");
  CHECK(next_link("<https://hub/a?b>; rel=\"next\"") == "https://hub/a?b");
  CHECK(next_link("<https://hub/a>; rel=\"last\"").empty());
  CHECK(next_link("rel=\"next\" <https://hub/a>").empty());
  CHECK(next_link("<https://hub/a").empty());
}

}  // namespace
}  // namespace sconce::server::http
