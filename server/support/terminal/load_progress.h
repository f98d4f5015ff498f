// Progress of loading packages at start, below the log lines. Only if standard error is a terminal, and packages are
// large.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sconce::server {

class LoadProgress {
 public:
  struct Part {
    std::string name;
    uint64_t bytes = 0;  // of its package; 0 if another part has already counted them
  };
  explicit LoadProgress(std::vector<Part> parts);
  ~LoadProgress();
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

  // Starts the next part.
  void next();

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the log; null: nothing is shown
};

}  // namespace sconce::server
