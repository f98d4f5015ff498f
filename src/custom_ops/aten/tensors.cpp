// Operators that make, view and copy tensors.
#include <algorithm>
#include <cstdio>
#include <limits>

#include "sconce/check.h"
#include "src/cpu/elementwise/functions.h"
#include "src/cpu/linalg/windows.h"
#include "src/cpu/random/ranges.h"
#include "src/custom_ops/aten/aten.h"
#include "src/custom_ops/operator/boxed.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/dimensions.h"
#include "src/tensor/fill.h"
#include "src/tensor/strided_loop.h"

namespace sconce::custom_ops {
namespace {

Tensor itself(const Tensor& self) { return self; }
void copy_in_place(Tensor& self, const Tensor& source, bool) { copy(source, self); }
void zero_in_place(Tensor& self) { zero(self); }
void fill_in_place(Tensor& self, Scalar value) { fill(self, value); }
Tensor filled(const Tensor& self, Scalar value) {
  Tensor out = empty_like(self);
  fill(out, value);
  return out;
}
Tensor zeros(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::full(size, Scalar(int64_t{0}), dtype.value_or(kDefaultDType), layout, device, pin_memory);
}
Tensor ones(IntSpan size, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::full(size, Scalar(int64_t{1}), dtype.value_or(kDefaultDType), layout, device, pin_memory);
}
template <int kValue>
Tensor constant_like(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
                     OptEnum memory_format) {
  return cpu::full_like(self, Scalar(int64_t{kValue}), dtype, layout, device, pin_memory, memory_format);
}
Tensor to_dtype_only(const Tensor& self, DType dtype, bool non_blocking, bool copy, OptEnum memory_format) {
  return cpu::to(self, dtype, {}, {}, {}, non_blocking, copy, memory_format);
}
Tensor to_copy(const Tensor& self, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory,
               bool non_blocking, OptEnum memory_format) {
  return cpu::to(self, dtype, layout, device, pin_memory, non_blocking, true, memory_format);
}
Tensor expand(const Tensor& self, IntSpan size, bool) { return cpu::expand(self, size); }
bool is_pinned(const Tensor&, OptDevice) { return false; }
Tensor pad(const Tensor& self, IntSpan pad, std::string_view mode, std::optional<double> value) {
  return cpu::pad(self, pad, mode, value);
}
// Windows, whose last four arguments describe the new tensor.
Tensor bartlett(int64_t length, bool periodic, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return cpu::bartlett_window(length, periodic, {dtype, layout, device, pin});
}
Tensor bartlett_periodic(int64_t length, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return bartlett(length, true, dtype, layout, device, pin);
}
Tensor blackman(int64_t length, bool periodic, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return cpu::blackman_window(length, periodic, {dtype, layout, device, pin});
}
Tensor blackman_periodic(int64_t length, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return blackman(length, true, dtype, layout, device, pin);
}
Tensor hamming_full(int64_t length, bool periodic, double alpha, double beta, OptType dtype, OptEnum layout,
                    OptDevice device, OptEnum pin) {
  return cpu::hamming_window(length, periodic, alpha, beta, {dtype, layout, device, pin});
}
Tensor hamming_alpha(int64_t length, bool periodic, double alpha, OptType dtype, OptEnum layout, OptDevice device,
                     OptEnum pin) {
  return hamming_full(length, periodic, alpha, 0.46, dtype, layout, device, pin);
}
Tensor hamming(int64_t length, bool periodic, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return hamming_alpha(length, periodic, 0.54, dtype, layout, device, pin);
}
Tensor hamming_periodic(int64_t length, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return hamming(length, true, dtype, layout, device, pin);
}
Tensor kaiser_beta(int64_t length, bool periodic, double beta, OptType dtype, OptEnum layout, OptDevice device,
                   OptEnum pin) {
  return cpu::kaiser_window(length, periodic, beta, {dtype, layout, device, pin});
}
Tensor kaiser(int64_t length, bool periodic, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return kaiser_beta(length, periodic, 12.0, dtype, layout, device, pin);
}
Tensor kaiser_periodic(int64_t length, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return kaiser(length, true, dtype, layout, device, pin);
}
Tensor fftfreq(int64_t n, double d, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return cpu::fft_fftfreq(n, d, {dtype, layout, device, pin});
}
Tensor rfftfreq(int64_t n, double d, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin) {
  return cpu::fft_rfftfreq(n, d, {dtype, layout, device, pin});
}

Tensor view_copy(const Tensor& self, IntSpan size) {
  const Tensor shaped = cpu::reshape(self, size);  // copies already if no view has these sizes
  return shaped.storage() == self.storage() ? clone_contiguous(shaped) : shaped;
}

// Tokens: PyTorch uses them to order checks of constraints. Their value does not matter.
Tensor dep_token(OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory, OptEnum) {
  return zeros({}, dtype, layout, device, pin_memory);
}
Tensor assert_number(Scalar self, std::string_view message, const Tensor& token) {
  SCONCE_CHECK(self.to_complex() != 0.0, kInvalidArgument, message);
  return clone(token);
}
Tensor check_range(Scalar size, std::optional<int64_t> min, std::optional<int64_t> max, const Tensor& token) {
  const int64_t value = size.to_int();
  const int64_t low = min.value_or(std::numeric_limits<int64_t>::min()),
                high = max.value_or(std::numeric_limits<int64_t>::max());
  SCONCE_CHECK(value >= low && value <= high, kInvalidArgument, "Invalid value range for ", value, " between [", low,
               ", ", high, "].");
  return clone(token);
}
void assert_tensor_metadata(const Tensor& a, std::optional<IntSpan> size, std::optional<IntSpan> stride, OptType dtype,
                            OptDevice device, OptEnum layout) {
  const auto equal = [](IntSpan x, IntSpan y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  SCONCE_CHECK(!size || equal(*size, a.sizes()), kInvalidArgument,
               "Tensor sizes mismatch! Expected: ", size ? to_string(*size) : "", ", Got: ", to_string(a.sizes()));
  SCONCE_CHECK(!stride || equal(*stride, a.strides()), kInvalidArgument,
               "Tensor strides mismatch! Expected: ", stride ? to_string(*stride) : "",
               ", Got: ", to_string(a.strides()));
  SCONCE_CHECK(!dtype || *dtype == a.dtype(), kInvalidArgument,
               "Tensor dtype mismatch! Expected: ", dtype ? dtype_name(*dtype) : "", ", Got: ", dtype_name(a.dtype()));
  SCONCE_CHECK(!device || device->type == a.device().type, kInvalidArgument,
               "Tensor device mismatch! Expected: ", device ? to_string(*device) : "",
               ", Got: ", to_string(a.device()));
  check_factory("Tensor layout mismatch!", layout, {}, {});
}
// ATen marks a view as negative; Sconce negates.
Tensor negated(const Tensor& self) { return cpu::neg(self); }
Tensor negated_copy(const Tensor& self) { return contiguous(cpu::neg(self)); }
// Zeros of sizes [batch of self..., sizes of other...].
Tensor zeros_with_feature(const Tensor& self, const Tensor& other, int64_t batch_dims) {
  SCONCE_CHECK(batch_dims >= 0 && batch_dims <= self.dim(), kInvalidArgument,
               "_new_zeros_with_same_feature_meta: self_num_batch_dims ", batch_dims, " of a tensor of ", self.dim(),
               " dimensions");
  Shape sizes(self.sizes().first(static_cast<size_t>(batch_dims)));
  for (const int64_t size : other.sizes()) sizes.push_back(size);
  return zeros(sizes, other.dtype(), {}, {}, {});
}
// Not pinned: copies from plain host memory to a device are staged.
Tensor pinned(const Tensor& self, OptDevice) { return clone_preserve_strides(self); }
void print(std::string_view text) { std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data()); }
Tensor reshape_alias_copy(const Tensor& self, IntSpan size, IntSpan stride) {
  return clone_contiguous(cpu::as_strided(self, size, stride, self.storage_offset()));
}
Tensor range(Scalar start, Scalar end, OptType dtype, OptEnum layout, OptDevice device, OptEnum pin_memory) {
  return cpu::range(start, end, Scalar(int64_t{1}), dtype, layout, device, pin_memory);
}
// Functional resize_ and set_: they change a copy.
Tensor resized(const Tensor& self, IntSpan size, OptEnum memory_format) {
  Tensor out = clone(self);
  const int64_t before = out.numel();
  cpu::resize_(out, size, memory_format);
  if (out.numel() > before) {  // ATen leaves the new values undefined
    const int64_t rest[] = {out.numel() - before}, one[] = {1};
    Tensor added = out.as_strided(rest, one, before);
    zero(added);
  }
  return out;
}
Tensor emptied(const Tensor& self) {
  const int64_t none[] = {0};
  return Tensor::empty(none, self.dtype());
}
Tensor set_to(const Tensor& self, const Tensor& source) {
  Tensor out = self;
  cpu::set__source_Tensor(out, source);
  return out;
}
// The tensor that src is a slice of: src's storage, with self's view.
Tensor slice_inverse(const Tensor& self, const Tensor& src, int64_t, std::optional<int64_t>, std::optional<int64_t>,
                     int64_t) {
  return self.as_strided(src.sizes(), src.strides(), src.storage_offset());
}

// clang-format off
constexpr AtenRow kRows[] = {
    {"aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()", boxed_anywhere<assert_tensor_metadata>, kAnyDevice},
    {"aten::_conj(Tensor(a) self) -> Tensor(a)", boxed<cpu::conj>},
    {"aten::_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor", boxed<assert_number>},
    {"aten::_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor", boxed<check_range>},
    {"aten::_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor", boxed<check_range>},
    {"aten::_lazy_clone(Tensor self) -> Tensor", boxed_anywhere<clone_preserve_strides>, kAnyDevice},
    {"aten::_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<dep_token>},
    {"aten::_neg_view(Tensor(a) self) -> Tensor(a)", boxed<negated>},
    {"aten::_neg_view_copy(Tensor self) -> Tensor", boxed<negated_copy>},
    {"aten::_new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor", boxed<zeros_with_feature>},
    {"aten::_pin_memory(Tensor self, Device? device=None) -> Tensor", boxed_anywhere<pinned>, kAnyDevice},
    {"aten::_print(str s) -> ()", boxed_anywhere<print>, kAnyDevice},
    {"aten::_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor", boxed_anywhere<reshape_alias_copy>, kAnyDevice},
    {"aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor", boxed<to_copy>},
    {"aten::alias(Tensor(a) self) -> Tensor(a)", boxed_anywhere<itself>, kAnyDevice},
    {"aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", boxed_anywhere<cpu::as_strided>, kAnyDevice},
    {"aten::bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<bartlett_periodic>},
    {"aten::bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<bartlett>},
    {"aten::blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<blackman_periodic>},
    {"aten::blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<blackman>},
    {"aten::cat(Tensor[] tensors, int dim=0) -> Tensor", boxed<cpu::cat>},
    {"aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", boxed_anywhere<cpu::clone_in_format>, kAnyDevice},
    {"aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", boxed_anywhere<cpu::contiguous_in_format>, kAnyDevice},
    {"aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", boxed_in_place_anywhere<copy_in_place>, kAnyDevice},
    {"aten::detach(Tensor(a) self) -> Tensor(a)", boxed_anywhere<itself>, kAnyDevice},
    {"aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::empty>},
    {"aten::empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<static_cast<Tensor (*)(const Tensor&, OptType, OptEnum, OptDevice, OptEnum, OptEnum)>(cpu::empty_like)>},
    {"aten::empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::empty_strided>},
    {"aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", boxed_anywhere<expand>, kAnyDevice},
    {"aten::fft_fftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<fftfreq>},
    {"aten::fft_rfftfreq(int n, float d=1., *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<rfftfreq>},
    {"aten::fill.Scalar(Tensor self, Scalar value) -> Tensor", boxed_anywhere<filled>, kAnyDevice},
    {"aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", boxed_in_place_anywhere<fill_in_place>, kAnyDevice},
    {"aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", boxed_anywhere<cpu::flatten>, kAnyDevice},
    {"aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<static_cast<Tensor (*)(IntSpan, Scalar, OptType, OptEnum, OptDevice, OptEnum)>(cpu::full)>},
    {"aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<cpu::full_like>},
    {"aten::hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<hamming_periodic>},
    {"aten::hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<hamming>},
    {"aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<hamming_alpha>},
    {"aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<hamming_full>},
    {"aten::is_pinned(Tensor self, Device? device=None) -> bool", boxed_anywhere<is_pinned>, kAnyDevice},
    {"aten::kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<kaiser_periodic>},
    {"aten::kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<kaiser_beta>},
    {"aten::kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<kaiser>},
    {"aten::lift_fresh(Tensor(a) self) -> Tensor(a)", boxed_anywhere<itself>, kAnyDevice},
    {"aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)", boxed_anywhere<cpu::narrow>, kAnyDevice},
    {"aten::new_empty(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::new_empty>},
    {"aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::new_full>},
    {"aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::new_zeros>},
    {"aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<ones>},
    {"aten::ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<constant_like<1>>},
    {"aten::pad(Tensor self, SymInt[] pad, str mode=\"constant\", float? value=None) -> Tensor", boxed<pad>},
    {"aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)", boxed_anywhere<cpu::permute>, kAnyDevice},
    {"aten::range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<range>},
    {"aten::range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<cpu::range>},
    {"aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", boxed_anywhere<cpu::reshape>, kAnyDevice},
    {"aten::resize(Tensor self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor", boxed<resized>},
    {"aten::resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", boxed_in_place<cpu::resize_>},
    {"aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)", boxed_in_place<cpu::resize_as_>},
    {"aten::resolve_conj(Tensor(a) self) -> Tensor(a)", boxed_anywhere<itself>, kAnyDevice},
    {"aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)", boxed_anywhere<cpu::select>, kAnyDevice},
    {"aten::set(Tensor self) -> Tensor", boxed<emptied>},
    {"aten::set.source_Tensor(Tensor self, Tensor source) -> Tensor", boxed_anywhere<set_to>, kAnyDevice},
    {"aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)", boxed_in_place<cpu::set__source_Tensor>},
    {"aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", boxed_anywhere<cpu::slice_Tensor>, kAnyDevice},
    {"aten::slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", boxed_anywhere<slice_inverse>, kAnyDevice},
    {"aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]", boxed_anywhere<cpu::split>, kAnyDevice},
    {"aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]", boxed_anywhere<cpu::split_with_sizes>, kAnyDevice},
    {"aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", boxed_anywhere<cpu::split_with_sizes_copy>, kAnyDevice},
    {"aten::squeeze(Tensor(a) self) -> Tensor(a)", boxed_anywhere<cpu::squeeze>, kAnyDevice},
    {"aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", boxed_anywhere<cpu::squeeze_dim>, kAnyDevice},
    {"aten::stack(Tensor[] tensors, int dim=0) -> Tensor", boxed_anywhere<cpu::stack>, kAnyDevice},
    {"aten::t(Tensor(a) self) -> Tensor(a)", boxed_anywhere<cpu::t>, kAnyDevice},
    {"aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", boxed<to_dtype_only>},
    {"aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)", boxed<cpu::to>},
    {"aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", boxed_anywhere<cpu::transpose>, kAnyDevice},
    {"aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", boxed_anywhere<cpu::unbind>, kAnyDevice},
    {"aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", boxed_anywhere<cpu::unsqueeze>, kAnyDevice},
    {"aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", boxed_anywhere<cpu::view>, kAnyDevice},
    {"aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", boxed_anywhere<cpu::view_dtype>, kAnyDevice},
    {"aten::view_as_complex(Tensor(a) self) -> Tensor(a)", boxed_anywhere<cpu::view_as_complex>, kAnyDevice},
    {"aten::view_as_real(Tensor(a) self) -> Tensor(a)", boxed_anywhere<cpu::view_as_real>, kAnyDevice},
    {"aten::view_copy(Tensor self, SymInt[] size) -> Tensor", boxed_anywhere<view_copy>, kAnyDevice},
    {"aten::zero_(Tensor(a!) self) -> Tensor(a!)", boxed_in_place_anywhere<zero_in_place>, kAnyDevice},
    {"aten::zeros(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor", boxed<zeros>},
    {"aten::zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor", boxed<constant_like<0>>},
};
// clang-format on

}  // namespace

std::span<const AtenRow> aten_tensor_rows() { return kRows; }

}  // namespace sconce::custom_ops
