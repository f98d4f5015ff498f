#include "src/cpu/onednn/onednn_weight.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>

#include "sconce/check.h"
#include "src/cpu/onednn/plan_table.h"
#include "src/cpu/onednn/weight_blocks.h"
#include "src/device/derived_memory.h"

namespace sconce::onednn {
namespace {

constexpr char kKind = 0;

struct Reordered {
  DerivedMemory bytes;
  dnnl::memory memory;
};

uint64_t hash_desc(const dnnl_memory_desc_t& d, uint64_t seed) {
  std::array<int64_t, 6 + 5 * DNNL_MAX_NDIMS> words{
      static_cast<int64_t>(seed), d.ndims, d.data_type, d.offset0, d.format_kind, d.format_desc.blocking.inner_nblks};
  size_t n = 6;
  const auto add = [&](const dnnl_dims_t& values, int count) {
    for (int i = 0; i < count; ++i) words[n++] = values[i];
  };
  add(d.dims, d.ndims);
  add(d.padded_dims, d.ndims);
  add(d.format_desc.blocking.strides, d.ndims);
  add(d.format_desc.blocking.inner_blks, d.format_desc.blocking.inner_nblks);
  add(d.format_desc.blocking.inner_idxs, d.format_desc.blocking.inner_nblks);
  return hash_words(words);
}

bool is_padded(const dnnl_memory_desc_t& d) {
  return std::memcmp(d.dims, d.padded_dims, sizeof(int64_t) * static_cast<size_t>(d.ndims)) != 0;
}

// `available`: bytes from `data` to the end of the storage.
std::shared_ptr<Reordered> make(const void* data, size_t available, const WeightLayout& layout) {
  auto ordered = std::make_shared<Reordered>();
  const bool aligned = reinterpret_cast<uintptr_t>(data) % 64 == 0;
  if (layout.from == layout.to && aligned && !is_padded(layout.to.data)) {
    ordered->memory = dnnl::memory(layout.to, engine(), const_cast<void*>(data));
    return ordered;
  }
  ordered->bytes = allocate_derived("oneDNN", layout.to.get_size());
  ordered->memory = dnnl::memory(layout.to, engine(), ordered->bytes.get());
  if (const WeightBlocks blocks(layout.from, layout.to); blocks.usable()) {
    blocks.order(data, ordered->bytes.get());
    return ordered;
  }
  // The library writes zeros into the paddings of a source. This one must not be written, so it is copied first.
  dnnl::memory source(layout.from, engine(), DNNL_MEMORY_NONE);
  DerivedMemory copy;
  if (is_padded(layout.from.data)) {
    const size_t size = layout.from.get_size();
    copy = allocate_derived("oneDNN", size);
    // The library counts whole rows where a description leaves gaps; no element lies behind the storage's end.
    std::memcpy(copy.get(), data, std::min(size, available));
    source.set_data_handle(copy.get());
  } else {
    source.set_data_handle(const_cast<void*>(data));
  }
  set_threads();
  dnnl::stream stream(engine());
  dnnl::reorder(source, ordered->memory).execute(stream, source, ordered->memory);
  return ordered;
}

}  // namespace

WeightLayout::WeightLayout(const dnnl::memory::desc& has, const dnnl::memory::desc& wants)
    : from(has), to(wants), hash(hash_desc(wants.data, hash_desc(has.data, 1))) {}

std::optional<dnnl::memory::desc> blocked_desc(const BlockedWeight& w, bool turned) {
  const size_t rank = w.dims.size();
  if (w.strides.size() != rank || w.block_sizes.size() > DNNL_MAX_NDIMS) return std::nullopt;
  if (w.dtype != DType::kFloat32 && w.dtype != DType::kBFloat16 && w.dtype != DType::kInt8) return std::nullopt;
  dnnl_memory_desc_t d{};
  d.ndims = static_cast<int>(rank);
  d.data_type = static_cast<dnnl_data_type_t>(data_type(w.dtype));
  d.offset0 = w.first;
  d.format_kind = dnnl_blocked;
  const auto place = [&](size_t i) { return !turned || i + 2 < rank ? i : 2 * rank - 3 - i; };
  for (size_t i = 0; i < rank; ++i) {
    d.dims[place(i)] = w.dims[i];
    d.padded_dims[place(i)] = w.padded[i];
    d.format_desc.blocking.strides[place(i)] = w.strides[i];
  }
  d.format_desc.blocking.inner_nblks = static_cast<int>(w.block_sizes.size());
  for (size_t b = 0; b < w.block_sizes.size(); ++b) {
    d.format_desc.blocking.inner_blks[b] = w.block_sizes[b];
    d.format_desc.blocking.inner_idxs[b] = static_cast<int64_t>(place(static_cast<size_t>(w.block_dims[b])));
  }
  return dnnl::memory::desc(d);
}

dnnl_memory_t kept_weight(Storage& constant, const void* data, const WeightLayout& layout, Hold hold) {
  const int64_t offset = static_cast<const std::byte*>(data) - static_cast<const std::byte*>(constant.data());
  const auto how = [&]() -> Storage::Derive {
    return [offset, layout, hold](Storage& from) -> Storage::Value {
      if (hold == Hold::kOnce && !from.has_source()) return nullptr;
      auto made =
          make(static_cast<const std::byte*>(from.data()) + offset, from.bytes() - static_cast<size_t>(offset), layout);
      if (!made->bytes) return made;
      from.give_up(static_cast<size_t>(offset));
      const size_t bytes = made->memory.get_desc().get_size();
      return {std::move(made), bytes};
    };
  };
  const DerivedKey key{&kKind, {offset, static_cast<int64_t>(layout.hash), static_cast<int64_t>(hold)}};
  const auto* ordered = static_cast<const Reordered*>(constant.derived(key, std::ref(how)));
  return ordered ? ordered->memory.get() : nullptr;
}

}  // namespace sconce::onednn
