// PackageWatch: notices when a file of the package was changed in place while runs read constants in its mapping.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sconce/tensor.h"
#include "src/runner/constants/constant_set.h"

namespace sconce {
class ArchiveReader;
}

namespace sconce::runner {

class PackageWatch {
 public:
  // `archive` outlives the watch.
  explicit PackageWatch(const ArchiveReader& archive) : archive_(archive) {}
  PackageWatch(const PackageWatch&) = delete;
  PackageWatch& operator=(const PackageWatch&) = delete;

  // Whether the tensor's bytes lie in the archive's mapping.
  bool maps(const Tensor& tensor) const noexcept;
  // Whether runs over the set read the package's files.
  bool is_read_by(const ConstantSet& set, const ConstantTable& table) const noexcept;
  // The set on the device, without the host's values, except those that can be read from the archive again. Null if
  // there is nothing to replace. As ConstantSet::without_host().
  std::shared_ptr<const ConstantSet> without_host(const ConstantSet& set, Device device) const;
  // Frees the tensor's pages in the archive's mapping; touching them reads them again.
  void free_pages(const Tensor& tensor) const noexcept;

  // After values of the set were used other than by a run: kUnavailable if they may have been wrong.
  void check(const ConstantSet& set) const;
  // After a run that ended at `now` and read the package: kUnavailable if its outputs may be wrong, and then they are
  // dropped. Costs one load while nobody writes the package's files, except once a second.
  void check_outputs(std::span<Tensor> outputs, std::chrono::steady_clock::time_point now) const;
  // Why the files' old content is lost, as far as that is known; empty: it is not lost. Costs one load while nobody
  // writes them.
  std::string fault() const;

 private:
  void check_files(std::chrono::steady_clock::time_point now) const;

  const ArchiveReader& archive_;
  mutable std::atomic<int64_t> checked_{0};  // when a run last checked the files; steady clock, ns
};

}  // namespace sconce::runner
