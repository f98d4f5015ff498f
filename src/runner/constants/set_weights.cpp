#include "src/runner/constants/set_weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "sconce/check.h"
#include "src/device/device_backend.h"
#include "src/tensor/copy.h"

namespace sconce::runner {
namespace {

constexpr size_t kPinnedBytes = size_t{4} << 20;

}  // namespace

SetWeights::SetWeights(const ConstantTable& table, std::shared_ptr<const ConstantSet> set, WeightSetInfo info,
                       std::function<void()> check, std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), table_(table), set_(std::move(set)), info_(std::move(info)), check_(std::move(check)) {
  std::map<std::string_view, const Tensor*> by_name;
  for (size_t i = 0; i < set_->tensors().size(); ++i) {
    const Tensor& tensor = set_->tensors()[i];
    if (tensor.defined() && tensor.layout() == Layout::kStrided)
      by_name.emplace(table.stored()[i].public_name(), &tensor);
  }
  for (const auto& [name, tensor] : by_name) {
    add({std::string(name), tensor->dtype(), {tensor->sizes().begin(), tensor->sizes().end()}});
    tensors_.push_back(tensor);
  }
}

const std::string& SetWeights::digest() {
  if (digest_.empty()) {
    digest_ = set_->digest(table_);
    check_();
  }
  return digest_;
}

std::span<const std::byte> SetWeights::in_place(size_t entry) const noexcept {
  const Tensor& tensor = *tensors_[entry];
  if (!tensor.is_cpu() || !tensor.is_contiguous()) return {};
  return {static_cast<const std::byte*>(tensor.data()), tensor.bytes()};
}

void SetWeights::read(size_t entry, std::span<std::byte> out) {
  if (entry != current_) {
    current_ = entry;
    position_ = 0;
  }
  const Tensor& tensor = *tensors_[entry];
  SCONCE_CHECK(out.size() <= tensor.bytes() - position_ && out.size() % tensor.itemsize() == 0, kInvalidArgument,
               "read: '", entries_[entry].name, "' has not so many bytes left, or elements would be cut");
  const auto begin = static_cast<int64_t>(position_ / tensor.itemsize());
  position_ += out.size();
  if (tensor.is_cpu()) {
    gather(tensor, begin, out);
    return;
  }
  if (!pinned_) pinned_ = device_backend(tensor.device()).allocate_host(kPinnedBytes);
  const std::span<std::byte> room(static_cast<std::byte*>(pinned_->data()), kPinnedBytes);
  for (size_t done = 0; done < out.size();) {
    const size_t piece = std::min(kPinnedBytes, out.size() - done);
    gather(tensor, begin + static_cast<int64_t>(done / tensor.itemsize()), room.first(piece));
    std::memcpy(out.data() + done, room.data(), piece);
    done += piece;
  }
}

// At most two slices per dimension are cut; everything between them is copied as a whole.
void SetWeights::gather(const Tensor& tensor, int64_t begin, std::span<std::byte> out) {
  if (out.empty()) return;
  const auto count = static_cast<int64_t>(out.size() / tensor.itemsize());
  const IntSpan sizes = tensor.sizes(), strides = tensor.strides();
  if (tensor.is_contiguous() && tensor.is_cpu()) {
    std::memcpy(out.data(),
                static_cast<const std::byte*>(tensor.data()) + begin * static_cast<int64_t>(tensor.itemsize()),
                out.size());
    return;
  }
  if (count == tensor.numel()) {
    std::vector<int64_t> row_major(sizes.size());
    contiguous_strides(sizes, row_major.data());
    Tensor to = Tensor::from_blob(out.data(), sizes, row_major, tensor.dtype());
    if (tensor.is_cpu())
      copy(tensor, to);
    else
      device_backend(tensor.device()).copy(tensor, to);
    return;
  }
  const int64_t slice = tensor.numel() / sizes[0];
  const auto part = [&](int64_t first, int64_t number) {
    std::vector<int64_t> rows(sizes.begin(), sizes.end());
    rows[0] = number;
    return tensor.as_strided(rows, strides, tensor.storage_offset() + first * strides[0]);
  };
  const auto within = [&](int64_t index) {
    return tensor.as_strided(sizes.subspan(1), strides.subspan(1), tensor.storage_offset() + index * strides[0]);
  };
  const size_t item = tensor.itemsize();
  int64_t at = begin;
  const int64_t end = begin + count;
  const auto take = [&](const Tensor& from, int64_t first, int64_t number) {
    gather(from, first, out.first(static_cast<size_t>(number) * item));
    out = out.subspan(static_cast<size_t>(number) * item);
    at += number;
  };
  if (at % slice != 0) take(within(at / slice), at % slice, std::min(slice - at % slice, end - at));
  if (const int64_t whole = (end - at) / slice; whole > 0) take(part(at / slice, whole), 0, whole * slice);
  if (at < end) take(within(at / slice), 0, end - at);
}

}  // namespace sconce::runner
