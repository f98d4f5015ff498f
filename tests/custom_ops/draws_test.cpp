// Compares operators on random inputs with plain loops in double precision. Like tests/truth, but without PyTorch and
// small enough for every run. SCONCE_SEED=N draws other inputs, SCONCE_DRAWS=N draws more of each.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>

#include "src/cpu/convolution/convolution.h"
#include "src/custom_ops/registry.h"
#include "src/device/threads.h"
#include "src/operators/cpu_ops.h"
#include "tests/cpu/convolution_reference.h"

namespace sconce::custom_ops {
namespace {

using testing::converted;
using testing::each_index;
using testing::element;
using testing::Ints;
using testing::set_element;

uint64_t setting(const char* name, uint64_t value) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : value;
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(static_cast<int64_t>(of.size()))];
  }
  // A size near a multiple of vector, tile or block sizes, or any size up to `most`.
  int64_t size(int64_t most) {
    const int64_t near =
        pick<int64_t>({4, 8, 16, 24, 32, 64, 96, 128, 256}) * pick<int64_t>({1, 1, 2, 3}) + below(3) - 1;
    return std::clamp<int64_t>(below(3) ? near : 1 + below(most), 1, most);
  }
  DType floating() {
    return pick({DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16});
  }
  double number() {
    const double x = std::normal_distribution<double>()(random_);
    return below(40) == 0 ? x * 8 : x;
  }
  // Numbers in a random layout: permuted, with gaps, with an offset, or with one row repeated.
  Tensor tensor(const Ints& sizes, DType dtype, bool ties = false) {
    return filled(sizes, dtype, [&] { return ties || !is_floating(dtype) ? double(below(7) - 3) : number(); });
  }
  Tensor indices(const Ints& sizes, int64_t count) {
    return filled(sizes, DType::kInt64, [&] { return double(below(count)); });
  }

 private:
  Tensor filled(const Ints& sizes, DType dtype, const std::function<double()>& value) {
    const size_t rank = sizes.size();
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), size_t{0});
    const int64_t way = below(5), step = way == 1 ? 1 + below(3) : 1, lead = way == 2 ? 1 + below(7) : 0;
    if (way == 3) std::shuffle(order.begin(), order.end(), random_);
    Ints strides(rank);
    int64_t next = step;
    for (size_t i = rank; i-- > 0;) {
      strides[order[i]] = next;
      next *= std::max<int64_t>(sizes[order[i]], 1) + (way == 1 ? below(3) : 0);
    }
    Tensor all = Tensor::empty(Ints{next + lead}, dtype);
    for (int64_t i = 0; i < next + lead; ++i) set_element(all, {i}, 99);  // shows up if a kernel reads outside the view
    Tensor made = all.as_strided(sizes, strides, lead);
    each_index(sizes, [&](const Ints& index) { set_element(made, index, value()); });
    if (way == 4 && rank > 0) {
      const size_t d = static_cast<size_t>(below(static_cast<int64_t>(rank)));
      strides[d] = 0;
      made = made.as_strided(sizes, strides, lead);
    }
    return made;
  }

  std::mt19937_64 random_;
};

std::vector<Tensor> call(const char* name, std::vector<Value> arguments) {
  const auto op = find_operator(name);
  REQUIRE_MESSAGE(op, name);
  arguments.resize(op->schema().arguments.size());
  check_arguments(op->schema(), arguments);
  std::vector<Value> results(op->schema().results.size());
  op->call(arguments, results);
  std::vector<Tensor> tensors;
  for (Value& result : results) tensors.push_back(result.tensor());
  return tensors;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-52;
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}
// Half types are summed in float32.
double sum_epsilon(DType dtype) { return dtype == DType::kFloat64 ? 0x1p-52 : 0x1p-23; }

// The expected value at an index and the sum of its terms' absolute values. roundings: how many roundings of that sum
// the result may be off.
struct Number {
  double value, magnitude;
};
void compare(const Tensor& got, const Ints& sizes, DType dtype, double roundings,
             const std::function<Number(const Ints&)>& want) {
  REQUIRE(Ints(got.sizes().begin(), got.sizes().end()) == sizes);
  REQUIRE(got.dtype() == dtype);
  // Subnormal numbers may become zero.
  const double tiny = dtype == DType::kFloat16 ? 0x1p-24 : 0x1p-125;
  each_index(sizes, [&](const Ints& index) {
    const Number n = want(index);
    const double x = element(got, index),
                 allowed = 2 * epsilon(dtype) * std::abs(n.value) + roundings * sum_epsilon(dtype) * n.magnitude + tiny;
    if (std::isnan(n.value)) {
      if (!std::isnan(x)) CHECK_MESSAGE(std::isnan(x), "at " << to_string(index));
    } else if (!is_floating(dtype) || roundings == 0) {
      if (x != n.value) CHECK_MESSAGE(x == n.value, "at " << to_string(index));
    } else if (!(std::abs(x - n.value) <= allowed)) {
      CHECK_MESSAGE(x == doctest::Approx(n.value).epsilon(0), "at " << to_string(index) << ", allowed " << allowed);
    }
  });
}

Ints sizes_of(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
Ints with(Ints index, size_t d, int64_t value) {
  index[d] = value;
  return index;
}

void draw_product(Draw& d) {
  const int64_t m = d.size(200), n = d.size(130), k = d.size(300);
  const DType dtype = d.floating();
  Tensor a = d.tensor({m, k}, dtype), b = d.tensor({k, n}, dtype),
         bias = d.tensor(d.pick<Ints>({{n}, {m, n}, {1, n}}), dtype);
  CAPTURE(describe(a));
  CAPTURE(describe(b));
  const auto sum = [&](const Ints& at) {
    Number s{0, 0};
    for (int64_t i = 0; i < k; ++i) {
      const double term = element(a, {at[0], i}) * element(b, {i, at[1]});
      s = {s.value + term, s.magnitude + std::abs(term)};
    }
    return s;
  };
  const double roundings = 4 + 0.5 * std::sqrt(double(k));
  if (d.below(2))
    return compare(call("aten::mm", {Value::borrow(a), Value::borrow(b)})[0], {m, n}, dtype, roundings, sum);
  compare(call("aten::addmm", {Value::borrow(bias), Value::borrow(a), Value::borrow(b), Value(0.5), Value(-2.0)})[0],
          {m, n}, dtype, roundings, [&](const Ints& at) {
            const Number s = sum(at);
            const double add =
                0.5 * element(bias, bias.dim() == 1 ? Ints{at[1]} : Ints{bias.size(0) == 1 ? 0 : at[0], at[1]});
            return Number{add - 2 * s.value, std::abs(add) + 2 * s.magnitude};
          });
}

void draw_convolution(Draw& d) {
  const size_t dims = static_cast<size_t>(1 + d.below(3));
  const int64_t groups = d.pick<int64_t>({1, 1, 2, 3}), in = groups * (1 + d.below(dims == 3 ? 5 : 20)),
                out = groups * (1 + d.below(dims == 3 ? 9 : 36));
  testing::ReferenceConvolution c;
  c.groups = groups;
  c.transposed = d.below(4) == 0;
  Ints input{1 + d.below(3), in}, weight = c.transposed ? Ints{in, out / groups} : Ints{out, in / groups};
  for (size_t i = 0; i < dims; ++i) {
    const int64_t kernel = 1 + d.below(3);
    c.stride.push_back(1 + d.below(2));
    c.padding.push_back(d.below(kernel));
    c.dilation.push_back(1 + d.below(2));
    c.output_padding.push_back(c.transposed ? d.below(c.stride.back()) : 0);
    weight.push_back(kernel);
    input.push_back(c.dilation.back() * (kernel - 1) + 1 + d.below(dims == 1 ? 70 : dims == 2 ? 12 : 4));
  }
  const DType dtype = d.pick({DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kBFloat16});
  Tensor x = d.tensor(input, dtype), w = d.tensor(weight, dtype), b = d.tensor({out}, dtype);
  if (d.below(3) == 0) x = testing::channels_last(x);
  CAPTURE(describe(x));
  CAPTURE(describe(w));
  const bool biased = d.below(2);
  const testing::Reference want = testing::reference_convolution(x, w, biased ? &b : nullptr, c);
  const Tensor got = cpu::convolution(x, w, biased ? &b : nullptr, c.stride, c.padding, c.dilation, c.transposed,
                                      c.output_padding, groups);
  compare(got, sizes_of(want.value), dtype, 4 + 0.5 * std::sqrt(double(w.numel())), [&](const Ints& at) {
    return Number{element(want.value, at), element(want.magnitude, at)};
  });
}

void draw_attention(Draw& d) {
  const int64_t batch = 1 + d.below(2), heads = 1 + d.below(3), queries = d.size(130), keys = d.size(150),
                size = d.size(80);
  const DType dtype = d.pick({DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kBFloat16});
  // Views of one tensor with queries, keys and values, as in models.
  const int64_t longest = std::max(queries, keys);
  Tensor all = d.tensor({batch, longest, 3, heads, size}, dtype);
  const auto part = [&](int64_t which, int64_t tokens) {
    return all.as_strided(Ints{batch, heads, tokens, size},
                          Ints{all.stride(0), all.stride(3), all.stride(1), all.stride(4)},
                          all.storage_offset() + which * all.stride(2));
  };
  const Tensor q = part(0, queries), k = part(1, keys), v = part(2, keys);
  const bool causal = d.below(2);
  CAPTURE(describe(q));
  CAPTURE(describe(k));
  CAPTURE(causal);
  const Tensor got =
      std::get<0>(cpu::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, nullptr, std::nullopt));
  const double scale = 1 / std::sqrt(double(size));
  std::vector<double> weights(static_cast<size_t>(keys));
  Ints row;
  double total = 0;
  // Half probabilities are rounded before they are multiplied with values.
  const double rounding = 16 + double(size) + epsilon(dtype) / sum_epsilon(dtype) * (dtype == DType::kBFloat16 ? 2 : 0);
  compare(got, {batch, heads, queries, size}, dtype, rounding, [&](const Ints& at) {
    if (Ints now{at[0], at[1], at[2]}; now != row) {
      row = now;
      double most = -INFINITY;
      for (int64_t j = 0; j < keys; ++j) {
        double score = 0;
        for (int64_t e = 0; e < size; ++e)
          score += element(q, {at[0], at[1], at[2], e}) * element(k, {at[0], at[1], j, e});
        weights[static_cast<size_t>(j)] = causal && j > at[2] ? -INFINITY : score * scale;
        most = std::max(most, weights[static_cast<size_t>(j)]);
      }
      total = 0;
      for (double& w : weights) total += w = std::exp(w - most);
    }
    Number sum{0, 0};
    for (int64_t j = 0; j < keys; ++j) {
      const double term = weights[static_cast<size_t>(j)] / total * element(v, {at[0], at[1], j, at[3]});
      sum = {sum.value + term, sum.magnitude + std::abs(term) * 8};
    }
    return sum;
  });
}

void draw_reduction(Draw& d) {
  const Ints sizes{1 + d.below(6), d.size(200), 1 + d.below(40)};
  const DType dtype = d.floating();
  Tensor x = d.tensor(sizes, dtype);
  const size_t dim = static_cast<size_t>(d.below(3));
  CAPTURE(describe(x));
  CAPTURE(dim);
  const int64_t n = sizes[dim];
  const auto line = [&](Ints at) {
    std::vector<double> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(element(x, with(at, dim, i)));
    return values;
  };
  const Ints kept = with(sizes, dim, 1);
  const Value::Ints dims{static_cast<int64_t>(dim)};
  const double roundings = 4 + std::sqrt(double(n));
  const auto sum = [&](const Ints& at) {
    Number s{0, 0};
    for (const double v : line(at)) s = {s.value + v, s.magnitude + std::abs(v)};
    return s;
  };
  compare(call("aten::sum.dim_IntList", {Value::borrow(x), dims, true})[0], kept, dtype, roundings, sum);
  compare(call("aten::amax", {Value::borrow(x), dims, true})[0], kept, dtype, 0, [&](const Ints& at) {
    const auto values = line(at);
    return Number{*std::max_element(values.begin(), values.end()), 0};
  });
  compare(call("aten::var.correction", {Value::borrow(x), dims, Value(1.0), true})[0], kept, dtype, 8 + roundings,
          [&](const Ints& at) {
            if (n == 1) return Number{NAN, 0};  // zero degrees of freedom
            const double mean = sum(at).value / double(n), all = sum(at).magnitude / double(n);
            double squares = 0;
            for (const double v : line(at)) squares += (v - mean) * (v - mean);
            return Number{squares / double(n - 1), squares / double(n - 1) + all * all * 1e-3};
          });
  compare(call("aten::_softmax", {Value::borrow(x), int64_t(dim), false})[0], sizes, dtype, 16 + roundings,
          [&](const Ints& at) {
            const auto values = line(at);
            const double most = *std::max_element(values.begin(), values.end());
            double total = 0;
            for (const double v : values) total += std::exp(v - most);
            const double p = std::exp(values[static_cast<size_t>(at[dim])] - most) / total;
            return Number{p, p * (1 + most - values[static_cast<size_t>(at[dim])])};
          });
  compare(call("aten::cumsum", {Value::borrow(x), int64_t(dim)})[0], sizes, dtype,
          4 + double(n) * (dtype == DType::kFloat64 ? 1 : epsilon(dtype) / sum_epsilon(dtype)), [&](const Ints& at) {
            Number s{0, 0};
            for (int64_t i = 0; i <= at[dim]; ++i) {
              const double v = element(x, with(at, dim, i));
              s = {s.value + v, s.magnitude + std::abs(v)};
            }
            return s;
          });
}

void draw_order(Draw& d) {
  const Ints sizes{1 + d.below(9), d.size(300)};
  const DType dtype = d.pick({DType::kFloat32, DType::kFloat16, DType::kInt64, DType::kInt8, DType::kFloat64});
  const bool descending = d.below(2);
  Tensor x = d.tensor(sizes, dtype, d.below(2));
  const size_t dim = static_cast<size_t>(d.below(2));
  CAPTURE(describe(x));
  CAPTURE(dim);
  CAPTURE(descending);
  const int64_t n = sizes[dim], k = 1 + d.below(n);
  std::vector<int64_t> order(static_cast<size_t>(n));
  Ints row;
  const auto ordered = [&](const Ints& at) {  // stable
    if (Ints now = with(at, dim, 0); now != row) {
      row = now;
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const double l = element(x, with(at, dim, a)), r = element(x, with(at, dim, b));
        return descending ? l > r : l < r;
      });
    }
    return order[static_cast<size_t>(at[dim])];
  };
  const auto sorted = call("aten::sort.stable", {Value::borrow(x), true, int64_t(dim), descending});
  compare(sorted[1], sizes, DType::kInt64, 0, [&](const Ints& at) { return Number{double(ordered(at)), 0}; });
  const auto value = [&](const Ints& at) { return Number{element(x, with(at, dim, ordered(at))), 0}; };
  compare(sorted[0], sizes, dtype, 0, value);
  const auto top = call("aten::topk", {Value::borrow(x), k, int64_t(dim), descending, true});
  compare(top[0], with(sizes, dim, k), dtype, 0, value);
  // Any of several equal elements may be chosen.
  compare(top[1], with(sizes, dim, k), DType::kInt64, 0, [&](const Ints& at) {
    const double chosen = element(top[1], at);
    CHECK(element(x, with(at, dim, int64_t(chosen))) == value(at).value);
    return Number{chosen, 0};
  });
}

void draw_places(Draw& d) {
  const Ints sizes{1 + d.below(5), d.size(80), 1 + d.below(20)};
  const DType dtype = d.pick({DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUInt8});
  const size_t dim = static_cast<size_t>(d.below(3));
  const int64_t n = sizes[dim], taken = 1 + d.below(2 * n);
  Tensor x = d.tensor(sizes, dtype, true), at_places = d.indices(with(sizes, dim, taken), n),
         list = d.indices({taken}, n), source = d.tensor(with(sizes, dim, taken), dtype, true);
  CAPTURE(describe(x));
  CAPTURE(describe(at_places));
  const auto place = [&](const Ints& at) { return int64_t(element(at_places, at)); };
  compare(call("aten::gather", {Value::borrow(x), int64_t(dim), Value::borrow(at_places)})[0], with(sizes, dim, taken),
          dtype, 0, [&](const Ints& at) {
            return Number{element(x, with(at, dim, place(at))), 0};
          });
  compare(call("aten::index_select", {Value::borrow(x), int64_t(dim), Value::borrow(list)})[0], with(sizes, dim, taken),
          dtype, 0, [&](const Ints& at) {
            return Number{element(x, with(at, dim, int64_t(element(list, {at[dim]})))), 0};
          });
  // Small integers have exact sums, modulo 256 in bytes.
  compare(
      call("aten::scatter_add", {Value::borrow(x), int64_t(dim), Value::borrow(at_places), Value::borrow(source)})[0],
      sizes, dtype, 0, [&](const Ints& at) {
        double sum = element(x, at);
        for (int64_t i = 0; i < taken; ++i)
          if (place(with(at, dim, i)) == at[dim]) sum += element(source, with(at, dim, i));
        return Number{dtype == DType::kUInt8 ? double(uint8_t(int64_t(sum))) : sum, 0};
      });
  std::vector<Value> parts{Value::borrow(x), Value::borrow(source)};
  compare(call("aten::cat", {Value::List(std::move(parts)), int64_t(dim)})[0], with(sizes, dim, n + taken), dtype, 0,
          [&](const Ints& at) {
            return Number{at[dim] < n ? element(x, at) : element(source, with(at, dim, at[dim] - n)), 0};
          });
}

void draw_elements(Draw& d) {
  const Ints sizes{1 + d.below(4), d.size(300), d.size(40)};
  const DType dtype = d.pick({DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, DType::kInt32});
  Ints other = sizes;
  if (d.below(2)) other[static_cast<size_t>(d.below(3))] = 1;
  Tensor x = d.tensor(sizes, dtype), y = d.tensor(other, dtype);
  CAPTURE(describe(x));
  CAPTURE(describe(y));
  const auto of_y = [&](Ints at) {
    for (size_t i = 0; i < 3; ++i)
      if (other[i] == 1) at[i] = 0;
    return element(y, at);
  };
  compare(call("aten::mul.Tensor", {Value::borrow(x), Value::borrow(y)})[0], sizes, dtype, 1, [&](const Ints& at) {
    const double v = element(x, at) * of_y(at);
    return Number{v, std::abs(v)};
  });
  compare(call("aten::add.Tensor", {Value::borrow(x), Value::borrow(y), Value(int64_t{3})})[0], sizes, dtype, 2,
          [&](const Ints& at) {
            return Number{element(x, at) + 3 * of_y(at), std::abs(element(x, at)) + 3 * std::abs(of_y(at))};
          });
  compare(call("aten::clone", {Value::borrow(x)})[0], sizes, dtype, 0, [&](const Ints& at) {
    return Number{element(x, at), 0};
  });
}

void draw_many(void (*draw)(Draw&), uint64_t count) {
  const uint64_t seed = setting("SCONCE_SEED", 1);
  count = setting("SCONCE_DRAWS", count);
  const int threads = kernel_threads();
  for (uint64_t i = 0; i < count; ++i) {
    CAPTURE(seed);
    CAPTURE(i);
    set_kernel_threads(i % 2 ? 2 : 1);
    Draw d(seed * 1'000'003 + i);
    draw(d);
  }
  set_kernel_threads(threads);
}

}  // namespace

TEST_CASE("draws: products") { draw_many(draw_product, 60); }
TEST_CASE("draws: convolutions") { draw_many(draw_convolution, 60); }
TEST_CASE("draws: attention") { draw_many(draw_attention, 25); }
TEST_CASE("draws: reductions, softmax and scans") { draw_many(draw_reduction, 60); }
TEST_CASE("draws: sorting and selection") { draw_many(draw_order, 60); }
TEST_CASE("draws: places in tensors") { draw_many(draw_places, 60); }
TEST_CASE("draws: arithmetic, broadcast, copies") { draw_many(draw_elements, 60); }

}  // namespace sconce::custom_ops
