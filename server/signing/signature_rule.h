// SignatureRule: the keys that must have signed the files that the server loads (setting require_signature). Key files
// are read again when they change; files loaded with an earlier key stay loaded. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/mutex.h"
#include "server/signing/signed_file.h"
#include "server/support/files/file_stamp.h"

namespace sconce::server::signing {

class SignatureRule {
 public:
  using Keys = std::shared_ptr<const std::vector<Key>>;

  // Without files, no signatures are required. kIo and kInvalidArgument name the setting and the file.
  explicit SignatureRule(std::span<const std::string> files = {});

  bool on() const noexcept { return !files_.empty(); }
  Keys keys() const;
  // Reads the changed files, or all files. If one is invalid, it is logged, and the previous keys stay in force.
  void refresh(bool all = false);

  // Reads the file now; kForbidden if its signature, beside it or inside, is not valid for these keys.
  SignedFile read(const std::filesystem::path& file) const;
  // The path under which a file must be opened: its own path if no signature is required, else a copy that this object
  // owns, the same one for the same bytes.
  std::filesystem::path verified_copy(const std::filesystem::path& file) const;
  // kForbidden if signatures are required, because `what` cannot be signed.
  void refuse_unsigned(std::string_view what) const;

 private:
  std::vector<Key> read_all() const;

  std::vector<std::string> files_;
  Mutex refreshing_;
  std::vector<StampedFile> stamps_ SCONCE_GUARDED_BY(refreshing_);
  bool stale_ SCONCE_GUARDED_BY(refreshing_) = false;
  std::string problem_ SCONCE_GUARDED_BY(refreshing_);  // the last one; each problem is logged once
  mutable Mutex mutex_;
  Keys keys_ SCONCE_GUARDED_BY(mutex_);
  mutable std::map<Sha256Digest, std::shared_ptr<const PrivateCopy>> copies_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server::signing
