#include "server/grpc/peer_debts.h"

#include <algorithm>

namespace sconce::server::rpc {
namespace {

double seconds_of(PeerDebts::Clock::duration time) noexcept { return std::chrono::duration<double>(time).count(); }

}  // namespace

ConnectionRecord::Debt PeerDebts::left(const Record& record, Clock::time_point now) const noexcept {
  const double passed = seconds_of(now - record.since);
  // At most the allowance of one connection, so that later connections of the address are allowed again after some
  // time.
  const auto most_empty = static_cast<double>(limits_.empty_streams);
  const double most_bytes = ConnectionRecord::kFreeBytes + static_cast<double>(limits_.message);
  const auto rest = [](double debt, double most, double passed_share) {
    return std::max(0.0, std::min(debt, most) - most * passed_share);
  };
  return {rest(record.debt.empty, most_empty, passed / seconds_of(ConnectionRecord::kWindow)),
          rest(record.debt.bytes, most_bytes, passed / seconds_of(kBytesForgiven))};
}

void PeerDebts::add(const std::string& address, const ConnectionRecord::Debt& debt, Clock::time_point now) {
  if (!debt.any()) return;
  const ConnectionRecord::Debt before = take(address, now);
  if (debts_.size() >= kMost) std::erase_if(debts_, [&](const auto& one) { return !left(one.second, now).any(); });
  if (debts_.size() >= kMost)
    debts_.erase(std::min_element(debts_.begin(), debts_.end(),
                                  [](const auto& a, const auto& b) { return a.second.since < b.second.since; }));
  debts_[address] = {{before.empty + debt.empty, before.bytes + debt.bytes}, now};
}

ConnectionRecord::Debt PeerDebts::take(const std::string& address, Clock::time_point now) noexcept {
  const auto found = debts_.find(address);
  if (found == debts_.end()) return {};
  const ConnectionRecord::Debt debt = left(found->second, now);
  debts_.erase(found);
  return debt;
}

}  // namespace sconce::server::rpc
