// CachedSnapshot: the last snapshot of a source whose revision() changes whenever its snapshot() does. Reading an
// unchanged source takes no lock of the source. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

namespace sconce::server {

template <class T>
class CachedSnapshot {
 public:
  // Valid until the next call of a member function.
  template <class Source>
  const T& of(const Source& source) {
    // The revision is read first: a change between the two reads is noticed by the next call.
    if (const uint64_t revision = source.revision(); !value_ || revision != revision_) {
      value_ = source.snapshot();
      revision_ = revision;
    }
    return *value_;
  }
  // A snapshot that nobody reads must not keep the things in it alive.
  void drop() noexcept { value_.reset(); }
  template <class Source>
  void drop_unless_current(const Source& source) noexcept {
    if (revision_ != source.revision()) drop();
  }

 private:
  std::shared_ptr<const T> value_;
  uint64_t revision_ = 0;
};

}  // namespace sconce::server
