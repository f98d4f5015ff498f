#include "src/runner/constants/package_watch.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "package_format/archive/archive_reader.h"

namespace sconce::runner {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  return {static_cast<const std::byte*>(storage.data()), storage.bytes()};
}

}  // namespace

bool PackageWatch::maps(const Tensor& tensor) const noexcept {
  if (!tensor.defined() || !tensor.is_cpu() || tensor.storage()->bytes() == 0) return false;
  return archive_.maps(bytes_of(tensor));
}

bool PackageWatch::is_read_by(const ConstantSet& set, const ConstantTable& table) const noexcept {
  bool reads = table.any_mutated();
  for (size_t i = 0; i < table.stored().size() && !reads; ++i)
    reads = table.stored()[i].spec.device.value_or(Device{}).type == DeviceType::kCpu && maps(set.tensors()[i]);
  return reads;
}

std::shared_ptr<const ConstantSet> PackageWatch::without_host(const ConstantSet& set, Device device) const {
  return set.without_host(device, [&](const Tensor& tensor) { return !maps(tensor); });
}

void PackageWatch::free_pages(const Tensor& tensor) const noexcept { archive_.give_up_pages(bytes_of(tensor)); }

void PackageWatch::check(const ConstantSet& set) const {
  const std::vector<Tensor>& tensors = set.tensors();
  if (std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& tensor) { return maps(tensor); }))
    archive_.check_files();
}

void PackageWatch::check_files(std::chrono::steady_clock::time_point now) const {
  constexpr std::chrono::nanoseconds kEvery = std::chrono::seconds(1);
  const int64_t time = std::chrono::nanoseconds(now.time_since_epoch()).count();
  if (!archive_.concerned() && time - checked_.load(std::memory_order_relaxed) < kEvery.count()) [[likely]]
    return;
  archive_.check_files();
  checked_.store(time, std::memory_order_relaxed);
}

void PackageWatch::check_outputs(std::span<Tensor> outputs, std::chrono::steady_clock::time_point now) const {
  struct Results {
    std::span<Tensor> outputs;
    bool good = false;
    ~Results() {
      if (!good) std::fill(outputs.begin(), outputs.end(), Tensor());
    }
  } results{outputs};
  check_files(now);
  results.good = true;
}

std::string PackageWatch::fault() const { return archive_.concerned() ? archive_.why_lost() : std::string(); }

}  // namespace sconce::runner
