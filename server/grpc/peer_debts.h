// PeerDebts: the used part of the allowances of an address's closed connections, which its next connection inherits.
// Used on one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "server/grpc/connection_record.h"

namespace sconce::server::rpc {

class PeerDebts {
 public:
  using Clock = ConnectionRecord::Clock;
  static constexpr size_t kMost = 1024;  // addresses; beyond, the oldest entry is evicted
  // Time until a debt of bytes is forgiven.
  static constexpr std::chrono::seconds kBytesForgiven{60};

  explicit PeerDebts(const ConnectionRecord::Limits& limits) noexcept : limits_(limits) {}

  // Call this when a connection of the address has closed. std::bad_alloc
  void add(const std::string& address, const ConnectionRecord::Debt& debt, Clock::time_point now);
  // The remaining debt, for the next connection of the address.
  ConnectionRecord::Debt take(const std::string& address, Clock::time_point now) noexcept;
  size_t size() const noexcept { return debts_.size(); }

 private:
  struct Record {
    ConnectionRecord::Debt debt;
    Clock::time_point since;
  };
  ConnectionRecord::Debt left(const Record& record, Clock::time_point now) const noexcept;

  const ConnectionRecord::Limits limits_;
  std::map<std::string, Record> debts_;
};

}  // namespace sconce::server::rpc
