#include "server/signing/signature_rule.h"

#include <iterator>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/log.h"
#include "src/support/error_context.h"
#include "src/support/sha256.h"

namespace sconce::server::signing {

SignatureRule::SignatureRule(std::span<const std::string> files) : files_(files.begin(), files.end()) {
  for (const std::string& path : files_) stamps_.emplace_back(path);
  keys_ = std::make_shared<const std::vector<Key>>(read_all());
}

std::vector<Key> SignatureRule::read_all() const {
  static const std::string setting = "setting require_signature";
  const ErrorContext context(setting);
  std::vector<Key> keys;
  for (const std::string& path : files_) {
    std::vector<Key> found = read_keys(path, Key::Kind::kPublic);
    keys.insert(keys.end(), std::move_iterator(found.begin()), std::move_iterator(found.end()));
  }
  return keys;
}

SignatureRule::Keys SignatureRule::keys() const {
  const MutexLock lock(mutex_);
  return keys_;
}

void SignatureRule::refresh(bool all) {
  const MutexLock lock(refreshing_);
  bool stale = stale_ || (all && on());
  for (StampedFile& file : stamps_) stale = file.changed() || stale;
  if (!stale) return;
  Keys next;
  std::string problem = problem_of([&] { next = std::make_shared<const std::vector<Key>>(read_all()); });
  if (next) {
    const size_t count = next->size();
    const MutexLock publishing(mutex_);
    keys_ = std::move(next);
    log_info("keys of require_signature were read again: {}", count);
  } else if (problem != problem_) {
    log_warn("keys of require_signature stay as they were: {}", printable(problem));
  }
  stale_ = !problem.empty();
  problem_ = std::move(problem);
}

SignedFile SignatureRule::read(const std::filesystem::path& file) const {
  return read_signed(file, signature_beside(file), *keys());
}

std::filesystem::path SignatureRule::verified_copy(const std::filesystem::path& file) const {
  if (!on()) return file;
  SignedFile found = read(file);
  const Sha256Digest digest = sha256_of(found.copy->bytes());
  const MutexLock lock(mutex_);
  return copies_.try_emplace(digest, std::move(found.copy)).first->second->path();
}

void SignatureRule::refuse_unsigned(std::string_view what) const {
  SCONCE_CHECK(!on(), kForbidden, what, " cannot be signed, and require_signature is set");
}

}  // namespace sconce::server::signing
