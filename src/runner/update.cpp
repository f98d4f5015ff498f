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

StagedUpdate::StagedUpdate(const ModelCode& code, const ReplicaPool& pool, WeightVersions& versions, SetRuns& sets,
                           UpdateOptions options, std::shared_ptr<void> owner)
    : owner_(std::move(owner)),
      code_(code),
      pool_(pool),
      versions_(versions),
      sets_(sets),
      options_(std::move(options)) {
  check_label(options_.label);
  if (is_named()) sets_.named().check_name(options_.set);
  SCONCE_CHECK(is_named() || (!options_.hold && options_.note.empty()), kInvalidArgument,
               "hold, note: only a named set waits for its name, and has a note");
  SCONCE_CHECK(options_.note.size() <= kMaxNote, kInvalidArgument, "note: ", options_.note.size(),
               " bytes are too many, ", kMaxNote, " is the most");
  SCONCE_CHECK(options_.base.empty() || is_named(), kInvalidArgument, "base: only a named set starts from another");
  if (is_named()) {
    lock_.emplace(versions_, "set '" + options_.set + "'", true);
    if (!options_.base.empty() && options_.base != "active") base_ = sets_.named().bring(options_.base);
    return;
  }
  lock_.emplace(versions_, options_.label.empty() ? std::string("one without a label") : "'" + options_.label + "'");
}

Staging& StagedUpdate::staging(const char* what) {
  SCONCE_CHECK(!finished_, kFailedPrecondition, what, ": the update is finished");
  SCONCE_CHECK(staging_, kFailedPrecondition, what, ": no entries have been declared");
  return *staging_;
}

void StagedUpdate::declare(std::span<const WeightEntry> entries) {
  aoti_abi::in_memory("declare", [&] {
    SCONCE_CHECK(!finished_ && (!staging_ || options_.gradual), kFailedPrecondition,
                 "declare: the entries have been declared already");
    if (staging_) {
      staging_->add(entries);
      return staging_->allocate();
    }
    Staging staging(*code_.table, entries,
                    {.full = options_.full,
                     .check_finite = options_.check_finite,
                     .ignore = options_.ignore,
                     .keep = !options_.dry_run,
                     // The values of a named set are compared with those of others, on the host.
                     .device = is_named() ? std::nullopt : pool_.device_of_all(),
                     .gradual = options_.gradual});
    if (!options_.dry_run && !is_named()) staging.reuse(versions_.take_previous());
    staging.allocate();
    staging_.emplace(std::move(staging));
  });
}

std::span<std::byte> StagedUpdate::memory(size_t entry) {
  return aoti_abi::in_memory("memory", [&] { return staging("memory").memory(entry); });
}

void StagedUpdate::complete(size_t entry) {
  aoti_abi::in_memory("complete", [&] { staging("complete").complete(entry); });
}

void StagedUpdate::set_label(std::string label) {
  SCONCE_CHECK(!finished_, kFailedPrecondition, "set_label: the update is finished");
  check_label(label);
  options_.label = std::move(label);
}

void StagedUpdate::take(std::span<const TensorPart> parts) {
  aoti_abi::in_memory("take", [&] { staging("take").take(parts); });
}

void StagedUpdate::take(std::span<const FilePart> parts, const std::function<void(uint64_t)>& tick) {
  aoti_abi::in_memory("take", [&] { staging("take").take(parts, tick); });
}

void StagedUpdate::finish() {
  aoti_abi::in_memory("finish", [&] {
    Staging& staging = this->staging("finish");
    staging.check_complete();
    if (!options_.dry_run && is_named())
      sets_.finish(staging, options_, base_.get());
    else if (!options_.dry_run)
      versions_.stage(staging, options_.label, options_.progress);
    finished_ = true;
    staging_.reset();
    lock_.reset();
  });
}

}  // namespace sconce::runner
