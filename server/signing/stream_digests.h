// The digests of a file that comes in pieces: to sign it, and to compare it with what was signed. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "server/signing/statement.h"
#include "server/support/sha256.h"

namespace sconce::server {

// Of the whole, and of its head if it is a safetensors file.
class StreamDigests {
 public:
  void update(std::span<const std::byte> bytes);
  SignedBytes whole();                // once
  std::optional<SignedBytes> head();  // once

 private:
  Sha256 whole_, head_;
  std::string start_;
  uint64_t bytes_ = 0, head_bytes_ = 0, head_seen_ = 0;
};

// Compares the head of a safetensors file before it is parsed.
class HeadCheck {
 public:
  // kForbidden if the statement has no digest of a head.
  explicit HeadCheck(const Statement& statement);
  // The next bytes, which nobody has looked at. kForbidden if they are others than were signed: when the length of the
  // head has come, and when its end has.
  void see(std::span<const std::byte> bytes);

 private:
  SignedBytes signed_;
  Sha256 digest_;
  std::string length_;
  uint64_t seen_ = 0;
};

}  // namespace sconce::server
