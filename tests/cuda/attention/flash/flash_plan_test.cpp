// How attention is divided into blocks, and which calls the kernel refuses. Needs no device.
#include <doctest/doctest.h>

#include <initializer_list>

#include "src/cuda/attention/flash/flash_attention.h"

using namespace sconce::cuda;

namespace {

constexpr int kHalf = 5, kFloat = 6, kDouble = 7, kBFloat16 = 15;
constexpr FlashDevice kBig{132, 227 << 10}, kSmall{46, 99 << 10};

// Memory order [batch, tokens, heads, d].
FlashAttention attention(int batch, int heads, int queries, int keys, int d) {
  alignas(16) static const char memory[16] = {};
  FlashAttention a{};
  a.q = a.k = a.v = memory;
  a.out = const_cast<char*>(memory);
  a.batch = batch;
  a.heads = a.kv_heads = heads;
  a.queries = queries;
  a.keys = keys;
  a.d = a.dv = d;
  a.scale = 0.125F;
  for (auto* strides : {&a.q_strides, &a.k_strides, &a.v_strides, &a.out_strides}) {
    (*strides)[0] = int64_t{heads} * d * (strides == &a.q_strides || strides == &a.out_strides ? queries : keys);
    (*strides)[1] = d;
    (*strides)[2] = int64_t{heads} * d;
  }
  return a;
}

}  // namespace

TEST_CASE("flash attention: dtypes, sizes and places of rows that it takes") {
  for (const int dtype : {kHalf, kFloat, kBFloat16})
    for (const int d : {8, 40, 64, 96, 128, 256}) {
      FlashAttention a = attention(2, 4, 100, 100, d);
      CHECK(plan_flash(a, dtype, kBig));
    }
  FlashAttention a = attention(2, 4, 100, 100, 64);
  CHECK_FALSE(plan_flash(a, kDouble, kBig));
  a = attention(2, 4, 100, 100, 264);
  CHECK_FALSE(plan_flash(a, kHalf, kBig));
  a = attention(2, 4, 100, 100, 36);
  CHECK(plan_flash(a, kFloat, kBig));
  CHECK_FALSE(plan_flash(a, kHalf, kBig));  // rows of 72 bytes
  a = attention(2, 4, 100, 100, 64);
  a.k_strides[2] += 1;
  CHECK_FALSE(plan_flash(a, kHalf, kBig));
  a = attention(2, 4, 100, 100, 64);
  a.v = static_cast<const char*>(a.v) + 2;
  CHECK_FALSE(plan_flash(a, kHalf, kBig));
  a = attention(2, 4, 100, 100, 256);
  CHECK_FALSE(plan_flash(a, kFloat, kSmall));  // more shared memory than there is
}

TEST_CASE("flash attention: the device is filled before warps take more queries, and long keys are cut") {
  FlashAttention a = attention(8, 16, 2048, 2048, 128);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.tiles == 2);
  CHECK(a.splits == 1);
  a = attention(4, 12, 128, 128, 64);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK_FALSE(a.few);
  CHECK(a.tiles == 1);  // 96 blocks of 64 queries
  CHECK(a.splits == 1);
  a = attention(1, 12, 384, 1023, 64);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK_FALSE(a.few);
  CHECK(a.splits == 1);  // too few keys to pay off
  a = attention(1, 12, 384, 1024, 64);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.splits == 3);  // two blocks for each of 132 multiprocessors
  for (const int keys : {1024, 5000, 8192, 100000}) {
    a = attention(1, 8, 1, keys, 128);
    REQUIRE(plan_flash(a, kBFloat16, kBig));
    CHECK(a.splits > 1);
    CHECK(a.splits <= 64);
    // Every part has keys: an equal number of steps of 16.
    const int tiles = (keys + 15) / 16, each = (tiles + a.splits - 1) / a.splits;
    CHECK((a.splits - 1) * each < tiles);
  }
}

TEST_CASE("attention goes to cuDNN on Hopper where there is much to multiply, and by the problem alone") {
  constexpr FlashDevice kHopper{132, 227 << 10, 90}, kAmpere{108, 163 << 10, 80};
  const FlashAttention large = attention(8, 16, 2048, 2048, 128);
  CHECK(prefers_dnn(large, kHalf, kHopper));
  CHECK(prefers_dnn(large, kBFloat16, kHopper));
  CHECK_FALSE(prefers_dnn(large, kFloat, kHopper));
  CHECK_FALSE(prefers_dnn(large, kHalf, kAmpere));
  CHECK_FALSE(prefers_dnn(large, kHalf, kBig));
  CHECK_FALSE(prefers_dnn(attention(1, 8, 16, 16, 64), kHalf, kHopper));
  CHECK_FALSE(prefers_dnn(attention(64, 64, 1, 8192, 128), kHalf, kHopper));
  CHECK_FALSE(prefers_dnn(attention(8, 16, 2048, 2048, 132), kHalf, kHopper));
  FlashAttention a = large;
  a.causal = true;
  CHECK(prefers_dnn(a, kHalf, kHopper));
  a.diagonal = 5;
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a = large;
  a.scale = -0.2F;  // cuDNN gave NaN
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a = large;
  a.bias = a.q;
  a.bias_strides[3] = 1;  // one row for all queries
  CHECK(prefers_dnn(a, kHalf, kHopper));
  a.causal = true;
  CHECK(prefers_dnn(a, kHalf, kHopper));
  a.bias_strides[2] = 2056;
  CHECK(prefers_dnn(a, kHalf, kHopper));
  a.logsumexp_rows = 2048;  // cuDNN has another value for queries that see no key
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a.logsumexp_rows = 0;
  a.bias_strides[2] = 2049;
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a.bias_strides[2] = 2056;
  a.bias_strides[3] = 2;
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a = attention(1, 12, 128, 128, 64);
  a.bias = a.q;
  a.bias_strides[3] = 1;
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  CHECK(prefers_dnn(attention(8, 12, 197, 197, 64), kHalf, kHopper));
  a = large;
  a.k_strides[2] += 1;
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
  a = large;
  a.k_strides[1] = 0;  // all heads share keys
  CHECK_FALSE(prefers_dnn(a, kHalf, kHopper));
}

TEST_CASE("attention of one query a head: heads that share keys become queries of one head") {
  FlashAttention a = attention(8, 32, 1, 4096, 128);
  a.kv_heads = 8;
  a.logsumexp_rows = 1;
  a.bias_strides[0] = 7;
  a.bias_strides[1] = 5;
  a.causal = true;
  a.diagonal = 4095;
  const FlashAttention before = a;
  pack_heads(a);
  CHECK(a.heads == 8);
  CHECK(a.kv_heads == 8);
  CHECK(a.queries == 4);
  CHECK(a.logsumexp_rows == 4);
  CHECK_FALSE(a.causal);
  CHECK(a.q_strides[0] == before.q_strides[0]);
  CHECK(a.q_strides[1] == 4 * before.q_strides[1]);
  CHECK(a.q_strides[2] == before.q_strides[1]);
  CHECK(a.out_strides[2] == before.out_strides[1]);
  CHECK(a.bias_strides[1] == 20);
  CHECK(a.bias_strides[2] == 5);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.few);
  CHECK(a.splits == 6);  // 64 heads: three blocks for each of 132 multiprocessors

  const auto stays = [&](auto change) {
    FlashAttention b = before;
    change(b);
    const int heads = b.heads, queries = b.queries;
    pack_heads(b);
    CHECK(b.heads == heads);
    CHECK(b.queries == queries);
  };
  stays([](FlashAttention& b) { b.queries = 2; });
  stays([](FlashAttention& b) { b.diagonal = 0; });         // sees the first key only
  stays([](FlashAttention& b) { b.logsumexp_rows = 32; });  // per head
  stays([](FlashAttention& b) { b.kv_heads = 32; });
}

TEST_CASE("attention of few queries in all: blocks of 8 where all of them are at work at once") {
  const auto few = [](int batch, int heads, int queries, int keys, int d, bool biased = false) {
    FlashAttention a = attention(batch, heads, queries, keys, d);
    if (biased) a.bias = a.q;
    a.bias_strides[3] = 1;
    REQUIRE(plan_flash(a, kBFloat16, kBig));
    if (a.few) CHECK(a.tiles == 1);
    return a.few;
  };
  CHECK(few(1, 12, 64, 64, 64));
  CHECK(few(1, 12, 128, 128, 64));
  CHECK(few(1, 12, 128, 128, 64, true));
  CHECK(few(1, 12, 256, 256, 64));  // 384 of 396 blocks
  CHECK_FALSE(few(1, 12, 384, 384, 64));
  CHECK_FALSE(few(4, 12, 128, 128, 64));
  CHECK(few(1, 16, 128, 128, 128));
  CHECK_FALSE(few(1, 16, 208, 208, 128));
  CHECK_FALSE(few(1, 16, 128, 128, 136));
  CHECK(few(1, 4, 100, 1023, 64));
  CHECK_FALSE(few(1, 4, 100, 1024, 64));  // the other kernel splits keys over all multiprocessors
  FlashAttention a = attention(1, 4, 64, 1000, 64);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.few);
  CHECK(a.splits == 7);  // at least 128 keys each
}

TEST_CASE("flash attention: 32 queries a warp where that leaves as many blocks on a multiprocessor, or two") {
  const auto tiles = [](int d, int dtype, bool biased, const FlashDevice& device = kBig) {
    FlashAttention a = attention(2, 8, 1024, 1024, d);
    if (dtype != kFloat) a.batch = 4;
    if (biased) a.bias = a.q;
    a.bias_strides[3] = 1;
    REQUIRE(plan_flash(a, dtype, device));
    CHECK_FALSE(a.few);
    CHECK(a.splits == 1);
    return a.tiles;
  };
  CHECK(tiles(64, kHalf, false) == 2);
  CHECK(tiles(64, kHalf, true) == 2);
  CHECK(tiles(128, kHalf, false) == 2);
  CHECK(tiles(128, kHalf, true) == 1);
  CHECK(tiles(256, kHalf, false) == 1);
  CHECK(tiles(64, kFloat, false) == 1);
  CHECK(tiles(64, kFloat, true) == 1);
  CHECK(tiles(128, kFloat, false) == 1);
  CHECK(tiles(128, kFloat, true) == 2);  // one block either way
  CHECK(tiles(256, kFloat, true) == 1);
  CHECK(tiles(128, kHalf, false, kSmall) == 1);  // two would exceed shared memory
  FlashAttention a = attention(2, 3, 333, 333, 80);
  REQUIRE(plan_flash(a, kFloat, kBig));
  CHECK(a.tiles == 1);
  CHECK(a.splits == 4);  // 36 blocks: three tiles of 32 keys each
  a = attention(2, 3, 333, 255, 80);
  REQUIRE(plan_flash(a, kFloat, kBig));
  CHECK(a.splits == 1);
}

TEST_CASE("attention of few queries: a quarter of the keys a warp, and parts of long keys") {
  FlashAttention a = attention(1, 32, 1, 8192, 128);
  REQUIRE(plan_flash(a, kBFloat16, kBig));
  CHECK(a.few);
  CHECK(a.splits == 12);
  a = attention(1, 32, 16, 300, 64);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.few);
  CHECK(a.splits == 1);
  a = attention(1, 32, 16, 300, 128);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK(a.tiles == 2);  // 16 queries per block
  a = attention(1, 32, 17, 8192, 128);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK_FALSE(a.few);
  a = attention(1, 32, 1, 8192, 128);
  REQUIRE(plan_flash(a, kFloat, kBig));
  CHECK_FALSE(a.few);
  a = attention(1, 32, 1, 8192, 256);
  REQUIRE(plan_flash(a, kHalf, kBig));
  CHECK_FALSE(a.few);
}
