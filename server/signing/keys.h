// Keys that sign and verify: Ed25519, and ECDSA on P-256 (with SHA-256), which OpenSSF's model_signing has. By OpenSSL.
//
//   openssl genpkey -algorithm ed25519 -out key.pem
//   openssl pkey -in key.pem -pubout -out public.pem
//
// Immutable, so thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server {

class Key {
 public:
  enum class Kind : int8_t { kPrivate, kPublic };

  // The SHA-256 of the public key's PEM, in hexadecimal: what signatures call the key.
  const std::string& id() const noexcept { return id_; }
  // The file it was read from.
  const std::string& where() const noexcept { return where_; }

  std::string sign(std::string_view bytes) const;  // with a private key
  bool verifies(std::string_view bytes, std::string_view signature) const noexcept;

 private:
  friend std::vector<Key> read_keys(const std::string& path, Kind kind);
  Key(std::shared_ptr<void> handle, std::string where);

  std::shared_ptr<void> handle_;  // EVP_PKEY
  bool hashes_first_ = false;
  std::string id_, where_;
};

// All keys of a file in PEM, which has one or more; what is between them is passed over. kIo; kInvalidArgument names
// the file: none, keys of another kind or algorithm, passphrases.
std::vector<Key> read_keys(const std::string& path, Key::Kind kind);

}  // namespace sconce::server
