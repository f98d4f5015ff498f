// ModelCode: what all replicas of a model share, whatever weights they run. Does not change after the load.
#pragma once

#include <memory>

#include "sconce/model.h"
#include "src/loader/container.h"
#include "src/runner/constants/constant_set.h"
#include "src/runner/replicas/index_check.h"
#include "src/runner/replicas/input_check.h"
#include "src/runner/replicas/replica.h"

namespace sconce::runner {

struct ModelCode {
  std::shared_ptr<const Package> package;
  std::shared_ptr<const loader::Module> module;
  std::unique_ptr<const ConstantTable> table;
  InputCheck input_check;
  IndexCheck index_check;
  ModelInfo info;
  Replica::Settings replica_settings;
  bool warm_up = true;  // LoadOptions::warm_up
};

// kInvalidArgument, kUnsupported: the model's code does not run on the device.
void check_device(Device device, const ModelSpec& spec);

}  // namespace sconce::runner
