// SequenceHost: the model of sequences, as Sequences and DecodeBatch see it. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "sconce/model.h"

namespace sconce::server::scheduling {

class SequenceHost {
 public:
  virtual ~SequenceHost() = default;

  // These three are as in Model.
  virtual std::shared_ptr<Sequence> make_sequence(bool rows) = 0;
  virtual void submit(RunRequest& run) = 0;
  virtual uint64_t weight_version() const noexcept = 0;
};

}  // namespace sconce::server::scheduling
