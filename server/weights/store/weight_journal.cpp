#include "server/weights/store/weight_journal.h"

#include <algorithm>
#include <utility>

#include "sconce/check.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "src/support/excerpt.h"

namespace sconce::server::weights {
namespace {

constexpr uint64_t kFormat = 1;
constexpr size_t kMaxSets = 16;

// The member with that name; null: none.
std::string* text_of(StoredSet& set, std::string_view key) {
  return key == "label"     ? &set.label
         : key == "digest"  ? &set.digest
         : key == "file"    ? &set.file
         : key == "sha256"  ? &set.sha256
         : key == "time"    ? &set.time
         : key == "peer"    ? &set.by.peer
         : key == "request" ? &set.by.request
                            : nullptr;
}

// The journal also has the former names, deprecated, so that the release before can read it.
bool is_version_key(std::string_view key) noexcept { return key == "weight_version" || key == "generation"; }

bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

OrderedJson json_of(const StoredSet& set) {
  OrderedJson json = {{"weight_version", set.weight_version},
                      {"generation", set.weight_version},  // deprecated
                      {"label", set.label},
                      {"digest", set.digest},
                      {"file", set.file},
                      {"bytes", set.bytes},
                      {"time", set.time},
                      {"peer", set.by.peer},
                      {"request", set.by.request}};
  if (!set.sha256.empty()) json["sha256"] = set.sha256;
  return json;
}

OrderedJson json_of(const StoredGuard& guard) {
  return {{"window_us", guard.bounds.window.count()},
          {"left_us", guard.left.count()},
          {"errors", guard.bounds.errors},
          {"nan", guard.bounds.nan},
          {"p99_us", guard.bounds.p99.count()},
          {"push", guard.push},
          {"instance", guard.instance},
          {"ended", guard.ended}};
}

OrderedJson json_of(const StoredPush& push) {
  OrderedJson json = {{"push", push.id}, {"state", push.state}, {"label", push.label}};
  if (!push.set.empty()) json["set"] = push.set;
  if (push.weight_version != 0) {
    json["weight_version"] = push.weight_version;
    json["generation"] = push.weight_version;  // deprecated
    json["stored"] = push.stored;
    json["kept"] = push.stored;
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

void check_weight_version(uint64_t weight_version, const std::string& where) {
  SCONCE_CHECK(weight_version > 0 && weight_version < INT64_MAX, kCorruptPackage, where,
               ": no weight version: ", weight_version);
}

StoredSet read_set(JsonCursor& json, const std::string& where) {
  StoredSet set;
  json.object("a set", [&](std::string_view key) {
    if (is_version_key(key))
      set.weight_version = json.unsigned_integer(key);
    else if (key == "bytes")
      set.bytes = json.unsigned_integer("'bytes'");
    else if (std::string* const member = text_of(set, key))
      *member = json.string(key);
    else
      json.skip();
  });
  SCONCE_CHECK(is_plain_name(set.file), kCorruptPackage, where, ": not a file's name: '", excerpt(set.file), "'");
  check_weight_version(set.weight_version, where);
  SCONCE_CHECK(!set.digest.empty(), kCorruptPackage, where, ": a set has no digest");
  return set;
}

StoredGuard read_guard(JsonCursor& json) {
  StoredGuard guard;
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

StoredPush read_push(JsonCursor& json, const std::string& where) {
  StoredPush push;
  json.object("a push", [&](std::string_view key) {
    if (key == "push")
      push.id = json.string("'push'");
    else if (key == "state")
      push.state = json.string("'state'");
    else if (key == "label")
      push.label = json.string("'label'");
    else if (key == "set")
      push.set = json.string("'set'");
    else if (is_version_key(key))
      check_weight_version(push.weight_version = json.unsigned_integer(key), where);
    else if (key == "stored" || key == "kept")
      push.stored = json.boolean(key);
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

void Journal::note(StoredPush push) {
  const auto same =
      std::find_if(pushes.begin(), pushes.end(), [&](const StoredPush& one) { return one.id == push.id; });
  if (same != pushes.end()) {
    *same = std::move(push);
    return;
  }
  pushes.push_back(std::move(push));
  if (pushes.size() > kMaxPushes) pushes.erase(pushes.begin());
}

std::string push_text(const StoredPush& push) { return dump(json_of(push)); }

std::optional<StoredPush> parse_push(std::string_view text) {
  std::optional<StoredPush> push;
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
  for (const StoredSet& set : journal.sets) json["sets"].push_back(json_of(set));
  if (journal.guard) json["guard"] = json_of(*journal.guard);
  if (!journal.pushes.empty()) json["pushes"] = OrderedJson::array();
  for (const StoredPush& push : journal.pushes) json["pushes"].push_back(json_of(push));
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

}  // namespace sconce::server::weights
