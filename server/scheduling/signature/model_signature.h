// ModelSignature: a model in terms of the Open Inference Protocol v2, made from its spec. Immutable once served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sconce/package.h"
#include "sconce/tensor.h"
#include "server/scheduling/signature/controls.h"
#include "server/scheduling/signature/names.h"

namespace sconce::server::scheduling {

struct TensorInterface {
  std::optional<DType> dtype;  // nullopt: not recorded
  std::string_view datatype;   // v2's name; for complex and float8, of the carrier type; "UNKNOWN" if not recorded
  bool shape_known = false;
  std::vector<int64_t> shape;  // as in v2: -1 if variable, a last dimension of 2 for complex; [-1] if unknown
};

// The outputs of two runs. The sizes of all variable input dimensions differed between them.
struct OutputProbe {
  struct Output {
    bool none = true;  // the model returned None
    DType dtype = DType::kFloat32;
    std::vector<int64_t> sizes;
  };
  struct Run {
    int64_t batch = 0;  // size of the batch dimension; 0: there is none
    std::vector<Output> outputs;
  };
  Run first, second;
};

// The result of a batch invariance check (server/scheduling/signature/batch_invariance_check.h).
struct InvarianceFinding {
  enum class Kind : int8_t {
    kNone,     // there was no check, or it did not finish
    kSame,     // each row got its own answer, whichever rows shared its run
    kDiffers,  // a counterexample: a row's answer depended on other rows, on its position or on the batch size
    kUnknown,  // inconclusive
  };
  Kind kind = Kind::kNone;
  std::string reason{};  // of kDiffers and kUnknown
};

struct ModelSignature {
  std::string name;
  int64_t version = 1;
  ModelSpec spec;
  TensorNames input_names, output_names;
  std::vector<size_t> input_leaf;  // for each input; empty if unknown
  std::vector<TensorInterface> inputs, outputs;
  // Largest first dimension, if all inputs and outputs share it as a variable dimension; else 0.
  int64_t max_batch_size = 0;
  std::vector<std::string> labels;     // class names, for the classification extension
  bool batch_observed = false;         // two runs showed that each output has one row per input row
  InvarianceFinding row_finding;       // of a check; server/scheduling/batching/row_sharing.h defines the consequences
  bool pipeline = false;               // a pipeline of other models
  bool mutates_constants = false;      // a run may change the result of the next run
  std::vector<ControlInput> controls;  // inputs that the server fills
  // Keys and values of a config.pbtxt, for clients that ask for the configuration.
  std::vector<std::pair<std::string, std::string>> parameters, metric_tags;
  bool is_control(size_t input) const noexcept {
    for (const ControlInput& control : controls)
      if (control.input == input) return true;
    return false;
  }

  ModelSignature(std::string name, int64_t version, ModelSpec spec);

  // Adds outputs that the package does not describe. kInvalidArgument unless the runs have all outputs.
  void observe_outputs(const OutputProbe& probe);
  bool outputs_described() const noexcept;
  // Symbol of the dimension that could be the batch, judged by the inputs alone; empty if there is none.
  std::string batch_symbol() const;
  // The minimum number of rows of a batch, at most `most`. Needs a batch_symbol().
  int64_t fewest_rows(int64_t most) const;

 private:
  void derive_batch();
};

// nullopt for BYTES and unknown names.
std::optional<DType> dtype_from_oip(std::string_view datatype) noexcept;
// Dimensions in v2's form, with the last dimension of 2 for complex tensors.
std::vector<int64_t> oip_shape(const TensorSpec& spec);

}  // namespace sconce::server::scheduling
