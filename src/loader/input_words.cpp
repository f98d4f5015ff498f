#include "src/loader/input_words.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace sconce::loader {
namespace {

constexpr int kMaxInputs = 1 << 16, kMaxDims = 64;

// Removes and returns the number at the start of the text; -1 if there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

}  // namespace

// "input_handles[0]: unmatched dim value at 1, ", "... dim value is too small at 0, ", "... unmatched stride value at
// 2, ".
std::vector<int> least_ranks(std::span<const std::byte> code) {
  constexpr std::string_view kStart = "input_handles[";
  constexpr size_t kLongest = 128;
  std::vector<int> ranks;
  const auto* at = reinterpret_cast<const char*>(code.data());
  const char* const end = at + code.size();
  while ((at = static_cast<const char*>(::memmem(at, static_cast<size_t>(end - at), kStart.data(), kStart.size())))) {
    at += kStart.size();
    std::string_view text(at, std::min(kLongest, static_cast<size_t>(end - at)));
    text = text.substr(0, text.find('\0'));
    const int input = take_number(text);
    if (input < 0 || input >= kMaxInputs || !text.starts_with("]: ")) continue;
    if (ranks.size() <= static_cast<size_t>(input)) ranks.resize(static_cast<size_t>(input) + 1);
    const size_t place = text.rfind(" value");
    const size_t dim_at = text.rfind(" at ");
    if (place == std::string_view::npos || dim_at == std::string_view::npos) continue;
    text.remove_prefix(dim_at + 4);
    const int dim = take_number(text);
    if (dim >= 0 && dim < kMaxDims && text.starts_with(","))
      ranks[static_cast<size_t>(input)] = std::max(ranks[static_cast<size_t>(input)], dim + 1);
  }
  return ranks;
}

}  // namespace sconce::loader
