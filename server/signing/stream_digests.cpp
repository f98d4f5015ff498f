#include "server/signing/stream_digests.h"

#include <algorithm>

#include "sconce/check.h"
#include "server/support/hmac.h"

namespace sconce::server::signing {
namespace {

constexpr size_t kHeadLengthBytes = 8;
// The maximum length of the JSON in a safetensors file.
constexpr uint64_t kLongestHead = 100'000'000;

// The number of bytes of a head that begins with this length.
uint64_t head_bytes_of(std::string_view length) noexcept {
  uint64_t bytes = 0;
  for (size_t i = kHeadLengthBytes; i-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(length[i]);
  return bytes > kLongestHead ? 0 : bytes + kHeadLengthBytes;
}

// Moves bytes to the end of `start` until it has `most` bytes.
void take(std::span<const std::byte>& bytes, std::string& start, size_t most) {
  const size_t count = std::min(bytes.size(), most - start.size());
  start.append(reinterpret_cast<const char*>(bytes.data()), count);
  bytes = bytes.subspan(count);
}

}  // namespace

void StreamDigests::update(std::span<const std::byte> bytes) {
  whole_.update(bytes);
  bytes_ += bytes.size();
  constexpr size_t kStart = kHeadLengthBytes + 1;
  if (start_.size() < kStart) {
    take(bytes, start_, kStart);
    if (start_.size() < kStart || start_.back() != '{') return;
    head_bytes_ = head_bytes_of(start_);
    if (head_bytes_ < kStart) return;
    head_.update(std::as_bytes(std::span<const char>(start_)));
    head_seen_ = kStart;
  }
  if (head_seen_ >= head_bytes_) return;
  const size_t count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), head_bytes_ - head_seen_));
  head_.update(bytes.first(count));
  head_seen_ += count;
}

SignedBytes StreamDigests::whole() { return {bytes_, whole_.finish()}; }

std::optional<SignedBytes> StreamDigests::head() {
  if (head_seen_ == 0 || head_seen_ != head_bytes_) return std::nullopt;
  return SignedBytes{head_bytes_, head_.finish()};
}

HeadCheck::HeadCheck(const Statement& statement) {
  SCONCE_CHECK(statement.head && statement.file, kForbidden,
               "the signature has no digest of the head of a safetensors file: sign it with `sconce sign`");
  signed_ = *statement.head;
}

void HeadCheck::see(std::span<const std::byte> bytes) {
  if (seen_ >= signed_.bytes) return;
  const std::span<const std::byte> part =
      bytes.first(static_cast<size_t>(std::min<uint64_t>(bytes.size(), signed_.bytes - seen_)));
  digest_.update(part);
  seen_ += part.size();
  if (length_.size() < kHeadLengthBytes) {
    std::span<const std::byte> rest = part;
    take(rest, length_, kHeadLengthBytes);
    SCONCE_CHECK(length_.size() < kHeadLengthBytes || head_bytes_of(length_) == signed_.bytes, kForbidden,
                 "the body is not what was signed: its head has another length");
  }
  if (seen_ == signed_.bytes)
    SCONCE_CHECK(same_digest(digest_.finish(), signed_.digest), kForbidden,
                 "the body is not what was signed: its head has another digest");
}

}  // namespace sconce::server::signing
