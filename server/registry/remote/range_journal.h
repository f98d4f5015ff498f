// RangeJournal: which segments of an unfinished download are in its file, so that a later process goes on where a
// killed one ended. A text file beside the download: a line of JSON, then the number of a finished segment a line.
//
// Bytes are not forced to the disk. So what a machine wrote before it crashed does not count: the journal names the
// boot. Thread-safe after open().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/support/files/descriptor.h"

namespace sconce::server {

// What a download is of. Another file has another one.
struct DownloadTerms {
  std::string etag;      // as the server sent it
  std::string linked;    // a hub's own; empty: none
  uint64_t bytes = 0;    // of the whole file
  uint64_t segment = 0;  // of a segment; the last one is shorter
  friend bool operator==(const DownloadTerms&, const DownloadTerms&) = default;
  uint64_t segments() const noexcept { return segment ? bytes / segment + (bytes % segment != 0) : 0; }
};

// A file of more is not taken: what a server says of its size is believed before the first byte has come.
constexpr uint64_t kMaxSegments = uint64_t{1} << 24;

struct JournalState {
  DownloadTerms terms;
  std::vector<bool> finished;
};

// nullopt for what is no journal of this boot. Lines that were cut off do not count.
std::optional<JournalState> parse_journal(std::string_view text, std::string_view boot);
std::string journal_head(const DownloadTerms& terms, std::string_view boot);

// Names this run of the kernel; "" where it does not tell.
std::string boot_id();

class RangeJournal {
 public:
  explicit RangeJournal(std::string path) : path_(std::move(path)) {}
  // What an earlier process left; nullopt: nothing to go on with.
  std::optional<JournalState> read() const;
  // Begins anew, or goes on with the one that was read. kIo.
  void open(const DownloadTerms& terms, bool anew);
  void finish(uint64_t segment) const;  // kIo
  void remove() const noexcept;

 private:
  const std::string path_;
  Descriptor file_;
};

}  // namespace sconce::server
