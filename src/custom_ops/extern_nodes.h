// The operator calls that a package's code makes through the proxy executor: the .json member beside the .so, with
// operators, constant arguments and the order of the changing ones resolved.
//
// Format: {"nodes": [{"name", "node": {"target": "aten::mm", "inputs": [{"name", "arg": {"as_tensor": ...}}],
// "outputs": [{"as_tensor": ...}]}}]}, torch 2.6 to 2.15 (torch/_export/serde/schema.py, whose enums are not c10's).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// Arguments whose values come with each call, in the order in which their integers and tensors do.
struct DynamicArgument {
  enum class Kind : uint8_t { kInt, kInts, kTensor, kTensors };
  Kind kind;
  uint32_t argument;          // of the schema
  std::vector<bool> present;  // kTensors: which elements come; the others are None. kInts: as many as integers
};

struct ExternOutput {
  enum class Kind : uint8_t { kNone, kTensor, kTensors, kInt };
  Kind kind;
  uint32_t count = 1;    // kTensors
  int64_t expected = 0;  // kInt: what the code was compiled for
};

struct ExternNode {
  std::string target;  // "aten::mm"
  std::shared_ptr<const Operator> op;
  std::vector<Value> arguments;  // constants and defaults; None where a dynamic one goes
  std::vector<DynamicArgument> dynamic;
  std::vector<ExternOutput> outputs;  // at most one per result
  size_t ints = 0, tensors = 0;       // what a call brings in all
};

// Immutable.
class ExternNodes {
 public:
  // kCorruptPackage for JSON that is none; everything else is a problem.
  static ExternNodes parse(std::string_view json);

  const std::vector<ExternNode>& nodes() const noexcept { return nodes_; }
  // Operators that this process does not have, each once, sorted.
  const std::vector<std::string>& missing() const noexcept { return missing_; }
  // What else keeps a node from being called: "aten::x: argument 'y': ...".
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  std::vector<ExternNode> nodes_;
  std::vector<std::string> missing_, problems_;
};

}  // namespace sconce::custom_ops
