#include "server/registry/remote/range_journal.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/files.h"

namespace sconce::server::registry {
namespace {

const DownloadTerms kTerms{"\"e\"", "", 25, 10};

TEST_CASE("a journal says which segments are finished") {
  const std::string head = journal_head(kTerms, "boot");
  CHECK(parse_journal(head, "boot")->finished == std::vector<bool>{false, false, false});
  const auto state = parse_journal(head + "2\n0\n", "boot");
  REQUIRE(state);
  CHECK(state->terms == kTerms);
  CHECK(state->finished == std::vector<bool>{true, false, true});
  // The process was killed while it wrote a line.
  CHECK(parse_journal(head + "2\n1", "boot")->finished == std::vector<bool>{false, false, true});
}

TEST_CASE("what is no journal of this boot does not count") {
  const std::string head = journal_head(kTerms, "boot");
  CHECK_FALSE(parse_journal(head, "another"));
  CHECK_FALSE(parse_journal(head, ""));
  CHECK_FALSE(parse_journal("", "boot"));
  CHECK_FALSE(parse_journal("{}\n", "boot"));
  CHECK_FALSE(parse_journal("[]\n", "boot"));
  CHECK_FALSE(parse_journal(head + "3\n", "boot"));
  CHECK_FALSE(parse_journal(head + "x\n", "boot"));
  CHECK_FALSE(parse_journal(journal_head({"e", "", 25, 0}, "boot"), "boot"));
  CHECK_FALSE(parse_journal(journal_head({"e", "", UINT64_MAX, 1}, "boot"), "boot"));
  // Bytes and segment have a sum that 64 bits do not hold.
  CHECK_FALSE(parse_journal(journal_head({"e", "", UINT64_MAX, 2}, "boot"), "boot"));
  for (const char* bytes : {"-1", "1e3", "25.0", "\"25\"", "18446744073709551616"})
    CHECK_FALSE(parse_journal(
        R"({"etag":"e","linked":"","segment":10,"boot":"boot","bytes":)" + std::string(bytes) + "}\n", "boot"));
}

TEST_CASE("a journal is read back by the next process") {
  const TempFolder folder;
  const std::string path = folder.path() / "part.journal";
  {
    RangeJournal journal(path);
    CHECK_FALSE(journal.read());
    journal.open(kTerms, true);
    journal.finish(1);
  }
  RangeJournal journal(path);
  REQUIRE(journal.read());
  journal.open(kTerms, false);
  journal.finish(2);
  CHECK(journal.read()->finished == std::vector<bool>{false, true, true});
  journal.remove();
  CHECK_FALSE(journal.read());
}

}  // namespace
}  // namespace sconce::server::registry
