#include "server/registry/remote/credentials/credential_cache.h"

#include <algorithm>
#include <exception>

#include "sconce/error.h"
#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::registry {
namespace {

constexpr std::chrono::minutes kEarly{5};      // renew this long before they expire
constexpr std::chrono::minutes kReread{1};     // for credentials without an expiry: a file may have new ones by then
constexpr std::chrono::seconds kTryAgain{10};  // after a failure, while the old ones are valid

}  // namespace

CredentialCache::CredentialCache(std::unique_ptr<CredentialProvider> provider, Now now)
    : provider_(std::move(provider)), now_(std::move(now)) {}

bool CredentialCache::is_good(Time now) const { return any_ && (!issued_ || now < issued_->expires); }

// Fetches with the lock released. The state changes only on success.
void CredentialCache::fetch() {
  fetching_ = true;
  mutex_.unlock();
  std::optional<IssuedCredentials> fresh;
  const std::exception_ptr problem = exception_of([&] { fresh = provider_->fetch(); });
  mutex_.lock();
  fetching_ = false;
  fetched_.notify_all();
  const Time now = now_();
  if (problem) {
    const Failure failure = describe_failure(problem);
    const std::string text = "no credentials from " + provider_->name() + ": " + failure.message;
    if (!is_good(now)) throw Error(failure.code, text);
    refresh_at_ = now + kTryAgain;
    log_warn("{}; the earlier ones are used", printable(text));
    return;
  }
  // A metadata service that does not answer for a moment looks like a missing one.
  if (!fresh && issued_ && issued_->expires != Time::max() && is_good(now)) {
    refresh_at_ = now + kTryAgain;
    log_warn("{} gives no credentials now; the earlier ones are used", printable(provider_->name()));
    return;
  }
  if (!any_ || fresh.has_value() != issued_.has_value() || (fresh && !fresh->same_as(*issued_))) ++number_;
  any_ = true;
  issued_ = std::move(fresh);
  refresh_at_ = now + kReread;
  if (issued_ && issued_->expires != Time::max()) {
    const auto lives = std::max<Time::duration>(issued_->expires - now, Time::duration(0));
    refresh_at_ = issued_->expires - std::min<Time::duration>(kEarly, lives / 5);
  }
}

std::optional<CredentialCache::Current> CredentialCache::get() {
  const MutexLock lock(mutex_);
  for (;;) {
    const Time now = now_();
    if (any_ && now < refresh_at_) break;
    if (!fetching_) {
      fetch();
      break;
    }
    if (is_good(now)) break;
    fetched_.wait(mutex_);
  }
  if (!issued_) return std::nullopt;
  return Current{*issued_, number_};
}

bool CredentialCache::renew(uint64_t number) {
  const MutexLock lock(mutex_);
  while (fetching_) fetched_.wait(mutex_);
  if (number_ != number) return true;
  fetch();
  return number_ != number;
}

std::string CredentialCache::describe() const {
  const MutexLock lock(mutex_);
  return any_ && !issued_ ? "no credentials were found: " + provider_->name()
                          : "the credentials are from " + provider_->name();
}

}  // namespace sconce::server::registry
