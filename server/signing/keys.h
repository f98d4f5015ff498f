// Keys for signing and verifying: Ed25519, and ECDSA on P-256 (with SHA-256), which OpenSSF's model_signing uses.
// Implemented with OpenSSL.
//
//   openssl genpkey -algorithm ed25519 -out key.pem
//   openssl pkey -in key.pem -pubout -out public.pem
//
// Immutable and thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sconce::server::signing {

class Key {
 public:
  enum class Kind : int8_t { kPrivate, kPublic };

  // The SHA-256 of the public key's PEM, in hexadecimal: the key's name in signatures.
  const std::string& id() const noexcept { return id_; }
  // The file from which it was read.
  const std::string& where() const noexcept { return where_; }

  std::string sign(std::string_view bytes) const;  // needs a private key
  bool verifies(std::string_view bytes, std::string_view signature) const noexcept;

 private:
  friend std::vector<Key> read_keys(const std::string& path, Kind kind);
  Key(std::shared_ptr<void> handle, std::string where);

  std::shared_ptr<void> handle_;  // EVP_PKEY
  bool hashes_first_ = false;
  std::string id_, where_;
};

// All keys in a PEM file, at least one; text between keys is ignored. kIo; kInvalidArgument names the file: no key,
// keys of another kind or algorithm, passphrases.
std::vector<Key> read_keys(const std::string& path, Key::Kind kind);

}  // namespace sconce::server::signing
