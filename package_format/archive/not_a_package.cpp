#include "package_format/archive/not_a_package.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "package_format/files/directory.h"
#include "sconce/check.h"
#include "src/support/excerpt.h"

namespace sconce {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShownNames = 3;

// Files that are commonly mistaken for a package.
struct Mistaken {
  std::string_view start, name;
};
constexpr Mistaken kMistaken[] = {
    {"version https://git-lfs", "a placeholder of Git LFS (git lfs pull fetches the file)"},
    {"<", "a web page or XML"},
    {"\x80", "a Python pickle"},
    {"\x1f\x8b", "compressed by gzip"},
};

bool is_there(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

bool has_layout(const fs::path& folder) { return is_there(folder / kFormatMember) || is_there(folder / kModelFolder); }

std::string first_few(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), kMaxShownNames)))
    text += (text.empty() ? "" : ", ") + excerpt(name);
  if (names.size() > kMaxShownNames) text += " and " + std::to_string(names.size() - kMaxShownNames) + " more";
  return text;
}

}  // namespace

void check_has_layout(const fs::path& directory) {
  std::error_code error;
  const std::vector<std::string> names = names_in(directory, error);
  SCONCE_CHECK(!error, kIo, "cannot read directory: ", directory.native(), ": ", error.message());
  SCONCE_CHECK(!names.empty(), kUnsupported, "directory is empty, not an AOTInductor package: ", directory.native());
  if (has_layout(directory)) return;
  if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return has_layout(directory / name); }))
    return;
  std::vector<std::string> packages;
  std::copy_if(names.begin(), names.end(), std::back_inserter(packages),
               [](const std::string& name) { return name.ends_with(".pt2"); });
  SCONCE_CHECK(packages.empty(), kUnsupported, "directory holds packages, but is not one: ", directory.native(),
               ": name a file in it: ", first_few(packages));
  SCONCE_FAIL(kUnsupported, "directory is not an AOTInductor package: it has neither ", kFormatMember, " nor ",
              kModelFolder, ": ", directory.native());
}

void refuse_file(const fs::path& path, std::span<const std::byte> bytes) {
  SCONCE_CHECK(!bytes.empty(), kCorruptPackage, "file is empty: ", path.native());
  const std::string_view content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto kind = std::find_if(std::begin(kMistaken), std::end(kMistaken),
                                 [&](const Mistaken& known) { return content.starts_with(known.start); });
  SCONCE_FAIL(kUnsupported, "file is neither a package nor a model library",
              kind == std::end(kMistaken) ? "" : ", but ", kind == std::end(kMistaken) ? "" : kind->name, ": ",
              path.native());
}

}  // namespace sconce
