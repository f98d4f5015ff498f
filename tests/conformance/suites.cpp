#include "tests/conformance/suites.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

extern char** environ;

namespace sconce::conformance {
namespace {

namespace fs = std::filesystem;

void unpack(const fs::path& archive, const fs::path& folder) {
  fs::create_directories(folder);
  const std::string from = archive.string(), to = folder.string();
  const char* arguments[] = {"tar", "-xf", from.c_str(), "-C", to.c_str(), nullptr};
  pid_t process = -1;
  const int error = ::posix_spawnp(&process, "tar", nullptr, nullptr, const_cast<char**>(arguments), environ);
  if (error != 0) throw std::runtime_error(std::string("cannot start tar: ") + std::strerror(error));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("tar cannot unpack " + from);
}

bool is_case(const fs::path& folder) { return fs::exists(folder / "case.json"); }

// Cases of a suite folder, or of a folder of suites.
void collect(const fs::path& folder, std::vector<FoundCase>& found) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_directory()) continue;
    if (is_case(entry.path()))
      found.push_back({folder.filename().string() + "/" + entry.path().filename().string(), entry.path()});
    else
      collect(entry.path(), found);
  }
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "sconce-conformance-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary folder: " + name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<FoundCase> find_cases(const std::vector<std::string>& arguments, const ScratchFolder& scratch) {
  std::vector<FoundCase> found;
  size_t archives = 0;
  for (const std::string& argument : arguments) {
    const size_t before = found.size();
    fs::path path = fs::absolute(argument).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    if (fs::is_regular_file(path)) {
      const fs::path folder = scratch.path() / std::to_string(archives++);
      unpack(path, folder);
      collect(folder, found);
    } else if (is_case(path)) {
      found.push_back({path.parent_path().filename().string() + "/" + path.filename().string(), path});
    } else if (fs::is_directory(path)) {
      // A folder of packed suites counts as these suites.
      std::vector<fs::path> packed;
      for (const fs::directory_entry& entry : fs::directory_iterator(path))
        if (entry.path().string().ends_with(".tar.xz")) packed.push_back(entry.path());
      for (const fs::path& archive : packed) {
        const fs::path folder = scratch.path() / std::to_string(archives++);
        unpack(archive, folder);
        collect(folder, found);
      }
      collect(path, found);
    } else {
      throw std::runtime_error("no such suite or case: " + argument);
    }
    if (found.size() == before) throw std::runtime_error("no case in: " + argument);
  }
  std::sort(found.begin(), found.end(), [](const FoundCase& a, const FoundCase& b) { return a.name < b.name; });
  return found;
}

}  // namespace sconce::conformance
