// The program that compare.py drives, line by line on standard input. Its argument is pack_weights.py's file.
//   list                     "INDEX FAMILY | NAME" of each case, then an empty line
//   check INDEX              runs the case once; digests of its results: "ok DTYPE:SIZES:SUM:SUM OF SQUARES ..."
//   time INDEX SECONDS       "ok MICROSECONDS": the fastest call within that time (short ones are timed several in a
//   row) drop                     frees the inputs of the case
// A failure is answered "error TEXT".
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <sstream>

#include "tests/bench/ops/calls.h"

namespace bench {
namespace {

bool keeping = false;
std::vector<T> kept;

double load(const void* data, int64_t i, int32_t dtype) {
  switch (dtype) {
    case kF32:
      return static_cast<const float*>(data)[i];
    case kF64:
      return static_cast<const double*>(data)[i];
    case kF16:
      return static_cast<double>(static_cast<const _Float16*>(data)[i]);
    case kBF16: {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16;
      float x;
      std::memcpy(&x, &bits, 4);
      return x;
    }
    case kI64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case kI32:
      return static_cast<const int32_t*>(data)[i];
    case kI8:
      return static_cast<const int8_t*>(data)[i];
    case kU8:
    case kBool:
      return static_cast<const uint8_t*>(data)[i];
    default:
      return 0;
  }
}

std::string digest(const T& t) {
  bool defined = false;
  check(aoti_torch_is_defined(t.get(), &defined));
  if (!defined) return "-:-:0:0";
  int64_t rank = 0, *sizes = nullptr, *strides = nullptr, count = 0;
  int32_t dtype = 0;
  void* data = nullptr;
  check(aoti_torch_get_dim(t.get(), &rank));
  check(aoti_torch_get_sizes(t.get(), &sizes));
  check(aoti_torch_get_strides(t.get(), &strides));
  check(aoti_torch_get_numel(t.get(), &count));
  check(aoti_torch_get_dtype(t.get(), &dtype));
  check(aoti_torch_get_data_ptr(t.get(), &data));
  std::ostringstream text;
  text << dtype << ':';
  for (int64_t d = 0; d < rank; ++d) text << (d ? "x" : "") << sizes[d];
  double sum = 0, squares = 0;
  Sizes index(static_cast<size_t>(rank), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < rank; ++d) at += index[static_cast<size_t>(d)] * strides[d];
    const double x =
        dtype == kC64 ? std::hypot(load(data, 2 * at, kF32), load(data, 2 * at + 1, kF32)) : load(data, at, dtype);
    // Weighted by position, so that another order shows; absolute values, because signs of eigenvectors are arbitrary.
    if (std::isfinite(x)) sum += std::abs(x) * (1 + static_cast<double>(i % 97) / 97), squares += x * x;
    for (int64_t d = rank - 1; d >= 0 && ++index[static_cast<size_t>(d)] == sizes[d]; --d)
      index[static_cast<size_t>(d)] = 0;
  }
  text << ':' << sum << ':' << squares;
  return text.str();
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double fastest(const Call& call, double seconds) {
  const double begin = seconds_now();
  call();
  const double first = seconds_now() - begin;
  call();
  // Times about 50 microseconds of calls in a row, so that reading the clock does not count.
  const int row = first > 50e-6 ? 1 : static_cast<int>(50e-6 / std::max(first, 1e-6)) + 1;
  double best = 1e9;
  int turns = 0;
  do {
    const double start = seconds_now();
    for (int i = 0; i < row; ++i) call();
    best = std::min(best, (seconds_now() - start) / row);
  } while (++turns < 3 || seconds_now() - begin < seconds);
  return best;
}

}  // namespace

void take_results(AtenTensorHandle* results, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!results[i]) continue;
    if (keeping)
      kept.emplace_back(results[i]);
    else
      aoti_torch_delete_tensor_object(results[i]);
  }
}

}  // namespace bench

int main(int argc, char** argv) {
  using namespace bench;
  if (argc > 1) read_packed(argv[1]);
  const auto library = enter_library();
  Cases cases;
  for (const auto add : {add_matrix_cases, add_convolution_cases, add_attention_cases, add_indexing_cases,
                         add_sorting_cases, add_pooling_cases, add_linalg_cases, add_random_cases, add_copy_cases,
                         add_quantised_cases, add_function_cases, add_layer_cases})
    add(cases);
  size_t made = SIZE_MAX;
  Call call;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    size_t index = 0;
    double seconds = 0;
    words >> word >> index >> seconds;
    try {
      if (word == "list") {
        for (size_t i = 0; i < cases.all.size(); ++i)
          std::cout << i << ' ' << cases.all[i].family << " | " << cases.all[i].name << '\n';
        std::cout << std::endl;
        continue;
      }
      if (word == "drop") {
        call = nullptr;
        made = SIZE_MAX;
        std::cout << "ok" << std::endl;
        continue;
      }
      if (index != made) {
        call = nullptr;
        restart_numbers();
        call = cases.all.at(index).make();
        made = index;
      }
      std::ostringstream answer;
      if (word == "check") {
        keeping = true;
        call();
        keeping = false;
        for (const T& t : kept) answer << ' ' << digest(t);
        kept.clear();
      } else {
        answer << ' ' << 1e6 * fastest(call, seconds);
      }
      std::cout << "ok" << answer.str() << std::endl;
    } catch (const std::exception& e) {
      keeping = false;
      kept.clear();
      std::string text = e.what();
      for (char& c : text)
        if (c == '\n') c = ' ';
      std::cout << "error " << text.substr(0, 300) << std::endl;
    }
  }
}
