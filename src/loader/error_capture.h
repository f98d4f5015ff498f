// What a model prints to std::cerr while a scope is alive on the thread. Models built by torch up to 2.12 report the
// cause of a failure nowhere else. Other threads' output passes through untouched.
#pragma once

#include <string>

namespace sconce::loader {

class ErrorCapture {
 public:
  ErrorCapture();
  ~ErrorCapture();  // what was not taken is printed after all
  ErrorCapture(const ErrorCapture&) = delete;
  ErrorCapture& operator=(const ErrorCapture&) = delete;
  // Everything captured so far; empties it.
  std::string take() noexcept;

 private:
  std::string text_;
  std::string* previous_;
};

}  // namespace sconce::loader
