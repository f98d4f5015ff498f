// RequestBuilder: the checks of Open Inference Protocol v2 for a request in any encoding: names, datatypes, sizes,
// shared memory, outputs. The decoders of HTTP and gRPC call it with the parsed values. Errors are kInvalidArgument and
// name the tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/codecs/infer_codec.h"
#include "server/codecs/shared_memory.h"
#include "server/scheduling/signature/model_signature.h"
#include "server/support/memory/request_memory.h"

namespace sconce::server::codecs {

// Sizes as sent.
struct WireShape {
  std::array<int64_t, Tensor::kMaxRank> sizes;  // only the first `rank` are set
  size_t rank = 0;

  WireShape() noexcept {}
  // Copies only the sizes that are set, not half a kilobyte, because every request makes copies.
  WireShape(const WireShape& other) noexcept { *this = other; }
  WireShape& operator=(const WireShape& other) noexcept {
    rank = other.rank;
    std::copy_n(other.sizes.begin(), rank, sizes.begin());
    return *this;
  }

  void add(uint64_t size);
  IntSpan span() const noexcept { return {sizes.data(), rank}; }
};

// The form of an input, from its shape and datatype.
struct WireForm {
  DType dtype, carrier;  // of the model's tensor; of its elements as sent
  WireShape shape;       // of the model's tensor
  int64_t elements = 0;  // as sent
  uint64_t bytes() const noexcept { return static_cast<uint64_t>(elements) * dtype_bytes(carrier); }
};

// Parameters of a tensor in shared memory.
struct WireRegion {
  std::string_view name;  // empty: not in shared memory
  std::optional<uint64_t> bytes;
  uint64_t offset = 0;
};

class RequestBuilder {
 public:
  // shared_memory: null if not available.
  RequestBuilder(const scheduling::ModelSignature& model, const SharedMemory* shared_memory, TensorScratch& scratch,
                 InferRequest& request);

  // The input with this name, which later errors name.
  size_t find_input(std::string_view name);
  std::string_view what() const noexcept { return request_.context; }
  WireForm form_of(size_t input, std::string_view datatype, const WireShape& shape) const;
  void check_bytes(const WireForm& form, uint64_t given) const;
  Tensor from_region(size_t input, const WireForm& form, const WireRegion& region);
  void set_input(size_t index, Tensor tensor);

  // binary: nullopt if the request does not say whether the output is binary.
  void add_output(std::string_view name, std::string_view json_name, std::optional<bool> binary, uint64_t classes,
                  const WireRegion& region);
  // Call this after the last input and the parameters. Fills the inputs that the server provides, and throws for
  // missing inputs.
  void complete_inputs();
  // Call this after the last tensor. default_binary: for outputs without a given form.
  void finish(bool default_binary);

 private:
  void fill(const scheduling::ControlInput& control);
  std::shared_ptr<const SharedRegion> find(const WireRegion& region) const;

  const scheduling::ModelSignature& model_;
  const SharedMemory* const shared_memory_;
  TensorScratch& scratch_;
  InferRequest& request_;
  std::vector<size_t> pending_binary_;  // outputs without a given form
};

}  // namespace sconce::server::codecs
