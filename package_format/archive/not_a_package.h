// Refuses paths that are commonly mistaken for packages, before any content is read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace sconce {

// A member of all archives, next to their models.
inline constexpr std::string_view kFormatMember = "archive_format";
inline constexpr std::string_view kModelFolder = "data/aotinductor/";

// kUnsupported unless the directory, or one in it, has an archive's layout; kIo if it cannot be listed. The path may
// be any directory, even "/", so no file is opened and nothing below is listed.
void check_has_layout(const std::filesystem::path& directory);

// Refuses a file that is neither an archive nor a library: kCorruptPackage if it is empty, else kUnsupported. Names
// the kind of file if it is a common mistake. The error contains no content, because errors reach clients.
[[noreturn]] void refuse_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

}  // namespace sconce
