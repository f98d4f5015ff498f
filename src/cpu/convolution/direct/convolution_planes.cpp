#include "src/cpu/convolution/direct/convolution_planes.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "sconce/float_types.h"
#include "src/cpu/convolution/direct/convolution_pieces.h"
#include "src/device/threads.h"
#include "src/tensor/elements/dispatch.h"

namespace sconce {
namespace {

constexpr int64_t kChunk = 512;         // pixels per result tile
constexpr double kWorkPerThread = 1e5;  // multiplications that are worth a thread

// One axis of the planes that a piece reads. Inputs are split by their residue modulo the piece's step, so that the
// inputs of neighbouring outputs are neighbours: output j, tap t reads plane residue[t], element j + shift[t].
struct PlaneAxis {
  const PieceAxis* piece = nullptr;
  int64_t extent = 0;                 // elements of a plane
  int64_t lowest = 0;                 // element 0 is input lowest * in_step + residue
  std::vector<int64_t> residues;      // planes
  std::vector<int64_t> plane, shift;  // by tap
};

PlaneAxis plane_axis(const PieceAxis& piece) {
  PlaneAxis a;
  a.piece = &piece;
  int64_t highest = 0;
  for (size_t t = 0; t < piece.taps.size(); ++t) {
    const int64_t at = piece.taps[t].input, step = piece.in_step;
    const int64_t residue = (at % step + step) % step, quotient = (at - residue) / step;
    auto found = std::find(a.residues.begin(), a.residues.end(), residue);
    if (found == a.residues.end()) found = a.residues.insert(found, residue);
    a.plane.push_back(found - a.residues.begin());
    a.shift.push_back(quotient);
    a.lowest = t == 0 ? quotient : std::min(a.lowest, quotient);
    highest = t == 0 ? quotient : std::max(highest, quotient);
  }
  for (int64_t& shift : a.shift) shift -= a.lowest;
  a.extent = piece.count + highest - a.lowest;
  return a;
}

template <class T>
struct Job {
  const ConvolutionShape& shape;
  const ConvolutionOperands& operands;
  Tensor& output;
  ActivationView out;
  WeightView weight;  // of T
  const T* bias;      // of T, or null
  std::array<PlaneAxis, 3> axes;

  PlaneSteps steps{};
  std::vector<int64_t> tap_x{}, tap_w{};
  bool direct = false;               // planes are the input itself
  int64_t plane_elems = 0;           // of one channel's planes in scratch
  int64_t pitch_w = 0, pitch_h = 0;  // elements from row to row, rows from slice to slice
  bool by_row = false;               // tiles stop at the end of a row; else rows follow each other, gaps included
  bool to_output = false;            // tiles are written where they belong

  int64_t count(size_t d) const { return axes[d].piece->count; }
  int64_t flat_length() const { return ((count(0) - 1) * pitch_h + count(1) - 1) * pitch_w + count(2); }

  void plan();
  void prepare(int64_t n, int64_t c, T* planes) const noexcept;
  void fill_row(const T* in, const PlaneAxis& w, int64_t residue, T* row) const noexcept;
  void tile(int64_t n, int64_t g, const T* planes, int64_t from, int64_t rows, int64_t at, int64_t length,
            T* scratch) const noexcept;
  void finish(int64_t n, int64_t channel, int64_t at, int64_t length, T* values) const noexcept;
  void finish_row(int64_t n, int64_t channel, int64_t jd, int64_t jh, int64_t jw, int64_t length,
                  T* values) const noexcept;
  // Tiles of one image and group: ranges of output channels times ranges of pixels.
  int64_t channel_blocks() const {
    const int64_t rows = plane_tiles<T>().rows;
    return (shape.out_group() + rows - 1) / rows;
  }
  int64_t chunks() const {
    if (by_row) return count(0) * count(1) * ((count(2) + kChunk - 1) / kChunk);
    return (flat_length() + kChunk - 1) / kChunk;
  }
  void block(int64_t n, int64_t g, const T* planes, int64_t channel_block, int64_t chunk, T* scratch) const noexcept;
  void run();
};

template <class T>
void Job<T>::plan() {
  const ActivationView& in = operands.input;
  direct = std::is_same_v<CppType<DType::kFloat32>, T> ? in.dtype == DType::kFloat32 : true;
  for (size_t d = 0; d < 3; ++d) {
    const PieceAxis& a = *axes[d].piece;
    direct = direct && a.in_step == 1 && !a.taps.empty() && a.lowest() >= 0 && a.end(0, a.count) <= shape.input[d];
  }
  const auto stride_of = [&](size_t d) { return shape.input[d] == 1 ? 0 : in.pixel[d]; };
  direct = direct && (count(2) == 1 || in.pixel[2] == 1);
  int64_t planes_per_channel = 1;
  if (direct) {
    pitch_w = count(1) > 1 ? in.pixel[1] : count(0) > 1 ? in.pixel[0] : 1;
    pitch_h = count(1);
    if (count(0) > 1 && count(1) > 1) {
      if (pitch_w == 0 || in.pixel[0] % pitch_w != 0)
        direct = false;
      else
        pitch_h = in.pixel[0] / pitch_w;
    }
    // Overlapping or stretched rows would put pixels in a wrong order.
    if (pitch_w < count(2) || pitch_h < count(1)) direct = false;
  }
  if (!direct) {
    pitch_w = axes[2].extent;
    pitch_h = axes[1].extent;
    plane_elems = axes[0].extent * axes[1].extent * axes[2].extent;
    planes_per_channel =
        static_cast<int64_t>(axes[0].residues.size() * axes[1].residues.size() * axes[2].residues.size());
  }
  for (size_t d = 0; d < axes[0].plane.size(); ++d)
    for (size_t h = 0; h < axes[1].plane.size(); ++h)
      for (size_t w = 0; w < axes[2].plane.size(); ++w) {
        const Tap &td = axes[0].piece->taps[d], &th = axes[1].piece->taps[h], &tw = axes[2].piece->taps[w];
        if (direct) {
          tap_x.push_back(td.input * stride_of(0) + th.input * stride_of(1) + tw.input * stride_of(2));
        } else {
          const auto planes_h = static_cast<int64_t>(axes[1].residues.size());
          const auto planes_w = static_cast<int64_t>(axes[2].residues.size());
          const int64_t plane = (axes[0].plane[d] * planes_h + axes[1].plane[h]) * planes_w + axes[2].plane[w];
          tap_x.push_back(plane * plane_elems + (axes[0].shift[d] * pitch_h + axes[1].shift[h]) * pitch_w +
                          axes[2].shift[w]);
        }
        tap_w.push_back(td.kernel * weight.kernel[0] + th.kernel * weight.kernel[1] + tw.kernel * weight.kernel[2]);
      }
  plane_elems *= planes_per_channel;
  steps = {shape.in_group(), static_cast<int64_t>(tap_x.size()), tap_x.data(),
           tap_w.data(),     direct ? in.channel : plane_elems,  weight.in,
           weight.out};

  constexpr int64_t kWidth = 64 / sizeof(T);
  const int64_t flat = (flat_length() + kWidth - 1) / kWidth;
  by_row = count(0) * count(1) * ((count(2) + kWidth - 1) / kWidth) <= flat;
  const bool dense_rows = axes[2].piece->step == 1 && (out.pixel[2] == 1 || count(2) == 1);
  const bool gapless = axes[1].piece->step == 1 && axes[0].piece->step == 1 && pitch_w == count(2) &&
                       (count(1) == 1 || out.pixel[1] == count(2)) && (count(0) == 1 || pitch_h == count(1)) &&
                       (count(0) == 1 || out.pixel[0] == count(1) * count(2));
  if (dense_rows && gapless) by_row = false;
  to_output = operands.fusion.none() && sizeof(T) == dtype_bytes(output.dtype()) && dense_rows && (by_row || gapless);
}

template <class T>
void Job<T>::fill_row(const T* in, const PlaneAxis& w, int64_t residue, T* row) const noexcept {
  // Element e is input (e + lowest) * step + residue, zero outside.
  const int64_t step = w.piece->in_step, stride = operands.input.pixel[2], size = shape.input[2];
  const int64_t first = w.lowest * step + residue;
  const int64_t begin = std::clamp<int64_t>(first >= 0 ? 0 : (-first + step - 1) / step, 0, w.extent);
  const int64_t end = std::clamp<int64_t>(first >= size ? 0 : (size - first + step - 1) / step, begin, w.extent);
  std::fill(row, row + begin, T{});
  std::fill(row + end, row + w.extent, T{});
  if (begin == end) return;
  const int64_t at = first + begin * step;
  if constexpr (std::is_same_v<T, float>) {
    const size_t itemsize = dtype_bytes(operands.input.dtype);
    gather_floats(operands.input.dtype,
                  reinterpret_cast<const std::byte*>(in) + at * stride * static_cast<int64_t>(itemsize), step * stride,
                  row + begin, end - begin);
  } else {
    const T* from = in + at * stride;
    for (int64_t e = begin; e < end; ++e, from += step * stride) row[e] = *from;
  }
}

// The padded planes of one input channel.
template <class T>
void Job<T>::prepare(int64_t n, int64_t c, T* planes) const noexcept {
  const ActivationView& in = operands.input;
  const auto itemsize = static_cast<int64_t>(dtype_bytes(in.dtype));
  for (const int64_t rd : axes[0].residues)
    for (const int64_t rh : axes[1].residues)
      for (const int64_t rw : axes[2].residues)
        for (int64_t ed = 0; ed < axes[0].extent; ++ed) {
          const int64_t id = (ed + axes[0].lowest) * axes[0].piece->in_step + rd;
          for (int64_t eh = 0; eh < axes[1].extent; ++eh, planes += axes[2].extent) {
            const int64_t ih = (eh + axes[1].lowest) * axes[1].piece->in_step + rh;
            if (id < 0 || id >= shape.input[0] || ih < 0 || ih >= shape.input[1]) {
              std::fill(planes, planes + axes[2].extent, T{});
              continue;
            }
            const int64_t offset = n * in.batch + c * in.channel + id * in.pixel[0] + ih * in.pixel[1];
            fill_row(reinterpret_cast<const T*>(static_cast<const std::byte*>(in.data) + offset * itemsize), axes[2],
                     rw, planes);
          }
        }
}

template <class T>
void Job<T>::finish_row(int64_t n, int64_t channel, int64_t jd, int64_t jh, int64_t jw, int64_t length,
                        T* values) const noexcept {
  const PieceAxis &d = *axes[0].piece, &h = *axes[1].piece, &w = *axes[2].piece;
  const auto offset = [&](const ActivationView& v) {
    return n * v.batch + channel * v.channel + (d.first + jd * d.step) * v.pixel[0] +
           (h.first + jh * h.step) * v.pixel[1] + (w.first + jw * w.step) * v.pixel[2];
  };
  const auto itemsize = static_cast<int64_t>(dtype_bytes(out.dtype));
  auto* to = static_cast<std::byte*>(output.data()) + offset(out) * itemsize;
  const int64_t stride = w.step * out.pixel[2];
  if constexpr (std::is_same_v<T, float>) {
    if (!operands.fusion.none()) {
      float others[kChunk];
      if (operands.fusion.combination != Combination::kNone) {
        const ActivationView& other = operands.other;
        gather_floats(
            other.dtype,
            static_cast<const std::byte*>(other.data) + offset(other) * static_cast<int64_t>(dtype_bytes(other.dtype)),
            w.step * other.pixel[2], others, length);
      }
      apply_fusion(operands.fusion, values, others, length);
    }
    scatter_floats(values, out.dtype, to, stride, length);
  } else {
    T* at = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < length; ++i) at[i * stride] = values[i];
  }
}

template <class T>
void Job<T>::finish(int64_t n, int64_t channel, int64_t at, int64_t length, T* values) const noexcept {
  for (int64_t q = at; q < at + length;) {
    const int64_t row = q / pitch_w, jw = q % pitch_w, jd = row / pitch_h, jh = row % pitch_h;
    const int64_t next = (row + 1) * pitch_w;
    if (jh < count(1) && jw < count(2))
      finish_row(n, channel, jd, jh, jw, std::min(count(2) - jw, at + length - q), values + (q - at));
    q = next;
  }
}

template <class T>
void Job<T>::block(int64_t n, int64_t g, const T* planes, int64_t channel_block, int64_t chunk,
                   T* scratch) const noexcept {
  const PlaneTiles<T>& tiles = plane_tiles<T>();
  const int64_t from = channel_block * tiles.rows, rows = std::min<int64_t>(tiles.rows, shape.out_group() - from);
  const int64_t channel = g * shape.out_group() + from;
  int64_t at, length;
  if (by_row) {
    const int64_t per_row = (count(2) + kChunk - 1) / kChunk, row = chunk / per_row;
    const int64_t jw = chunk % per_row * kChunk;
    at = (row / count(1) * pitch_h + row % count(1)) * pitch_w + jw;
    length = std::min(kChunk, count(2) - jw);
  } else {
    at = chunk * kChunk;
    length = std::min(kChunk, flat_length() - at);
  }
  const T* w = static_cast<const T*>(weight.data) + g * weight.group + from * weight.out;
  const T* b = bias ? bias + channel : nullptr;
  if (to_output) {
    const PieceAxis &d = *axes[0].piece, &h = *axes[1].piece;
    int64_t offset = n * out.batch + channel * out.channel;
    if (by_row) {
      const int64_t row = at / pitch_w;
      offset += (d.first + row / pitch_h * d.step) * out.pixel[0] + (h.first + row % pitch_h * h.step) * out.pixel[1] +
                axes[2].piece->first + at % pitch_w;
    } else {
      offset += at;
    }
    tiles.run(steps, planes + at, w, b, rows, length, static_cast<T*>(output.data()) + offset, out.channel);
    return;
  }
  tiles.run(steps, planes + at, w, b, rows, length, scratch, kChunk);
  for (int64_t r = 0; r < rows; ++r) finish(n, channel + r, at, length, scratch + r * kChunk);
}

template <class T>
void Job<T>::run() {
  plan();
  const int64_t units = shape.batch * shape.groups, channels = shape.in_group();
  const int64_t blocks = channel_blocks() * chunks();
  const bool alone = kernel_threads() == 1 || shape.work() < kWorkPerThread * 2;
  const int64_t threads = alone ? 1 : kernel_threads();
  const bool by_unit = units >= threads;

  // Planes of one unit for each thread, or for all of them together; and a result tile for each.
  const int64_t unit_elems = direct ? 0 : (plane_elems * channels + 63) / 64 * 64;
  const int64_t tile_elems = to_output ? 0 : plane_tiles<T>().rows * kChunk;
  const int64_t planes_elems = unit_elems * (by_unit ? threads : 1);
  const int64_t scratch_elems = planes_elems + tile_elems * threads;
  const int64_t scratch_bytes = scratch_elems * static_cast<int64_t>(sizeof(T));
  Tensor scratch;
  if (scratch_bytes > 0) scratch = Tensor::empty({&scratch_bytes, 1}, DType::kUInt8);
  T* const base = scratch.defined() ? scratch.data_as<T>() : nullptr;

  const auto unit_input = [&](int64_t unit) {
    const int64_t n = unit / shape.groups, g = unit % shape.groups;
    return static_cast<const T*>(operands.input.data) + n * operands.input.batch +
           g * channels * operands.input.channel;
  };
  const auto unit_blocks = [&](int64_t unit, const T* planes, int64_t begin, int64_t end, T* tile) noexcept {
    const int64_t n = unit / shape.groups, g = unit % shape.groups, per_chunk = channel_blocks();
    for (int64_t b = begin; b < end; ++b) block(n, g, planes, b % per_chunk, b / per_chunk, tile);
  };
  if (by_unit) {
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) noexcept {
      for (int64_t t = first; t < last; ++t)
        for (int64_t unit = units * t / threads; unit < units * (t + 1) / threads; ++unit) {
          const T* planes = direct ? unit_input(unit) : base + t * unit_elems;
          if (!direct)
            for (int64_t c = 0; c < channels; ++c)
              prepare(unit / shape.groups, unit % shape.groups * channels + c, base + t * unit_elems + c * plane_elems);
          unit_blocks(unit, planes, 0, blocks, base + planes_elems + t * tile_elems);
        }
    });
    return;
  }
  for (int64_t unit = 0; unit < units; ++unit) {
    if (!direct)
      parallel_for(0, channels, 1, [&](int64_t first, int64_t last) noexcept {
        for (int64_t c = first; c < last; ++c)
          prepare(unit / shape.groups, unit % shape.groups * channels + c, base + c * plane_elems);
      });
    parallel_for(0, threads, 1, [&](int64_t first, int64_t last) noexcept {
      for (int64_t t = first; t < last; ++t)
        unit_blocks(unit, direct ? unit_input(unit) : base, blocks * t / threads, blocks * (t + 1) / threads,
                    base + planes_elems + t * tile_elems);
    });
  }
}

template <class T>
const T* converted_bias(const Tensor* bias, Tensor& keep) {
  if (!bias) return nullptr;
  constexpr bool kFloat = std::is_same_v<T, float>;
  if (bias->stride(0) == 1 && (!kFloat || bias->dtype() == DType::kFloat32)) return bias->data_as<T>();
  const int64_t bytes = bias->numel() * static_cast<int64_t>(sizeof(T));
  keep = Tensor::empty({&bytes, 1}, DType::kUInt8);
  T* to = keep.data_as<T>();
  if constexpr (kFloat) {
    gather_floats(bias->dtype(), bias->data(), bias->stride(0), to, bias->numel());
  } else {
    for (int64_t i = 0; i < bias->numel(); ++i) to[i] = bias->data_as<T>()[i * bias->stride(0)];
  }
  return to;
}

template <class T>
void convolve(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  Tensor weight_floats, bias_values;
  WeightView weight = operands.weight;
  if constexpr (std::is_same_v<T, float>) weight = float_weight(shape, weight, weight_floats);
  const T* bias = converted_bias<T>(operands.bias, bias_values);
  const auto ds = piece_axes(shape, 0), hs = piece_axes(shape, 1), ws = piece_axes(shape, 2);
  for (const PieceAxis& d : ds)
    for (const PieceAxis& h : hs)
      for (const PieceAxis& w : ws)
        Job<T>{shape,
               operands,
               output,
               activation_view(output),
               weight,
               bias,
               {plane_axis(d), plane_axis(h), plane_axis(w)}}
            .run();
}

}  // namespace

void convolve_planes(const ConvolutionShape& shape, const ConvolutionOperands& operands, Tensor& output) {
  switch (operands.input.dtype) {
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      return convolve<float>(shape, operands, output);
    default:
      detail::dispatch_list<DType::kFloat64, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64>(
          operands.input.dtype, "convolution", [&]<class T>() {
            if constexpr (!std::is_same_v<T, float>) convolve<T>(shape, operands, output);
          });
  }
}

}  // namespace sconce
