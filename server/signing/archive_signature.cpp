#include "server/signing/archive_signature.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "sconce/check.h"
#include "src/support/parse_number.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {
namespace {

constexpr std::string_view kMark = "sconce-signature ", kEndRecord = "PK\5\6";
constexpr size_t kDigits = 8, kTrailer = kMark.size() + kDigits + 1;
constexpr size_t kLengthBytes = 2, kBeforeLength = 20;  // of the archive's end record

uint16_t length_at(std::string_view text) noexcept {
  return static_cast<uint16_t>(static_cast<unsigned char>(text[0]) | static_cast<unsigned char>(text[1]) << 8);
}

}  // namespace

std::optional<ArchiveSignature> find_archive_signature(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.size() < kTrailer || text.back() != '\n') return std::nullopt;
  const std::string_view trailer = text.substr(text.size() - kTrailer);
  if (!trailer.starts_with(kMark)) return std::nullopt;
  const auto bundle = parse_number<uint32_t>(trailer.substr(kMark.size(), kDigits));
  if (!bundle || *bundle > UINT16_MAX || text.size() < kBeforeLength + kLengthBytes + *bundle + kTrailer)
    return std::nullopt;
  const size_t comment = *bundle + kTrailer, start = text.size() - comment;
  const size_t record = start - kLengthBytes - kBeforeLength;
  if (!text.substr(record).starts_with(kEndRecord) || length_at(text.substr(start - kLengthBytes)) != comment)
    return std::nullopt;
  return ArchiveSignature{text.substr(start, *bundle), file.first(start - kLengthBytes)};
}

SignedBytes signed_archive(std::span<const std::byte> archive) {
  constexpr std::byte kNoComment[kLengthBytes] = {};
  Sha256 digest;
  digest.update(archive);
  digest.update(kNoComment);
  return {archive.size() + kLengthBytes, digest.finish()};
}

std::string archive_tail(std::string_view bundle) {
  const size_t comment = bundle.size() + kTrailer;
  SCONCE_CHECK(comment <= UINT16_MAX, kTooLarge,
               "the signature does not fit into the archive, whose comment has 65535 bytes at most: it has ", comment,
               ", because there are many members; write it beside the archive");
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%08zu", bundle.size());
  std::string tail{static_cast<char>(comment & 255), static_cast<char>(comment >> 8)};
  tail.append(bundle).append(kMark).append(digits).append("\n");
  return tail;
}

}  // namespace sconce::server::signing
