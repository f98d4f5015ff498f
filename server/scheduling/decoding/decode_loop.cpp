#include "server/scheduling/decoding/decode_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "sconce/check.h"
#include "sconce/device_memory.h"
#include "server/scheduling/batching/batch_tensors.h"
#include "server/scheduling/signature/recorded_strides.h"
#include "server/support/failure.h"

namespace sconce::server::scheduling {
namespace {

// Maximum number of tokens that wait for a streaming consumer.
constexpr size_t kRoom = 64;
// Number of tokens whose memory is kept for the next request.
constexpr size_t kMaxFreeTokens = 4096;

std::atomic<uint64_t> sequences_begun{0};

bool is_late(const std::exception_ptr& problem) noexcept {
  bool late = false;
  succeeds([&] { late = describe_failure(problem).code == ErrorCode::kDeadlineExceeded; });
  return late;
}

}  // namespace

void DecodeLoop::begin(LoopHost& host, const LoopRequest& request, const Terms& terms) {
  host_ = &host;
  plan_ = &host.plan();
  request_ = &request;
  set_ = terms.set;
  deadline_ = terms.deadline;
  wait_ = terms.timeout;
  priority = terms.priority;
  weights = terms.weights;
  admitted = false;
  each_ = terms.each;
  given_ = made_ = 0;
  queue_ = compute_ = {};
  end_ = End::kNone;
  problem_ = nullptr;
  cancelled_.store(false, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    room_.resize(each_ ? std::min<size_t>(kRoom, static_cast<size_t>(request.most_tokens))
                       : static_cast<size_t>(request.most_tokens));
    at_ = held_ = 0;
    told_ = {};
    waiting_ = true;
    noticed_ = false;
    state_ = State::kRunning;
  }
  LoopCounts& counts = host.counts();
  told_at_ = host.now();
  counts.running.fetch_add(1, std::memory_order_relaxed);
  const std::exception_ptr problem = exception_of([&] {
    prepare_first(terms);
    prepare();
    submit();
  });
  if (!problem) {
    counts.begun.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  counts.running.fetch_sub(1, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    state_ = State::kIdle;
    waiting_ = false;
  }
  std::rethrow_exception(problem);
}

// Sets the inputs that stay the same in all steps, and the initial state.
void DecodeLoop::prepare_first(const Terms& terms) {
  in_.resize(host_->interface().inputs.size());
  out_.resize(host_->interface().outputs.size());
  for (const size_t i : plan_->given) in_[i] = terms.inputs[i];
  for (const LoopPlan::Feed& feed : plan_->feeds) {
    Tensor zeros = first_.tensor(feed.shape, feed.dtype);
    if (zeros.bytes() > 0) std::memset(zeros.data(), 0, zeros.bytes());
    in_[feed.input] = in_recorded_strides(std::move(zeros), host_->interface().spec.inputs[feed.input], first_);
  }
  if (plan_->prefix) {
    prefix_.reserve(request_->prompt.size() + static_cast<size_t>(request_->most_tokens));
    prefix_.assign(request_->prompt.begin(), request_->prompt.end());
  }
  sequence_.clear();
  if (!plan_->sequence) return;
  sequence_.id.number = sequences_begun.fetch_add(1, std::memory_order_relaxed) + 1;
  sequence_.id.own = true;
  sequence_.start = true;
}

// `count` numbers in the last dimension: the values, or `from` and its successors.
Tensor DecodeLoop::numbers(DType dtype, size_t rank, size_t count, const int64_t* values, int64_t from) {
  std::array<int64_t, Tensor::kMaxRank> sizes;
  std::fill_n(sizes.begin(), rank, 1);
  if (rank > 0) sizes[rank - 1] = static_cast<int64_t>(count);
  Tensor tensor = scratch_.tensor({sizes.data(), rank}, dtype);
  const auto put = [&]<class T>(T* to) {
    for (size_t i = 0; i < count; ++i) to[i] = static_cast<T>(values ? values[i] : from + static_cast<int64_t>(i));
  };
  dtype == DType::kInt32 ? put(tensor.data_as<int32_t>()) : put(tensor.data_as<int64_t>());
  return tensor;
}

void DecodeLoop::set_input(size_t input, Tensor tensor) {
  in_[input] = in_recorded_strides(std::move(tensor), host_->interface().spec.inputs[input], scratch_);
}

// Sets the inputs of the next step.
void DecodeLoop::prepare() {
  const ModelSignature& interface = host_->interface();
  scratch_.reset();
  const int64_t* values = &picked_;
  size_t position = given_;
  step_tokens_ = 1;
  if (plan_->prefix) {
    values = prefix_.data();
    step_tokens_ = prefix_.size();
    position = 0;
  } else if (given_ < request_->prompt.size()) {
    values = request_->prompt.data() + given_;
    step_tokens_ = std::min(request_->prompt.size() - given_, static_cast<size_t>(plan_->most_tokens));
  }
  set_input(plan_->token_input, numbers(plan_->token_dtype, plan_->token_rank, step_tokens_, values, 0));
  if (plan_->count) {
    const LoopPlan::Count& count = *plan_->count;
    set_input(count.input, numbers(count.dtype, count.rank, count.each ? step_tokens_ : 1, nullptr,
                                   count.from + static_cast<int64_t>(position)));
  }
  // Watchers of a model's answers compare them on the host.
  const bool on_device = plan_->on_device && !host_->watches_answers();
  device_outputs = on_device && plan_->feeds_stay;
  last_rows = {};
  if (on_device) {
    const bool picks = given_ + step_tokens_ >= request_->prompt.size();
    last_rows = {static_cast<int>(plan_->logits_output), {.largest = picks ? largest_needed(request_->pick) : 1}};
  }
  for (const LoopPlan::Feed& feed : plan_->feeds) this->feed(feed);
  for (const ControlInput& control : interface.controls) {
    std::array<int64_t, Tensor::kMaxRank> sizes;
    const size_t rank = interface.inputs[control.input].shape.size();
    std::fill_n(sizes.begin(), rank, 1);
    Tensor tensor = scratch_.tensor({sizes.data(), rank}, *interface.inputs[control.input].dtype);
    fill_control(control, sequence_, tensor);
    set_input(control.input, std::move(tensor));
  }
}

// Converts an output of the last step to the location and layout of the input.
void DecodeLoop::feed(const LoopPlan::Feed& feed) {
  const TensorSpec& spec = host_->interface().spec.inputs[feed.input];
  Tensor& state = in_[feed.input];
  const bool read_on_host = spec.device && spec.device->type == DeviceType::kCpu;
  if (!state.is_cpu()) {
    if (device_outputs && !read_on_host && lies_as_recorded(state, spec)) return;
    state = copy_to(state, Device{});
  }
  state = laid_as_recorded(state, spec, scratch_);
}

void DecodeLoop::submit() {
  inputs = in_;
  outputs = out_;
  rows = 1;
  alone = false;
  begun_ = host_->now();
  timeout = wait_;
  if (deadline_ != Clock::time_point::max()) {
    const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(deadline_ - begun_, Clock::duration(1));
    if (timeout.count() == 0 || left < timeout) timeout = left;
  }
  if (DecodeBatch* const rows_of_loops = host_->rows()) return rows_of_loops->submit(*this, set_, slot_);
  host_->check_inputs(in_);
  if (!plan_->sequence) return host_->enqueue(*this);
  const std::optional<std::string_view> set = sequence_.start ? set_ : std::nullopt;
  host_->sequences()->submit(*this, sequence_, set, step_of_sequence_);
}

void DecodeLoop::ran() {
  if (host_->interface().mutates_constants) keep_outputs(out_);
}

void DecodeLoop::finished() noexcept {
  host_->count_step(*this, begun_);
  if (step_of_sequence_.live) host_->sequences()->finish(step_of_sequence_, error);
  queue_ += info.queue;
  compute_ += info.compute;
  std::exception_ptr problem = std::exchange(error, nullptr);
  End end = End::kNone;
  bool picked = false;
  if (problem) {
    end = End::kFailed;
    if (host_->now() >= deadline_ && is_late(problem)) end = End::kDeadline;
  } else {
    problem = exception_of([&] { end = absorb(picked); });
    if (problem) end = End::kFailed;
  }
  settle(end, std::move(problem), picked);
}

// Takes the results of a run. picked: whether picked_ is a token of the answer.
DecodeLoop::End DecodeLoop::absorb(bool& picked) {
  given_ = plan_->prefix ? step_tokens_ : given_ + step_tokens_;
  admitted = true;
  sequence_.start = false;
  for (const LoopPlan::Feed& feed : plan_->feeds) {
    SCONCE_CHECK(out_[feed.output].defined(), kModelFailed, "output '",
                 host_->interface().output_names.name(feed.output), "', which the next step needs, is None");
    keep_apart(out_[feed.output]);
  }
  const bool prompt_is_over = given_ >= request_->prompt.size();
  if (prompt_is_over) {
    Tensor& logits = out_[plan_->logits_output];
    // A step of a pipeline in the same run needed the whole logits.
    if (logits.defined() && !logits.is_cpu()) logits = copy_to(logits, Device{});
    picked_ = picker_.pick(logits, request_->pick, request_->seed, made_);
  }
  for (const LoopPlan::Feed& feed : plan_->feeds) in_[feed.input] = out_[feed.output];
  for (Tensor& tensor : out_) tensor = Tensor();
  if (!prompt_is_over) return End::kNone;
  const auto stops = [&](const std::vector<int64_t>& tokens) {
    return std::find(tokens.begin(), tokens.end(), picked_) != tokens.end();
  };
  if (stops(plan_->stop_tokens) || stops(request_->stop_tokens)) return End::kStop;
  picked = true;
  ++made_;
  if (plan_->prefix) prefix_.push_back(picked_);
  if (static_cast<int64_t>(made_) >= request_->most_tokens) return End::kLength;
  SCONCE_CHECK(picked_ <= plan_->most_token(), kModelFailed, "token ", picked_, " is too large for the model's input");
  return End::kNone;
}

// An output may be an input itself, whose memory the next step reuses.
void DecodeLoop::keep_apart(Tensor& output) const {
  const bool shared = std::any_of(in_.begin(), in_.end(), [&](const Tensor& input) {
    return input.defined() && input.storage().get() == output.storage().get();
  });
  if (!shared || !output.is_cpu()) return;
  Tensor copy = Tensor::empty(output.sizes(), output.dtype());
  copy_to_contiguous(output, static_cast<std::byte*>(copy.data()));
  output = std::move(copy);
}

// After a run, or in place of one: ends the loop, waits for room, or continues.
void DecodeLoop::settle(End end, std::exception_ptr problem, bool picked) noexcept {
  const bool over = end != End::kNone;
  if (picked) {
    LoopCounts& counts = host_->counts();
    const Clock::time_point before = std::exchange(told_at_, host_->now());
    (made_ == 1 ? counts.first : counts.between).count(told_at_ - before);
  }
  if (over) leave();
  bool more = false, tells = false;
  {
    const MutexLock lock(mutex_);
    if (picked) {
      room_[(at_ + held_++) % room_.size()] = picked_;
      host_->counts().tokens.fetch_add(1, std::memory_order_relaxed);
    }
    if (over || (picked && made_ == 1)) {
      told_ = info;
      told_.queue = queue_;
      told_.compute = compute_;
    }
    if (over) {
      end_ = end;
      problem_ = std::move(problem);
      state_ = State::kOver;
      host_->counts().running.fetch_sub(1, std::memory_order_relaxed);
    } else if (held_ == room_.size() && wanted()) {
      state_ = State::kPaused;
    } else {
      more = true;
    }
    tells = waiting_ && (over || (each_ && held_ > 0));
    if (tells) {
      waiting_ = false;
      noticed_ = true;
    }
  }
  // The consumer waits for the notice, and may be destroyed with it if the loop has ended.
  if (tells) notify_(context_);
  if (more) go_on();
}

void DecodeLoop::go_on() noexcept {
  if (!wanted() || host_->why_end()) {
    const std::exception_ptr problem = exception_of([&] {
      SCONCE_CHECK(wanted(), kCancelled, "client disconnected: decode loop stopped");
      SCONCE_FAIL(kUnavailable, "the loop of model '", host_->interface().name, "' ended: ", host_->why_end());
    });
    return settle(End::kFailed, problem, false);
  }
  if (host_->now() >= deadline_) return settle(End::kDeadline, nullptr, false);
  std::exception_ptr problem = exception_of([&] {
    prepare();
    submit();  // the loop may have ended by now, and be destroyed
  });
  if (problem) settle(End::kFailed, std::move(problem), false);
}

// No step is in progress, and none follows.
void DecodeLoop::leave() noexcept {
  if (DecodeBatch* const rows_of_loops = host_->rows())
    rows_of_loops->leave(slot_);
  else if (plan_->sequence)
    host_->sequences()->end_now(sequence_.id);
  for (Tensor& tensor : in_) tensor = Tensor();
  for (Tensor& tensor : out_) tensor = Tensor();
  inputs = {};
  outputs = {};
}

DecodeLoop::Look DecodeLoop::take(std::vector<int64_t>& tokens, size_t most) {
  Look look = Look::kTokens;
  bool resumes = false;
  {
    const MutexLock lock(mutex_);
    // The notice has come, even if there is no memory for its tokens.
    noticed_ = false;
    const size_t count = std::min(held_, most);
    tokens.reserve(tokens.size() + count);
    for (size_t i = 0; i < count; ++i) tokens.push_back(room_[(at_ + i) % room_.size()]);
    if (count > 0) at_ = (at_ + count) % room_.size();
    held_ -= count;
    if (held_ == 0 && state_ == State::kOver) {
      look = Look::kOver;
    } else if (count == 0) {
      look = Look::kWait;
      waiting_ = true;
    } else if (state_ == State::kPaused) {
      state_ = State::kRunning;
      resumes = true;
    }
  }
  if (resumes) go_on();
  return look;
}

bool DecodeLoop::cancel() noexcept {
  cancelled_.store(true, std::memory_order_relaxed);
  bool paused = false;
  {
    const MutexLock lock(mutex_);
    if (state_ == State::kPaused) {
      state_ = State::kRunning;
      paused = true;
    } else if (state_ == State::kRunning) {
      if (!noticed_) waiting_ = true;
      return false;
    }
  }
  if (paused) go_on();  // which ends the loop
  const MutexLock lock(mutex_);
  return !noticed_;
}

bool DecodeLoop::let_go() noexcept {
  const MutexLock lock(mutex_);
  noticed_ = false;
  if (state_ != State::kRunning) return true;
  waiting_ = true;
  return false;
}

RunInfo DecodeLoop::info_now() {
  const MutexLock lock(mutex_);
  return told_;
}

void DecodeLoop::clear() noexcept {
  host_ = nullptr;
  plan_ = nullptr;
  request_ = nullptr;
  weights = nullptr;
  step = {};
  set_.reset();
  problem_ = nullptr;
  info = {};
  first_.reset();
  scratch_.reset();
  if (prefix_.capacity() > kMaxFreeTokens) prefix_ = {};
  const MutexLock lock(mutex_);
  if (room_.capacity() > kMaxFreeTokens) room_ = {};
  state_ = State::kIdle;
  told_ = {};
}

}  // namespace sconce::server::scheduling
