#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "sconce/weight_sources.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"
#include "tests/errors.h"
#include "tests/weights/fake_update.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

struct Part {
  std::string name, dtype, shape;
  size_t bytes;
};

std::string pattern(size_t bytes, unsigned seed) {
  std::string text(bytes, '\0');
  std::mt19937 random(seed);
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string with_length(const std::string& json) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return file + json;
}

// Parts lie in the file in the order given; the header lists them backwards.
std::string safetensors(const std::vector<Part>& parts) {
  std::string json, data;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    const std::string one = "\"" + p.name + "\":{\"dtype\":\"" + p.dtype + "\",\"shape\":[" + p.shape +
                            "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
                            std::to_string(data.size() + p.bytes) + "]}";
    json = json.empty() ? one : one + "," + json;
    data += p.dtype == "BOOL" ? std::string(p.bytes, '\1') : pattern(p.bytes, static_cast<unsigned>(i));
  }
  return with_length("{\"__metadata__\":{\"format\":\"pt\"}" + (json.empty() ? "" : "," + json) + "}") + data;
}

const std::vector<Part> kParts = {
    {"a", "F32", "3,5", 60},     {"none", "F32", "0,7", 0},           {"flag", "BOOL", "3", 3},
    {"odd", "F64", "2", 16},     {"big", "BF16", "300,200", 120'000}, {"scalar", "I64", "", 8},
    {"also none", "U8", "0", 0}, {"large", "F32", "100000", 400'000}, {"last", "F16", "1,1,1", 2},
    {"end", "I8", "0", 0}};

Sha256Digest digest(std::string_view text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.finish();
}

// Feeds pieces of at most `piece` bytes.
void feed(WeightStream& stream, std::string_view bytes, size_t piece) {
  while (!bytes.empty()) {
    const std::span<std::byte> room = stream.next();
    REQUIRE(!room.empty());
    const size_t n = std::min({room.size(), piece, bytes.size()});
    std::memcpy(room.data(), bytes.data(), n);
    stream.advance(n);
    bytes.remove_prefix(n);
  }
}

void decode(WeightUpdate& update, std::string_view bytes, StreamOptions options = {}, size_t piece = SIZE_MAX) {
  WeightStream stream(update, std::move(options));
  feed(stream, bytes, piece);
  stream.end();
}

std::string refusal(std::string_view bytes, StreamOptions options = {}) {
  FakeUpdate update;
  try {
    decode(update, bytes, std::move(options));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void check_parts(const FakeUpdate& update) {
  REQUIRE(update.whole());
  CHECK(update.size() == kParts.size());
  for (size_t i = 0; i < kParts.size(); ++i) {
    CAPTURE(kParts[i].name);
    CHECK(update.bytes(kParts[i].name) == (kParts[i].dtype == "BOOL"
                                               ? std::string(kParts[i].bytes, '\1')
                                               : pattern(kParts[i].bytes, static_cast<unsigned>(i))));
  }
}

}  // namespace

TEST_CASE("weight stream: tensors arrive whole, whatever the pieces") {
  const std::string file = safetensors(kParts);
  for (const bool one_scratch : {false, true})
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, size_t{65536}, SIZE_MAX})
      for (const bool known : {false, true}) {
        CAPTURE(piece);
        FakeUpdate update(one_scratch);
        StreamOptions options;
        if (known) options.bytes = file.size();
        options.sha256 = digest(file);
        decode(update, file, options, piece);
        check_parts(update);
        CHECK(update.entry("a")->shape == std::vector<int64_t>{3, 5});
        CHECK(update.entry("big")->dtype == DType::kBFloat16);
      }
}

TEST_CASE("weight stream: pieces of random length") {
  const std::string file = safetensors(kParts);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    FakeUpdate update(round % 2 == 0);
    WeightStream stream(update);
    std::string_view rest = file;
    while (!rest.empty()) {
      const size_t n = std::min<size_t>(rest.size(), 1 + random() % (1u << (random() % 20)));
      feed(stream, rest.substr(0, n), SIZE_MAX);
      rest.remove_prefix(n);
    }
    stream.end();
    check_parts(update);
  }
}

TEST_CASE("weight stream: large tensors go straight to their place, small ones many at a time") {
  const std::string file =
      safetensors({{"large", "U8", "1000000", 1'000'000}, {"b", "U8", "2", 2}, {"c", "U8", "3", 3}});
  FakeUpdate update;
  WeightStream stream(update);
  CHECK(stream.next().size() == 8);
  const size_t data = file.size() - 1'000'005;
  feed(stream, file.substr(0, data), SIZE_MAX);
  const std::span<std::byte> room = stream.next();
  CHECK(room.size() == 1'000'000);
  CHECK(stream.bytes_total() == file.size());
  feed(stream, std::string_view(file).substr(data, 1'000'000), SIZE_MAX);
  CHECK(update.bytes("large").data()[0] == static_cast<char>(room[0]));
  CHECK(stream.next().size() == 5);
  feed(stream, std::string_view(file).substr(data + 1'000'000), SIZE_MAX);
  stream.end();
  CHECK(update.whole());
  CHECK(stream.bytes_done() == file.size());
}

TEST_CASE("weight stream: empty ones") {
  FakeUpdate update;
  decode(update, with_length("{}"));
  CHECK(update.whole());
  CHECK(refusal("").find("header") != std::string::npos);
  CHECK(refusal(with_length("")).find("header is empty") != std::string::npos);
}

TEST_CASE("weight stream: one that ends anywhere too early is refused") {
  const std::string file = safetensors({{"a", "F32", "3,5", 60}, {"none", "F32", "0", 0}, {"b", "F32", "2", 8}});
  for (size_t end = 0; end < file.size(); ++end) {
    CAPTURE(end);
    CHECK(refusal(std::string_view(file).substr(0, end)).find("stream ends within its") != std::string::npos);
    CHECK(!refusal(std::string_view(file).substr(0, end), {.bytes = end}).empty());
  }
  CHECK(refusal(std::string_view(file).substr(0, file.size() - 1)).find(": b: after") != std::string::npos);
  CHECK(refusal(file).empty());
}

TEST_CASE("weight stream: bytes behind the end are refused") {
  const std::string file = safetensors({{"a", "F32", "3,5", 60}});
  CHECK(refusal(file + "x").find("go on behind their end") != std::string::npos);
  CHECK(refusal(file + "x", {.bytes = file.size() + 1}).find("bytes of no tensor") != std::string::npos);
}

TEST_CASE("weight stream: a wrong digest is an invalid argument, after all bytes and before finish") {
  std::string file = safetensors(kParts);
  const Sha256Digest right = digest(file);
  file.back() = static_cast<char>(file.back() ^ 1);
  FakeUpdate update;
  WeightStream stream(update, {.sha256 = right});
  feed(stream, file, 5000);
  CHECK(error_from([&] { stream.end(); }).starts_with("SHA-256 differs: body: expected " + to_hex(right) + ", found "));
}

TEST_CASE("weight stream: headers that lie are refused by name and reason, before memory is asked for") {
  const auto entry = [](const char* name, const char* dtype, const char* shape, const char* offsets) {
    return std::string("\"") + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
           offsets + "]}";
  };
  const std::string data(64, 'x');
  struct Case {
    std::string json, reason, name;
  };
  const std::string deep(100'000, '[');
  const std::vector<Case> cases = {
      {"{" + entry("w", "F32", "4", "0,12") + "}", "wrong size of data", ": w: "},
      {"{" + entry("w", "F32", "4", "16,0") + "}", "outside the file", ": w: "},
      {"{" + entry("v", "F32", "4", "0,16") + "," + entry("w", "F32", "4", "8,24") + "}", "overlaps", ": w: "},
      {"{" + entry("v", "F32", "4", "0,16") + "," + entry("w", "F32", "4", "20,36") + "}", "gap", ": w: "},
      {"{" + entry("w", "F32", "4", "4,20") + "}", "gap", ": w: "},
      {"{" + entry("w", "F32", "4", "0,16") + "," + entry("w", "F32", "4", "16,32") + "}", "occurs twice", ": w"},
      {"{" + entry("w", "Q7", "4", "0,16") + "}", "no tensor type for dtype Q7", ": w"},
      {"{" + entry("w", "F32", "4294967296,4294967296", "0,16") + "}", "sizes overflow", ": w: "},
      {"{" + entry("w", "F32", "-4", "0,16") + "}", "negative", ": w"},
      {"{" + entry("w", "F32", "4.5", "0,16") + "}", "fraction", ": w"},
      {"{" + entry("w", "F32", "4", "0,16,32") + "}", "not two numbers", ": w"},
      {R"({"w":{"dtype":"F32","shape":[4]}})", "lacks dtype", ": w"},
      {R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"shape":[4]}})", "unexpected field", ": w"},
      {R"({"w":{"dtype":"F32","shape":)" + deep, "unexpected an array", ": w"},
      {"{\"w\":" + deep, "unexpected an array", ": w"},
      {R"({"w":{"w":{"w":{}}}})", "lacks dtype", ": w"},
      {"[" + deep, "does not start", ""},
      {"{\"w\":{\"dtype\":\"F32", "invalid JSON", ""},
      {"{" + entry("refused", "F32", "4", "0,16") + "}", "no constant of this name", ": refused"}};
  for (const Case& c : cases) {
    CAPTURE(c.reason);
    const std::string text = refusal(with_length(c.json) + data);
    CHECK_MESSAGE(text.find(c.reason) != std::string::npos, text);
    CHECK_MESSAGE(text.find(c.name) != std::string::npos, text);
    // The same where the length of the whole is known.
    const std::string known = refusal(with_length(c.json) + data, {.bytes = 8 + c.json.size() + data.size()});
    CHECK_MESSAGE(!known.empty(), c.json.substr(0, 80));
  }
  std::string huge = with_length("{}");
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 40, ~uint64_t{0}}) {
    std::memcpy(huge.data(), &length, sizeof length);
    CHECK(refusal(huge).find("header is too long") != std::string::npos);
  }
  // A long header is not believed before it has come.
  const uint64_t claim = 90'000'000;
  std::memcpy(huge.data(), &claim, sizeof claim);
  FakeUpdate update;
  WeightStream stream(update);
  feed(stream, huge.substr(0, 8), 8);
  CHECK(stream.next().size() <= 65536);
}

TEST_CASE("weight stream: a bool that is neither 0 nor 1 is refused") {
  std::string file = safetensors({{"flag", "BOOL", "3", 3}});
  file.back() = 2;
  CHECK(refusal(file).find("neither 0 nor 1: body: flag: element 2 is 2") != std::string::npos);
}

TEST_CASE("weight stream: random damage gives an error or other weights, never anything else") {
  const std::string good = safetensors({{"a", "F32", "3,5", 60},
                                        {"none", "F16", "0,3", 0},
                                        {"bb", "I8", "40000", 40'000},
                                        {"flag", "BOOL", "3", 3},
                                        {"c", "U64", "", 8}});
  std::mt19937 random(20240607);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string file = good;
    const size_t reach = random() % 4 == 0 ? file.size() : file.size() - 40'060;  // mostly the header
    for (unsigned n = 1 + random() % 4; n > 0; --n) switch (random() % 4) {
        case 0:
          file[random() % reach] = static_cast<char>(random());
          break;
        case 1:
          file[random() % reach] ^= static_cast<char>(1 << random() % 8);
          break;
        case 2:
          file.erase(random() % reach, 1 + random() % 8);
          break;
        default:
          file.insert(random() % reach, std::string(1 + random() % 8, "0123456789[]{},:\""[random() % 17]));
      }
    FakeUpdate update(round % 2 == 0);
    StreamOptions options;
    if (random() % 2) options.bytes = file.size();
    try {
      decode(update, file, options, 1 + random() % 100'000);
      CHECK(update.whole());
      ++accepted;
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() > 10);
      ++refused;
    }
  }
  CHECK(accepted > 10);
  CHECK(refused > 1000);
}

TEST_CASE("weight stream: names that save_model() left out come with the entry that it kept") {
  const std::string data = pattern(8, 1);
  const std::string file =
      with_length(R"({"__metadata__":{"format":"pt","b":"a","d":"a","c":"a","e":"gone","g":"f","f":"g"},)"
                  R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                  R"("c":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})") +
      data;
  FakeUpdate update;
  decode(update, file, {}, 5);
  REQUIRE(update.whole());
  // "c" has an entry of its own; no entry is called "gone", "f" or "g".
  CHECK(update.entry("a")->tied == std::vector<std::string>{"b", "d"});
  CHECK(update.entry("c")->tied.empty());
  CHECK(update.bytes("a") == data.substr(0, 4));
}
