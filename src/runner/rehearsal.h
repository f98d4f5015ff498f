// A constant set that runs beside the replicas that serve.
#pragma once

#include <memory>

#include "sconce/model.h"
#include "src/runner/constants/package_watch.h"
#include "src/runner/replicas/model_code.h"

namespace sconce::runner {

// As Model::rehearse(). `served`: values that the device has already. `owner` owns `code` and `files`.
std::unique_ptr<Rehearsal> make_rehearsal(const ModelCode& code, const PackageWatch& files, Device device,
                                          std::shared_ptr<const ConstantSet> values, const ConstantSet& served,
                                          std::shared_ptr<const void> owner);

}  // namespace sconce::runner
