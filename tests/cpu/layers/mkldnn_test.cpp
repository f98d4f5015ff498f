#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "sconce/error.h"
#include "src/cpu/convolution/direct/convolution_isa.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"
#include "tests/cpu/packed_weight.h"
#include "tests/files.h"

using namespace sconce;
using namespace sconce::testing;

namespace {

// Packs a weight [groups * o, i, ...] in blocks of input and output channels, as oneDNN does on some machine.
Packed pack_convolution(const Tensor& weight, int64_t groups, bool transposed = false) {
  Tensor plain = weight;
  Ints dims(weight.sizes().begin(), weight.sizes().end());
  if (transposed) {  // packed with output channels first
    std::vector<int64_t> sizes{groups, weight.size(1), weight.size(0) / groups};
    sizes.insert(sizes.end(), dims.begin() + 2, dims.end());
    plain = Tensor::empty(sizes, weight.dtype());
    each_index(sizes, [&](const Ints& i) {
      Ints from{i[0] * sizes[2] + i[2], i[1]};
      from.insert(from.end(), i.begin() + 3, i.end());
      set_element(plain, i, element(weight, from));
    });
    dims = sizes;
    if (groups == 1) dims.erase(dims.begin());
  } else if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
  }
  const int64_t out = groups > 1 ? 1 : 0;
  return pack(plain, dims, {{4, out + 1}, {8, out}, {2, out + 1}}, groups);
}

double as_activation(std::string_view name, double x, double a = 0, double b = 0) {
  if (name == "relu") return x < 0 ? 0 : x;
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  if (name == "swish") return x / (1 + std::exp(-x));
  if (name == "hardswish") return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
  if (name == "hardsigmoid") return std::min(std::max(x + 3, 0.0), 6.0) / 6;
  if (name == "gelu") return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
  if (name == "gelu tanh") return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  if (name == "leaky_relu") return x < 0 ? a * x : x;
  if (name == "hardtanh") return std::min(std::max(x, a), b);
  return x;
}

constexpr std::string_view kActivations[] = {"none",        "relu", "sigmoid",   "tanh",       "swish",   "hardswish",
                                             "hardsigmoid", "gelu", "gelu tanh", "leaky_relu", "hardtanh"};

struct Attribute {
  std::string text;
  std::optional<std::string_view> algorithm;
  double a = 0, b = 0;
  std::vector<const double*> scalars;
  explicit Attribute(std::string_view name) : text(name) {
    if (name == "gelu") algorithm = "none";
    if (name == "gelu tanh") {
      text = "gelu";
      algorithm = "tanh";
    }
    if (name == "leaky_relu") a = 0.1;
    if (name == "hardtanh") {
      a = -0.5;
      b = 0.75;
    }
    scalars = {&a, &b};
  }
};

double tolerance(DType dtype) { return dtype == DType::kFloat32 ? 3e-6 : dtype == DType::kFloat16 ? 2e-3 : 1.6e-2; }

// Largest |got - f(want, index)| / (1 + |f|).
template <class F>
double worst(const Tensor& got, const Tensor& want, F f) {
  double w = 0;
  REQUIRE(to_string(got.sizes()) == to_string(want.sizes()));
  each_index(got.sizes(), [&](const Ints& i) {
    const double expected = f(element(want, i), i);
    const double error = std::abs(element(got, i) - expected) / (1 + std::abs(expected));
    w = std::isnan(error) ? INFINITY : std::max(w, error);
  });
  return w;
}

template <class F>
void each_isa(F f) {
  for (const bool avx512 : {false, true}) {
    testing_convolution_avx512(avx512);
    CAPTURE(avx512);
    f();
  }
}

}  // namespace

TEST_CASE("packed weight: as PyTorch packs them") {
  const std::string all = content_of(source_path("tests/data/packed_weights.bin"));
  const char* at = all.data();
  const auto take = [&]<class T>(T) {
    T v;
    std::memcpy(&v, at, sizeof v);
    at += sizeof v;
    return v;
  };
  int count = 0;
  while (at < all.data() + all.size()) {
    const auto length = take(uint8_t{});
    const std::string name(at, length);
    at += length;
    CAPTURE(name);
    Ints sizes(take(uint8_t{}));
    for (int64_t& s : sizes) s = take(int64_t{});
    const int64_t groups = take(int64_t{});
    const bool transposed = take(uint8_t{}) != 0;
    Bytes metadata(take(uint32_t{}));
    std::memcpy(metadata.data(), at, metadata.size());
    at += metadata.size();
    const uint64_t bytes = take(uint64_t{});
    const auto dtype = static_cast<DType>(take(int8_t{}));
    Bytes packed(bytes);  // aligned like a storage
    std::memcpy(packed.data(), at, bytes);
    at += bytes;
    Tensor plain = Tensor::empty(sizes, DType::kFloat32);
    std::memcpy(plain.data(), at, plain.bytes());
    at += plain.bytes();

    // PyTorch 2.6 writes a shorter description.
    Bytes older(metadata.begin(), metadata.begin() + 664);
    older.insert(older.end(), metadata.end() - 4, metadata.end());
    for (const Bytes& m : {metadata, older}) {
      const BlockedWeight w = parse_blocked_weight(m, bytes);
      CHECK(w.dtype == dtype);
      CHECK(w.groups == groups);
      REQUIRE(w.numel() == plain.numel());
      std::vector<float> floats(static_cast<size_t>(w.numel()));
      w.to_floats(packed.data(), floats.data());
      const size_t g = groups > 1 ? 1 : 0;
      size_t i = 0, wrong = 0;
      each_index(w.dims, [&](const Ints& index) {
        const int64_t group = g ? index[0] : 0;
        Ints from(index.begin() + static_cast<std::ptrdiff_t>(g), index.end());
        if (transposed) std::swap(from[0], from[1]);
        if (g) from[0] += group * w.dims[transposed ? 2 : 1];
        wrong += floats[i++] != static_cast<float>(element(plain, from));
      });
      CHECK(wrong == 0);
    }
    ++count;
  }
  CHECK(count == 14);
}

TEST_CASE("packed weight: no description leads outside the storage") {
  const Packed p = pack_convolution(sample(Ints{16, 8, 3, 3}, DType::kFloat32, 1), 1);
  const size_t bytes = p.tensor.storage()->bytes();
  CHECK(parse_blocked_weight(p.metadata, bytes).numel() == 16 * 8 * 9);
  CHECK(parse_blocked_weight(p.metadata, bytes).bytes() == bytes);
  CHECK(parse_blocked_weight(p.metadata, 2 * bytes).bytes() == bytes);
  CHECK_THROWS_AS(parse_blocked_weight(p.metadata, bytes - 4), Error);
  CHECK_THROWS_AS(parse_blocked_weight(p.metadata, 0), Error);
  for (const size_t size : {size_t{0}, size_t{4}, size_t{667}, size_t{771}, size_t{773}}) {
    Bytes cut = p.metadata;
    cut.resize(size);
    CHECK_THROWS_AS(parse_blocked_weight(cut, bytes), Error);
  }
  // Puts wrong values into each field of the description.
  for (size_t offset = 0; offset + 8 <= 660; offset += 4)
    for (const int64_t value :
         {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}, int64_t{13}, int64_t{1} << 33, INT64_MAX, INT64_MIN}) {
      Bytes bad = p.metadata;
      put(bad, offset, value);
      try {
        const BlockedWeight w = parse_blocked_weight(bad, bytes);
        int64_t last = w.first;
        for (const auto& at : w.at)
          for (const int64_t offset_of : at) CHECK(offset_of >= 0);
        for (const auto& at : w.at) last += *std::max_element(at.begin(), at.end());
        CHECK(w.first >= 0);
        CHECK(static_cast<size_t>(last) * dtype_bytes(w.dtype) < bytes);
        CHECK(w.bytes() <= bytes);
      } catch (const Error& error) {
        CHECK((error.code() == ErrorCode::kCorruptPackage || error.code() == ErrorCode::kUnsupported));
      }
    }
}

TEST_CASE("packed weight: its paddings lie within the storage, too") {
  // Five channels fill blocks of eight, so the storage ends in padding.
  const Packed p = pack_convolution(sample(Ints{5, 3, 3, 3}, DType::kFloat32, 1), 1);
  const size_t bytes = p.tensor.storage()->bytes();
  REQUIRE(bytes > 5 * 3 * 9 * sizeof(float));
  CHECK(parse_blocked_weight(p.metadata, bytes).bytes() == bytes);
  CHECK_THROWS_AS(parse_blocked_weight(p.metadata, bytes - sizeof(float)), Error);
  Bytes uneven = p.metadata;  // padding to a size that is no multiple of the block
  put(uneven, 112, int64_t{6});
  CHECK_THROWS_AS(parse_blocked_weight(uneven, bytes), Error);
}

TEST_CASE("mkldnn__convolution_pointwise: every activation, packed and plain") {
  const ReferenceConvolution c{{1, 2}, {1, 0}, {1, 1}, {}, false, 2};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const Tensor x = sample(Ints{2, 6, 5, 7}, dtype, 1), w = sample(Ints{10, 3, 3, 2}, dtype, 2);
    const Tensor b = sample(Ints{10}, dtype, 3);
    const Packed packed = pack_convolution(w, 2);
    const Tensor want = reference_convolution(x, w, &b, c).value;
    for (const std::string_view name : kActivations) {
      const Attribute attribute(name);
      CAPTURE(attribute.text);
      each_isa([&] {
        for (const Tensor* weight : {&w, static_cast<const Tensor*>(&packed.tensor)}) {
          const Tensor got =
              cpu::mkldnn__convolution_pointwise(x, *weight, &b, c.padding, c.stride, c.dilation, c.groups,
                                                 attribute.text, attribute.scalars, attribute.algorithm);
          CHECK(got.dtype() == dtype);
          CHECK(got.stride(1) == (weight == &w ? got.size(2) * got.size(3) : 1));
          CHECK(worst(got, want, [&](double v, const Ints&) {
                  return as_activation(name, v, attribute.a, attribute.b);
                }) <= tolerance(dtype));
        }
      });
    }
  }
}

TEST_CASE("mkldnn__convolution_pointwise: refuses what it does not know") {
  const Tensor x = sample(Ints{1, 2, 4, 4}, DType::kFloat32, 1), w = sample(Ints{3, 2, 3, 3}, DType::kFloat32, 2);
  const auto call = [&](const Tensor& input, const Tensor& weight, std::string_view attribute,
                        std::optional<std::string_view> algorithm, int64_t groups = 1) {
    return cpu::mkldnn__convolution_pointwise(input, weight, nullptr, Ints{0, 0}, Ints{1, 1}, Ints{1, 1}, groups,
                                              attribute, {}, algorithm);
  };
  CHECK_NOTHROW(call(x, w, "none", std::nullopt));
  CHECK_THROWS_AS(call(x, w, "elu", std::nullopt), Error);
  CHECK_THROWS_AS(call(x, w, "gelu", "bad"), Error);
  CHECK_THROWS_AS(call(x, w, "gelu", std::nullopt), Error);
  CHECK_THROWS_AS(call(x, w, "leaky_relu", std::nullopt), Error);
  CHECK_THROWS_AS(call(converted(x, DType::kFloat64), converted(w, DType::kFloat64), "none", std::nullopt), Error);
  CHECK_THROWS_AS(call(x, pack_convolution(w, 1).tensor, "none", std::nullopt, 2), Error);
  // An empty batch keeps the format of the weight.
  const Tensor none = sample(Ints{0, 2, 4, 4}, DType::kFloat32, 1);
  CHECK(to_string(call(none, w, "relu", std::nullopt).strides()) == "[12, 4, 2, 1]");
  CHECK(to_string(call(none, pack_convolution(w, 1).tensor, "relu", std::nullopt).strides()) == "[12, 1, 6, 3]");
}

TEST_CASE("mkldnn__convolution_pointwise: one and three dimensions") {
  const Tensor x = sample(Ints{2, 3, 4, 5, 6}, DType::kFloat32, 1), w = sample(Ints{4, 3, 2, 3, 1}, DType::kFloat32, 2);
  const ReferenceConvolution c{{1, 1, 2}, {0, 1, 0}, {1, 1, 1}, {}};
  const Tensor got = cpu::mkldnn__convolution_pointwise(x, pack_convolution(w, 1).tensor, nullptr, c.padding, c.stride,
                                                        c.dilation, 1, "none", {}, std::nullopt);
  CHECK(got.stride(1) == 1);
  CHECK(worst_error(got, reference_convolution(x, w, nullptr, c)) <= 2e-6);
  const Tensor line = sample(Ints{2, 3, 9}, DType::kFloat32, 1), f = sample(Ints{4, 3, 2}, DType::kFloat32, 2);
  const ReferenceConvolution c1{{1}, {1}, {2}, {}};
  for (const Tensor& weight : {f, pack_convolution(f, 1).tensor}) {
    const Tensor y = cpu::mkldnn__convolution_pointwise(line, weight, nullptr, c1.padding, c1.stride, c1.dilation, 1,
                                                        "none", {}, std::nullopt);
    CHECK(y.is_contiguous());
    CHECK(worst_error(y, reference_convolution(line, f, nullptr, c1)) <= 2e-6);
  }
}

TEST_CASE("mkldnn__convolution_pointwise_binary: every operation, layouts of the other tensor") {
  const ReferenceConvolution c{{1, 1}, {1, 1}, {1, 1}, {}};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Tensor x = sample(Ints{2, 3, 5, 6}, dtype, 1), w = sample(Ints{9, 3, 3, 3}, dtype, 2);
    Tensor full = sample(Ints{2, 9, 5, 6}, dtype, 3);
    each_index(full.sizes(), [&](const Ints& i) { set_element(full, i, std::abs(element(full, i)) + 0.5); });
    const Tensor row = full.as_strided(Ints{1, 9, 1, 6}, Ints{270, 30, 6, 1}, 0);
    const Tensor want = reference_convolution(x, w, nullptr, c).value;
    const Packed packed = pack_convolution(w, 1);
    for (const Tensor& other : {full, channels_last(full), with_gaps(full), row})
      for (const std::string_view op : {"add", "sub", "mul", "div"})
        for (const std::string_view unary : {"", "relu"}) {
          CAPTURE(op);
          CAPTURE(describe(other));
          const auto expected = [&](double v, const Ints& i) {
            const double o = element(other, {i[0] % other.size(0), i[1], i[2] % other.size(2), i[3]});
            v = op == "add" ? v + o : op == "sub" ? v - o : op == "mul" ? v * o : v / o;
            return unary == "relu" && v < 0 ? 0 : v;
          };
          std::optional<std::string_view> attribute;
          if (!unary.empty()) attribute = unary;
          for (const Tensor* weight : {&w, static_cast<const Tensor*>(&packed.tensor)}) {
            const Tensor got =
                cpu::mkldnn__convolution_pointwise_binary(x, other, *weight, nullptr, c.padding, c.stride, c.dilation,
                                                          1, op, std::nullopt, attribute, {}, std::nullopt);
            CHECK(worst(got, want, expected) <= tolerance(dtype));
          }
        }
  }
  const Tensor x = sample(Ints{1, 2, 4, 4}, DType::kFloat32, 1), w = sample(Ints{3, 2, 1, 1}, DType::kFloat32, 2);
  const auto call = [&](const Tensor& other, std::string_view op, std::optional<double> alpha) {
    return cpu::mkldnn__convolution_pointwise_binary(x, other, w, nullptr, Ints{0, 0}, Ints{1, 1}, Ints{1, 1}, 1, op,
                                                     alpha, std::nullopt, {}, std::nullopt);
  };
  const Tensor other = sample(Ints{1, 3, 4, 4}, DType::kFloat32, 3);
  CHECK_NOTHROW(call(other, "add", 1.0));
  CHECK_THROWS_AS(call(other, "add", 2.0), Error);
  CHECK_THROWS_AS(call(other, "max", std::nullopt), Error);
  CHECK_THROWS_AS(call(converted(other, DType::kBFloat16), "add", std::nullopt), Error);
  CHECK_THROWS_AS(call(sample(Ints{1, 3, 4, 3}, DType::kFloat32, 3), "add", std::nullopt), Error);
}

TEST_CASE("mkldnn__convolution_pointwise_binary_: the other tensor holds the result") {
  const ReferenceConvolution c{{2, 2}, {1, 1}, {1, 1}, {}};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    // 70 input channels take more than one pass.
    const Tensor x = sample(Ints{2, 70, 5, 6}, dtype, 1), w = sample(Ints{20, 70, 3, 3}, dtype, 2);
    const Tensor b = sample(Ints{20}, dtype, 4), want = reference_convolution(x, w, &b, c).value;
    const Tensor start = sample(want.sizes(), dtype, 3);
    const Packed packed = pack_convolution(w, 1);
    for (const std::string_view unary : {"", "relu", "tanh"})
      for (const Tensor& layout : {start, channels_last(start), with_gaps(start)})
        each_isa([&] {
          std::optional<std::string_view> attribute;
          if (!unary.empty()) attribute = unary;
          Tensor other = Tensor::empty_strided(layout.sizes(), layout.strides(), dtype);
          each_index(start.sizes(), [&](const Ints& i) { set_element(other, i, element(start, i)); });
          const Tensor got =
              cpu::mkldnn__convolution_pointwise_binary_(other, x, packed.tensor, &b, c.padding, c.stride, c.dilation,
                                                         1, "add", std::nullopt, attribute, {}, std::nullopt);
          CHECK(got.data() == other.data());
          CHECK(to_string(got.strides()) == to_string(layout.strides()));
          CHECK(worst(other, want, [&](double v, const Ints& i) {
                  return as_activation(unary, v + element(start, i));
                }) <= tolerance(dtype) * 4);
        });
  }
  // The tensor to be added to is also the convolution's input, which must be read before it is overwritten.
  Tensor both = channels_last(sample(Ints{1, 4, 3, 3}, DType::kFloat32, 1));
  const Tensor before = channels_last(sample(Ints{1, 4, 3, 3}, DType::kFloat32, 1));
  const Tensor w = sample(Ints{4, 4, 3, 3}, DType::kFloat32, 2);
  const Tensor want = reference_convolution(before, w, nullptr, {{1, 1}, {1, 1}, {1, 1}, {}}).value;
  cpu::mkldnn__convolution_pointwise_binary_(both, both, w, nullptr, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, 1, "add", 1.0,
                                             std::nullopt, {}, std::nullopt);
  CHECK(worst(both, want, [&](double v, const Ints& i) { return v + element(before, i); }) <= 3e-6);
  CHECK_THROWS_AS(cpu::mkldnn__convolution_pointwise_binary_(both, both, w, nullptr, Ints{0, 0}, Ints{1, 1}, Ints{1, 1},
                                                             1, "add", 1.0, std::nullopt, {}, std::nullopt),
                  Error);
  CHECK_THROWS_AS(cpu::mkldnn__convolution_pointwise_binary_(both, both, w, nullptr, Ints{1, 1}, Ints{1, 1}, Ints{1, 1},
                                                             1, "mul", 1.0, std::nullopt, {}, std::nullopt),
                  Error);
}

TEST_CASE("mkldnn__convolution_pointwise_binary_: into the image itself, by another storage of the same memory") {
  const Ints sizes{1, 2, 5, 6}, strides{60, 30, 6, 1}, one{1, 1};
  Tensor w = Tensor::empty(Ints{2, 2, 3, 3}, DType::kFloat32), plain = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < w.numel(); ++i) w.data_as<float>()[i] = static_cast<float>(i % 5 - 2);
  for (int64_t i = 0; i < plain.numel(); ++i) plain.data_as<float>()[i] = static_cast<float>(i % 7 - 3);
  const Tensor wanted = cpu::mkldnn__convolution_pointwise_binary(plain, plain, w, nullptr, one, one, one, 1, "add",
                                                                  1.0, std::nullopt, {}, std::nullopt);
  const auto view = [&] { return Tensor::from_blob(plain.data(), sizes, strides, DType::kFloat32); };
  cpu::mkldnn__convolution_pointwise_binary_(view(), view(), w, nullptr, one, one, one, 1, "add", 1.0, std::nullopt, {},
                                             std::nullopt);
  for (int64_t i = 0; i < plain.numel(); ++i) CHECK(plain.data_as<float>()[i] == wanted.data_as<float>()[i]);
}

TEST_CASE("mkldnn__convolution_transpose_pointwise: packed with output channels first") {
  for (const int64_t groups : {1, 2}) {
    const ReferenceConvolution c{{2, 3}, {1, 0}, {1, 2}, {1, 0}, true, groups};
    const Tensor x = sample(Ints{2, 6, 4, 3}, DType::kFloat32, 1);
    const Tensor w = sample(Ints{6, 5, 3, 2}, DType::kFloat32, 2), b = sample(Ints{5 * groups}, DType::kFloat32, 3);
    const Tensor want = reference_convolution(x, w, &b, c).value;
    for (const Tensor& weight : {w, pack_convolution(w, groups, true).tensor}) {
      const Tensor got = cpu::mkldnn__convolution_transpose_pointwise(
          x, weight, &b, c.padding, c.output_padding, c.stride, c.dilation, groups, "relu", {}, std::nullopt);
      CHECK(got.stride(1) == (weight.layout() == Layout::kMkldnn ? 1 : got.size(2) * got.size(3)));
      CHECK(worst(got, want, [](double v, const Ints&) { return v < 0 ? 0 : v; }) <= 3e-6);
    }
  }
}

TEST_CASE("_linear_pointwise: every activation, packed and plain, one row and many") {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    for (const int64_t rows : {1, 7, 1500}) {
      if (rows > 7 && dtype != DType::kFloat32) continue;
      const int64_t k = rows > 7 ? 20 : 300, n = 70;
      const Tensor x = sample(Ints{rows, k}, dtype, 1), w = sample(Ints{n, k}, dtype, 2), b = sample(Ints{n}, dtype, 3);
      const Packed packed = pack(w, {n, k}, {{16, 1}, {64, 0}}, 1), other_way = pack(w, {n, k}, {{8, 1}, {8, 0}}, 1);
      Tensor constant = sample(Ints{n, k}, dtype, 2);
      constant.storage()->set_immutable(true);
      const Tensor want = reference_convolution(x.as_strided(Ints{rows, k, 1}, Ints{k, 1, 1}, 0),
                                                w.as_strided(Ints{n, k, 1}, Ints{k, 1, 1}, 0), &b, {{1}, {0}, {1}, {}})
                              .value;
      const Tensor matrix = want.as_strided(Ints{rows, n}, Ints{n, 1}, 0);
      for (const std::string_view name : kActivations) {
        if (rows > 7 && name != "gelu") continue;
        const Attribute attribute(name);
        CAPTURE(attribute.text);
        CAPTURE(dtype_name(dtype));
        CAPTURE(rows);
        each_isa([&] {
          for (const Tensor& weight : {w, constant, packed.tensor, other_way.tensor}) {
            const Tensor got =
                cpu::_linear_pointwise(x, weight, &b, attribute.text, attribute.scalars, attribute.algorithm);
            CHECK(got.is_contiguous());
            CHECK(worst(got, matrix, [&](double v, const Ints&) {
                    return as_activation(name, v, attribute.a, attribute.b);
                  }) <= tolerance(dtype) * 8);
          }
        });
      }
    }
}

TEST_CASE("_linear_pointwise: leading dimensions, strides, no rows, refusals") {
  const Tensor w = sample(Ints{5, 4}, DType::kFloat32, 1);
  const auto call = [&](const Tensor& x, const Tensor& weight) {
    return cpu::_linear_pointwise(x, weight, nullptr, "none", {}, std::nullopt);
  };
  const auto sizes = [&](const Tensor& x) { return to_string(call(x, w).sizes()); };
  CHECK(sizes(sample(Ints{2, 3, 4}, DType::kFloat32, 2)) == "[2, 3, 5]");
  CHECK(sizes(sample(Ints{4}, DType::kFloat32, 2)) == "[5]");
  CHECK(sizes(sample(Ints{0, 3, 4}, DType::kFloat32, 2)) == "[0, 3, 5]");
  const Tensor x = sample(Ints{3, 4}, DType::kFloat32, 2), y = call(x, w);
  CHECK(worst(call(with_gaps(x), with_gaps(w)), y, [](double v, const Ints&) { return v; }) <= 1e-6);
  CHECK(worst(call(x, converted(w, DType::kBFloat16)), y, [](double v, const Ints&) { return v; }) <= 1e-6);
  CHECK_THROWS_AS(call(sample(Ints{3, 5}, DType::kFloat32, 2), w), Error);
  CHECK_THROWS_AS(call(converted(x, DType::kFloat64), converted(w, DType::kFloat64)), Error);
  CHECK_THROWS_AS(call(x, sample(Ints{5, 4, 1}, DType::kFloat32, 1)), Error);
  const Tensor b = sample(Ints{4}, DType::kFloat32, 3);
  CHECK_THROWS_AS(cpu::_linear_pointwise(x, w, &b, "none", {}, std::nullopt), Error);
}

TEST_CASE("_linear_pointwise_binary: every operation") {
  const Tensor x = sample(Ints{2, 3, 8}, DType::kFloat32, 1), w = sample(Ints{20, 8}, DType::kFloat32, 2);
  Tensor full = sample(Ints{2, 3, 20}, DType::kFloat32, 3);
  each_index(full.sizes(), [&](const Ints& i) { set_element(full, i, std::abs(element(full, i)) + 0.5); });
  const Tensor plain = cpu::_linear_pointwise(x, w, nullptr, "none", {}, std::nullopt);
  const Packed packed = pack(w, {20, 8}, {{16, 1}, {64, 0}}, 1);
  for (const std::string_view op : {"add", "sub", "mul", "div"})
    for (const Tensor& other : {full, with_gaps(full)}) {
      const Tensor got = cpu::_linear_pointwise_binary(x, other, packed.tensor, nullptr, op);
      CHECK(worst(got, plain, [&](double v, const Ints& i) {
              const double o = element(full, i);
              return op == "add" ? v + o : op == "sub" ? v - o : op == "mul" ? v * o : v / o;
            }) <= 3e-6);
    }
  CHECK_THROWS_AS(cpu::_linear_pointwise_binary(x, full, w, nullptr, "relu"), Error);
  CHECK_THROWS_AS(cpu::_linear_pointwise_binary(x, x, w, nullptr, "add"), Error);
}

TEST_CASE("_mkl_linear: uses the original weight") {
  const Tensor x = sample(Ints{3, 8}, DType::kFloat32, 1), w = sample(Ints{5, 8}, DType::kFloat32, 2);
  const Tensor b = sample(Ints{5}, DType::kFloat32, 3), packed = sample(Ints{77, 1}, DType::kFloat32, 4);
  const Tensor want = cpu::_linear_pointwise(x, w, &b, "none", {}, std::nullopt);
  for (const int64_t batch : {3, 4})
    CHECK(worst(cpu::_mkl_linear(x, packed, w, &b, batch), want, [](double v, const Ints&) { return v; }) == 0);
}
