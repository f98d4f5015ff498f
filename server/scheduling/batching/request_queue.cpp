#include "server/scheduling/batching/request_queue.h"

#include <algorithm>

#include "sconce/check.h"

namespace sconce::server::scheduling {
namespace {

// Maximum number of requests that are considered for one run.
constexpr size_t kLookAt = 4096;

// Whether rows are contiguous, so that the tensor can be copied in one piece.
bool is_block(const Tensor& tensor, int64_t rows) noexcept {
  if (tensor.dim() == 0 || tensor.size(0) != rows || tensor.numel() == 0) return false;
  return tensor.is_dense() && (rows == 1 || tensor.stride(0) == tensor.numel() / rows);
}

bool same_rows(const Tensor& a, const Tensor& b) noexcept {
  if (a.dtype() != b.dtype() || a.dim() != b.dim() || a.device() != b.device()) return false;
  for (int64_t d = 1; d < a.dim(); ++d) {
    if (a.size(d) != b.size(d) || (a.size(d) > 1 && a.stride(d) != b.stride(d))) return false;
  }
  return true;
}

}  // namespace

std::exception_ptr late_error(const std::string& model, std::chrono::nanoseconds waited) {
  return std::make_exception_ptr(
      Error(ErrorCode::kDeadlineExceeded,
            "Request timeout expired: waited " +
                std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(waited).count()) +
                " us for model '" + model + "'"));
}

std::exception_ptr unwanted_error(const std::string& model) {
  return std::make_exception_ptr(
      Error(ErrorCode::kCancelled, "nobody waits for the request to model '" + model + "' any more"));
}

QueuedRequest::Clock::time_point waiting_deadline(const BatchPolicy& policy, std::chrono::nanoseconds asked,
                                                  QueuedRequest::Clock::time_point now) noexcept {
  using Time = QueuedRequest::Clock::time_point;
  std::chrono::nanoseconds timeout = policy.timeout;
  if (policy.timeout_override && asked.count() > 0 && (timeout.count() == 0 || asked < timeout)) timeout = asked;
  const bool ends = timeout.count() > 0 && timeout < Time::max() - now;
  return ends ? now + timeout : Time::max();
}

RequestQueue::RequestQueue(const BatchPolicy& policy)
    : policy_(policy), levels_(static_cast<size_t>(std::max<int64_t>(policy.priority_levels, 1)) + 1) {}

void RequestQueue::classify(QueuedRequest& request, Clock::time_point now) const noexcept {
  request.submitted_ = now;
  request.half_ = 0;
  request.level_ = 0;
  if (policy_.priority_levels > 0) {
    const bool known = request.priority > 0 && request.priority <= static_cast<uint64_t>(policy_.priority_levels);
    request.level_ = (known ? request.priority : static_cast<uint64_t>(policy_.default_priority)) - 1;
  }
  request.deadline_ = waiting_deadline(policy_, request.timeout, now);
  request.alone_ = request.alone || policy_.max_rows <= 1 || request.rows < 1 || request.rows >= policy_.max_rows ||
                   request.inputs.empty() ||
                   !std::all_of(request.inputs.begin(), request.inputs.end(),
                                [&](const Tensor& input) { return is_block(input, request.rows); });
}

void RequestQueue::add(QueuedRequest& request) noexcept { insert(request, levels_[request.level_].last, nullptr); }

void RequestQueue::add_halves(std::span<QueuedRequest* const> run) noexcept {
  const size_t middle = run.size() / 2;
  const uint64_t first = ++halves_, second = ++halves_;
  for (size_t i = run.size(); i-- > 0;) {
    QueuedRequest& request = *run[i];
    request.half_ = i < middle ? first : second;
    request.deadline_ = Clock::time_point::max();
    if ((i < middle ? middle : run.size() - middle) == 1) request.alone_ = true;
    insert(request, nullptr, levels_[request.level_].first);
  }
}

void RequestQueue::insert(QueuedRequest& request, QueuedRequest* previous, QueuedRequest* next) noexcept {
  List& list = levels_[request.level_];
  request.previous_ = previous;
  request.next_ = next;
  (previous ? previous->next_ : list.first) = &request;
  (next ? next->previous_ : list.last) = &request;
  request.state_ = QueuedRequest::State::kQueued;
  first_deadline_ = std::min(first_deadline_, request.deadline_);
  ++size_;
}

void RequestQueue::remove(QueuedRequest& request) noexcept {
  List& list = levels_[request.level_];
  (request.previous_ ? request.previous_->next_ : list.first) = request.next_;
  (request.next_ ? request.next_->previous_ : list.last) = request.previous_;
  request.next_ = request.previous_ = nullptr;
  request.state_ = QueuedRequest::State::kElsewhere;
  --size_;
}

template <class F>
void RequestQueue::walk(F&& visit) const noexcept {
  for (const List& list : levels_) {
    for (QueuedRequest* request = list.first; request;) {
      QueuedRequest* const after = request->next_;
      if (!visit(*request)) return;
      request = after;
    }
  }
}

QueuedRequest* RequestQueue::take_late(Clock::time_point now) noexcept {
  if (now < first_deadline_) return nullptr;
  first_deadline_ = Clock::time_point::max();
  QueuedRequest *first = nullptr, *last = nullptr;
  walk([&](QueuedRequest& request) {
    if (request.deadline_ > now) {
      first_deadline_ = std::min(first_deadline_, request.deadline_);
      return true;
    }
    remove(request);
    (last ? last->next_ : first) = &request;
    last = &request;
    return true;
  });
  if (policy_.reject_late) return first;
  while (first) {
    QueuedRequest& request = *first;
    first = request.next_;
    request.level_ = levels_.size() - 1;
    request.deadline_ = Clock::time_point::max();
    add(request);
  }
  return nullptr;
}

QueuedRequest* RequestQueue::take_all() noexcept {
  QueuedRequest *first = nullptr, *last = nullptr;
  walk([&](QueuedRequest& request) {
    remove(request);
    (last ? last->next_ : first) = &request;
    last = &request;
    return true;
  });
  return first;
}

bool RequestQueue::fits_together(const QueuedRequest& a, const QueuedRequest& b) const noexcept {
  if (!shares_ || b.alone_ || a.half_ != b.half_ || a.weights != b.weights || a.inputs.size() != b.inputs.size())
    return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!same_rows(a.inputs[i], b.inputs[i])) return false;
  }
  return true;
}

RequestQueue::Clock::time_point RequestQueue::due(std::chrono::nanoseconds delay, size_t enough) const noexcept {
  if (size_ == 0) return Clock::time_point::max();
  if (delay.count() <= 0 || size_ >= enough) return Clock::time_point::min();
  const QueuedRequest* head = nullptr;
  Clock::time_point oldest = Clock::time_point::max();
  int64_t rows = 0;
  size_t seen = 0;
  bool now = false;
  walk([&](const QueuedRequest& request) {
    if (!head) {
      head = &request;
      now = !shares_ || head->alone_ || head->half_ != 0;
    } else if (!fits_together(*head, request) || rows + request.rows > policy_.max_rows) {
      return ++seen < kLookAt;
    }
    rows += request.rows;
    oldest = std::min(oldest, request.submitted_);
    now =
        now || rows >= policy_.max_rows || std::binary_search(policy_.preferred.begin(), policy_.preferred.end(), rows);
    return !now && ++seen < kLookAt;
  });
  if (now || delay >= Clock::time_point::max() - oldest)
    return now ? Clock::time_point::min() : Clock::time_point::max();
  return oldest + delay;
}

void RequestQueue::take(size_t share, std::vector<QueuedRequest*>& run) noexcept {
  run.clear();
  int64_t rows = 0;
  size_t seen = 0, preferred = 0;  // number of these that fill a preferred size
  const size_t most = std::min(std::max<size_t>(share, 1), run.capacity());
  walk([&](QueuedRequest& request) {
    if (!run.empty() && (!fits_together(*run.front(), request) || rows + request.rows > policy_.max_rows)) {
      return ++seen < kLookAt;
    }
    run.push_back(&request);
    rows += request.rows;
    if (std::binary_search(policy_.preferred.begin(), policy_.preferred.end(), rows)) preferred = run.size();
    return shares_ && !run.front()->alone_ && rows < policy_.max_rows && run.size() < most && ++seen < kLookAt;
  });
  if (preferred != 0) run.resize(preferred);
  for (QueuedRequest* request : run) remove(*request);
}

}  // namespace sconce::server::scheduling
