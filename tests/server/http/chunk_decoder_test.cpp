#include "server/http/chunk_decoder.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace sconce::server::http {
namespace {

constexpr size_t kWhole = size_t{1} << 40;

struct Decoded {
  std::string body;
  size_t used = 0;
  bool done = false;
  std::string problem;
  friend bool operator==(const Decoded&, const Decoded&) = default;
};

// Feeds the text in pieces of so many bytes. Each piece has memory of its own, so that ASan reports reads of earlier
// ones.
Decoded decode(std::string_view text, size_t piece, size_t most = kWhole) {
  ChunkDecoder decoder;
  Decoded result;
  while (result.used < text.size() && !decoder.done() && decoder.problem() == nullptr) {
    std::string_view here = text.substr(result.used, piece);
    const std::vector<char> copy(piece == kWhole ? here.end() : here.begin(), here.end());
    if (piece != kWhole) here = {copy.data(), copy.size()};
    const ChunkDecoder::Step step = decoder.step(here, most);
    REQUIRE(step.used > 0);
    REQUIRE(step.data.size() <= std::min(step.used, most));
    result.body += step.data;
    result.used += step.used;
  }
  result.done = decoder.done();
  if (decoder.problem() != nullptr) result.problem = decoder.problem();
  return result;
}

Decoded decode(std::string_view text) {
  const Decoded whole = decode(text, kWhole);
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) CHECK(decode(text, piece) == whole);
  CHECK(decode(text, 5, 1) == whole);
  return whole;
}

}  // namespace

TEST_CASE("chunk_decoder: bodies, whatever the pieces they come in") {
  for (const std::string_view text :
       {"5\r\nhello\r\n0\r\n\r\n", "2\r\nhe\r\n003\r\nllo\r\n000\r\n\r\n", "5;a\r\nhello\r\n0;b=c\r\n\r\n",
        "5;a=\"x y\\\"\\\\;\t\xc3\xa9\";b\r\nhello\r\n0\r\n\r\n", "5 ; a = b ; c\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nX: y z\r\nEmpty:\r\n\r\n", "0000000000000005\r\nhello\r\n0\r\n\r\n"}) {
    CAPTURE(text);
    const Decoded decoded = decode(text);
    CHECK(decoded.body == "hello");
    CHECK(decoded.done);
    CHECK(decoded.used == text.size());
  }
  CHECK(decode("a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n").body == "01234567890123456789");
}

TEST_CASE("chunk_decoder: what comes behind the body is not taken") {
  const Decoded decoded = decode("1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  CHECK(decoded.done);
  CHECK(decoded.used == std::string_view("1\r\nx\r\n0\r\n\r\n").size());
}

TEST_CASE("chunk_decoder: what could end a line elsewhere is refused") {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {// in an extension, quoted or not
        "1;a=\"\n\"\r\nx\r\n0\r\n\r\n"s, "1;a=\"\r\"\r\nx\r\n0\r\n\r\n"s, "1;a=\"\0\"\r\nx\r\n0\r\n\r\n"s,
        "1;a=\"\\\n\"\r\nx\r\n0\r\n\r\n"s, "1;a=\"\\\0\"\r\nx\r\n0\r\n\r\n"s, "1;a=\"\r\nx\r\n0\r\n\r\n"s,
        "1;a=\"\x1b\"\r\nx\r\n0\r\n\r\n"s, "1;a=\"\x7f\"\r\nx\r\n0\r\n\r\n"s, "1;\nx\r\n0\r\n\r\n"s,
        "1;a\nx\r\n0\r\n\r\n"s, "1;a=b\nx\r\n0\r\n\r\n"s, "1;a\rb\r\nx\r\n0\r\n\r\n"s, "1;a\0b\r\nx\r\n0\r\n\r\n"s,
        "1;a=b\0\r\nx\r\n0\r\n\r\n"s,
        // bare ends of lines
        "1\nx\r\n0\r\n\r\n"s, "1\rx\r\n0\r\n\r\n"s, "1\r\nx\n0\r\n\r\n"s, "1\r\nx\r0\r\n\r\n"s, "1\r\nx\r\n0\n\r\n"s,
        "1\r\nx\r\n0\r\n\n"s, "1\r\nx\r\n0\r\n\rx"s, "\n1\r\nx\r\n0\r\n\r\n"s, "\r\n1\r\nx\r\n0\r\n\r\n"s,
        // trailers
        "0\r\nX: y\n\r\n"s, "0\r\nX: y\rz\r\n\r\n"s, "0\r\nX: \0\r\n\r\n"s, "0\r\n X: y\r\n\r\n"s,
        "0\r\nX: y\r\n z\r\n\r\n"s, "0\r\nX\r\n\r\n"s, "0\r\n: y\r\n\r\n"s, "0\r\nX : y\r\n\r\n"s,
        "0\r\nX: \x7f\r\n\r\n"s,
        // sizes
        "\r\n"s, " 1\r\nx\r\n0\r\n\r\n"s, "+1\r\nx\r\n0\r\n\r\n"s, "-1\r\nx\r\n0\r\n\r\n"s, "0x1\r\nx\r\n0\r\n\r\n"s,
        "g\r\nx\r\n0\r\n\r\n"s, "1 \r\nx\r\n0\r\n\r\n"s, "1\t\r\nx\r\n0\r\n\r\n"s, "1,\r\nx\r\n0\r\n\r\n"s,
        "1_0\r\nx\r\n0\r\n\r\n"s, "\0001\r\nx\r\n0\r\n\r\n"s, "00000000000000001\r\nx\r\n0\r\n\r\n"s,
        "10000000000000001\r\nx\r\n"s,
        // extensions that are none
        "1;\r\nx\r\n0\r\n\r\n"s, "1;=b\r\nx\r\n0\r\n\r\n"s, "1;a=\r\nx\r\n0\r\n\r\n"s, "1;a b\r\nx\r\n0\r\n\r\n"s,
        "1;a=b c\r\nx\r\n0\r\n\r\n"s, "1;a=\"b\"c\r\nx\r\n0\r\n\r\n"s, "1;a \r\nx\r\n0\r\n\r\n"s,
        // data
        "1\r\nxy\r\n0\r\n\r\n"s}) {
    CAPTURE(text);
    const Decoded decoded = decode(text);
    CHECK(!decoded.done);
    CHECK(decoded.problem != "");
  }
}

TEST_CASE("chunk_decoder: overhead has a limit, long uploads have none") {
  const std::string one = "1\r\nx\r\n";
  std::string many;
  for (int i = 0; i < 65537; ++i) many += one;
  CHECK(decode(many, kWhole).problem == "too many chunks");
  CHECK(decode("1;" + std::string(20000, 'e') + "\r\nx\r\n", kWhole).problem == "too many chunk extensions");
  CHECK(decode("0\r\nX: " + std::string(20000, 'e') + "\r\n\r\n", kWhole).problem ==
        "malformed chunk: trailer too large");
  std::string large;
  const std::string chunk = "100\r\n" + std::string(256, 'x') + "\r\n";
  for (int i = 0; i < 200'000; ++i) large += chunk;
  const Decoded decoded = decode(large + "0\r\n\r\n", kWhole);
  CHECK(decoded.done);
  CHECK(decoded.body.size() == 200'000 * 256);
}

TEST_CASE("chunk_decoder: sizes of 64 bits are sizes") {
  const Decoded decoded = decode("ffffffffffffffff\r\nabc", kWhole);
  CHECK(decoded.body == "abc");
  CHECK(!decoded.done);
}

}  // namespace sconce::server::http
