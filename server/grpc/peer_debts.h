// PeerDebts: what the connections of an address had used up of their allowances when they closed, so that the next one
// does not begin anew. Used on one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "server/grpc/connection_record.h"

namespace sconce::server {

class PeerDebts {
 public:
  using Clock = ConnectionRecord::Clock;
  static constexpr size_t kMost = 1024;  // addresses; beyond, the one that was noted first goes
  // Until all bytes are forgiven.
  static constexpr std::chrono::seconds kBytesKept{60};

  explicit PeerDebts(const ConnectionRecord::Limits& limits) noexcept : limits_(limits) {}

  // A connection of the address has closed. std::bad_alloc
  void add(const std::string& address, const ConnectionRecord::Debt& debt, Clock::time_point now);
  // What is left of them, for the next connection of the address.
  ConnectionRecord::Debt take(const std::string& address, Clock::time_point now) noexcept;
  size_t size() const noexcept { return debts_.size(); }

 private:
  struct Kept {
    ConnectionRecord::Debt debt;
    Clock::time_point since;
  };
  ConnectionRecord::Debt left(const Kept& kept, Clock::time_point now) const noexcept;

  const ConnectionRecord::Limits limits_;
  std::map<std::string, Kept> debts_;
};

}  // namespace sconce::server
