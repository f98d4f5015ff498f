// The operator calls that a package's code makes through the proxy executor. Parses the .json member beside the .so
// and resolves operators, constant arguments and the order of dynamic arguments.
//
// Format: {"nodes": [{"name", "node": {"target": "aten::mm", "inputs": [{"name", "arg": {"as_tensor": ...}}],
// "outputs": [{"as_tensor": ...}]}}]}, torch 2.6 to 2.15 (torch/_export/serde/schema.py, whose enums differ from
// c10's).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/custom_ops/operator/operator.h"

namespace sconce::custom_ops {

// An argument whose value each call passes. They are in the order of the call's integers and tensors.
struct DynamicArgument {
  enum class Kind : uint8_t { kInt, kInts, kTensor, kTensors };
  Kind kind;
  uint32_t argument;          // index in the schema
  std::vector<bool> present;  // kTensors: which elements each call passes (others are None). kInts: one per integer
};

struct ExternOutput {
  enum class Kind : uint8_t { kNone, kTensor, kTensors, kInt };
  Kind kind;
  uint32_t count = 1;    // kTensors
  int64_t expected = 0;  // kInt: the value that the code was compiled for
};

struct ExternNode {
  std::string target;  // "aten::mm"
  std::shared_ptr<const Operator> op;
  std::vector<Value> arguments;  // constants and defaults; None for dynamic ones
  std::vector<DynamicArgument> dynamic;
  std::vector<ExternOutput> outputs;  // at most one per result
  size_t ints = 0, tensors = 0;       // totals that each call passes
};

// Immutable.
class ExternNodes {
 public:
  // Throws kCorruptPackage for invalid JSON; reports all other errors as problems.
  static ExternNodes parse(std::string_view json);

  const std::vector<ExternNode>& nodes() const noexcept { return nodes_; }
  // Operators that this process lacks, sorted, each once.
  const std::vector<std::string>& missing() const noexcept { return missing_; }
  // Other reasons why a node cannot be called: "aten::x: argument 'y': ...".
  const std::vector<std::string>& problems() const noexcept { return problems_; }

 private:
  std::vector<ExternNode> nodes_;
  std::vector<std::string> missing_, problems_;
};

}  // namespace sconce::custom_ops
