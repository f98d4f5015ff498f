// Seal: lets a server recognise its own files (setting weights_store_key): a last line with an HMAC-SHA256 of the text
// and of the location to which it belongs. Immutable and thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "sconce/weight_sources.h"

namespace sconce::server::weights {

class Seal {
 public:
  // Empty: texts are not sealed. kInvalidArgument if the file has less than 32 bytes; kIo.
  explicit Seal(const std::string& key_file = {});

  bool on() const noexcept { return !key_.empty(); }
  // The text, which must end with a line feed, followed by its seal if there is a key. place: the location to which the
  // text belongs.
  std::string sealed(std::string text, std::string_view place) const;
  // The text without its seal. If there is a key: kCorruptPackage unless the seal is valid. where: for the error.
  std::string_view opened(std::string_view sealed, std::string_view place, const std::string& where) const;

 private:
  Sha256Digest seal_of(std::string_view text, std::string_view place) const;
  std::string key_;
};

}  // namespace sconce::server::weights
