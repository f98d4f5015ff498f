// Staging: entries that give one constant by several of its tied names.
#include <algorithm>
#include <cstring>

#include "sconce/check.h"
#include "src/runner/constants/staging.h"
#include "src/support/excerpt.h"
#include "src/tensor/copy.h"

namespace sconce::runner {
namespace {

// Row-major on the host; a copy only if the tensor is not.
Tensor packed(const Tensor& tensor) {
  if (tensor.is_cpu() && tensor.is_contiguous()) return tensor;
  Tensor result = Tensor::empty(tensor.sizes(), tensor.dtype());
  copy(tensor.is_cpu() ? tensor : on_host(tensor), result);
  return result;
}

}  // namespace

bool Staging::is_named(size_t constant) {
  if (!named_[constant]) return false;
  const size_t index = entries_.size() - 1, other_index = named_by_[constant];
  if (other_index == index) return true;
  Entry &entry = entries_[index], &other = entries_[other_index];
  const ConstantSpec& spec = table_.stored()[constant].spec;
  const auto is_own = [&](const std::string& name) { return name == spec.fqn || name == spec.name; };
  const bool twice =
      entry.declared.name == other.declared.name || (is_own(entry.declared.name) && is_own(other.declared.name));
  const bool gone = !rules_.keep && other.complete && other.bytes > 0 && !other.scratch.defined();
  SCONCE_CHECK(!twice && !gone, kInvalidArgument, "constant '", excerpt(entry.declared.name), "' is given twice");
  if (std::find(entry.twins.begin(), entry.twins.end(), other_index) == entry.twins.end()) {
    entry.twins.push_back(other_index);
    other.twins.push_back(index);
  }
  return true;
}

void Staging::compare_twins(size_t index) {
  Entry& entry = entries_[index];
  const auto values = [](const Entry& of) { return of.scratch.defined() ? of.scratch : of.targets.front().tensor; };
  // What has a target lies there, unless nothing is kept; else a twin that comes later may need it.
  const auto forget = [&](Entry& done) {
    const bool all = std::all_of(done.twins.begin(), done.twins.end(), [&](size_t i) { return entries_[i].complete; });
    const bool later = rules_.gradual && done.tied;
    if (done.targets.empty() ? all : rules_.keep || (all && !later)) done.scratch = Tensor();
  };
  for (const size_t i : entry.twins) {
    Entry& twin = entries_[i];
    if (!twin.complete || entry.bytes == 0) continue;
    const Tensor a = packed(values(entry)), b = packed(values(twin));
    const auto* const first = static_cast<const std::byte*>(a.data());
    const auto* const second = static_cast<const std::byte*>(b.data());
    if (std::memcmp(first, second, entry.bytes) != 0) {
      const auto at = std::mismatch(first, first + entry.bytes, second).first - first;
      SCONCE_FAIL(
          kInvalidArgument, "'", excerpt(twin.declared.name), "' and '", excerpt(entry.declared.name),
          "' are tied in the model, which has one constant for both, but their values differ, first at element ",
          static_cast<size_t>(at) / dtype_bytes(entry.declared.dtype));
    }
    forget(twin);
  }
  forget(entry);
}

}  // namespace sconce::runner
