#include "src/faults/code_ranges.h"

#include <memory>

namespace sconce::faults {

class CodeRange {
 public:
  std::atomic<uintptr_t> begin{0}, end{0};  // 0, 0: unused
  std::atomic<bool> taken{true};
  std::atomic<uint64_t> damage{0};
  std::string name;  // written only while the range is unused
  CodeRange* next = nullptr;
};

namespace {

std::atomic<CodeRange*> ranges{nullptr};

CodeRange* range_at(uintptr_t address) noexcept {
  for (CodeRange* range = ranges.load(std::memory_order_acquire); range; range = range->next)
    if (address < range->end.load(std::memory_order_acquire) && address >= range->begin.load(std::memory_order_acquire))
      return range;
  return nullptr;
}

}  // namespace

CodeRange* add_code_range(uintptr_t begin, uintptr_t end, const std::string& name) {
  std::string copy = name;
  CodeRange* range = ranges.load(std::memory_order_acquire);
  while (range && range->taken.exchange(true, std::memory_order_acquire)) range = range->next;
  const bool fresh = !range;
  if (fresh) range = new CodeRange;
  range->name.swap(copy);
  range->damage.store(0, std::memory_order_relaxed);
  range->begin.store(begin, std::memory_order_release);
  range->end.store(end, std::memory_order_release);
  if (!fresh) return range;
  range->next = ranges.load(std::memory_order_relaxed);
  while (!ranges.compare_exchange_weak(range->next, range, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return range;
}

void remove_code_range(CodeRange* range) noexcept {
  if (!range) return;
  range->end.store(0, std::memory_order_release);
  range->begin.store(0, std::memory_order_release);
  range->taken.store(false, std::memory_order_release);
}

const char* library_at(uintptr_t address) noexcept {
  const CodeRange* range = range_at(address);
  return range ? range->name.c_str() : nullptr;
}

void count_damage(uintptr_t address) noexcept {
  if (CodeRange* range = range_at(address)) range->damage.fetch_add(1, std::memory_order_relaxed);
}

uint64_t damage_of(const CodeRange& range) noexcept { return range.damage.load(std::memory_order_relaxed); }

}  // namespace sconce::faults
