// A run on made-up inputs, by which a load prepares a model: it must leave no trace.
#pragma once

namespace sconce {

// While it exists, this thread makes such a run.
class MadeUpRun {
 public:
  MadeUpRun() noexcept;
  ~MadeUpRun();
  MadeUpRun(const MadeUpRun&) = delete;
  MadeUpRun& operator=(const MadeUpRun&) = delete;
};

// Before something that others would notice afterwards. kFailedPrecondition "WHAT" in a made-up run.
void refuse_in_made_up_run(const char* what);

}  // namespace sconce
