#include "server/scheduling/signature/body_bound.h"

namespace sconce::server::scheduling {
namespace {

// Bytes of a request in addition to the values of its inputs.
constexpr uint64_t kAround = 64 * 1024;
// Bytes of an input in addition to its values: name, datatype, shape and parameters.
constexpr uint64_t kAroundInput = 4096;
// An element as text: the longest number, a separator and a line end; and each bracket around it on its own line.
constexpr uint64_t kElement = 40, kBrackets = 48;
// For inputs without a recorded dtype.
constexpr uint64_t kLargestElement = 16;

bool add(uint64_t& to, uint64_t count, uint64_t each) {
  uint64_t product = 0;
  return !__builtin_mul_overflow(count, each, &product) && !__builtin_add_overflow(to, product, &to);
}

}  // namespace

uint64_t most_body_bytes(const ModelSignature& model) {
  uint64_t bytes = kAround;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    const TensorSpec& spec = model.spec.inputs[i];
    if (!spec.has_shape) return UINT64_MAX;
    uint64_t elements = 1;
    for (const Dim& dim : spec.dims) {
      if (dim.max < 0 || dim.max == INT64_MAX) return UINT64_MAX;
      if (__builtin_mul_overflow(elements, static_cast<uint64_t>(dim.max), &elements)) return UINT64_MAX;
    }
    const bool complex = !spec.dtype || is_complex(*spec.dtype);
    const uint64_t itemsize = spec.dtype ? dtype_bytes(*spec.dtype) : kLargestElement;
    const uint64_t text = kElement + kBrackets * (spec.dims.size() + 1) + model.input_names.name(i).size();
    // Four thirds: base64.
    if (!add(bytes, elements, itemsize + (itemsize + 2) / 3 + (complex ? 2 : 1) * text) || !add(bytes, 1, kAroundInput))
      return UINT64_MAX;
  }
  return bytes;
}

}  // namespace sconce::server::scheduling
