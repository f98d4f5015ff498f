#include <algorithm>
#include <initializer_list>

#include "src/cuda/flash_attention.h"
#include "src/cuda/flash_forms.h"

namespace sconce::cuda {

namespace {

constexpr int kFloat16 = 5, kFloat32 = 6, kBFloat16 = 15, kMostSplits = 64;

bool in_16_bytes(const void* data, const int64_t (&strides)[3], size_t itemsize) {
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return false;
  return std::all_of(strides, strides + 3,
                     [&](int64_t stride) { return stride * static_cast<int64_t>(itemsize) % 16 == 0; });
}

constexpr double kDnnOperations = 5e8;  // our kernel takes some 15 microseconds of an H200 for these

}  // namespace

bool prefers_dnn(const FlashAttention& a, int dtype, const FlashDevice& device) {
  if (device.capability < 90 || device.capability >= 120) return false;
  if ((dtype != kFloat16 && dtype != kBFloat16) || a.bias || (a.causal && a.diagonal != 0)) return false;
  if (a.d % 8 != 0 || a.dv % 8 != 0 || a.d > 256 || a.dv > 256 || a.queries < 64) return false;
  if (!in_16_bytes(a.q, a.q_strides, 2) || !in_16_bytes(a.k, a.k_strides, 2) || !in_16_bytes(a.v, a.v_strides, 2) ||
      !in_16_bytes(a.out, a.out_strides, 2))
    return false;
  // It takes no tensor whose elements are the same memory.
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
  if (a.causal && a.diagonal < a.keys - 1) return;  // or the one sees all keys
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
  if (!in_16_bytes(a.q, a.q_strides, itemsize) || !in_16_bytes(a.k, a.k_strides, itemsize) ||
      !in_16_bytes(a.v, a.v_strides, itemsize) || !in_16_bytes(a.out, a.out_strides, itemsize))
    return false;
  const int dim = flash_dim(a.d, a.dv);
  const int64_t heads = int64_t{a.batch} * a.heads;
  const auto blocks = [&](int tiles) { return heads * ((a.queries + 64 * tiles - 1) / (64 * tiles)); };
  if (blocks(1) >= int64_t{1} << 31 || heads * a.queries >= int64_t{1} << 31) return false;
  // 32 queries a warp read keys half as often, but need twice the work to fill the device.
  a.tiles = itemsize == 2 && dim <= 128 && blocks(2) >= device.multiprocessors ? 2 : 1;
  if (flash_shared_bytes(itemsize, dim, a.tiles) > device.shared_bytes) a.tiles = 1;
  if (flash_shared_bytes(itemsize, dim, a.tiles) > device.shared_bytes) return false;
  a.few = itemsize == 2 && dim <= 128 && a.queries <= kFlashFew;
  // Parts of 256 keys at least: putting them together costs a launch.
  const int tiles = (a.keys + flash_keys(itemsize, dim) - 1) / flash_keys(itemsize, dim);
  a.splits = 1;
  if (a.few && a.keys >= 512)  // bound by memory: three blocks a multiprocessor keep enough of it on the way
    a.splits = static_cast<int>(
        std::clamp<int64_t>(3 * int64_t{device.multiprocessors} / blocks(1), 1, std::min(a.keys / 256, kMostSplits)));
  else if (a.keys >= 1024 && 5 * blocks(a.tiles) <= 4 * int64_t{device.multiprocessors})
    a.splits = static_cast<int>(
        std::min({2 * int64_t{device.multiprocessors} / blocks(a.tiles), int64_t{a.keys} / 256, int64_t{kMostSplits}}));
  // None without keys.
  if (a.splits > 1) a.splits = (tiles + (tiles + a.splits - 1) / a.splits - 1) / ((tiles + a.splits - 1) / a.splits);
  return true;
}

}  // namespace sconce::cuda
