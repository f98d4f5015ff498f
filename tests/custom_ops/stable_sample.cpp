// A library of custom operators written with PyTorch's own headers, for op_library_test.cpp.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

using torch::stable::Tensor;

namespace {

// by * x, on several threads.
Tensor scale(Tensor x, double by) {
  Tensor in = torch::stable::contiguous(x);
  Tensor out = torch::stable::empty_like(in);
  const auto* from = static_cast<const float*>(in.const_data_ptr());
  auto* to = static_cast<float*>(out.mutable_data_ptr());
  torch::stable::parallel_for(0, in.numel(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<float>(by) * from[i];
  });
  return out;
}

// Writes its argument and returns it.
Tensor clear_(Tensor x) { return torch::stable::zero_(x); }

// x^T x, by calling ATen operators.
Tensor gram(Tensor x) { return torch::stable::matmul(torch::stable::transpose(x, 0, 1), x); }

// Describes every kind of argument that the stable ABI has, in one line.
std::string tell(Tensor x, std::optional<Tensor> maybe, std::vector<Tensor> many, int64_t n, std::optional<int64_t> m,
                 std::vector<double> reals, std::vector<int64_t> sizes, bool flag, std::string text,
                 torch::headeronly::ScalarType dtype, torch::stable::Device device, std::vector<std::string> words) {
  std::ostringstream line;
  line << x.dim() << (maybe ? " some " : " none ") << many.size() << " " << n << " " << m.value_or(-1);
  for (const double value : reals) line << " " << value;
  for (const int64_t value : sizes) line << " " << value;
  line << (flag ? " yes " : " no ") << text << " " << static_cast<int>(dtype)
       << (device.is_cpu() ? " cpu" : " elsewhere");
  for (const std::string& word : words) line << " " << word;
  return line.str();
}

std::tuple<Tensor, int64_t, bool, double> several(Tensor x) { return {x, x.numel(), true, 0.5}; }
std::vector<Tensor> twice(Tensor x) { return {x, torch::stable::clone(x)}; }
std::optional<Tensor> perhaps(Tensor x, bool give) { return give ? std::optional<Tensor>(x) : std::nullopt; }

Tensor fails(Tensor x, int64_t how) {
  if (how == 0) STD_TORCH_CHECK(false, "the sample fails on purpose");
  if (how == 1) throw std::runtime_error("a plain exception");
  if (how == 2) return torch::stable::matmul(x, torch::stable::new_zeros(x, {7, 7}));  // shapes do not fit
  torch::stable::parallel_for(0, 100, 1, [](int64_t, int64_t) { throw std::runtime_error("inside of a loop"); });
  return x;
}

}  // namespace

STABLE_TORCH_LIBRARY(stable_sample, m) {
  m.def("scale(Tensor x, float by=2.) -> Tensor");
  m.def("clear_(Tensor(a!) x) -> Tensor(a!)");
  m.def("gram(Tensor x) -> Tensor");
  m.def(
      "tell(Tensor x, Tensor? maybe, Tensor[] many, int n, int? m, float[] reals, int[] sizes, bool flag, str text, "
      "ScalarType dtype, Device device, str[] words) -> str");
  m.def("several(Tensor x) -> (Tensor, int, bool, float)");
  m.def("twice(Tensor x) -> Tensor[]");
  m.def("perhaps(Tensor x, bool give) -> Tensor?");
  m.def("fails(Tensor x, int how) -> Tensor");
  m.def("cuda_only(Tensor x) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(stable_sample, CPU, m) {
  m.impl("scale", TORCH_BOX(&scale));
  m.impl("clear_", TORCH_BOX(&clear_));
  m.impl("fails", TORCH_BOX(&fails));
}

STABLE_TORCH_LIBRARY_IMPL(stable_sample, CompositeExplicitAutograd, m) {
  m.impl("gram", TORCH_BOX(&gram));
  m.impl("tell", TORCH_BOX(&tell));
  m.impl("several", TORCH_BOX(&several));
  m.impl("twice", TORCH_BOX(&twice));
  m.impl("perhaps", TORCH_BOX(&perhaps));
}

STABLE_TORCH_LIBRARY_IMPL(stable_sample, CUDA, m) { m.impl("cuda_only", TORCH_BOX(&gram)); }
STABLE_TORCH_LIBRARY_IMPL(stable_sample, AutogradCPU, m) { m.impl("scale", TORCH_BOX(&gram)); }
