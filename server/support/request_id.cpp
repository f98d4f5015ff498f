#include "server/support/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "src/support/hash.h"

namespace sconce::server {
namespace {

constexpr size_t kLongest = 128;

uint64_t random_number() { return (static_cast<uint64_t>(std::random_device()()) << 32) | std::random_device()(); }

// Numbers that are unique in this process and differ from those of other processes.
uint64_t next_number() {
  static const uint64_t base = random_number();
  static std::atomic<uint64_t> count{0};
  return splitmix64(base + count.fetch_add(1, std::memory_order_relaxed) * kGoldenStep);
}

}  // namespace

void RequestId::begin(std::string_view field) {
  given_ = !field.empty() && field.size() <= kLongest &&
           std::all_of(field.begin(), field.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  given_ ? (void)text_.assign(field) : text_.clear();
  trace_.clear();
}

const std::string& RequestId::text() const {
  if (text_.empty()) text_ = fmt::format("{:016x}", next_number());
  return text_;
}

std::string random_hex(size_t digits) {
  static thread_local std::mt19937_64 engine{random_number()};
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", engine() | 1);
  text.resize(digits);
  return text;
}

}  // namespace sconce::server
