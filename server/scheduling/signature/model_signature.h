// ModelSignature: a model as Open Inference Protocol v2 sees it, made from its spec. Immutable once served.
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

namespace sconce::server {

struct TensorInterface {
  std::optional<DType> dtype;  // nullopt: not recorded
  std::string_view datatype;   // v2's name, the carrier's for complex and float8; "UNKNOWN" if not recorded
  bool shape_known = false;
  std::vector<int64_t> shape;  // v2's: -1 if variable, a last dimension of 2 for complex; [-1] if not known
};

// What two runs returned. The sizes of all variable input dimensions differed between them.
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

// What a trial of rows found (server/scheduling/signature/batch_invariance_check.h).
struct InvarianceFinding {
  enum class Kind : int8_t {
    kNone,     // there was no trial, or it did not come to its end
    kSame,     // each row got its own answer, whatever rows shared its run
    kDiffers,  // a counterexample: a row's answer depended on other rows, on its place or on the number of rows
    kUnknown,  // it could not tell
  };
  Kind kind = Kind::kNone;
  std::string reason{};  // of kDiffers and kUnknown
};

struct ModelSignature {
  std::string name;
  int64_t version = 1;
  ModelSpec spec;
  TensorNames input_names, output_names;
  std::vector<size_t> input_leaf;  // for each input; empty if it is not known
  std::vector<TensorInterface> inputs, outputs;
  // Largest first dimension, if all inputs and outputs share it as a variable one; else 0.
  int64_t max_batch_size = 0;
  std::vector<std::string> labels;     // names of classes, for the classification extension
  bool batch_observed = false;         // two runs showed that each output has one row per input row
  InvarianceFinding row_finding;       // of a trial; server/scheduling/batching/row_sharing.h says what follows
  bool pipeline = false;               // it is made of other models
  bool mutates_constants = false;      // a run may change what the next one returns
  std::vector<ControlInput> controls;  // inputs that the server fills
  // Key and value of a config.pbtxt, for clients that ask for the configuration.
  std::vector<std::pair<std::string, std::string>> parameters, metric_tags;
  bool is_control(size_t input) const noexcept {
    for (const ControlInput& control : controls)
      if (control.input == input) return true;
    return false;
  }

  ModelSignature(std::string name, int64_t version, ModelSpec spec);

  // Learns about outputs that the package does not describe. kInvalidArgument unless the runs have all outputs.
  void observe_outputs(const OutputProbe& probe);
  bool outputs_described() const noexcept;
  // Symbol of the dimension that could be the batch, by the inputs alone; empty if there is none.
  std::string batch_symbol() const;
  // The fewest rows that the batch may have; `most` if they are not below it. Needs a batch_symbol().
  int64_t fewest_rows(int64_t most) const;

 private:
  void derive_batch();
};

// nullopt for BYTES and unknown names.
std::optional<DType> dtype_from_oip(std::string_view datatype) noexcept;
// dims as v2 writes them, with the last dimension of 2 for complex tensors.
std::vector<int64_t> oip_shape(const TensorSpec& spec);

}  // namespace sconce::server
