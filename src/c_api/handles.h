// What the handles of the C API hold.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sconce/model.h"
#include "src/c_api/signature.h"

struct sconce_package {
  std::shared_ptr<const sconce::Package> package;
  std::vector<std::unique_ptr<const sconce::c_api::Signature>> signatures;  // of its models
};

struct sconce_model {
  explicit sconce_model(std::shared_ptr<sconce::Model> loaded)
      : model(std::move(loaded)), signature(model->info().spec, model->constants()) {}
  std::shared_ptr<sconce::Model> model;
  sconce::c_api::Signature signature;
};

struct sconce_update {
  std::shared_ptr<sconce::Model> model;
  std::unique_ptr<sconce::WeightUpdate> update;
  std::vector<sconce::WeightEntry> entries;
};
