// OverviewSource: builds one overview event per second and shares it among all readers. Without readers it builds none.
// Used only on one I/O thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "server/console/overview.h"
#include "server/console/peer_watch.h"
#include "server/rollout/rollout.h"
#include "server/telemetry/gpu_metrics.h"
#include "server/telemetry/telemetry.h"

namespace sconce::server::console {

class OverviewSource {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPeriod{1};

  // Both arguments outlive the source.
  OverviewSource(rollout::Rollout& rollout, const telemetry::Telemetry& telemetry)
      : rollout_(rollout), telemetry_(telemetry) {}
  OverviewSource(const OverviewSource&) = delete;

  // A reader of the events. It must not outlive the source.
  class Reader {
   public:
    explicit Reader(OverviewSource& source) noexcept : source_(source) { ++source_.readers_; }
    Reader(const Reader&) = delete;
    ~Reader() {
      if (--source_.readers_ == 0) source_.forget();
    }
    // The event, if it differs from that of the last call, else null. Valid until the next call of a reader.
    const std::string* next(Clock::time_point now);

   private:
    OverviewSource& source_;
    uint64_t seen_ = 0;
  };

 private:
  void make(Clock::time_point now);
  void forget() noexcept;

  rollout::Rollout& rollout_;
  const telemetry::Telemetry& telemetry_;
  telemetry::GpuReader gpus_;
  PeerWatch peers_{rollout_};
  int64_t readers_ = 0;
  uint64_t number_ = 0;  // of the event
  std::string event_;
  std::optional<Overview> last_;
  Clock::time_point due_{};
};

}  // namespace sconce::server::console
