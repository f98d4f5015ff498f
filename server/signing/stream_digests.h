// The digests of a file that arrives in pieces, for signing and for verification. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "server/signing/statement.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {

// Digests of the whole file, and of its head if it is a safetensors file.
class StreamDigests {
 public:
  void update(std::span<const std::byte> bytes);
  SignedBytes whole();                // call this once
  std::optional<SignedBytes> head();  // call this once

 private:
  Sha256 whole_, head_;
  std::string start_;
  uint64_t bytes_ = 0, head_bytes_ = 0, head_seen_ = 0;
};

// Verifies the head of a safetensors file before it is parsed.
class HeadCheck {
 public:
  // kForbidden if the statement has no digest of a head.
  explicit HeadCheck(const Statement& statement);
  // The next bytes, before they are parsed. kForbidden if they differ from the signed bytes: checked when the length of
  // the head has arrived, and at its end.
  void see(std::span<const std::byte> bytes);

 private:
  SignedBytes signed_;
  Sha256 digest_;
  std::string length_;
  uint64_t seen_ = 0;
};

}  // namespace sconce::server::signing
