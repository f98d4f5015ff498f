#include "src/cpu/convolution/direct/convolution_plan.h"

#include "src/cpu/convolution/direct/convolution_channels.h"
#include "src/device/threads.h"

namespace sconce {

PlanKey::PlanKey(const ConvolutionShape& s, const ConvolutionOperands& o, const ActivationView& output) noexcept {
  size_t n = 0;
  const auto add = [&](int64_t word) { words_[n++] = word; };
  const auto add3 = [&](const Dims3& dims) {
    for (const int64_t d : dims) add(d);
  };
  add(s.spatial);
  add(s.batch);
  add(s.in_channels);
  add(s.out_channels);
  add(s.groups * 2 + (s.transposed ? 1 : 0));
  for (const Dims3* dims : {&s.input, &s.kernel, &s.output, &s.stride, &s.padding, &s.dilation}) add3(*dims);
  const auto view = [&](const ActivationView& v) {
    add(static_cast<int64_t>(v.dtype));
    add(v.batch);
    add(v.channel);
    add3(v.pixel);
  };
  view(o.input);
  view(output);
  add(static_cast<int64_t>(o.weight.dtype) * 2 + (o.weight.blocked ? 1 : 0));
  add(o.weight.group);
  add(o.weight.out);
  add(o.weight.in);
  add3(o.weight.kernel);
  const Fusion& f = o.fusion;
  add(static_cast<int64_t>(f.activation) * 16 + static_cast<int64_t>(f.combination));
  add((f.combination != Combination::kNone && o.other.data == output.data ? 1 : 0) + (o.constant ? 2 : 0));
  add(kernel_threads());
  add(channel_tiles(64).width);
  while (n < words_.size()) words_[n++] = 0;
}

uint64_t PlanKey::hash() const noexcept { return hash_words(words_); }

}  // namespace sconce
