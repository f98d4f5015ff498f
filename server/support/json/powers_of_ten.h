// Exact powers of ten.
#pragma once

#include <array>
#include <cstdint>

namespace sconce::server {

constexpr std::array<uint64_t, 20> kPow10U = [] {
  std::array<uint64_t, 20> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = 10 * powers[i - 1];
  return powers;
}();

}  // namespace sconce::server
