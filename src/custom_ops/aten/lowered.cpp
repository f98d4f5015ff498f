// Operators that Inductor compiles itself, but calls by name if told to compile nothing (fallback_by_default). Those
// of max pooling match torch/_inductor/inductor_prims.py, torch 2.15: a position is its offset in the window, as one
// byte.
#include "sconce/check.h"
#include "src/cpu/random/ranges.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"

namespace sconce::custom_ops {
namespace {

Tensor int_product(const Tensor& self, const Tensor& mat2) {
  SCONCE_CHECK(self.dim() == 2 && mat2.dim() == 2, kInvalidArgument, "_int_mm: Expected matrices, got ", describe(self),
               " and ", describe(mat2));
  const int64_t sizes[] = {self.size(0), mat2.size(1)};
  Tensor out = Tensor::empty(sizes, DType::kInt32);
  cpu::_int_mm_out(out, self, mat2);
  return out;
}

Tensor iota(int64_t length, int64_t start, int64_t step, DType dtype, Device device, bool) {
  return cpu::arange(Scalar(start), Scalar(start + length * step), Scalar(step), dtype, std::nullopt, device,
                     std::nullopt);
}

// The windows of 2d or 3d pooling.
class Windows {
 public:
  Windows(IntSpan kernel, IntSpan stride, IntSpan padding, IntSpan dilation, IntSpan input)
      : kernel_(kernel),
        stride_(stride.empty() ? kernel : stride),
        padding_(padding),
        dilation_(dilation),
        input_(input) {
    const size_t rank = kernel.size();
    SCONCE_CHECK((rank == 2 || rank == 3) && stride_.size() == rank && padding.size() == rank &&
                     dilation.size() == rank && input.size() == rank,
                 kInvalidArgument, "low_memory_max_pool: lists of two or three numbers are needed, got kernel size ",
                 to_string(kernel), ", stride ", to_string(stride), ", padding ", to_string(padding), ", dilation ",
                 to_string(dilation), " and input size ", to_string(input));
    for (size_t d = 0; d < rank; ++d)
      SCONCE_CHECK(kernel[d] > 0 && dilation[d] > 0 && stride_[d] > 0 && input[d] > 0, kInvalidArgument,
                   "low_memory_max_pool: sizes, strides and dilations must be positive");
  }

  // Applies each(value, position of its window) to all elements of `from`, as int64; the result has element type To.
  template <class To, class Each>
  Tensor map(const Tensor& from, DType dtype, Each&& each) const {
    SCONCE_CHECK(from.dim() >= static_cast<int64_t>(rank()), kInvalidArgument,
                 "low_memory_max_pool: too few dimensions: ", describe(from));
    const Tensor all = contiguous(to_dtype(from, DType::kInt64));
    Tensor mapped = Tensor::empty(from.sizes(), dtype);
    int64_t sizes[3] = {}, place[3] = {};
    for (size_t d = 0; d < rank(); ++d) sizes[d] = from.size(from.dim() - static_cast<int64_t>(rank() - d));
    for (int64_t i = 0; i < all.numel(); ++i) {
      mapped.data_as<To>()[i] = static_cast<To>(each(all.data_as<int64_t>()[i], place));
      for (size_t d = rank(); d-- > 0 && ++place[d] == sizes[d];) place[d] = 0;
    }
    Tensor out = empty_like(from, dtype);
    copy(mapped, out);
    return out;
  }

  int64_t offset_of(int64_t index, const int64_t* place) const {
    int64_t result = 0, width = 1;
    for (size_t d = rank(); d-- > 0; index /= input_[d]) {
      const int64_t within = index % input_[d] - (place[d] * stride_[d] - padding_[d]);
      result += within / dilation_[d] * width;
      width *= kernel_[d];
    }
    return result;
  }
  int64_t index_of(int64_t offset, const int64_t* place) const {
    int64_t result = 0, width = 1;
    for (size_t d = rank(); d-- > 0; offset /= kernel_[d]) {
      result += (offset % kernel_[d] * dilation_[d] + place[d] * stride_[d] - padding_[d]) * width;
      width *= input_[d];
    }
    return result;
  }

 private:
  size_t rank() const noexcept { return kernel_.size(); }
  IntSpan kernel_, stride_, padding_, dilation_, input_;
};

std::array<Tensor, 2> max_pool_with_offsets(const Tensor& self, IntSpan kernel_size, IntSpan stride, IntSpan padding,
                                            IntSpan dilation, bool ceil_mode) {
  const size_t rank = kernel_size.size();
  SCONCE_CHECK((rank == 2 || rank == 3) && self.dim() >= static_cast<int64_t>(rank), kInvalidArgument,
               "low_memory_max_pool: a kernel size of two or three numbers is needed, got ", to_string(kernel_size),
               " for ", describe(self));
  const auto pool = rank == 2 ? cpu::max_pool2d_with_indices : cpu::max_pool3d_with_indices;
  auto [values, indices] = pool(self, kernel_size, stride, padding, dilation, ceil_mode);
  const Windows windows(kernel_size, stride, padding, dilation, self.sizes().last(rank));
  return {values, windows.map<int8_t>(indices, DType::kInt8, [&](int64_t index, const int64_t* place) {
            return windows.offset_of(index, place);
          })};
}

Tensor offsets_to_indices(const Tensor& self, IntSpan kernel_size, IntSpan input_size, IntSpan stride, IntSpan padding,
                          IntSpan dilation) {
  const Windows windows(kernel_size, stride, padding, dilation, input_size);
  return windows.map<int64_t>(self, DType::kInt64,
                              [&](int64_t offset, const int64_t* place) { return windows.index_of(offset, place); });
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_int_mm(Tensor self, Tensor mat2) -> Tensor", boxed<int_product>},
    {"aten::mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)", boxed<cpu::mkldnn_rnn_layer>},
    {"prims::_low_memory_max_pool_offsets_to_indices(Tensor self, SymInt[] kernel_size, SymInt[] input_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation) -> Tensor", boxed<offsets_to_indices>},
    {"prims::_low_memory_max_pool_with_offsets(Tensor self, SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode) -> (Tensor, Tensor)", boxed<max_pool_with_offsets>},
    {"prims::iota(SymInt length, *, SymInt start, SymInt step, ScalarType dtype, Device device, bool requires_grad) -> Tensor", boxed<iota>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_lowered_rows() { return kRows; }

}  // namespace sconce::custom_ops
