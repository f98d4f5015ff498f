#include "src/runner/constants/set_difference.h"

#include <map>
#include <string_view>

#include "sconce/check.h"
#include "src/runner/constants/packed_bytes.h"

namespace sconce::runner {
namespace {

using Kind = TensorDifference::Kind;

void add(Difference& difference, const Tensor& from, const Tensor& to) {
  if (from.numel() == 0) return;
  if (from.is_contiguous() && to.is_contiguous())
    return add_difference(difference, from.dtype(), packed_bytes(from), packed_bytes(to));
  // One slice at a time, so that no second tensor of this size is made.
  const auto slice = [](const Tensor& tensor, int64_t i) {
    return tensor.as_strided(tensor.sizes().subspan(1), tensor.strides().subspan(1),
                             tensor.storage_offset() + i * tensor.stride(0));
  };
  for (int64_t i = 0; i < from.size(0); ++i) add(difference, slice(from, i), slice(to, i));
}

WeightEntry entry_of(std::string_view name, const Tensor& tensor) {
  return {std::string(name), tensor.dtype(), {tensor.sizes().begin(), tensor.sizes().end()}};
}

bool shares_memory(const Tensor& a, const Tensor& b) {
  return a.storage() == b.storage() && a.storage_offset() == b.storage_offset();
}

}  // namespace

std::vector<TensorDifference> set_difference(const ConstantTable& table, const ConstantSet& from,
                                             const ConstantSet& to) {
  std::map<std::string_view, size_t> by_name;
  for (size_t i = 0; i < table.stored().size(); ++i)
    if (from.tensors()[i].defined() || to.tensors()[i].defined()) by_name.emplace(table.stored()[i].public_name(), i);
  std::vector<TensorDifference> result;
  for (const auto& [name, i] : by_name) {
    const Tensor &a = from.tensors()[i], &b = to.tensors()[i];
    TensorDifference tensor;
    tensor.name = name;
    if (a.defined()) tensor.a = entry_of(name, a);
    if (b.defined()) tensor.b = entry_of(name, b);
    if (!a.defined() || !b.defined()) {
      tensor.kind = a.defined() ? Kind::kOnlyA : Kind::kOnlyB;
    } else if (!shares_memory(a, b) && a.layout() == Layout::kStrided && b.layout() == Layout::kStrided) {
      add(tensor.difference, on_host(a), on_host(b));
      if (tensor.difference.changed > 0) tensor.kind = Kind::kChanged;
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace sconce::runner
