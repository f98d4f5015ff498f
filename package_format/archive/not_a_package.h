// Refuses paths that hold no package, as users name them by mistake, before anything is read of them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace sconce {

// A member of all archives, and where their models are.
inline constexpr std::string_view kFormatMember = "archive_format";
inline constexpr std::string_view kModelFolder = "data/aotinductor/";

// kUnsupported unless the directory, or one in it, has an archive's layout; kIo if it cannot be listed. Any directory
// may be named, "/" too, so no file is opened and nothing below is listed.
void check_has_layout(const std::filesystem::path& directory);

// Refuses a file that is neither an archive nor a library: kCorruptPackage if it is empty, else kUnsupported. Names
// kinds that are often mistaken for one. Shows nothing of the content, because errors reach clients.
[[noreturn]] void refuse_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace sconce
