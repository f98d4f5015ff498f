#include "server/registry/remote/range_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"
#include "server/support/trim.h"
#include "server/weights/store/durable_file.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

std::string text_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_whole(int file, std::string_view text, const std::string& path) {
  ssize_t written = 0;
  do {
    written = ::write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  SCONCE_CHECK(written == static_cast<ssize_t>(text.size()), kIo, "cannot write ", path, ": ",
               written < 0 ? weights::system_reason() : "the disk is full");
}

}  // namespace

std::string boot_id() { return std::string(trim(text_at("/proc/sys/kernel/random/boot_id"), " \r\n")); }

std::string journal_head(const DownloadTerms& terms, std::string_view boot) {
  return dump(OrderedJson{{"etag", terms.etag},
                          {"linked", terms.linked},
                          {"bytes", terms.bytes},
                          {"segment", terms.segment},
                          {"boot", std::string(boot)}}) +
         "\n";
}

std::optional<JournalState> parse_journal(std::string_view text, std::string_view boot) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || boot.empty()) return std::nullopt;
  const OrderedJson head = OrderedJson::parse(text.substr(0, end), nullptr, false);
  JournalState state;
  const bool read = head.is_object() && succeeds([&] {
                      SCONCE_CHECK(head.at("boot").get<std::string>() == boot, kNotFound, "another boot");
                      state.terms = {head.at("etag").get<std::string>(), head.at("linked").get<std::string>(),
                                     unsigned_at(head, "bytes"), unsigned_at(head, "segment")};
                    });
  if (!read || state.terms.segment == 0 || state.terms.bytes == 0 || state.terms.segments() > kMaxSegments)
    return std::nullopt;
  state.finished.resize(state.terms.segments());
  for (text.remove_prefix(end + 1);;) {
    const size_t line = text.find('\n');
    if (line == std::string_view::npos) return state;
    const auto segment = parse_number<uint64_t>(text.substr(0, line));
    if (!segment || *segment >= state.finished.size()) return std::nullopt;
    state.finished[*segment] = true;
    text.remove_prefix(line + 1);
  }
}

std::optional<JournalState> RangeJournal::read() const { return parse_journal(text_at(path_), boot_id()); }

void RangeJournal::open(const DownloadTerms& terms, bool anew) {
  file_ = Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (anew ? O_TRUNC : 0), 0600));
  SCONCE_CHECK(file_.get() >= 0, kIo, "cannot write ", path_, ": ", weights::system_reason());
  if (anew) write_whole(file_.get(), journal_head(terms, boot_id()), path_);
}

void RangeJournal::finish(uint64_t segment) const { write_whole(file_.get(), std::to_string(segment) + "\n", path_); }

void RangeJournal::remove() const noexcept { ::unlink(path_.c_str()); }

}  // namespace sconce::server::registry
