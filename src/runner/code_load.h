// CodeLoad: the load of a model up to its first instance, and what only the load needs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "sconce/model.h"
#include "src/device/open_ahead.h"
#include "src/runner/replicas/model_code.h"
#include "src/runner/warm_up.h"

namespace sconce::runner {

class CodeLoad {
 public:
  // The errors of Model::load().
  CodeLoad(std::shared_ptr<const Package> package, const ModelSpec& spec, const LoadOptions& options);

  ModelCode code;
  std::shared_ptr<const ConstantSet> weights;  // the package's
  // An instance over them for the first replica; null if the one from which the constants were read cannot serve.
  std::unique_ptr<ModelInstance> first;
  const std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  // Whether a child process may try made-up inputs, and the child, which loads the model at the same time as this
  // process. None: it has not been started yet.
  bool may_try = false;
  std::optional<WarmUpTrial> trial;

 private:
  void read_constants(const LoadOptions& options);

  std::optional<OpeningAhead> opening_;
};

}  // namespace sconce::runner
