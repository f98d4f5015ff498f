// Captures what a model prints to std::cerr on this thread while a scope lives. Models built by torch up to 2.12 report
// the cause of a failure nowhere else. Output of other threads passes through.
#pragma once

#include <string>

namespace sconce::loader {

class ErrorCapture {
 public:
  ErrorCapture();
  ~ErrorCapture();  // prints what was not taken
  ErrorCapture(const ErrorCapture&) = delete;
  ErrorCapture& operator=(const ErrorCapture&) = delete;
  // Returns what was captured so far and empties it.
  std::string take() noexcept;

 private:
  std::string text_;
  std::string* previous_;
};

}  // namespace sconce::loader
