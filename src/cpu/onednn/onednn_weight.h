// Constant weights as oneDNN's primitives read them: put in order once and kept with their storage, or used directly
// if PyTorch packed them in that order.
#pragma once

#include <cstdint>
#include <optional>

#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/onednn/onednn.h"

namespace sconce::onednn {

// From the layout of a weight to the layout that a primitive chose.
struct WeightLayout {
  dnnl::memory::desc from, to;
  uint64_t hash = 0;

  WeightLayout() = default;
  WeightLayout(const dnnl::memory::desc& has, const dnnl::memory::desc& wants);
};

// The dimensions of an opaque weight unchanged, or `turned`: the last two exchanged. None if the library cannot
// describe its layout.
std::optional<dnnl::memory::desc> blocked_desc(const BlockedWeight& weight, bool turned);

// Whether an ordered weight may be kept in addition to its plain form if the plain form has no source to be read from
// again.
enum class Hold : int64_t { kTwice, kOnce };

// Belongs to the storage, whose bytes never change. Null if `hold` forbids it. kOutOfMemory.
dnnl_memory_t kept_weight(Storage& constant, const void* data, const WeightLayout& layout, Hold hold = Hold::kTwice);

}  // namespace sconce::onednn
