// One conformance case as case.json describes it: a package, the steps to do with it and what must come out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sconce/dtype.h"
#include "sconce/model.h"

namespace sconce::conformance {

struct TensorCase {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape, stride;
  int64_t offset = 0;  // in elements, into the storage
  uint64_t at = 0;     // of the storage, in data.bin
  uint64_t bytes = 0;  // of the storage
  std::string device = "cpu";
  std::optional<size_t> same_as;  // input: shares the storage of this earlier input
  struct Alias {
    bool of_input = false;
    size_t index = 0;
  };
  std::optional<Alias> alias;  // output: lies in the storage of this input or output
  std::optional<double> rtol, atol;
};

struct StepCase {
  enum class Do { kRun, kUpdate, kFold, kSwap, kFreeInactive, kExtract };
  Do what = Do::kRun;
  std::string what_name;
  std::vector<TensorCase> inputs;
  std::vector<std::optional<TensorCase>> outputs;  // nullopt: None
  std::map<size_t, TensorCase> mutated;            // by input
  double rtol = 0, atol = 0;
  bool compare_values = true;
  std::optional<uint64_t> seed;
  bool fails = false, checks = false;
  std::string message;
  bool inactive = false;  // which of the two sets of AOTInductor's container
  bool full = false;
  std::map<std::string, TensorCase> constants;
};

struct ConstantCase {
  std::string name, fqn;  // name may be empty
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<uint64_t> data_size;
};

struct Case {
  std::string name, device, sm, model;
  std::filesystem::path folder, package;
  std::vector<std::string> tags;
  std::map<std::string, std::string> metadata;
  std::optional<std::vector<ConstantCase>> constants;
  std::vector<StepCase> steps;
};

// Throws std::exception with the reason.
Case read_case(const std::filesystem::path& folder);

}  // namespace sconce::conformance
