#include "src/cpu/convolution/onednn_convolution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>
#include <type_traits>

#include "src/cpu/convolution/direct/convolution_plan.h"
#include "src/cpu/onednn/mkldnn_weight.h"
#include "src/cpu/onednn/onednn_weight.h"
#include "src/cpu/onednn/weight_blocks.h"
#include "src/device/cpu_arena.h"

namespace sconce::onednn {
namespace {

using dnnl::memory;

// The layout of the tensor that the fusion reads.
enum class Other : int64_t { kNone, kSum, kLikeOutput, kPerChannel, kOne };

class Key {
 public:
  Key(const ConvolutionShape& shape, const ConvolutionOperands& operands, const ActivationView& output,
      std::array<int64_t, 6> rest) noexcept
      : base_(shape, operands, output), rest_(rest) {}
  uint64_t hash() const noexcept { return base_.hash() ^ hash_words(rest_); }
  friend bool operator==(const Key&, const Key&) noexcept = default;

 private:
  PlanKey base_;
  std::array<int64_t, 6> rest_;
};

struct Plan {
  Primitive primitive;
  WeightLayout weight;
  // Copies between such tensors and ones whose channels lie side by side; unusable if no copy is needed.
  Primitive input, output, old_output;
  size_t input_bytes = 0, output_bytes = 0;
  // Of a weight that is no constant; neither is usable if it is read as it lies.
  WeightBlocks blocks;
  Primitive order;
};

// [groups,] out, in, kernel. None where its layout cannot be said in the library's words.
std::optional<dnnl::memory::desc> weight_desc(const ConvolutionShape& shape, const WeightView& weight) {
  if (weight.blocked) return blocked_desc(*weight.blocked, false);
  dnnl::memory::dims dims, strides;
  const auto add = [&](int64_t size, int64_t stride) {
    dims.push_back(size);
    strides.push_back(stride);
    return stride > 0 || size == 1;
  };
  bool sound = shape.groups == 1 || add(shape.groups, weight.group);
  sound = add(shape.out_group(), weight.out) && sound;
  sound = add(shape.in_group(), weight.in) && sound;
  for (size_t d = 3 - static_cast<size_t>(shape.spatial); d < 3; ++d)
    sound = add(shape.kernel[d], weight.kernel[d]) && sound;
  // A dimension of one element may have any stride except 0.
  for (int64_t& stride : strides) stride = std::max<int64_t>(stride, 1);
  if (!sound) return std::nullopt;
  return dnnl::memory::desc(dims, data_type(weight.dtype), strides);
}

struct Geometry {
  memory::dims input, output, stride, dilation, before, after;
};

Geometry geometry(const ConvolutionShape& s) {
  Geometry g;
  g.input = {s.batch, s.in_channels};
  g.output = {s.batch, s.out_channels};
  for (size_t d = 3 - static_cast<size_t>(s.spatial); d < 3; ++d) {
    g.input.push_back(s.input[d]);
    g.output.push_back(s.output[d]);
    g.stride.push_back(s.stride[d]);
    g.dilation.push_back(s.dilation[d] - 1);
    g.before.push_back(s.padding[d]);
    g.after.push_back(s.padding[d] - (s.transposed ? s.output_padding[d] : 0));
  }
  return g;
}

memory::desc desc(const memory::dims& dims, const ActivationView& view) {
  memory::dims strides{std::max<int64_t>(view.batch, 1), std::max<int64_t>(view.channel, 1)};
  for (size_t d = 5 - dims.size(); d < 3; ++d) strides.push_back(std::max<int64_t>(view.pixel[d], 1));
  return {dims, data_type(view.dtype), strides};
}

memory::desc channels_last(const memory::dims& dims, DType dtype) {
  using Tag = memory::format_tag;
  return {dims, data_type(dtype), dims.size() == 3 ? Tag::nwc : dims.size() == 4 ? Tag::nhwc : Tag::ndhwc};
}

// Strides of dimensions of more than one element: those of the format without gaps.
bool is_channels_last(const ActivationView& v, int64_t batch, int64_t channels, const Dims3& pixels) {
  int64_t stride = channels;
  if (channels > 1 && v.channel != 1) return false;
  for (size_t d = 3; d-- > 0;) {
    if (pixels[d] > 1 && v.pixel[d] != stride) return false;
    stride *= pixels[d];
  }
  return batch == 1 || v.batch == stride;
}

bool has_overlap(const ActivationView& v, int64_t batch, int64_t channels, const Dims3& pixels) {
  bool overlap = (batch > 1 && v.batch == 0) || (channels > 1 && v.channel == 0);
  for (size_t d = 0; d < 3; ++d) overlap |= pixels[d] > 1 && v.pixel[d] == 0;
  return overlap;
}

std::optional<Other> place(const ConvolutionShape& s, const ConvolutionOperands& o, const ActivationView& out) {
  const ActivationView& v = o.other;
  if (o.fusion.combination == Combination::kNone) return Other::kNone;
  if (v.dtype != out.dtype) return std::nullopt;
  if (v.data == out.data) {
    if (o.fusion.combination == Combination::kAdd) return Other::kSum;
    return std::nullopt;
  }
  const bool no_pixel = v.pixel == Dims3{} && v.batch == 0;
  if (no_pixel && v.channel == 0) return Other::kOne;
  if (no_pixel && v.channel == 1) return Other::kPerChannel;
  const auto same = [](int64_t size, int64_t a, int64_t b) { return size == 1 || a == b; };
  bool like = same(s.batch, v.batch, out.batch) && same(s.out_channels, v.channel, out.channel);
  for (size_t d = 0; d < 3; ++d) like = like && same(s.output[d], v.pixel[d], out.pixel[d]);
  if (!like) return std::nullopt;
  return Other::kLikeOutput;
}

// What oneDNN 2.6 gets wrong, as random shapes show, up to reading and writing beyond its buffers: outputs that see
// nothing but padding; on AMX, kernels shorter than their stride along a dimension, but for one pixel without padding.
bool is_sound(const ConvolutionShape& s) {
  bool skips = false, blind = false;
  for (size_t d = 0; d < 3; ++d) {
    skips |= s.kernel[d] < s.stride[d];
    blind |= s.padding[d] > (s.kernel[d] - 1) * s.dilation[d];
  }
  return !blind && (!skips || (s.taps() == 1 && s.padding == Dims3{}));
}

// Of float32: where our kernels are faster whatever the work.
bool ours_is_faster(const ConvolutionShape& s, bool constant, bool copies) {
  if (s.groups > 1) return copies;
  const Dims3& places = s.transposed ? s.input : s.output;
  const int64_t pixels = places[0] * places[1] * places[2];
  if (copies) {
    const int64_t narrower = std::min(s.in_channels, s.out_channels);
    if (s.taps() == 1 || narrower < kCopiedChannels || pixels > kCopiedPixels) return true;
  }
  const int64_t least = s.taps() == 1 ? kOrderedPixelsAlone : kOrderedPixels;
  if (!constant && !s.transposed && s.batch * pixels < least) return true;
  // The library computes whole vectors of 16 channels, our kernels halves of them too.
  return s.out_channels < 32 && s.out_channels % 16 >= 1 && s.out_channels % 16 <= 8;
}

bool wanted(const ConvolutionShape& s, const ConvolutionOperands& o, bool copies) {
  const DType dtype = o.input.dtype;
  if (!suits(dtype) || !is_sound(s)) return false;
  const bool grouped = s.groups > 1;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (dtype == DType::kBFloat16) return worth(s.work(), copies && grouped ? kNever : kConvolutionBFloat16);
  if (ours_is_faster(s, o.constant, copies)) return worth(s.work(), kNever);
  return worth(s.work(), grouped ? kConvolutionGrouped : kConvolutionFloat);
}

template <class Description>
Plan finish(const Description& d, const memory::desc& has, const ConvolutionShape& s, const ConvolutionOperands& o,
            const ActivationView& out, const memory::desc* bias, const memory::desc* other, bool sum) {
  Plan plan;
  const std::string_view name = d.impl_info_str();
  // oneDNN 2.6's older kernels add tensors at the wrong place in some sizes; those by blocks do not.
  if (!is_fast(name) || (other && !name.starts_with("br"))) return plan;
  const Geometry g = geometry(s);
  using Convolution = std::conditional_t<std::is_same_v<Description, dnnl::convolution_forward::primitive_desc>,
                                         dnnl::convolution_forward, dnnl::deconvolution_forward>;
  const memory::desc src = d.src_desc(), dst = d.dst_desc();
  plan.weight = WeightLayout(has, d.weights_desc());
  plan.primitive = Primitive(d, Convolution(d));
  plan.primitive.add(DNNL_ARG_SRC, src);
  plan.primitive.add(DNNL_ARG_WEIGHTS, d.weights_desc());
  plan.primitive.add(DNNL_ARG_DST, dst);
  if (bias) plan.primitive.add(DNNL_ARG_BIAS, *bias);
  if (other) plan.primitive.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, *other);
  const auto copy = [](const memory::desc& from, const memory::desc& to) {
    const dnnl::reorder::primitive_desc r(engine(), from, engine(), to, attributes({}));
    Primitive p(r, dnnl::reorder(r));
    p.add(DNNL_ARG_FROM, from);
    p.add(DNNL_ARG_TO, to);
    return p;
  };
  if (!o.constant && plan.weight.from != plan.weight.to) {
    plan.blocks = WeightBlocks(plan.weight.from, plan.weight.to);
    if (!plan.blocks.usable()) plan.order = copy(plan.weight.from, plan.weight.to);
  }
  if (!is_channels_last(o.input, s.batch, s.in_channels, s.input)) {
    plan.input = copy(desc(g.input, o.input), src);
    plan.input_bytes = src.get_size();
  }
  if (!is_channels_last(out, s.batch, s.out_channels, s.output)) {
    plan.output = copy(dst, desc(g.output, out));
    plan.output_bytes = dst.get_size();
    if (sum) plan.old_output = copy(desc(g.output, out), dst);
  }
  return plan;
}

Plan make_plan(const ConvolutionShape& s, const ConvolutionOperands& o, const ActivationView& out, Other where) {
  set_threads();
  const auto has = weight_desc(s, o.weight);
  if (!has) return {};
  const Geometry g = geometry(s);
  const DType dtype = o.input.dtype;
  // A matrix is a linear layer's weight.
  if (has->dims().size() != g.input.size() + (s.groups > 1 ? 1 : 0)) return {};
  const memory::desc src = channels_last(g.input, dtype), dst = channels_last(g.output, out.dtype);
  const memory::desc weight(has->dims(), has->data_type(), memory::format_tag::any);
  const memory::desc bias({s.out_channels}, data_type(o.bias ? o.bias->dtype() : dtype), memory::format_tag::a);
  memory::dims one(g.output.size(), 1);
  if (where == Other::kPerChannel) one[1] = s.out_channels;
  const memory::desc other = where == Other::kLikeOutput ? dst : channels_last(one, dtype);
  const bool has_other = where != Other::kNone && where != Other::kSum;
  dnnl::post_ops ops;
  if (!fuse(o.fusion, where == Other::kSum ? 1 : 0, has_other ? &other : nullptr, ops)) return {};
  const dnnl::primitive_attr attr = attributes(ops);
  const memory::desc no_bias;
  const memory::desc& b = o.bias ? bias : no_bias;
  const auto done = [&](const auto& d) {
    return finish(d, *has, s, o, out, o.bias ? &bias : nullptr, has_other ? &other : nullptr, where == Other::kSum);
  };
  // Uses the C functions, which report by a status what the library does not support. The C++ classes throw, and copy
  // their arguments.
  struct Description {
    dnnl_primitive_desc_t own = nullptr;
    ~Description() {
      if (own) dnnl_primitive_desc_destroy(own);
    }
  } described;
  dnnl_status_t status;
  if (s.transposed) {
    dnnl_deconvolution_desc_t d;
    status = dnnl_dilated_deconvolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_deconvolution_direct,
                                                          &src.data, &weight.data, &b.data, &dst.data, g.stride.data(),
                                                          g.dilation.data(), g.before.data(), g.after.data());
    if (status == dnnl_success)
      status = dnnl_primitive_desc_create(&described.own, &d, attr.get(), engine().get(), nullptr);
    return status == dnnl_success ? done(dnnl::deconvolution_forward::primitive_desc(described.own)) : Plan{};
  }
  dnnl_convolution_desc_t d;
  status = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_inference, dnnl_convolution_direct, &src.data,
                                                      &weight.data, &b.data, &dst.data, g.stride.data(),
                                                      g.dilation.data(), g.before.data(), g.after.data());
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&described.own, &d, attr.get(), engine().get(), nullptr);
  return status == dnnl_success ? done(dnnl::convolution_forward::primitive_desc(described.own)) : Plan{};
}

bool run(const ConvolutionShape& s, const ConvolutionOperands& o, Tensor& output) {
  const ActivationView out = activation_view(output);
  const bool copies = !is_channels_last(o.input, s.batch, s.in_channels, s.input) ||
                      !is_channels_last(out, s.batch, s.out_channels, s.output);
  if (!wanted(s, o, copies) || has_overlap(o.input, s.batch, s.in_channels, s.input)) return false;
  const auto where = place(s, o, out);
  if (!where || (copies && *where == Other::kLikeOutput)) return false;
  if (!available()) return false;

  const Fusion& f = o.fusion;
  const Key key(s, o, out,
                {o.bias ? static_cast<int64_t>(o.bias->dtype()) : -1, static_cast<int64_t>(*where),
                 static_cast<int64_t>(std::bit_cast<int32_t>(f.a)), static_cast<int64_t>(std::bit_cast<int32_t>(f.b)),
                 static_cast<int64_t>(o.weight.blocked ? o.weight.blocked->layout_hash : 0),
                 s.output_padding[0] << 40 | s.output_padding[1] << 20 | s.output_padding[2]});
  const Plan& plan = PlanTable<Plan, Key>::get(key, [&] { return make_plan(s, o, out, *where); });
  if (!plan.primitive.usable()) return false;

  StoragePtr input_copy, output_copy, weight_copy;
  const void* weight = o.weight.data;
  if (plan.blocks.usable() || plan.order.usable()) {
    weight_copy = allocate_cpu(plan.weight.to.get_size());
    if (plan.blocks.usable())
      plan.blocks.order(weight, weight_copy->data());
    else
      plan.order.run(std::array{weight, static_cast<const void*>(weight_copy->data())});
    weight = weight_copy->data();
  }
  const void* input = o.input.data;
  if (plan.input.usable()) {
    input_copy = allocate_cpu(plan.input_bytes);
    plan.input.run(std::array{input, static_cast<const void*>(input_copy->data())});
    input = input_copy->data();
  }
  const void* to = output.data();
  if (plan.output.usable()) {
    output_copy = allocate_cpu(plan.output_bytes);
    to = output_copy->data();
    if (plan.old_output.usable()) plan.old_output.run(std::array{static_cast<const void*>(output.data()), to});
  }
  std::array<const void*, 5> data{input, weight, to};
  size_t count = 3;
  if (o.bias) data[count++] = o.bias->data();
  if (*where != Other::kNone && *where != Other::kSum) data[count++] = o.other.data;
  const dnnl_memory_t own[2] = {nullptr, o.constant ? kept_weight(*o.constant, weight, plan.weight) : nullptr};
  plan.primitive.run(std::span(data).first(count), own);
  if (plan.output.usable()) plan.output.run(std::array{to, static_cast<const void*>(output.data())});
  return true;
}

}  // namespace

bool convolve(const ConvolutionShape& s, const ConvolutionOperands& o, Tensor& output) {
  const DType dtype = o.input.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kBFloat16) return false;
  const DType weight_dtype = o.weight.blocked ? o.weight.blocked->dtype : o.weight.dtype;
  if (weight_dtype != dtype || output.dtype() != dtype) return false;
  // To put blocks in order, the library writes zeros into their paddings.
  if (!o.constant && o.weight.blocked) return false;
  if (o.bias && ((o.bias->dtype() != dtype && o.bias->dtype() != DType::kFloat32) || o.bias->stride(0) != 1))
    return false;
  return run(s, o, output);
}

}  // namespace sconce::onednn
