// ChunkDecoder: decodes a chunked body (RFC 9112, 7.1) strictly by the grammar: lines end with CR LF, sizes have at
// most 16 digits, and extensions and trailers have no control characters, quoted or not. It refuses every sequence that
// another server might read as the end of a line, so that a proxy and this server see the same requests.
//
// Takes bytes as they arrive and stores none. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sconce::server::http {

class ChunkDecoder {
 public:
  struct Step {
    size_t used = 0;        // bytes to remove from the input
    std::string_view data;  // body bytes: the last ones of the used bytes
  };
  // Stops after `most` body bytes, at the end of `here` or of the body, or at malformed bytes.
  Step step(std::string_view here, size_t most) noexcept;

  // How many bytes of the current chunk are still to come, by its size.
  uint64_t announced() const noexcept { return state_ == State::kData ? left_ : 0; }
  bool done() const noexcept { return state_ == State::kDone; }
  // The first defect; null: none so far. Nothing is decoded after an error.
  const char* problem() const noexcept { return problem_; }

 private:
  enum class State : int8_t {
    kSize,
    kSpaceBeforeExtension,
    kSpaceBeforeName,
    kName,
    kSpaceBeforeEquals,
    kSpaceBeforeValue,
    kValue,
    kQuoted,
    kEscaped,
    kAfterQuoted,
    kSizeEnd,  // the LF of a size line
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailerName,
    kTrailerValue,
    kTrailerEnd,
    kLastLf,
    kDone,
  };
  void take(char c) noexcept;
  void take_size(char c) noexcept;
  void take_extension(char c) noexcept;
  void take_trailer(char c) noexcept;
  void end_of_extension(char c) noexcept;  // after a complete extension
  void begin_chunk() noexcept;
  void expect(char c, char expected, State next) noexcept;
  void refuse(const char* problem) noexcept { problem_ = problem; }

  State state_ = State::kSize;
  uint64_t left_ = 0;  // of the chunk: its size while the size line is read, then its remaining bytes
  int digits_ = 0;
  uint32_t extension_bytes_ = 0, trailer_bytes_ = 0;
  uint64_t chunks_ = 0, decoded_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace sconce::server::http
