// DurableFile: a file that is written under another name and takes its own when all bytes are on the disk. After a
// crash at any moment, the name has the old content or the new one. Errors are kIo and name the file and the reason.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "server/support/files/descriptor.h"

namespace sconce::server {

class DurableFile {
 public:
  static constexpr const char* kUnfinished = ".part";  // after the name, while it is written

  // directory: where; outlives this. path: the directory's name, for errors.
  DurableFile(int directory, std::string path, std::string name);
  DurableFile(const DurableFile&) = delete;
  ~DurableFile();  // without keep(), what was written is removed
  void write(std::span<const std::byte> bytes);
  // Returns when bytes and name are on the disk.
  void keep();

 private:
  const int directory_;
  const std::string path_, name_;
  Descriptor file_;
  bool kept_ = false;
};

// What errno says.
std::string system_reason();
// Makes names that were given or removed in the directory durable.
void sync_directory(int directory, const std::string& path);
// The whole content of a small file; kNotFound if there is none, kIo.
std::string read_small_file(int directory, const std::string& path, const std::string& name);

}  // namespace sconce::server
