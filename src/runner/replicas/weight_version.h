// WeightVersion: a constant set with an instance per replica. Served once it is published under a number.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/runner/constants/constant_set.h"
#include "src/runner/replicas/replica.h"
#include "src/runner/sets/loaded_set.h"

namespace sconce::runner {

struct WeightVersion {
  WeightVersion(const ConstantTable& table, std::shared_ptr<const ConstantSet> constants, const std::string& text,
                std::vector<bool> named)
      : values(std::move(constants)),
        missing(values->missing(table)),
        label(text.empty() ? nullptr : std::make_shared<const std::string>(text)),
        reset(std::move(named)),
        instances(kMaxReplicas) {}

  std::shared_ptr<const ConstantSet> values;
  std::string_view missing;                  // the first constant without a value; empty if none
  std::shared_ptr<const std::string> label;  // null: none
  std::atomic<uint64_t> number{0};           // 0: not published yet. Only grows; runs read it when they end
  std::chrono::system_clock::time_point since = std::chrono::system_clock::now();
  // Until it is published: the stored constants whose values also go to the replicas' buffers.
  std::vector<bool> reset;
  // Its runs read constants in the package's files, or write buffers that came from there.
  bool reads_package = false;
  // By slot; null if there is no replica, or none was needed yet. Each slot belongs to its replica alone, so others run
  // while one is filled or emptied.
  std::vector<std::unique_ptr<ModelInstance>> instances;
};

}  // namespace sconce::runner
