// Speed of tensor JSON in MB of text per second, by dtype and by how the numbers are written.
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "server/support/json/tensor_json.h"

using namespace sconce;
using namespace sconce::server;

namespace {

double best_seconds(auto&& f) {
  double best = 1e9;
  for (int i = 0; i < 400; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

template <class T>
void measure(const char* name, DType dtype, const std::vector<T>& values) {
  std::vector<T> data = values;
  const int64_t count = static_cast<int64_t>(data.size()), one = 1;
  const Tensor tensor = Tensor::from_blob(data.data(), {&count, 1}, {&one, 1}, dtype);
  TextBuffer text;
  const double writing = best_seconds([&] {
    text.clear();
    write_flat(text, tensor);
  });
  const double reading = best_seconds([&] {
    JsonCursor in(text.view());
    ElementSink sink{reinterpret_cast<std::byte*>(data.data()), 0, data.size()};
    read_elements(in, dtype, sink, nullptr);
  });
  const double skipping = best_seconds([&] {
    JsonCursor in(text.view());
    in.skip_unchecked();
  });
  const double megabytes = static_cast<double>(text.size()) * 1e-6;
  std::printf("%-28s %5.1f bytes/element  read %6.0f MB/s  write %6.0f MB/s  pass over %6.0f MB/s\n", name,
              static_cast<double>(text.size()) / static_cast<double>(count), megabytes / reading, megabytes / writing,
              megabytes / skipping);
}

}  // namespace

int main() {
  constexpr size_t kCount = 20000;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::vector<float> floats(kCount), pixels(kCount), small(kCount);
  std::vector<double> doubles(kCount), widened(kCount);
  std::vector<int64_t> tokens(kCount), large(kCount);
  std::vector<uint8_t> bytes(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    doubles[i] = normal(random);
    floats[i] = static_cast<float>(doubles[i]);
    widened[i] = floats[i];
    pixels[i] = static_cast<float>(random() % 256);
    small[i] = static_cast<float>(static_cast<double>(random() % 1000) / 100);
    tokens[i] = static_cast<int64_t>(random() % 50000);
    large[i] = static_cast<int64_t>(random());
    bytes[i] = static_cast<uint8_t>(random());
  }
  measure("FP32 normal", DType::kFloat32, floats);
  measure("FP32 0.00 to 9.99", DType::kFloat32, small);
  measure("FP32 whole 0 to 255", DType::kFloat32, pixels);
  measure("FP64 normal", DType::kFloat64, doubles);
  measure("FP64 from FP32", DType::kFloat64, widened);
  measure("INT64 tokens", DType::kInt64, tokens);
  measure("INT64 full range", DType::kInt64, large);
  measure("UINT8", DType::kUInt8, bytes);
}
