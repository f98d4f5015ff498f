#include "server/admin/work/admin_alarm.h"

#include "server/base/failure.h"

namespace sconce::server {

void AdminAlarm::ring() noexcept {
  const auto later = [this] { set(AlarmClock::Clock::now() + again_); };
  if (!succeeds([&] { threads_.run([this] { work(); }, [later](const std::exception_ptr&) { later(); }, later); }))
    later();
}

}  // namespace sconce::server
