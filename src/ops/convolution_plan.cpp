#include "src/ops/convolution_plan.h"

#include "src/device/threads.h"
#include "src/ops/convolution_channels.h"

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

uint64_t hash_words(std::span<const int64_t> words) noexcept {
  // Two chains, since a multiplication takes longer than it keeps the multiplier busy.
  uint64_t a = 0x9E3779B97F4A7C15, b = 0xC2B2AE3D27D4EB4F;
  for (size_t i = 0; i < words.size(); i += 2) {
    a = (a ^ static_cast<uint64_t>(words[i])) * 0xFF51AFD7ED558CCD;
    b = (b ^ static_cast<uint64_t>(i + 1 < words.size() ? words[i + 1] : 0)) * 0xC4CEB9FE1A85EC53;
    a ^= a >> 32;
    b ^= b >> 29;
  }
  a ^= b * 0x9E3779B97F4A7C15;
  return a ^ a >> 31;
}

}  // namespace sconce
