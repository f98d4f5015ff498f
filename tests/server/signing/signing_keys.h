// The keys of signing_pems.h.
#pragma once

#include <string>
#include <vector>

#include "server/signing/keys.h"
#include "tests/files.h"
#include "tests/server/signing/signing_pems.h"

namespace sconce::test {

inline std::vector<server::signing::Key> keys_from(const std::string& pem, server::signing::Key::Kind kind) {
  const TempFolder folder;
  return server::signing::read_keys(folder.write("keys.pem", pem), kind);
}
inline server::signing::Key private_key(const std::string& pem) {
  return keys_from(pem, server::signing::Key::Kind::kPrivate).front();
}
inline std::vector<server::signing::Key> public_keys(const std::string& pem) {
  return keys_from(pem, server::signing::Key::Kind::kPublic);
}

}  // namespace sconce::test
