#include "src/faults/code_ranges.h"

#include <memory>
#include <utility>

namespace sconce::faults {

class CodeRange {
 public:
  std::atomic<uintptr_t> begin{0}, end{0};  // 0, 0: unused
  std::atomic<bool> taken{true};
  std::atomic<uint64_t> damage{0}, loss{0};
  std::string name;  // written only while the range is unused
  CodeRange* next = nullptr;
};

namespace {

std::atomic<CodeRange*> ranges{nullptr};
thread_local const std::string* next_name = nullptr;

CodeRange* range_at(uintptr_t address) noexcept {
  for (CodeRange* range = ranges.load(std::memory_order_acquire); range; range = range->next)
    if (address < range->end.load(std::memory_order_acquire) && address >= range->begin.load(std::memory_order_acquire))
      return range;
  return nullptr;
}

}  // namespace

CodeRange* add_code_range(uintptr_t begin, uintptr_t end, const std::string& name) {
  std::string copy = next_name ? *next_name + ", " + name : name;
  CodeRange* range = ranges.load(std::memory_order_acquire);
  while (range && range->taken.exchange(true, std::memory_order_acquire)) range = range->next;
  const bool fresh = !range;
  if (fresh) range = new CodeRange;
  range->name.swap(copy);
  range->damage.store(0, std::memory_order_relaxed);
  range->loss.store(0, std::memory_order_relaxed);
  range->begin.store(begin, std::memory_order_release);
  range->end.store(end, std::memory_order_release);
  if (!fresh) return range;
  range->next = ranges.load(std::memory_order_relaxed);
  while (!ranges.compare_exchange_weak(range->next, range, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return range;
}

const std::string* name_next_ranges(const std::string* name) noexcept { return std::exchange(next_name, name); }

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
void count_loss(uintptr_t address, uint64_t bytes) noexcept {
  if (CodeRange* range = range_at(address)) range->loss.fetch_add(bytes, std::memory_order_relaxed);
}
uint64_t loss_of(const CodeRange& range) noexcept { return range.loss.load(std::memory_order_relaxed); }
const char* name_of(const CodeRange& range) noexcept { return range.name.c_str(); }

}  // namespace sconce::faults
