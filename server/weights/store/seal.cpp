#include "server/weights/store/seal.h"

#include <optional>

#include "sconce/check.h"
#include "server/support/files/private_copy.h"
#include "server/support/hmac.h"
#include "server/support/trim.h"
#include "src/support/hex.h"

namespace sconce::server::weights {
namespace {

constexpr std::string_view kLine = "hmac-sha256 ";
constexpr size_t kShortestKey = 32, kLargestKeyFile = 1 << 16;

// The last line of a text that ends with a line feed, including the line feed.
std::string_view last_line(std::string_view text) {
  if (!text.ends_with('\n')) return {};
  const size_t before = text.substr(0, text.size() - 1).rfind('\n');
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

}  // namespace

Seal::Seal(const std::string& key_file) {
  if (key_file.empty()) return;
  const PrivateCopy file(key_file, kLargestKeyFile);
  key_ = trim(file.text(), " \t\r\n");
  SCONCE_CHECK(key_.size() >= kShortestKey, kInvalidArgument, "setting weights_store_key: ", key_file,
               " must have at least ", kShortestKey, " random bytes: openssl rand -hex 32");
}

Sha256Digest Seal::seal_of(std::string_view text, std::string_view place) const {
  std::string whole = std::to_string(place.size()) + " ";
  whole.append(place).append(text);
  return hmac_sha256(key_, whole);
}

std::string Seal::sealed(std::string text, std::string_view place) const {
  if (!on()) return text;
  const std::string line = std::string(kLine) + to_hex(seal_of(text, place)) + "\n";
  return text + line;
}

std::string_view Seal::opened(std::string_view sealed, std::string_view place, const std::string& where) const {
  const std::string_view line = last_line(sealed);
  const bool has_seal = line.starts_with(kLine);
  const std::string_view text = sealed.substr(0, sealed.size() - (has_seal ? line.size() : 0));
  if (!on()) return text;
  SCONCE_CHECK(has_seal, kCorruptPackage, where, ": it has no seal, and weights_store_key is set");
  const std::optional<Sha256Digest> seal = sha256_from_hex(line.substr(kLine.size(), line.size() - kLine.size() - 1));
  SCONCE_CHECK(seal && same_digest(*seal, seal_of(text, place)), kCorruptPackage, where,
               ": its seal is not by weights_store_key");
  return text;
}

}  // namespace sconce::server::weights
