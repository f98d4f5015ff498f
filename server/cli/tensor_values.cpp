#include "server/cli/tensor_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "sconce/check.h"
#include "server/support/cpp_type.h"
#include "server/support/json/tensor_json.h"
#include "src/support/element_walk.h"

namespace sconce::server::cli {
namespace {

void grow(ElementSink& sink) {
  auto& bytes = *static_cast<std::vector<std::byte>*>(sink.context);
  const size_t item = bytes.size() / sink.capacity;
  bytes.resize(bytes.size() * 2);
  sink.data = bytes.data();
  sink.capacity = bytes.size() / item;
}

template <class T>
void fill(std::byte* data, size_t count, std::mt19937_64& engine, const ValueBounds& bounds) {
  if constexpr (kIsComplex<T>) {
    using Component = std::conditional_t<std::is_same_v<T, ComplexHalf>, Half, float>;
    using Wide = std::conditional_t<std::is_same_v<T, ComplexDouble>, double, Component>;
    fill<Wide>(data, 2 * count, engine, bounds);
  } else if constexpr (std::is_floating_point_v<T> || kIsSmallFloat<T>) {
    std::normal_distribution<float> normal;
    const bool between = std::isfinite(bounds.low) && std::isfinite(bounds.high);
    std::uniform_real_distribution<float> uniform(0, 1);
    for (size_t i = 0; i < count; ++i) {
      const double number = between ? bounds.low + uniform(engine) * (bounds.high - bounds.low) : normal(engine);
      const T value = static_cast<T>(static_cast<float>(bounds.nearest(number, false)));
      std::memcpy(data + i * sizeof(T), &value, sizeof(T));
    }
  } else {
    const double least = std::isfinite(bounds.low) ? std::max(0.0, std::ceil(bounds.low)) : 0;
    for (size_t i = 0; i < count; ++i) {
      const double number = bounds.nearest(least + static_cast<double>(engine() >> 63), true);
      const auto value = static_cast<int64_t>(std::clamp(number, -0x1p62, 0x1p62));
      std::memcpy(data + i * sizeof(T), &value, sizeof(T));  // little endian
    }
  }
}

}  // namespace

Tensor read_json_tensor(JsonCursor& cursor, DType dtype) {
  SCONCE_CHECK(has_json_form(dtype), kInvalidArgument, "JSON cannot hold elements of: ", dtype_name(dtype));
  const DType component = component_dtype(dtype);
  const size_t item = dtype_bytes(component);
  std::vector<std::byte> bytes(64 * item);
  ElementSink sink{bytes.data(), 0, 64, grow, &bytes};
  NestedShape shape;
  read_elements(cursor, component, sink, &shape);
  std::vector<int64_t> sizes(shape.sizes.begin(), shape.sizes.begin() + shape.rank);
  if (is_complex(dtype)) {
    SCONCE_CHECK(!sizes.empty() && sizes.back() == 2, kInvalidArgument, "complex elements are written as [re, im]");
    sizes.pop_back();
  }
  Tensor tensor = Tensor::empty(sizes, dtype);
  if (tensor.bytes() > 0) std::memcpy(tensor.data(), bytes.data(), tensor.bytes());
  return tensor;
}

void fill_random(Tensor& tensor, uint64_t seed, const ValueBounds& bounds) {
  std::mt19937_64 engine(seed);
  auto* data = static_cast<std::byte*>(tensor.storage()->data());
  const size_t item = tensor.itemsize();
  // Fills the whole storage, because strides may leave gaps that a kernel reads.
  const size_t count = storage_bytes_needed(tensor.sizes(), tensor.strides(), 0, item) / item;
  with_cpp_type(tensor.dtype(), [&]<class T>() { fill<T>(data, count, engine, bounds); });
}

void copy_elements(const Tensor& from, Tensor& to) {
  const auto item = static_cast<int64_t>(from.itemsize());
  walk_elements(from.sizes(), from.strides(), to.strides(), [&](int64_t source, int64_t target) {
    std::memcpy(to.data_as<std::byte>() + target * item, from.data_as<std::byte>() + source * item, from.itemsize());
  });
}

}  // namespace sconce::server::cli
