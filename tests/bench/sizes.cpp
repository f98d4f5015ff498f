// What the check of a request's sizes costs: nanoseconds of SizeRelations::agrees(), the median of 9 rounds.
//
// usage: bench_sizes
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "sconce/sizes/size_relations.h"

namespace {

using sconce::AccessBound;
using sconce::Dim;
using sconce::SizeRelations;
using sconce::TensorSpec;

// Dimensions of one input each, with sizes that fit.
struct Case {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<AccessBound> bounds;
};

double nanoseconds(const Case& tried) {
  std::vector<TensorSpec> inputs;
  std::vector<int64_t> sizes;
  for (const auto& [symbol, size] : tried.dims) {
    TensorSpec& spec = inputs.emplace_back();
    Dim dim;
    dim.min = 2;
    dim.max = INT64_MAX;
    dim.symbol = symbol;
    spec.dims = {dim};
    sizes.push_back(size);
  }
  const SizeRelations relations(inputs, tried.bounds);
  constexpr int kCalls = 1'000'000;
  std::array<double, 9> rounds;
  for (double& round : rounds) {
    const auto start = std::chrono::steady_clock::now();
    bool agree = true;
    for (int i = 0; i < kCalls; ++i) agree = agree && relations.agrees(sizes);
    round = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls;
    if (!agree) return -1;
  }
  std::nth_element(rounds.begin(), rounds.begin() + 4, rounds.end());
  return rounds[4];
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {"one batch in three inputs", {{"s0", 8}, {"s0", 8}, {"s0", 8}}, {}},
      {"2*s0 and s0", {{"2*s0", 16}, {"s0", 8}}, {}},
      {"s0 + s1, s0, s1", {{"s0 + s1", 24}, {"s0", 8}, {"s1", 16}}, {}},
      {"s0*s0 + 2 alone", {{"s0*s0 + 2", 66}}, {}},
      {"a guard's access", {{"s0", 8}, {"s1", 4}}, {{"y", {"3*(s0 // 2) - 1"}, "3*(s0 // 2) - 1", "3*s1"}}},
  };
  Case many{"24 dimensions of two symbols", {{"s0", 8}, {"s1", 16}}, {}};
  for (int i = 1; i <= 22; ++i) many.dims.push_back({std::to_string(i) + "*s0 + s1", 8 * i + 16});
  all.push_back(many);
  return all;
}

}  // namespace

int main() {
  for (const Case& each : cases()) std::printf("%-32s %6.1f ns\n", each.name.c_str(), nanoseconds(each));
}
