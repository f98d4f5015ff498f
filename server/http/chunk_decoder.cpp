#include "server/http/chunk_decoder.h"

#include <algorithm>

#include "src/support/hex.h"

namespace sconce::server::http {
namespace {

// Limit of a chunked body's overhead.
constexpr uint64_t kMaxChunks = 65536;
constexpr uint32_t kMaxExtensionBytes = 16384, kMaxTrailerBytes = 16384;
constexpr uint64_t kMinChunkBytes = 128;
constexpr int kMaxDigits = 16;

bool is_token(char c) noexcept {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// Characters of a field value and of a quoted string.
bool is_text(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

}  // namespace

ChunkDecoder::Step ChunkDecoder::step(std::string_view here, size_t most) noexcept {
  Step step;
  while (step.used < here.size() && problem_ == nullptr && state_ != State::kDone) {
    if (state_ != State::kData) {
      take(here[step.used++]);
      continue;
    }
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>({left_, here.size() - step.used, most}));
    step.data = here.substr(step.used, bytes);
    step.used += bytes;
    left_ -= bytes;
    decoded_ += bytes;
    if (left_ == 0) state_ = State::kDataCr;
    break;
  }
  return step;
}

void ChunkDecoder::take(char c) noexcept {
  if (state_ == State::kSize) return take_size(c);
  if (state_ < State::kSizeEnd) {
    if (++extension_bytes_ > kMaxExtensionBytes) return refuse("too many chunk extensions");
    return take_extension(c);
  }
  switch (state_) {
    case State::kSizeEnd:
      return c == '\n' ? begin_chunk() : refuse("malformed chunk: a line must end with CR LF");
    case State::kDataCr:
      return expect(c, '\r', State::kDataLf);
    case State::kDataLf:
      digits_ = 0;
      return expect(c, '\n', State::kSize);
    default:
      if (++trailer_bytes_ > kMaxTrailerBytes) return refuse("malformed chunk: trailer too large");
      return take_trailer(c);
  }
}

void ChunkDecoder::take_size(char c) noexcept {
  if (const int digit = hex_digit(c); digit >= 0) {
    if (++digits_ > kMaxDigits) return refuse("malformed chunk: its size has more than 16 digits");
    left_ = left_ * 16 + static_cast<uint64_t>(digit);
    return;
  }
  if (digits_ == 0) return refuse("malformed chunk: its size is not a hexadecimal number");
  if (is_blank(c)) {
    ++extension_bytes_;
    state_ = State::kSpaceBeforeExtension;
    return;
  }
  end_of_extension(c);
}

void ChunkDecoder::end_of_extension(char c) noexcept {
  if (c == ';') {
    state_ = State::kSpaceBeforeName;
  } else if (c == '\r') {
    state_ = State::kSizeEnd;
  } else {
    refuse(c == '\n' ? "malformed chunk: a line must end with CR LF" : "malformed chunk size or extension");
  }
}

void ChunkDecoder::take_extension(char c) noexcept {
  switch (state_) {
    case State::kSpaceBeforeExtension:
      if (is_blank(c)) return;
      return c == ';' ? end_of_extension(c) : refuse("malformed chunk size or extension");
    case State::kSpaceBeforeName:
      if (is_blank(c)) return;
      state_ = State::kName;
      return is_token(c) ? (void)0 : refuse("malformed chunk extension: its name");
    case State::kName:
      if (is_token(c)) return;
      [[fallthrough]];
    case State::kSpaceBeforeEquals:
      if (c == '=') {
        state_ = State::kSpaceBeforeValue;
      } else if (is_blank(c)) {
        state_ = State::kSpaceBeforeEquals;
      } else if (state_ == State::kName || c == ';') {
        end_of_extension(c);
      } else {
        refuse("malformed chunk extension");
      }
      return;
    case State::kSpaceBeforeValue:
      if (is_blank(c)) return;
      state_ = c == '"' ? State::kQuoted : State::kValue;
      return c == '"' || is_token(c) ? (void)0 : refuse("malformed chunk extension: its value");
    case State::kValue:
      if (is_token(c)) return;
      [[fallthrough]];
    case State::kAfterQuoted:
      if (!is_blank(c)) return end_of_extension(c);
      state_ = State::kSpaceBeforeExtension;
      return;
    case State::kQuoted:
      if (c == '"') {
        state_ = State::kAfterQuoted;
      } else if (c == '\\') {
        state_ = State::kEscaped;
      } else if (!is_text(c)) {
        refuse("malformed chunk extension: a control character");
      }
      return;
    default:
      state_ = State::kQuoted;
      return is_text(c) ? (void)0 : refuse("malformed chunk extension: a control character");
  }
}

void ChunkDecoder::begin_chunk() noexcept {
  // Long uploads have many chunks, so the limit depends on the number of decoded bytes.
  if (++chunks_ > std::max(kMaxChunks, decoded_ / kMinChunkBytes)) return refuse("too many chunks");
  state_ = left_ == 0 ? State::kTrailerStart : State::kData;
}

void ChunkDecoder::take_trailer(char c) noexcept {
  switch (state_) {
    case State::kTrailerStart:
      if (c == '\r') {
        state_ = State::kLastLf;
        return;
      }
      state_ = State::kTrailerName;
      return is_token(c) ? (void)0 : refuse("malformed trailer: a field's name");
    case State::kTrailerName:
      if (is_token(c)) return;
      state_ = State::kTrailerValue;
      return c == ':' ? (void)0 : refuse("malformed trailer: a field's name");
    case State::kTrailerValue:
      if (is_text(c)) return;
      return expect(c, '\r', State::kTrailerEnd);
    case State::kTrailerEnd:
      return expect(c, '\n', State::kTrailerStart);
    default:
      return expect(c, '\n', State::kDone);
  }
}

void ChunkDecoder::expect(char c, char expected, State next) noexcept {
  if (c != expected)
    return refuse(state_ == State::kDataCr ? "malformed chunk: longer than its size"
                                           : "malformed chunk: a line must end with CR LF");
  state_ = next;
}

}  // namespace sconce::server::http
