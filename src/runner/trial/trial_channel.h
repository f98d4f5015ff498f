// What goes over the socket between a process and its trial: a head, descriptors of the package's files, then a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sconce::runner {

inline constexpr int kTrialSocket = 3;  // in the child
inline constexpr uint64_t kTrialMagic = 0x3154'6543'6e6f'6353;
inline constexpr size_t kMaxTrialFiles = 65536;
inline constexpr size_t kMaxTrialText = size_t{64} << 20;
// Descriptors that go with one byte. The kernel allows 253.
inline constexpr size_t kFilesPerMessage = 128;
// The last line of a report that is complete. Lines of JSON begin with a brace.
inline constexpr std::string_view kTrialEnd = "end";

struct TrialHead {
  uint64_t magic = kTrialMagic;
  uint64_t parent = 0;     // process id
  uint64_t files = 0;      // descriptors; kFilesPerMessage of them with each byte that follows, in order
  uint64_t directory = 0;  // 1: the files of a directory
  uint64_t text = 0;       // bytes of the text: JSON {"name", "files": [{"path", "bytes"}], "request"}
};

}  // namespace sconce::runner
