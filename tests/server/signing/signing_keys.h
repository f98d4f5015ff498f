// The keys of signing_pems.h.
#pragma once

#include <string>
#include <vector>

#include "server/signing/keys.h"
#include "tests/files.h"
#include "tests/server/signing/signing_pems.h"

namespace sconce::test {

inline std::vector<server::Key> keys_from(const std::string& pem, server::Key::Kind kind) {
  const TempFolder folder;
  return server::read_keys(folder.write("keys.pem", pem), kind);
}
inline server::Key private_key(const std::string& pem) { return keys_from(pem, server::Key::Kind::kPrivate).front(); }
inline std::vector<server::Key> public_keys(const std::string& pem) {
  return keys_from(pem, server::Key::Kind::kPublic);
}

}  // namespace sconce::test
