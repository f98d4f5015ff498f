#include "server/base/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>

namespace sconce::server {
namespace {

constexpr size_t kLongest = 128;

// Numbers that differ from each other and from those of other processes.
uint64_t next_number() {
  static const uint64_t base = (static_cast<uint64_t>(std::random_device()()) << 32) | std::random_device()();
  static std::atomic<uint64_t> count{0};
  // splitmix64.
  uint64_t z = base + (count.fetch_add(1, std::memory_order_relaxed) + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

void RequestId::begin(std::string_view field) {
  given_ = !field.empty() && field.size() <= kLongest &&
           std::all_of(field.begin(), field.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  given_ ? (void)text_.assign(field) : text_.clear();
}

const std::string& RequestId::text() const {
  if (text_.empty()) text_ = fmt::format("{:016x}", next_number());
  return text_;
}

}  // namespace sconce::server
