#include "src/loader/error_capture.h"

#include <iostream>
#include <streambuf>
#include <utility>

namespace sconce::loader {
namespace {

thread_local std::string* target = nullptr;

// Replaces the buffer of std::cerr. Models share our libstdc++, so they write through it.
class Tee : public std::streambuf {
 public:
  Tee() : original_(std::cerr.rdbuf(this)) {}
  ~Tee() override {
    if (std::cerr.rdbuf() == this) std::cerr.rdbuf(original_);
  }
  Tee(const Tee&) = delete;
  Tee& operator=(const Tee&) = delete;

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    if (!target) return original_->sputc(traits_type::to_char_type(c));
    target->push_back(traits_type::to_char_type(c));
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    if (!target) return original_->sputn(text, size);
    target->append(text, static_cast<size_t>(size));
    return size;
  }
  int sync() override { return target ? 0 : original_->pubsync(); }

 private:
  std::streambuf* original_;
};

void install() { static Tee tee; }

}  // namespace

ErrorCapture::ErrorCapture() : previous_(target) {
  install();
  if (!std::cerr.good()) std::cerr.clear();  // an earlier text found no memory
  target = &text_;
}

ErrorCapture::~ErrorCapture() {
  target = previous_;
  if (!text_.empty()) std::cerr << text_;
}

std::string ErrorCapture::take() noexcept { return std::exchange(text_, {}); }

}  // namespace sconce::loader
