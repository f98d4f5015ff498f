#include "src/runner/constants/set_digest.h"

#include <map>

#include "src/runner/constants/packed_bytes.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"
#include "src/tensor/copy.h"

namespace sconce::runner {
namespace {

void add_text(Sha256& digest, std::string text) {
  text.push_back('\0');
  digest.update(std::as_bytes(std::span(text)));
}

void add_elements(Sha256& digest, const Tensor& tensor) {
  if (tensor.layout() != Layout::kStrided) {
    const Storage& storage = *tensor.storage();
    return digest.update({static_cast<const std::byte*>(storage.data()), storage.bytes()});
  }
  if (tensor.numel() == 0) return;
  if (tensor.is_contiguous()) return digest.update(packed_bytes(tensor));
  // One slice at a time, so that no second tensor of this size is made.
  const IntSpan sizes = tensor.sizes().subspan(1), strides = tensor.strides().subspan(1);
  for (int64_t i = 0; i < tensor.size(0); ++i)
    add_elements(digest, tensor.as_strided(sizes, strides, tensor.storage_offset() + i * tensor.stride(0)));
}

}  // namespace

std::string set_digest(const ConstantTable& table, const ConstantSet& set) {
  std::map<std::string_view, const Tensor*> by_name;
  for (size_t i = 0; i < set.tensors().size(); ++i)
    if (set.tensors()[i].defined()) by_name.emplace(table.stored()[i].public_name(), &set.tensors()[i]);
  Sha256 digest;
  for (const auto& [name, tensor] : by_name) {
    add_text(digest, std::string(name));
    add_text(digest, std::string(dtype_name(tensor->dtype())));
    std::string sizes;
    for (const int64_t size : tensor->sizes()) {
      if (!sizes.empty()) sizes.push_back(',');
      sizes.append(std::to_string(size));
    }
    add_text(digest, std::move(sizes));
    add_elements(digest, on_host(*tensor));
  }
  const auto hash = digest.finish();
  return "sha-256:" + to_hex(hash);
}

}  // namespace sconce::runner
