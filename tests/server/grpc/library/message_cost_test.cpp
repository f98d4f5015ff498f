// What a message is charged, beside what reading it really takes.
#include "server/grpc/library/message_cost.h"

#include <doctest/doctest.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <malloc.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "server/grpc/library/infer_message.h"

namespace {

constexpr size_t kHeader = 16;  // of glibc's malloc
size_t live = 0, peak = 0, allocations = 0;

void* counted(size_t size) {
  void* const p = std::malloc(size == 0 ? 1 : size);
  if (p == nullptr) throw std::bad_alloc();
  live += malloc_usable_size(p) + kHeader;
  peak = std::max(peak, live);
  ++allocations;
  return p;
}
void uncounted(void* p) noexcept {
  if (p != nullptr) live -= malloc_usable_size(p) + kHeader;
  std::free(p);
}

}  // namespace

void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, size_t) noexcept { uncounted(p); }
void operator delete[](void* p, size_t) noexcept { uncounted(p); }

namespace sconce::server::rpc {
namespace {

std::string varint(uint64_t value) {
  std::string digits;
  for (; value >= 128; value >>= 7) digits += static_cast<char>(value | 128);
  return digits + static_cast<char>(value);
}
std::string field(uint32_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number_field(uint32_t number, uint64_t value) { return varint(number << 3) + varint(value); }
std::string times(size_t count, const std::string& piece) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += piece;
  return all;
}
std::string parameter(const std::string& name, const std::string& value) {
  return field(1, name) + field(2, field(3, value));
}

struct Reading {
  bool scanned, read;
  size_t charge, taken, allocations_of_scan;
  std::string problem;
};
Reading reading_of(const std::string& text) {
  const grpc::Slice slice(text);
  grpc::ByteBuffer bytes(&slice, 1);
  const auto message = std::make_unique<InferMessage>();
  Reading result{};
  const size_t before_scan = allocations;
  result.scanned = message->scan(bytes);
  result.allocations_of_scan = allocations - before_scan;
  result.charge = message->needs();
  if (!result.scanned) {
    result.problem = message->problem();
    return result;
  }
  const size_t before = peak = live;
  result.read = message->read();
  result.taken = peak - before;
  return result;
}

TEST_CASE("a message's charge is at least what reading it takes, whatever its shape") {
  const std::string tensor = field(1, "INPUT__0") + field(2, "FP32") + field(3, varint(1) + varint(4));
  const std::string long_name(1000, 'n');
  for (const size_t n : {0, 1, 2, 3, 15, 16, 17, 100, 1000, 4000}) {
    CAPTURE(n);
    std::string named, packed_small, packed_large, floats, pieces, repeated_contents;
    for (size_t i = 0; i < n; ++i) {
      named += field(4, parameter("p" + std::to_string(i) + (i % 3 == 0 ? long_name : ""), "v"));
      packed_small += varint(i % 100);
      packed_large += varint(~uint64_t{0} - i);
      floats += std::string(4, '\1');
      pieces += field(6, std::string(4, '\1'));
      repeated_contents += field(5, field(6, std::string(8, '\1')));
    }
    const std::pair<const char*, std::string> shapes[] = {
        {"empty inputs", times(n, field(5, ""))},
        {"inputs", times(n, field(5, tensor))},
        {"inputs with long names", times(n, field(5, field(1, long_name)))},
        {"empty outputs", times(n, field(6, ""))},
        {"named outputs", times(n, field(6, field(1, "an output with a name")))},
        {"empty raw contents", times(n, field(7, ""))},
        {"raw contents", field(5, tensor) + field(7, std::string(n * 16, 'r'))},
        {"one parameter again", times(n, field(4, parameter("p", "v")))},
        {"empty parameters", times(n, field(4, ""))},
        {"parameters", named},
        {"parameters of inputs", times(n, field(5, field(4, parameter("p", std::string(40, 'v')))))},
        {"parameters of outputs", times(n, field(6, field(4, parameter("p", "v"))))},
        {"shape", field(5, field(3, packed_small))},
        {"shape, number by number", field(5, times(n, number_field(3, 1)))},
        {"bools", field(5, tensor + field(5, field(1, std::string(n, '\1'))))},
        {"small int32", field(5, tensor + field(5, field(2, packed_small)))},
        {"small int64", field(5, tensor + field(5, field(3, packed_small)))},
        {"large uint64", field(5, tensor + field(5, field(5, packed_large)))},
        {"int64, number by number", field(5, tensor + field(5, times(n, number_field(3, 7))))},
        {"floats", field(5, tensor + field(5, field(6, floats)))},
        {"floats in pieces", field(5, tensor + field(5, pieces))},
        {"floats in pieces of the contents", field(5, tensor + repeated_contents)},
        {"doubles", field(5, tensor + field(5, field(7, floats + floats)))},
        {"empty bytes", field(5, field(5, times(n, field(8, ""))))},
        {"bytes", field(5, field(5, times(n, field(8, std::string(100, 'b')))))},
        {"empty contents", times(n, field(5, field(5, "")))},
        {"a name again", times(n, field(1, "model"))},
        {"long names", field(1, std::string(n * 10, 'm')) + field(3, std::string(n, 'i'))},
        {"unknown numbers", times(n, number_field(99, 1))},
        {"unknown bytes", times(n, field(99, "unknown bytes that are long"))},
        {"unknown fields of inputs", times(n / 2, field(5, number_field(99, 1)))},
        {"unknown fields of parameters", times(n / 2, field(4, field(2, number_field(99, 1))))},
    };
    for (const auto& [name, text] : shapes) {
      CAPTURE(name);
      const Reading reading = reading_of(text);
      CHECK(reading.scanned);
      CHECK(reading.read);
      CHECK(reading.allocations_of_scan == 0);
      CHECK(reading.charge >= reading.taken);
    }
  }
}

TEST_CASE("an ordinary message is charged a small multiple of what it takes") {
  const auto infer = [](size_t inputs, const std::string& contents) {
    std::string text = field(1, "resnet") + field(3, "request-1");
    for (size_t i = 0; i < inputs; ++i)
      text += field(5, field(1, "INPUT__" + std::to_string(i)) + field(2, "FP32") +
                           field(3, varint(1) + varint(3) + varint(224)) + contents);
    return text + field(6, field(1, "OUTPUT__0"));
  };
  std::string integers;
  for (int i = 0; i < 100'000; ++i) integers += varint(static_cast<uint64_t>(i));
  for (const std::string& text :
       {infer(1, "") + field(7, std::string(600'000, 'x')), infer(4, ""), infer(100, ""),
        infer(1, field(5, field(6, std::string(400'000, 'x')))), infer(1, field(5, field(3, integers))),
        infer(1, field(5, times(10'000, field(8, "a token of text"))))}) {
    const Reading reading = reading_of(text);
    CHECK(reading.read);
    CHECK(reading.charge >= reading.taken);
    CHECK(reading.charge <= 3 * reading.taken + 6 * 1024);
  }
}

TEST_CASE("a message with more parts than any model has is refused before any is made") {
  const size_t most = MessageCost::kMost;
  for (const auto& [piece, what] :
       std::initializer_list<std::pair<std::string, std::string>>{{field(5, ""), "inputs"},
                                                                  {field(6, ""), "outputs"},
                                                                  {field(7, ""), "raw_input_contents"},
                                                                  {field(4, ""), "parameters"},
                                                                  {field(99, ""), "unknown fields"}}) {
    CHECK(reading_of(times(most, piece)).scanned);
    const Reading reading = reading_of(times(most + 1, piece));
    CHECK_FALSE(reading.scanned);
    CHECK(reading.allocations_of_scan == 0);
    CHECK(reading.problem == "the request has more than 4096 " + what);
  }
  // Over all inputs together.
  CHECK_FALSE(reading_of(times(2, field(5, times(most / 2 + 1, field(4, ""))))).scanned);
}

TEST_CASE("bytes that are no message are found out without an allocation") {
  for (const std::string& text : {std::string("\xff\xff\xff"),
                                  std::string("\x0a\x05"
                                              "ab"),
                                  std::string("\x3a\xff\xff\xff\xff\x0f"), field(5, "\x0a\x05"),
                                  field(5, field(5, "\x32\x7f")), std::string("\x2b"), std::string(1, '\0'),
                                  field(5, field(3, "\x80")) + "\x0a", field(4, field(2, "\x1a\x09"))}) {
    const Reading reading = reading_of(text);
    CHECK((!reading.scanned || !reading.read));
    CHECK(reading.allocations_of_scan == 0);
  }
  CHECK(reading_of("\x2b\x2c").problem == "not a ModelInferRequest");
}

std::string gzipped(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string to(deflateBound(&stream, text.size()), 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(to.data());
  stream.avail_out = static_cast<uInt>(to.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  to.resize(stream.total_out);
  deflateEnd(&stream);
  return to;
}

TEST_CASE("a compressed message asks for room before it grows, and stops where there is none") {
  const std::string text(1'000'000, 'z');
  const grpc::Slice slice(gzipped(text));
  const auto attempt = [&](size_t most, size_t room, size_t& asked, grpc::ByteBuffer& bytes, GrpcStatus& status) {
    grpc::ByteBuffer whole(&slice, 1);
    bytes.Swap(&whole);
    asked = 0;
    return inflate(
        bytes, GRPC_COMPRESS_GZIP, most,
        [&](size_t wanted) {
          asked = std::max(asked, wanted);
          return wanted <= room;
        },
        status);
  };
  size_t asked = 0;
  grpc::ByteBuffer bytes;
  GrpcStatus status;
  CHECK(attempt(SIZE_MAX, SIZE_MAX, asked, bytes, status) == Inflated::kDone);
  CHECK(bytes.Length() == text.size());
  CHECK(asked >= text.size());
  CHECK(asked <= text.size() + 256 * 1024);
  CHECK(attempt(SIZE_MAX, 400'000, asked, bytes, status) == Inflated::kNoRoom);
  CHECK(asked > 400'000);
  CHECK(asked <= 400'000 + 128 * 1024);
  CHECK(bytes.Length() == slice.size());  // as it came
  CHECK(attempt(100'000, SIZE_MAX, asked, bytes, status) == Inflated::kRefused);
  CHECK(status.code == GrpcCode::kResourceExhausted);
  CHECK(asked <= 100'000 + 256 * 1024);
}

}  // namespace
}  // namespace sconce::server::rpc
