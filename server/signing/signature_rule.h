// SignatureRule: which keys must have signed what the server loads (setting require_signature). The files of keys are
// read again when they change; what was loaded by an older key goes on. Thread-safe.
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

namespace sconce::server {

class SignatureRule {
 public:
  using Keys = std::shared_ptr<const std::vector<Key>>;

  // Without files, nothing need be signed. kIo and kInvalidArgument name the setting and the file.
  explicit SignatureRule(std::span<const std::string> files = {});

  bool on() const noexcept { return !files_.empty(); }
  Keys keys() const;
  // Reads changed files, or all. If one is bad, the keys stay as they were, and the log says so.
  void refresh(bool all = false);

  // The file, which is read now; kForbidden if its signature, beside it or inside, is not good by these keys.
  SignedFile read(const std::filesystem::path& file) const;
  // What a file is to be opened by: its own path if nothing need be signed, else a copy that this object keeps, the
  // same one for the same bytes.
  std::filesystem::path kept_copy(const std::filesystem::path& file) const;
  // kForbidden if there is a rule: nobody could have signed `what`.
  void refuse_unsigned(std::string_view what) const;

 private:
  std::vector<Key> read_all() const;

  std::vector<std::string> files_;
  Mutex refreshing_;
  std::vector<StampedFile> stamps_ SCONCE_GUARDED_BY(refreshing_);
  bool stale_ SCONCE_GUARDED_BY(refreshing_) = false;
  std::string problem_ SCONCE_GUARDED_BY(refreshing_);  // the last one, logged once
  mutable Mutex mutex_;
  Keys keys_ SCONCE_GUARDED_BY(mutex_);
  mutable std::map<Sha256Digest, std::shared_ptr<const PrivateCopy>> copies_ SCONCE_GUARDED_BY(mutex_);
};

}  // namespace sconce::server
