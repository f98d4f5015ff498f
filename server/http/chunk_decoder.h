// ChunkDecoder: the framing of a chunked body (RFC 9112, 7.1), as strict as its grammar: lines end with CR LF, sizes
// have at most 16 digits, extensions and trailers hold no control characters, quoted or not. What another server might
// take for the end of a line is refused, so that nobody in between can see other requests than we do.
//
// Takes bytes as they come and keeps none of them. Confined to the connection's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sconce::server {

class ChunkDecoder {
 public:
  struct Step {
    size_t used = 0;        // bytes that are not to come again
    std::string_view data;  // of the body, the last of those bytes
  };
  // Up to the next bytes of the body, `most` of them, the end of `here`, that of the body, or what is malformed.
  Step step(std::string_view here, size_t most) noexcept;

  // What is still to come of the chunk that has begun, as its size says.
  uint64_t announced() const noexcept { return state_ == State::kData ? left_ : 0; }
  bool done() const noexcept { return state_ == State::kDone; }
  // What is malformed; null: nothing yet. Nothing more is taken then.
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
  void end_of_extension(char c) noexcept;  // what may follow a whole one
  void begin_chunk() noexcept;
  void expect(char c, char expected, State next) noexcept;
  void refuse(const char* problem) noexcept { problem_ = problem; }

  State state_ = State::kSize;
  uint64_t left_ = 0;  // of the chunk: its size so far, then what is left of its data
  int digits_ = 0;
  uint32_t extension_bytes_ = 0, trailer_bytes_ = 0;
  uint64_t chunks_ = 0, decoded_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace sconce::server
