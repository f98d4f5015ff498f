#include "server/rollout/weight_checker.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/support/failure.h"
#include "server/support/json/tensor_json.h"
#include "src/support/excerpt.h"
#include "src/support/hex.h"
#include "src/support/sha256.h"

namespace sconce::server::rollout {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 20;
constexpr size_t kMaxNamed = 10;  // maximum number of names in an error

std::string digest_of(WeightFile& file, size_t entry, std::vector<std::byte>& block,
                      const WeightChecker::Check& check) {
  Sha256 digest;
  if (const std::span<const std::byte> whole = file.in_place(entry); !whole.empty()) {
    for (size_t at = 0; at < whole.size(); at += kReadAtOnce) {
      check();
      digest.update(whole.subspan(at, std::min(kReadAtOnce, whole.size() - at)));
    }
    return to_hex(digest.finish());
  }
  for (uint64_t left = file.bytes(entry); left > 0;) {
    check();
    const std::span<std::byte> piece =
        std::span(block).first(static_cast<size_t>(std::min<uint64_t>(kReadAtOnce, left)));
    file.read(entry, piece);
    digest.update(piece);
    left -= piece.size();
  }
  return to_hex(digest.finish());
}

}  // namespace

std::vector<std::string> WeightChecker::differing(const Checksums& before, const Checksums& now) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : now)
    if (const auto at = before.find(name); at == before.end() || at->second != digest) names.push_back(name);
  for (const auto& [name, digest] : before)
    if (!now.contains(name)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

WeightChecker::Checksums WeightChecker::checksums_of(const registry::ServedModel& served, const Check& check) {
  const std::unique_ptr<WeightSetFile> file = served.model().open_weights(WeightState::kActive);
  Checksums checksums;
  std::vector<std::byte> block(kReadAtOnce);
  for (size_t i = 0; i < file->entries().size(); ++i)
    checksums[file->entries()[i].name] = digest_of(*file, i, block, check);
  return checksums;
}

void WeightChecker::snapshot(const registry::ServedModel& served, const Check& check) {
  Checksums checksums = checksums_of(served, check);
  const std::string& name = served.interface().name;
  const MutexLock lock(mutex_);
  std::erase_if(snapshots_, [&](const auto& known) { return known.first == name; });
  if (snapshots_.size() >= kMaxModels) snapshots_.pop_front();
  snapshots_.emplace_back(name, std::move(checksums));
}

void WeightChecker::compare(const registry::ServedModel& served, const Check& check) const {
  Checksums before;
  {
    const MutexLock lock(mutex_);
    const auto known = std::find_if(snapshots_.begin(), snapshots_.end(),
                                    [&](const auto& one) { return one.first == served.interface().name; });
    SCONCE_CHECK(known != snapshots_.end(), kFailedPrecondition, "there is no snapshot of the model to compare with");
    before = known->second;
  }
  const Checksums now = checksums_of(served, check);
  const std::vector<std::string> other = differing(before, now);
  if (other.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min(other.size(), kMaxNamed); ++i) names += (i == 0 ? "" : ", ") + excerpt(other[i]);
  if (other.size() > kMaxNamed) names += ", ...";
  throw Refused(std::to_string(other.size()) + " of " + std::to_string(now.size()) +
                " tensors differ from the snapshot: " + names);
}

std::string first_rows(const registry::ServedModel& served, std::string_view name, uint64_t rows) {
  const std::unique_ptr<WeightSetFile> file = served.model().open_weights(WeightState::kActive);
  const auto& entries = file->entries();
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const WeightEntry& entry) { return entry.name == name; });
  SCONCE_CHECK(found != entries.end(), kInvalidArgument, "the model has no weight '", excerpt(std::string(name)), "'");
  SCONCE_CHECK(has_json_form(found->dtype), kInvalidArgument, "elements of ", dtype_name(found->dtype),
               " have no form in JSON");
  std::vector<int64_t> sizes = found->shape;
  if (!sizes.empty()) sizes[0] = static_cast<int64_t>(std::min(static_cast<uint64_t>(sizes[0]), rows));
  uint64_t elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<uint64_t>(size);
  SCONCE_CHECK(elements <= kMaxShown, kInvalidArgument, "these rows of '", found->name, "' have ", elements,
               " elements, and ", kMaxShown, " are shown at most");
  const Tensor tensor = Tensor::empty(sizes, found->dtype);
  const size_t bytes = static_cast<size_t>(elements) * dtype_bytes(found->dtype);
  if (bytes > 0)
    file->read(static_cast<size_t>(found - entries.begin()), {static_cast<std::byte*>(tensor.data()), bytes});
  TextBuffer text;
  write_nested(text, tensor);
  return std::string(text.view());
}

}  // namespace sconce::server::rollout
