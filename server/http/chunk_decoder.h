// ChunkDecoder: decodes a chunked body (RFC 9112, 7.1), exactly by the grammar: lines end with CR LF, sizes have at
// most 16 digits, extensions and trailers have no control characters, quoted or not. It refuses everything that another
// server might take for the end of a line, so that a proxy cannot see other requests than we do.
//
// Takes bytes as they come and keeps none. Used only on the connection's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sconce::server {

class ChunkDecoder {
 public:
  struct Step {
    size_t used = 0;        // bytes to be removed from the input
    std::string_view data;  // bytes of the body: the last ones of those used
  };
  // Stops at bytes of the body (`most` at most), at the end of `here` or of the body, or at malformed bytes.
  Step step(std::string_view here, size_t most) noexcept;

  // How much of the current chunk is still to come, by its size.
  uint64_t announced() const noexcept { return state_ == State::kData ? left_ : 0; }
  bool done() const noexcept { return state_ == State::kDone; }
  // What is malformed; null: nothing so far. After an error nothing more is decoded.
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
    kSizeEnd,  // the LF of a size's line
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
  void end_of_extension(char c) noexcept;  // after a complete one
  void begin_chunk() noexcept;
  void expect(char c, char expected, State next) noexcept;
  void refuse(const char* problem) noexcept { problem_ = problem; }

  State state_ = State::kSize;
  uint64_t left_ = 0;  // of the chunk: its size while that is read, then its bytes to come
  int digits_ = 0;
  uint32_t extension_bytes_ = 0, trailer_bytes_ = 0;
  uint64_t chunks_ = 0, decoded_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace sconce::server
