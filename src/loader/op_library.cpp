#include "src/loader/op_library.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "package_format/elf_image.h"
#include "sconce/check.h"
#include "sconce/mutex.h"
#include "src/loader/preflight.h"

namespace sconce::loader {
namespace {

// A mapped file and its identity.
class MappedLibrary {
 public:
  explicit MappedLibrary(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    SCONCE_CHECK(fd >= 0, kIo, "library of custom operators ", path, ": ", std::strerror(errno));
    struct stat status {};
    const bool known = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    if (known) {
      size_ = static_cast<size_t>(status.st_size);
      identity_ = {status.st_dev, status.st_ino};
      data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    ::close(fd);
    SCONCE_CHECK(known, kIo, "library of custom operators ", path, ": not a file with contents");
    SCONCE_CHECK(data_ != MAP_FAILED, kIo, "library of custom operators ", path, ": ", std::strerror(errno));
  }
  MappedLibrary(const MappedLibrary&) = delete;
  MappedLibrary& operator=(const MappedLibrary&) = delete;
  ~MappedLibrary() {
    if (data_ != MAP_FAILED) ::munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const noexcept { return {static_cast<const std::byte*>(data_), size_}; }
  std::pair<dev_t, ino_t> identity() const noexcept { return identity_; }

 private:
  void* data_ = MAP_FAILED;
  size_t size_ = 0;
  std::pair<dev_t, ino_t> identity_{};
};

// Whether packages can link to it: it has C functions for operators (aot_inductor.custom_ops_to_c_shims).
bool has_c_functions(const ElfImage& image) {
  for (size_t i = 1; i < image.symbol_count(); ++i)
    if (image.symbol(i).st_shndx != SHN_UNDEF && image.symbol_name(i).starts_with("aoti_torch_c")) return true;
  return false;
}

// Its name in errors. A copy in memory that is opened by its descriptor has the name of its creation.
std::string name_of(const std::filesystem::path& path) {
  constexpr std::string_view kMemory = "/memfd:", kGone = " (deleted)";
  std::error_code problem;
  std::string target;
  if (path.native().starts_with("/proc/self/fd/")) target = std::filesystem::read_symlink(path, problem).string();
  if (!target.starts_with(kMemory)) return path.filename().string();
  if (target.ends_with(kGone)) target.resize(target.size() - kGone.size());
  return target.substr(kMemory.size());
}

struct Opened {
  Mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<const OpLibrary>> libraries SCONCE_GUARDED_BY(mutex);
};
Opened& opened() {
  static Opened instance;
  return instance;
}

}  // namespace

std::shared_ptr<const OpLibrary> OpLibrary::open(const std::filesystem::path& path) {
  const MappedLibrary file(path.string());
  Opened& all = opened();
  const MutexLock lock(all.mutex);
  if (auto known = all.libraries[file.identity()].lock()) return known;
  const std::string name = name_of(path);
  const ElfImage image(file.bytes(), name);
  check_op_library(image);

  auto library = std::shared_ptr<OpLibrary>(new OpLibrary);
  custom_ops::Collection collection;
  library->library_ = SharedLibrary::load(image);  // runs its initialisers, which register operators
  if (void* found = library->library_.find("sconce_custom_ops")) {
    const auto registers = reinterpret_cast<decltype(&sconce_custom_ops)>(found);
    const int code = registers(&custom_ops::plain_host(), reinterpret_cast<SconceRegistry*>(&collection));
    if (code != 0) collection.add_error("sconce_custom_ops returned " + std::to_string(code));
  } else {
    SCONCE_CHECK(!collection.empty() || has_c_functions(image), kIncompatible, "library of custom operators ", name,
                 ": it registers nothing, neither through STABLE_TORCH_LIBRARY nor by exporting sconce_custom_ops, and "
                 "has no C functions aoti_torch_cpu_OPERATOR or aoti_torch_cuda_OPERATOR");
  }
  library->operators_ = collection.finish(name);
  library->library_.make_global();
  all.libraries[file.identity()] = library;
  return library;
}

std::vector<std::shared_ptr<const OpLibrary>> OpLibrary::open_all(std::span<const std::filesystem::path> paths) {
  std::vector<std::shared_ptr<const OpLibrary>> opened;
  for (const std::filesystem::path& path : paths) opened.push_back(open(path));
  return opened;
}

}  // namespace sconce::loader
