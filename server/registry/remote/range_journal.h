// RangeJournal: the finished segments of a download in progress, so that a later process can resume it. A text file
// beside the download: a line of JSON, then one segment number per line.
//
// Bytes are not synced to disk, so data written before a crash of the machine is not trusted: the journal names the
// boot. Thread-safe after open().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/support/files/descriptor.h"

namespace sconce::server::registry {

// Identifies the remote file of a download.
struct DownloadTerms {
  std::string etag;      // as the server sent it
  std::string linked;    // the hub's ETag; empty: none
  uint64_t bytes = 0;    // of the whole file
  uint64_t segment = 0;  // of a segment; the last segment may be shorter
  friend bool operator==(const DownloadTerms&, const DownloadTerms&) = default;
  uint64_t segments() const noexcept { return segment ? bytes / segment + (bytes % segment != 0) : 0; }
};

// Maximum number of segments. Larger files are refused, because the size is the server's claim until the first byte has
// arrived.
constexpr uint64_t kMaxSegments = uint64_t{1} << 24;

struct JournalState {
  DownloadTerms terms;
  std::vector<bool> finished;
};

// nullopt unless the text is a journal of this boot. Truncated lines are ignored.
std::optional<JournalState> parse_journal(std::string_view text, std::string_view boot);
std::string journal_head(const DownloadTerms& terms, std::string_view boot);

// Identifies the current boot; "" if unknown.
std::string boot_id();

class RangeJournal {
 public:
  explicit RangeJournal(std::string path) : path_(std::move(path)) {}
  // The journal of an earlier process; nullopt: nothing to resume.
  std::optional<JournalState> read() const;
  // anew: starts a new journal; otherwise appends to the one that was read. kIo.
  void open(const DownloadTerms& terms, bool anew);
  void finish(uint64_t segment) const;  // kIo
  void remove() const noexcept;

 private:
  const std::string path_;
  Descriptor file_;
};

}  // namespace sconce::server::registry
