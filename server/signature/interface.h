// ModelInterface: a model as Open Inference Protocol v2 sees it, made from its spec. Immutable once served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/signature/names.h"

namespace sconce::server {

struct TensorInterface {
  std::optional<DType> dtype;  // nullopt: not recorded
  std::string_view datatype;   // v2's name, the carrier's for complex and float8; "UNKNOWN" if not recorded
  bool shape_known = false;
  std::vector<int64_t> shape;  // v2's: -1 where variable, a last dimension of 2 for complex; [-1] if not known
};

struct ModelInterface {
  std::string name;
  int64_t version = 1;
  ModelSpec spec;
  TensorNames input_names, output_names;
  std::vector<size_t> input_leaf;  // of each input; empty where it is not known
  std::vector<TensorInterface> inputs, outputs;
  // Largest first dimension, where all inputs and outputs share it as a variable one; else 0.
  int64_t max_batch_size = 0;
  std::vector<std::string> labels;  // of classes, for the classification extension
  bool batch_observed = false;      // two runs showed that all outputs have a row for each of the inputs
  bool rows_independent = false;    // a try showed that a row's outputs do not depend on the other rows
  std::string rows_reason = "it was not tried whether rows influence each other";  // why not, else
  bool mutates_constants = false;  // a run may change what the next one returns

  ModelInterface(std::string name, int64_t version, ModelSpec spec);

  // What a run showed about outputs that the package does not describe: called with the sizes of two runs whose
  // variable input dimensions all differ. batch: what the batch dimension's sizes were, 0 if there is none.
  void observe_outputs(const std::vector<Tensor>& first, const std::vector<Tensor>& second, int64_t first_batch,
                       int64_t second_batch);
  bool outputs_described() const noexcept;
  // Symbol of the dimension that could be the batch, going by the inputs alone; empty if there is none.
  std::string batch_symbol() const;

 private:
  void derive_batch();
};

// v2's datatype from its name; nullopt for BYTES and unknown names.
std::optional<DType> dtype_from_oip(std::string_view datatype) noexcept;
// dims as v2 writes them, the dimension of 2 of complex tensors included.
std::vector<int64_t> oip_shape(const TensorSpec& spec);

}  // namespace sconce::server
