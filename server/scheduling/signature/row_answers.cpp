#include "server/scheduling/signature/row_answers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sconce/device_memory.h"
#include "sconce/float_types.h"
#include "server/support/json/tensor_json.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::scheduling {
namespace {

template <class T>
T at(std::span<const std::byte> bytes, size_t i) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

struct Magnitudes {
  double largest = 0, nudge = 0;
};

// nudged: this row of the answers to nudged inputs.
template <class T>
Magnitudes magnitudes(std::span<const std::byte> alone, std::span<const std::span<const std::byte>> nudged) {
  Magnitudes found;
  for (size_t i = 0; i < alone.size() / sizeof(T); ++i) {
    const auto x = static_cast<double>(at<T>(alone, i));
    if (!std::isfinite(x)) continue;
    found.largest = std::max(found.largest, std::abs(x));
    for (const std::span<const std::byte> other : nudged) {
      const double change = std::abs(static_cast<double>(at<T>(other, i)) - x);
      if (std::isfinite(change)) found.nudge = std::max(found.nudge, change);
    }
  }
  return found;
}

template <class T>
bool floats_agree(std::span<const std::byte> expected, std::span<const std::byte> got, double bound, bool garbage) {
  for (size_t i = 0; i < expected.size() / sizeof(T); ++i) {
    const auto x = static_cast<double>(at<T>(expected, i)), y = static_cast<double>(at<T>(got, i));
    if (x == y) continue;
    if (std::isfinite(x) ? !(std::abs(x - y) <= bound) : !garbage && std::isfinite(y)) return false;
  }
  return true;
}

// Compares element by element, as bytes.
bool integers_agree(std::span<const std::byte> expected, std::span<const std::byte> got, size_t itemsize,
                    std::span<const std::byte> alone, std::span<const std::span<const std::byte>> nudged) {
  for (size_t i = 0; i < expected.size(); i += itemsize) {
    const auto same = [&](std::span<const std::byte> a, std::span<const std::byte> b) {
      return std::memcmp(a.data() + i, b.data() + i, itemsize) == 0;
    };
    if (same(expected, got)) continue;
    if (std::all_of(nudged.begin(), nudged.end(), [&](std::span<const std::byte> other) { return same(alone, other); }))
      return false;
  }
  return true;
}

// Calls use(T*) with the type in which elements are compared as numbers. Returns false if there is none.
template <class Use>
bool as_floats(DType dtype, Use&& use) {
  const DType part = component_dtype(dtype);
  if (part == DType::kFloat64) return use(static_cast<double*>(nullptr)), true;
  if (part == DType::kFloat32) return use(static_cast<float*>(nullptr)), true;
  if (part == DType::kFloat16) return use(static_cast<Half*>(nullptr)), true;
  if (part == DType::kBFloat16) return use(static_cast<BFloat16*>(nullptr)), true;
  return false;
}

// One output of the answers to the row's nudged inputs, where it has the row's shape.
std::vector<std::span<const std::byte>> nudged_rows(const RowAlone& alone, size_t output) {
  std::vector<std::span<const std::byte>> rows;
  for (const RowAnswers& nudged : alone.nudged) {
    if (nudged.outputs[output].row_bytes == alone.answers.outputs[output].row_bytes)
      rows.push_back(nudged.outputs[output].row(0));
  }
  return rows;
}

}  // namespace

double rounding_unit(DType dtype) noexcept {
  const DType part = component_dtype(dtype);
  return part == DType::kFloat64    ? 0x1p-53
         : part == DType::kFloat32  ? 0x1p-24
         : part == DType::kFloat16  ? 0x1p-11
         : part == DType::kBFloat16 ? 0x1p-8
                                    : 0;
}

size_t RowAnswers::bytes() const {
  size_t sum = 0;
  for (const Output& output : outputs) sum += output.bytes.size();
  return sum;
}

std::string RowAnswers::take(std::span<const Tensor> from, int64_t rows, int64_t block, const TensorNames& names) {
  outputs.assign(from.size(), {});
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].defined()) continue;
    const Tensor tensor = from[i].is_cpu() ? from[i] : copy_to(from[i], Device{});
    if (tensor.layout() != Layout::kStrided || tensor.dim() == 0 || tensor.size(0) != rows * block)
      return "output '" + names.name(i) + "' does not have a row for each of the inputs";
    Output& output = outputs[i];
    output.none = false;
    output.dtype = tensor.dtype();
    output.shape.assign(tensor.sizes().begin() + 1, tensor.sizes().end());
    output.row_bytes = tensor.bytes() / static_cast<size_t>(rows);
    output.bytes.resize(tensor.bytes());
    copy_to_contiguous(tensor, output.bytes.data());
  }
  return {};
}

bool row_agrees(const RowAnswers& expected, size_t at, const RowAnswers& got, size_t where, const RowAlone& alone,
                const RowTolerance& tolerance) {
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    const RowAnswers::Output &a = expected.outputs[i], &b = got.outputs[i], &own = alone.answers.outputs[i];
    if (a.none != b.none || a.dtype != b.dtype || a.shape != b.shape || a.row_bytes != own.row_bytes) return false;
    const std::span<const std::byte> want = a.row(at), have = b.row(where);
    if (equal(want, have)) continue;
    const std::vector<std::span<const std::byte>> nudged = nudged_rows(alone, i);
    bool agree = false;
    const bool floats = as_floats(a.dtype, [&]<class T>(T*) {
      const Magnitudes m = magnitudes<T>(own.row(0), nudged);
      agree = floats_agree<T>(want, have, tolerance.of_largest * m.largest + tolerance.of_nudge * m.nudge,
                              tolerance.garbage);
    });
    if (!floats) agree = tolerance.integers && integers_agree(want, have, dtype_bytes(a.dtype), own.row(0), nudged);
    if (!agree) return false;
  }
  return true;
}

bool row_is_steady(const RowAlone& alone, const RowTolerance& tolerance) {
  for (size_t i = 0; i < alone.answers.outputs.size(); ++i) {
    const RowAnswers::Output& own = alone.answers.outputs[i];
    if (own.none) continue;
    bool steady = true;
    as_floats(own.dtype, [&]<class T>(T*) {
      const Magnitudes m = magnitudes<T>(own.row(0), nudged_rows(alone, i));
      steady = tolerance.of_nudge * m.nudge <= m.largest / 2;
    });
    if (!steady) return false;
  }
  return true;
}

}  // namespace sconce::server::scheduling
