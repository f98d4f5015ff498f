#include <algorithm>
#include <initializer_list>

#include "src/cuda/attention/flash/flash_attention.h"
#include "src/cuda/attention/flash/flash_forms.h"

namespace sconce::cuda {

namespace {

constexpr int kFloat16 = 5, kFloat32 = 6, kBFloat16 = 15, kMaxSplits = 64;
constexpr int kLongKeys = 1024;   // from here on, keys are split if there are few blocks
constexpr int kFewestKeys = 128;  // per part, with few queries

bool in_16_bytes(const void* data, const int64_t (&strides)[3], size_t itemsize) {
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return false;
  return std::all_of(strides, strides + 3,
                     [&](int64_t stride) { return stride * static_cast<int64_t>(itemsize) % 16 == 0; });
}

bool in_rows(const FlashAttention& a, size_t itemsize) {
  return in_16_bytes(a.q, a.q_strides, itemsize) && in_16_bytes(a.k, a.k_strides, itemsize) &&
         in_16_bytes(a.v, a.v_strides, itemsize) && in_16_bytes(a.out, a.out_strides, itemsize) &&
         (!a.bias || (in_16_bytes(a.bias, {a.bias_strides[0], a.bias_strides[1], a.bias_strides[2]}, itemsize) &&
                      (a.bias_strides[3] == 1 || a.keys == 1)));
}

constexpr double kDnnOperations = 5e8;  // about 15 microseconds of our kernel on an H200

// Plans flash_few_kernel, which reads the keys again for every 8 or 16 queries. False if there are too many queries.
bool plan_few(FlashAttention& a, int64_t multiprocessors) {
  const int64_t heads = int64_t{a.batch} * a.heads;
  const auto blocks = [&](int tiles) {
    return heads * ((a.queries + flash_few_queries(tiles) - 1) / flash_few_queries(tiles));
  };
  const int64_t together = kFlashFewBlocks * multiprocessors;
  // More than 16 queries pay off only if all blocks run at once, on fewer keys than flash_kernel would split.
  if (a.queries > 16 && (a.keys >= kLongKeys || blocks(1) > together)) return false;
  a.few = true;
  a.tiles = a.queries > 8 && a.queries <= 16 ? 2 : 1;
  // Memory bound: three blocks per multiprocessor keep enough loads in flight.
  if (a.keys >= 512)
    a.splits = static_cast<int>(
        std::clamp<int64_t>(together / blocks(a.tiles), 1, std::min(a.keys / kFewestKeys, kMaxSplits)));
  return true;
}

bool plan_tiles(FlashAttention& a, size_t itemsize, int dim, const FlashDevice& device) {
  const int64_t heads = int64_t{a.batch} * a.heads, multiprocessors = device.multiprocessors;
  const auto blocks = [&](int tiles) { return heads * ((a.queries + 64 * tiles - 1) / (64 * tiles)); };
  // Blocks per multiprocessor that shared memory allows.
  const auto fitting = [&](int tiles) {
    return device.shared_bytes / flash_shared_bytes(itemsize, dim, tiles, a.bias != nullptr);
  };
  const int alone = fitting(1), wide = fitting(2);
  if (alone == 0) return false;
  // With 32 queries per warp, keys are read half as often. That needs twice the work to fill the device, and shared
  // memory for a second block that works while one waits, unless one block is all that fits anyway.
  const bool fills = alone == 1 ? blocks(1) > multiprocessors : blocks(2) >= multiprocessors;
  const bool has_form = dim == 128 || (dim == 64 && itemsize == 2);
  a.tiles = has_form && fills && wide >= std::min(alone, 2) ? 2 : 1;
  // Combining parts costs a launch, as long as two tiles of float32 or four of half types take.
  const int tile = flash_keys(itemsize, dim), fewest = (itemsize == 4 ? 2 : 4) * tile;
  if (a.keys >= (itemsize == 4 ? 8 * tile : kLongKeys) && 5 * blocks(a.tiles) <= 4 * multiprocessors)
    a.splits = static_cast<int>(
        std::min({2 * multiprocessors / blocks(a.tiles), int64_t{a.keys} / fewest, int64_t{kMaxSplits}}));
  return true;
}

}  // namespace

bool prefers_dnn(const FlashAttention& a, int dtype, const FlashDevice& device) {
  if (device.capability < 90 || device.capability >= 120) return false;
  if ((dtype != kFloat16 && dtype != kBFloat16) || (a.causal && a.diagonal != 0)) return false;
  if (a.bias && a.logsumexp_rows > 0) return false;
  if (!(a.scale > 0)) return false;  // cuDNN takes the maximum before it scales
  if (a.d % 8 != 0 || a.dv % 8 != 0 || a.d > 256 || a.dv > 256 || a.queries < 64 || !in_rows(a, 2)) return false;
  // cuDNN refuses tensors whose elements overlap.
  const auto repeats = [](const int64_t(&strides)[3], int batch, int heads, int tokens) {
    return (batch > 1 && strides[0] == 0) || (heads > 1 && strides[1] == 0) || (tokens > 1 && strides[2] == 0);
  };
  if (repeats(a.q_strides, a.batch, a.heads, a.queries) || repeats(a.k_strides, a.batch, a.kv_heads, a.keys) ||
      repeats(a.v_strides, a.batch, a.kv_heads, a.keys))
    return false;
  const double pairs = 1.0 * a.batch * a.heads * a.queries * a.keys * (a.causal ? 0.5 : 1.0);
  return 2.0 * pairs * (a.d + a.dv) >= kDnnOperations;
}

void pack_heads(FlashAttention& a) {
  if (a.queries != 1 || a.kv_heads == 0 || a.heads == a.kv_heads || a.logsumexp_rows > 1) return;
  if (a.causal && a.diagonal < a.keys - 1) return;  // the one query must see all keys
  const int group = a.heads / a.kv_heads;
  for (auto* strides : {&a.q_strides, &a.out_strides}) {
    (*strides)[2] = (*strides)[1];
    (*strides)[1] *= group;
  }
  a.bias_strides[2] = a.bias_strides[1];
  a.bias_strides[1] *= group;
  a.causal = false;
  a.heads = a.kv_heads;
  a.queries = group;
  a.logsumexp_rows *= group;
}

bool plan_flash(FlashAttention& a, int dtype, const FlashDevice& device) {
  if (dtype != kFloat16 && dtype != kFloat32 && dtype != kBFloat16) return false;
  const size_t itemsize = dtype == kFloat32 ? 4 : 2;
  const int chunk = static_cast<int>(16 / itemsize);
  if (a.d > 256 || a.dv > 256 || a.d % chunk != 0 || a.dv % chunk != 0 || a.d == 0 || a.dv == 0) return false;
  if (!in_rows(a, itemsize) || int64_t{a.batch} * a.heads * a.queries >= int64_t{1} << 31) return false;
  const int dim = flash_dim(a.d, a.dv);
  a.few = false;
  a.early = device.capability >= 90;
  a.splits = 1;
  if (!(itemsize == 2 && dim <= 128 && plan_few(a, device.multiprocessors)) && !plan_tiles(a, itemsize, dim, device))
    return false;
  if (a.splits == 1) return true;
  // Leaves no part without keys.
  const int keys = a.few ? flash_few_keys(dim) : flash_keys(itemsize, dim), tiles = (a.keys + keys - 1) / keys,
            each = (tiles + a.splits - 1) / a.splits;
  a.splits = (tiles + each - 1) / each;
  return true;
}

}  // namespace sconce::cuda
