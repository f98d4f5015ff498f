#include "server/weights/store/weight_journal.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"

namespace sconce::server {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kMaxSets = 16;

// The member with that name; null: none.
std::string* text_of(KeptSet& set, std::string_view key) {
  return key == "label"     ? &set.label
         : key == "digest"  ? &set.digest
         : key == "file"    ? &set.file
         : key == "sha256"  ? &set.sha256
         : key == "time"    ? &set.time
         : key == "peer"    ? &set.by.peer
         : key == "request" ? &set.by.request
                            : nullptr;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

OrderedJson json_of(const KeptSet& set) {
  OrderedJson json = {
      {"generation", set.generation}, {"label", set.label}, {"digest", set.digest}, {"file", set.file},
      {"bytes", set.bytes},           {"time", set.time},   {"peer", set.by.peer},  {"request", set.by.request}};
  if (!set.sha256.empty()) json["sha256"] = set.sha256;
  return json;
}

OrderedJson json_of(const KeptGuard& guard) {
  return {{"window_us", guard.bounds.window.count()},
          {"left_us", guard.left.count()},
          {"errors", guard.bounds.errors},
          {"nan", guard.bounds.nan},
          {"p99_us", guard.bounds.p99.count()},
          {"push", guard.push},
          {"instance", guard.instance},
          {"ended", guard.ended}};
}

OrderedJson json_of(const KeptPush& push) {
  OrderedJson json = {{"push", push.id}, {"state", push.state}, {"label", push.label}};
  if (!push.set.empty()) json["set"] = push.set;
  if (push.generation != 0) {
    json["generation"] = push.generation;
    json["kept"] = push.kept;
  }
  if (!push.members.empty()) {
    json["members"] = push.members;
    json["member"] = push.member;
  }
  return json;
}

std::chrono::microseconds read_time(JsonCursor& json, std::string_view what) {
  const uint64_t count = json.unsigned_integer(what);
  if (count > INT64_MAX) json.fail("no time");
  return std::chrono::microseconds(count);
}

void check_generation(uint64_t generation, const std::string& where) {
  SCONCE_CHECK(generation > 0 && generation < INT64_MAX, kCorruptPackage, where, ": no generation: ", generation);
}

KeptSet read_set(JsonCursor& json, const std::string& where) {
  KeptSet set;
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
  check_generation(set.generation, where);
  SCONCE_CHECK(!set.digest.empty(), kCorruptPackage, where, ": a set has no digest");
  return set;
}

KeptGuard read_guard(JsonCursor& json) {
  KeptGuard guard;
  json.object("'guard'", [&](std::string_view key) {
    if (key == "window_us")
      guard.bounds.window = read_time(json, "'window_us'");
    else if (key == "left_us")
      guard.left = read_time(json, "'left_us'");
    else if (key == "errors")
      guard.bounds.errors = json.number("'errors'");
    else if (key == "nan")
      guard.bounds.nan = json.number("'nan'");
    else if (key == "p99_us")
      guard.bounds.p99 = read_time(json, "'p99_us'");
    else if (key == "push")
      guard.push = json.string("'push'");
    else if (key == "instance")
      guard.instance = json.string("'instance'");
    else if (key == "ended")
      guard.ended = json.unsigned_integer("'ended'");
    else
      json.skip();
  });
  guard.left = std::min(guard.left, guard.bounds.window);
  return guard;
}

KeptPush read_push(JsonCursor& json, const std::string& where) {
  KeptPush push;
  json.object("a push", [&](std::string_view key) {
    if (key == "push")
      push.id = json.string("'push'");
    else if (key == "state")
      push.state = json.string("'state'");
    else if (key == "label")
      push.label = json.string("'label'");
    else if (key == "set")
      push.set = json.string("'set'");
    else if (key == "generation")
      check_generation(push.generation = json.unsigned_integer("'generation'"), where);
    else if (key == "kept")
      push.kept = json.boolean("'kept'");
    else if (key == "members")
      json.array("'members'", [&](size_t) { push.members.emplace_back(json.string("a member")); });
    else if (key == "member")
      push.member = json.unsigned_integer("'member'");
    else
      json.skip();
  });
  SCONCE_CHECK(!push.id.empty(), kCorruptPackage, where, ": a push has no id");
  return push;
}

}  // namespace

void Journal::note(KeptPush push) {
  const auto same = std::find_if(pushes.begin(), pushes.end(), [&](const KeptPush& one) { return one.id == push.id; });
  if (same != pushes.end()) {
    *same = std::move(push);
    return;
  }
  pushes.push_back(std::move(push));
  if (pushes.size() > kMaxPushes) pushes.erase(pushes.begin());
}

std::string push_text(const KeptPush& push) { return dump(json_of(push)); }

std::optional<KeptPush> parse_push(std::string_view text) {
  std::optional<KeptPush> push;
  if (text.empty()) return push;
  const bool good = succeeds([&] {
    JsonCursor json(text);
    push = read_push(json, "the note of a named set");
    json.finish();
  });
  return good ? push : std::nullopt;
}

std::string journal_text(const Journal& journal) {
  OrderedJson json = {{"format", kFormat}, {"sets", OrderedJson::array()}};
  for (const KeptSet& set : journal.sets) json["sets"].push_back(json_of(set));
  if (journal.guard) json["guard"] = json_of(*journal.guard);
  if (!journal.pushes.empty()) json["pushes"] = OrderedJson::array();
  for (const KeptPush& push : journal.pushes) json["pushes"].push_back(json_of(push));
  return dump(json) + "\n";
}

Journal parse_journal(std::string_view text, const std::string& where) {
  Journal journal;
  uint64_t format = 0;
  JsonCursor json(text);
  json.set_context(where);
  json.object("the journal", [&](std::string_view key) {
    if (key == "format") {
      format = json.unsigned_integer("'format'");
    } else if (key == "sets") {
      json.array("'sets'", [&](size_t i) {
        SCONCE_CHECK(i < kMaxSets, kCorruptPackage, where, ": too many sets");
        journal.sets.push_back(read_set(json, where));
      });
    } else if (key == "guard") {
      journal.guard = read_guard(json);
    } else if (key == "pushes") {
      json.array("'pushes'", [&](size_t) { journal.note(read_push(json, where)); });
    } else {
      json.skip();
    }
  });
  json.finish();
  SCONCE_CHECK(format == kFormat, kCorruptPackage, where, ": unknown format ", format);
  if (journal.sets.empty()) journal.guard.reset();
  return journal;
}

}  // namespace sconce::server
