#include "src/runner/update.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "src/aoti_abi/guard.h"

namespace sconce::runner {

namespace {

constexpr size_t kMaxNote = size_t{64} * 1024;

void check_label(const std::string& label) {
  SCONCE_CHECK(label.size() <= 256, kInvalidArgument, "label: ", label.size(), " bytes are too many, 256 is the most");
  const bool printable = std::none_of(label.begin(), label.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
  SCONCE_CHECK(printable, kInvalidArgument, "label: contains a control character");
}

}  // namespace

std::unique_ptr<WeightUpdate> Runner::begin_update(UpdateOptions options, std::shared_ptr<void> owner) {
  check_label(options.label);
  if (!options.set.empty()) named_sets().check_name(options.set);
  SCONCE_CHECK(!options.set.empty() || (!options.hold && options.note.empty()), kInvalidArgument,
               "hold, note: only a named set waits for its name, and has a note");
  SCONCE_CHECK(options.note.size() <= kMaxNote, kInvalidArgument, "note: ", options.note.size(),
               " bytes are too many, ", kMaxNote, " is the most");
  SCONCE_CHECK(options.base.empty() || !options.set.empty(), kInvalidArgument,
               "base: only a named set starts from another");
  return std::make_unique<Update>(*this, std::move(options), std::move(owner));
}

Runner::Update::Update(Runner& runner, UpdateOptions options, std::shared_ptr<void> owner)
    : owner_(std::move(owner)), runner_(runner), options_(std::move(options)) {
  if (!options_.set.empty()) {
    turn_.emplace(runner, "set '" + options_.set + "'", true);
    if (!options_.base.empty() && options_.base != "active") base_ = runner.bring_set(options_.base);
    return;
  }
  turn_.emplace(runner, options_.label.empty() ? std::string("one without a label") : "'" + options_.label + "'");
  const MutexLock state(runner.state_mutex_);
  SCONCE_CHECK(!runner.other_ || runner.other_state_ != WeightState::kStaged, kBusy,
               "the model has an inactive constant set: it is to be swapped in or freed first");
}

Staging& Runner::Update::staging(const char* what) {
  SCONCE_CHECK(!finished_, kFailedPrecondition, what, ": the update is finished");
  SCONCE_CHECK(staging_, kFailedPrecondition, what, ": no entries have been declared");
  return *staging_;
}

void Runner::Update::declare(std::span<const WeightEntry> entries) {
  aoti_abi::in_memory("declare", [&] {
    SCONCE_CHECK(!finished_ && (!staging_ || options_.gradual), kFailedPrecondition,
                 "declare: the entries have been declared already");
    if (staging_) {
      staging_->add(entries);
      return staging_->allocate();
    }
    const bool named = !options_.set.empty();  // its values are compared with others', on the host
    Staging staging(*runner_.table_, entries,
                    {.full = options_.full,
                     .check_finite = options_.check_finite,
                     .ignore = options_.ignore,
                     .keep = !options_.dry_run,
                     .device = named ? std::nullopt : runner_.device_of_all(),
                     .gradual = options_.gradual});
    if (!options_.dry_run && !named) {
      const MutexLock work(runner_.work_mutex_);
      staging.reuse(runner_.take_previous());
    }
    staging.allocate();
    staging_.emplace(std::move(staging));
  });
}

std::span<std::byte> Runner::Update::memory(size_t entry) {
  return aoti_abi::in_memory("memory", [&] { return staging("memory").memory(entry); });
}

void Runner::Update::complete(size_t entry) {
  aoti_abi::in_memory("complete", [&] { staging("complete").complete(entry); });
}

void Runner::Update::set_label(std::string label) {
  SCONCE_CHECK(!finished_, kFailedPrecondition, "set_label: the update is finished");
  check_label(label);
  options_.label = std::move(label);
}

void Runner::Update::take(std::span<const TensorPart> parts) {
  aoti_abi::in_memory("take", [&] { staging("take").take(parts); });
}

void Runner::Update::take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick) {
  aoti_abi::in_memory("take", [&] { staging("take").take(parts, tick); });
}

void Runner::Update::finish() {
  aoti_abi::in_memory("finish", [&] {
    Staging& staging = this->staging("finish");
    staging.check_complete();
    if (!options_.dry_run && !options_.set.empty()) {
      runner_.finish_set(staging, options_, static_cast<const LoadedSet*>(base_.get()));
    } else if (!options_.dry_run) {
      const MutexLock work(runner_.work_mutex_);
      auto next = std::make_unique<Generation>(*runner_.table_, staging.finish(*runner_.active()->set), options_.label,
                                               staging.named());
      runner_.bind_all(*next, options_.progress);
      next->staged = true;
      runner_.set_other(std::move(next), WeightState::kStaged);
    }
    finished_ = true;
    staging_.reset();
    turn_.reset();
  });
}

}  // namespace sconce::runner
