// TraceRing: the last trace records, for GET /v2/admin/traces. Tensors are omitted, so its memory is bounded.
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "sconce/mutex.h"
#include "server/telemetry/trace_record.h"

namespace sconce::server::telemetry {

class TraceRing {
 public:
  static constexpr size_t kMost = 256;

  void add(std::shared_ptr<const TraceRecord> record) noexcept;
  // The last `limit` records, oldest first, as a JSON array; only of one model unless `model` is empty. epoch: the
  // steady clock's zero, since 1970.
  std::string document(std::string_view model, size_t limit, std::chrono::nanoseconds epoch) const;

 private:
  mutable Mutex mutex_;
  std::array<std::shared_ptr<const TraceRecord>, kMost> records_ SCONCE_GUARDED_BY(mutex_);
  size_t next_ SCONCE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sconce::server::telemetry
