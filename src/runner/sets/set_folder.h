// SetFolder: the files of a model's named sets, NAME.safetensors each: the constants in which a set differs from the
// package. The metadata has the label, the caller's note, the weight version, the digest of the package's own set,
// without which the file means nothing, and the digest of what the file adds. A file appears under its name when it is
// complete and on the disk. A set that waits for its name and one that may be restored have files that begin with a
// dot; they end with the process.
//
// One thread at a time uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "src/runner/constants/constant_set.h"

namespace sconce::runner {

class SetFolder {
 public:
  // Makes the folder. kIo.
  SetFolder(std::filesystem::path folder, const ConstantTable& table, std::shared_ptr<const ConstantSet> packaged);

  struct File {
    uint64_t bytes = 0;  // of the constants in it
    std::chrono::system_clock::time_point written;
    std::string label, note;
    uint64_t weight_version = 0;  // 0: the file does not say it
  };
  // The sets that are there, by name. Files that are no sets are left alone.
  std::map<std::string, File, std::less<>> list() const;
  struct Words {
    std::string label, note;
  };
  enum class Place : int8_t { kNamed, kWaiting };
  // Replaces the file at that place and returns the bytes of the constants in it. kIo; kOutOfMemory for a full disk;
  // kUnsupported for a dtype that the format lacks.
  uint64_t write(const std::string& name, const Words& words, uint64_t weight_version, const ConstantSet& set,
                 Place place) const;
  // The waiting file gets the name. What had it can be restored. kIo: nothing changed.
  void publish(const std::string& name) const;
  // Undoes publish(). was_there: the name had a file before, which gets this weight version.
  void restore(const std::string& name, bool was_there, uint64_t weight_version) const;
  // The set, its constants in memory of its own, except those of the package. kIo, kCorruptPackage, kOutOfMemory;
  // kFailedPrecondition if the file belongs to another package.
  struct Content {
    Words words;
    std::shared_ptr<const ConstantSet> set;
  };
  Content read(const std::string& name) const;
  void remove(const std::string& name) const noexcept;
  void drop_waiting(const std::string& name) const noexcept;
  void drop_replaced(const std::string& name) const noexcept;

 private:
  std::filesystem::path path_of(const std::string& name) const { return folder_ / (name + ".safetensors"); }
  // Begins with a dot, so that no set is called this.
  std::filesystem::path beside(const std::string& name, const char* suffix) const {
    return folder_ / ("." + name + suffix);
  }
  void write_names() const;

  const std::filesystem::path folder_;
  const ConstantTable& table_;
  const std::shared_ptr<const ConstantSet> packaged_;
};

// 1 to 64 of A-Z a-z 0-9 . _ - without a dot at the start: fit for URLs, headers, labels of metrics and files.
bool is_set_name(std::string_view name) noexcept;

}  // namespace sconce::runner
