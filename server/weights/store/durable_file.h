// DurableFile: a file that is written under a temporary name and renamed when all bytes are on disk. After a crash at
// any moment, the name has the old content or the new content. Errors are kIo and name the file and the reason.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "server/support/files/descriptor.h"

namespace sconce::server::weights {

class DurableFile {
 public:
  static constexpr const char* kUnfinished = ".part";  // suffix of the temporary name

  // directory: descriptor of the folder; outlives this object. path: the directory's name, for errors.
  DurableFile(int directory, std::string path, std::string name);
  DurableFile(const DurableFile&) = delete;
  ~DurableFile();  // without keep(), the temporary file is removed
  void write(std::span<const std::byte> bytes);
  // Returns when bytes and name are on disk.
  void keep();

 private:
  const int directory_;
  const std::string path_, name_;
  Descriptor file_;
  bool kept_ = false;
};

// The message for errno.
std::string system_reason();
// Makes created and removed names in the directory durable.
void sync_directory(int directory, const std::string& path);
// The whole content of a small file; kNotFound if it does not exist, kIo.
std::string read_small_file(int directory, const std::string& path, const std::string& name);

}  // namespace sconce::server::weights
