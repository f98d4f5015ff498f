#include "server/rollout/trainer_tensors/trainer_tensors.h"

#include <algorithm>
#include <cstring>

#include "sconce/check.h"
#include "sconce/tensor.h"
#include "server/support/json/base64.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& sizes) {
  SCONCE_CHECK(sizes.size() <= size_t{Tensor::kMaxRank}, kInvalidArgument, sizes.size(), " dimensions are too many");
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = step;
    SCONCE_CHECK(sizes[d] >= 0 && !__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step),
                 kInvalidArgument, "sizes are negative or overflow: ", excerpt(to_string(IntSpan(sizes))));
  }
  return strides;
}

void TrainerTensors::add(TrainerTensor tensor) {
  const size_t item = dtype_bytes(tensor.dtype);
  const std::string shown = excerpt(tensor.name);
  SCONCE_CHECK(tensor.sizes.size() == tensor.strides.size(), kInvalidArgument, "tensor '", shown,
               "': ", tensor.sizes.size(), " sizes and ", tensor.strides.size(), " strides");
  row_major_strides(tensor.sizes);  // checks for overflow
  const auto negative = [](int64_t value) { return value < 0; };
  SCONCE_CHECK(std::none_of(tensor.strides.begin(), tensor.strides.end(), negative), kInvalidArgument, "tensor '",
               shown, "': a negative stride");
  const uint64_t needed = storage_bytes_needed(tensor.sizes, tensor.strides, 0, item);
  const uint64_t bytes = memories.at(tensor.memory).bytes;
  SCONCE_CHECK(needed == 0 || (tensor.offset <= bytes && needed <= bytes - tensor.offset), kInvalidArgument, "tensor '",
               shown, "': its ", needed, " bytes at ", tensor.offset, " are beyond the ", bytes,
               " of the memory that is shared");
  tensors.push_back(std::move(tensor));
}

namespace {

template <size_t N>
std::array<std::byte, N> handle_of(JsonCursor& json, const char* what) {
  const std::optional<std::string> bytes = decode_base64(json.string(what));
  SCONCE_CHECK(bytes && bytes->size() == N, kInvalidArgument, what, " must be base64 of ", N, " bytes");
  std::array<std::byte, N> handle;
  std::memcpy(handle.data(), bytes->data(), N);
  return handle;
}

std::vector<int64_t> integers_of(JsonCursor& json, const char* what) {
  std::vector<int64_t> values;
  json.array(what, [&](size_t) {
    const uint64_t value = json.unsigned_integer(what);
    SCONCE_CHECK(value <= INT64_MAX && values.size() < size_t{Tensor::kMaxRank}, kInvalidArgument, what,
                 ": too large, or too many");
    values.push_back(static_cast<int64_t>(value));
  });
  return values;
}

void read_tensor(JsonCursor& json, TrainerTensors& to) {
  TrainerTensor tensor;
  TrainerMemory memory;
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> strides;
  bool has_shape = false, has_handle = false, has_device = false;
  json.object("a tensor", [&](std::string_view key) {
    if (key == "name") {
      tensor.name = json.string("'name'");
    } else if (key == "dtype") {
      const std::string_view name = json.string("'dtype'");
      dtype = dtype_from_name(name);
      SCONCE_CHECK(dtype, kInvalidArgument, "unknown dtype '", excerpt(name), "'");
    } else if (key == "shape") {
      tensor.sizes = integers_of(json, "'shape'");
      has_shape = true;
    } else if (key == "strides") {
      strides = integers_of(json, "'strides'");
    } else if (key == "offset") {
      memory.offset = json.unsigned_integer("'offset'");
    } else if (key == "handle") {
      memory.handle = handle_of<kDeviceMemoryHandleBytes>(json, "'handle'");
      has_handle = true;
    } else if (key == "event") {
      memory.event = handle_of<kDeviceEventHandleBytes>(json, "'event'");
    } else if (key == "device") {
      if (json.peek() == '"')
        memory.uuid = json.string("'device'");
      else
        memory.index = static_cast<int64_t>(std::min<uint64_t>(json.unsigned_integer("'device'"), INT32_MAX));
      has_device = true;
    } else {
      SCONCE_FAIL(kInvalidArgument, "unknown member of a tensor: '", excerpt(key), "'");
    }
  });
  SCONCE_CHECK(!tensor.name.empty() && dtype && has_shape && has_handle && has_device, kInvalidArgument,
               "a tensor must have 'name', 'dtype', 'shape', 'handle' and 'device'");
  tensor.dtype = *dtype;
  tensor.strides = strides ? *strides : row_major_strides(tensor.sizes);
  memory.where = TrainerMemory::Where::kDevice;
  // Only the handle determines the size of the memory.
  SCONCE_CHECK(memory.offset <= INT64_MAX, kInvalidArgument, "'offset' is too large");
  memory.bytes = UINT64_MAX - memory.offset;
  tensor.memory = to.memories.size();
  to.memories.push_back(memory);
  to.add(tensor);
  // The tensor's own bytes.
  to.memories.back().bytes = storage_bytes_needed(tensor.sizes, tensor.strides, 0, dtype_bytes(tensor.dtype));
}

}  // namespace

void read_tensor_handles(JsonCursor& json, TrainerTensors& to) {
  json.array("'tensors'", [&](size_t) { read_tensor(json, to); });
}

}  // namespace sconce::server::rollout
