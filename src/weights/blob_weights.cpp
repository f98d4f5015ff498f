#include <memory>

#include "sconce/check.h"
#include "sconce/tensor.h"
#include "src/support/excerpt.h"
#include "src/weights/placed_weights.h"

namespace sconce::weights {

uint64_t blob_bytes(std::span<const ConstantSpec> constants) {
  uint64_t sum = 0;
  for (const ConstantSpec& constant : constants)
    if (!constant.folded)
      SCONCE_CHECK(!__builtin_add_overflow(sum, constant.data_size, &sum), kInvalidArgument,
                   "sizes of constants overflow: ", constant.name);
  return sum;
}

WeightEntry entry_of(const ConstantSpec& constant, const std::string& where) {
  const std::string& name = constant.fqn.empty() ? constant.name : constant.fqn;
  SCONCE_CHECK(!constant.opaque, kUnsupported, "constant is packed by oneDNN and cannot be replaced: ", where, ": ",
               name);
  SCONCE_CHECK(constant.strides.size() == constant.shape.size(), kCorruptPackage,
               "constant has sizes and strides of different ranks: ", where, ": ", name);
  SCONCE_CHECK(constant.dtype, kUnsupported, "constant has no known dtype: ", where, ": ", name);
  return {name, *constant.dtype, constant.shape};
}

std::unique_ptr<WeightFile> open_blob(InputFile input, const FileOptions& options) {
  const std::string where = input.path().string();
  SCONCE_CHECK(!options.constants.empty(), kInvalidArgument,
               "a raw blob can only be read together with the model's constants: ", where);
  SCONCE_CHECK(input.size() == blob_bytes(options.constants), kCorruptPackage,
               "raw blob is not as long as the model's constants: ", where, ": ", input.size(), " and ",
               blob_bytes(options.constants), " bytes");
  auto weights = std::make_unique<PlacedWeights>(options.sha256);
  const size_t file = weights->add_file(std::move(input));
  uint64_t at = 0;
  for (const ConstantSpec& constant : options.constants) {
    if (constant.folded) continue;
    const uint64_t start = at;
    at += constant.data_size;
    if (constant.mutated && !constant.assumed) continue;  // a possible weight must not be left out
    WeightEntry entry = entry_of(constant, where);
    const size_t item = dtype_bytes(entry.dtype);
    const uint64_t bytes = storage_bytes_needed(constant.shape, constant.strides, constant.offset, item);
    SCONCE_CHECK(bytes <= constant.data_size, kInvalidArgument, "constant is larger than its place in a blob: ", where,
                 ": ", excerpt(entry.name), ": ", bytes, " and ", constant.data_size, " bytes");
    const uint64_t offset = static_cast<uint64_t>(constant.offset) * item;
    weights->add(std::move(entry), {constant.strides, bytes > offset ? bytes - offset : 0, false}, file,
                 start + offset);
  }
  return weights;
}

}  // namespace sconce::weights
