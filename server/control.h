// Control: the thread that loads models, one after the other, while others are served.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "server/repository.h"

namespace sconce {

class Control {
 public:
  // failed: called on the control thread, once, with what ended it (a model that could not be loaded at start).
  Control(Repository& repository, bool exit_on_error, std::function<void(std::exception_ptr)> failed)
      : repository_(repository), exit_on_error_(exit_on_error), failed_(std::move(failed)) {}
  ~Control() { stop(); }

  void start();
  // Ends after the model that is being loaded.
  void stop();

 private:
  void load_all();
  void load(const PackageEntry& package);

  Repository& repository_;
  const bool exit_on_error_;
  const std::function<void(std::exception_ptr)> failed_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace sconce
