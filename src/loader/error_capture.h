// Captures the text that a model prints to std::cerr on this thread during the scope. Models built by torch up to 2.12
// report the cause of a failure nowhere else. Output of other threads passes through.
#pragma once

#include <string>

namespace sconce::loader {

class ErrorCapture {
 public:
  ErrorCapture();
  ~ErrorCapture();  // prints the text that take() has not returned
  ErrorCapture(const ErrorCapture&) = delete;
  ErrorCapture& operator=(const ErrorCapture&) = delete;
  // Returns what was captured so far and empties it.
  std::string take() noexcept;

 private:
  std::string text_;
  std::string* previous_;
};

}  // namespace sconce::loader
