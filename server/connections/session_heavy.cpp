// The part of a session that gives long work to other threads: others of its io thread are answered meanwhile.
#include <algorithm>

#include "server/base/failure.h"
#include "server/connections/session.h"

namespace sconce {
namespace {

// What takes about a millisecond on the slowest machines.
constexpr size_t kLongText = 256 * 1024;       // of JSON to read
constexpr size_t kLongBody = 8 * 1024 * 1024;  // of tensors, which may have to be copied
constexpr size_t kLongCompressed = 1024;       // gzip makes a thousand bytes of one

}  // namespace

bool Session::decodes_long() const noexcept {
  const size_t bytes = body_.size();
  if (parser_->head().coding != Coding::kIdentity) return bytes > kLongCompressed;
  const bool has_tensors = form_of(route_of(route_)) == Inference::Form::kInfer && json_length_;
  const uint64_t text = has_tensors ? std::min<uint64_t>(*json_length_, bytes) : bytes;
  return text > kLongText || bytes > kLongBody;
}

bool Session::answers_long() const noexcept {
  const bool compressed = worker_.service().config.compress_above > 0 && parser_->head().accepts != Coding::kIdentity;
  return inference_.has_long_answer(compressed);
}

void Session::go_away(void (Session::*work)(), State then) {
  away_work_ = work;
  after_away_ = then;
  away_task_.context = this;
  away_task_.work = [](void* context) noexcept {
    Session& self = *static_cast<Session*>(context);
    self.away_problem_ = exception_of([&] { (self.*self.away_work_)(); });
    notify(context);
  };
  worker_.service().heavy_work.submit(away_task_);
  away_ = true;
  ++pending_;
  state_ = State::kAway;
}

// On the worker's thread again.
void Session::come_back() noexcept {
  away_ = false;
  if (state_ == State::kClosed) {
    inference_.clear();
    return released();
  }
  released();
  state_ = after_away_;
  proceed();
}

void Session::end_away() {
  if (away_problem_) std::rethrow_exception(std::exchange(away_problem_, nullptr));
}

}  // namespace sconce
