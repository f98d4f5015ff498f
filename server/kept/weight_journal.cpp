#include "server/kept/weight_journal.h"

#include "sconce/check.h"
#include "sconce/excerpt.h"
#include "server/base/json_cursor.h"
#include "server/base/json_document.h"

namespace sconce::server {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kMostSets = 16;

// The member of that name; null: there is none.
std::string* text_of(KeptSet& set, std::string_view key) {
  return key == "label"     ? &set.label
         : key == "digest"  ? &set.digest
         : key == "file"    ? &set.file
         : key == "time"    ? &set.time
         : key == "peer"    ? &set.by.peer
         : key == "request" ? &set.by.request
                            : nullptr;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

}  // namespace

std::string journal_text(std::span<const KeptSet> sets) {
  OrderedJson list = OrderedJson::array();
  for (const KeptSet& set : sets) {
    list.push_back({{"generation", set.generation},
                    {"label", set.label},
                    {"digest", set.digest},
                    {"file", set.file},
                    {"bytes", set.bytes},
                    {"time", set.time},
                    {"peer", set.by.peer},
                    {"request", set.by.request}});
  }
  return dump({{"format", kFormat}, {"sets", std::move(list)}}) + "\n";
}

std::vector<KeptSet> parse_journal(std::string_view text, const std::string& where) {
  std::vector<KeptSet> sets;
  uint64_t format = 0;
  JsonCursor json(text);
  json.set_context(where);
  const auto read_set = [&](size_t) {
    SCONCE_CHECK(sets.size() < kMostSets, kCorruptPackage, where, ": too many sets");
    KeptSet& set = sets.emplace_back();
    json.object("a set", [&](std::string_view key) {
      if (key == "generation")
        set.generation = json.unsigned_integer("'generation'");
      else if (key == "bytes")
        set.bytes = json.unsigned_integer("'bytes'");
      else if (std::string* const member = text_of(set, key))
        *member = json.string(key);
      else
        json.skip();
    });
    SCONCE_CHECK(is_plain_name(set.file), kCorruptPackage, where, ": not a file's name: '", excerpt(set.file), "'");
    SCONCE_CHECK(set.generation > 0 && set.generation < INT64_MAX, kCorruptPackage, where,
                 ": no generation: ", set.generation);
    SCONCE_CHECK(!set.digest.empty(), kCorruptPackage, where, ": a set has no digest");
  };
  json.object("the journal", [&](std::string_view key) {
    if (key == "format")
      format = json.unsigned_integer("'format'");
    else if (key == "sets")
      json.array("'sets'", read_set);
    else
      json.skip();
  });
  json.finish();
  SCONCE_CHECK(format == kFormat, kCorruptPackage, where, ": unknown format ", format);
  return sets;
}

}  // namespace sconce::server
