#include "server/rollout/work/admin_alarm.h"

#include "server/support/failure.h"

namespace sconce::server::rollout {

void AdminAlarm::ring() noexcept {
  const auto later = [this] { set(TimerQueue::Clock::now() + again_); };
  if (!succeeds([&] { threads_.run([this] { work(); }, [later](const std::exception_ptr&) { later(); }, later); }))
    later();
}

}  // namespace sconce::server::rollout
