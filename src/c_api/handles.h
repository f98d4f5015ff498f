// The structs behind the handles of the C API.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sconce/model.h"
#include "sconce/weight_sources.h"
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
  std::unique_ptr<sconce::WeightUpdate> update;  // keeps the model alive
  bool declared = false;
  std::vector<sconce::WeightEntry> entries;

  // The state of an update whose weights arrive as a stream.
  enum class Stream { kNone, kOpen, kFailed, kEnded };
  Stream state = Stream::kNone;
  std::optional<sconce::WeightStream> stream;
  size_t room = 0;  // of the buffer given to the caller, still unused
};
