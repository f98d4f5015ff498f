#include "server/rollout/work/audit_log.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/rollout/work/admin_request.h"
#include "server/support/json_document.h"
#include "tests/errors.h"
#include "tests/files.h"

namespace sconce::server::rollout {
namespace {

AuditEntry entry_of(std::string_view event, std::string model = "digits") {
  AuditEntry entry;
  entry.event = event;
  entry.model = std::move(model);
  entry.version = 1;
  return entry;
}

// An array of the file's lines.
OrderedJson lines_of(const std::filesystem::path& path) {
  OrderedJson lines = OrderedJson::array();
  std::istringstream text(content_of(path));
  for (std::string line; std::getline(text, line);) {
    OrderedJson json = OrderedJson::parse(line, nullptr, false);
    CHECK_MESSAGE(json.is_object(), line);
    lines.push_back(std::move(json));
  }
  return lines;
}

AdminRequest request_of(std::string peer, std::string agent) {
  AdminRequest request;
  request.peer = std::move(peer);
  request.user_agent = std::move(agent);
  request.authorization = "Bearer secret-secret-secret";
  request.has_token = true;
  return request;
}

}  // namespace

TEST_CASE("audit log: a line has what is known, and who did it") {
  const TempFolder folder;
  telemetry::UpdateCounters counters;
  AuditLog log(counters, folder / "audit.jsonl");
  const AdminRequest request = request_of("10.0.0.1:5000", "curl/8");
  {
    const AuditRequest scope(request);
    AuditEntry entry = entry_of("committed");
    entry.before = 1;
    entry.weight_version = 2;
    entry.label = "v2";
    entry.digest = "sha-256:00";
    entry.push = "p1";
    entry.verdict = R"({"verdict":"passed"})";
    entry.server = "not this";
    log.add(entry);
  }
  AuditEntry settled = entry_of("aborted");
  settled.server = "the other servers of the push";
  settled.reason = "why";
  log.add(settled);
  log.add(entry_of("expired"));
  const OrderedJson lines = lines_of(folder / "audit.jsonl");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["time"].get<std::string>().size() == std::string("2026-01-31T12:00:00.000Z").size());
  CHECK(lines[0]["event"] == "committed");
  CHECK(lines[0]["model"] == "digits");
  CHECK(lines[0]["version"] == "1");
  CHECK(lines[0]["before"] == 1);
  CHECK(lines[0]["generation"] == 2);
  CHECK(lines[0]["label"] == "v2");
  CHECK(lines[0]["digest"] == "sha-256:00");
  CHECK(lines[0]["push"] == "p1");
  CHECK(lines[0]["golden"]["verdict"] == "passed");
  CHECK(lines[0]["by"]["client"] == "10.0.0.1:5000");
  CHECK(lines[0]["by"]["request"] == request.id.text());
  CHECK(lines[0]["by"]["user_agent"] == "curl/8");
  CHECK(lines[0]["by"]["token"] == "admin");
  CHECK(!contains(content_of(folder / "audit.jsonl"), "secret"));
  CHECK(lines[1]["by"] == OrderedJson{{"server", "the other servers of the push"}});
  CHECK(lines[1]["reason"] == "why");
  CHECK(!lines[1].contains("before"));
  CHECK(!lines[1].contains("label"));
  CHECK(lines[2]["by"] == OrderedJson{{"server", "this one"}});
  struct stat status {};
  REQUIRE(::stat((folder / "audit.jsonl").c_str(), &status) == 0);
  CHECK((status.st_mode & 0007) == 0);
  CHECK(counters.audit_failures == 0);
}

TEST_CASE("audit log: hostile text stays one line of JSON") {
  const TempFolder folder;
  telemetry::UpdateCounters counters;
  AuditLog log(counters, folder / "audit.jsonl");
  const std::string hostile = "a\n{\"event\":\"committed\"}\r\0\x1b[31m\xff\xc3(\"\\", nul = std::string("b\0c", 3);
  const AdminRequest request = request_of(hostile, hostile + std::string(10'000, 'x'));
  const AuditRequest scope(request);
  AuditEntry entry = entry_of("refused", hostile);
  entry.label = nul;
  entry.reason = hostile;
  entry.set = hostile;
  log.add(entry);
  log.add(entry);
  const OrderedJson lines = lines_of(folder / "audit.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["event"] == "refused");
  CHECK(lines[0]["label"] == nul);
  CHECK(lines[0]["by"]["user_agent"].get<std::string>().size() < 300);
}

TEST_CASE("audit log: a full disk loses the line, is counted, and what comes later is told") {
  telemetry::UpdateCounters counters;
  AuditLog full(counters, "/dev/full");
  full.add(entry_of("committed"));
  full.add(entry_of("rolled_back"));
  CHECK(counters.audit_failures == 2);
  CHECK(full.last("", 10).size() == 2);  // memory has them all the same

  const TempFolder folder;
  telemetry::UpdateCounters unopened;
  AuditLog nowhere(unopened, folder / "missing" / "audit.jsonl");
  CHECK(unopened.audit_failures == 1);  // opening fails once
  nowhere.add(entry_of("committed"));
  CHECK(unopened.audit_failures == 2);
  std::filesystem::create_directory(folder / "missing");
  nowhere.add(entry_of("rolled_back"));
  CHECK(unopened.audit_failures == 2);
  CHECK(lines_of(folder / "missing" / "audit.jsonl").size() == 1);
}

TEST_CASE("audit log: a file that was moved or removed is made anew") {
  const TempFolder folder;
  const std::filesystem::path path = folder / "audit.jsonl";
  telemetry::UpdateCounters counters;
  AuditLog log(counters, path);
  log.add(entry_of("one"));
  std::filesystem::rename(path, folder / "audit.jsonl.1");
  log.add(entry_of("two"));
  std::filesystem::remove(path);
  log.add(entry_of("three"));
  CHECK(lines_of(folder / "audit.jsonl.1").front()["event"] == "one");
  REQUIRE(lines_of(path).size() == 1);
  CHECK(lines_of(path).front()["event"] == "three");
  // A log appends to a file of another server or of an earlier process.
  AuditLog second(counters, path);
  second.add(entry_of("four"));
  log.add(entry_of("five"));
  CHECK(lines_of(path).size() == 3);
}

TEST_CASE("audit log: threads write whole lines") {
  const TempFolder folder;
  telemetry::UpdateCounters counters;
  AuditLog log(counters, folder / "audit.jsonl");
  constexpr int kThreads = 8, kEach = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const AdminRequest request = request_of("client " + std::to_string(t), "");
      const AuditRequest scope(request);
      for (int i = 0; i < kEach; ++i) {
        AuditEntry entry = entry_of("committed");
        entry.weight_version = static_cast<uint64_t>(i) + 1;
        log.add(entry);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::map<std::string, int> next;
  const OrderedJson lines = lines_of(folder / "audit.jsonl");
  CHECK(lines.size() == kThreads * kEach);
  for (const OrderedJson& line : lines) CHECK(line["generation"] == ++next[line["by"]["client"]]);
  // Memory has the last entries in the same order.
  const std::vector<std::string> kept = log.last("digits", 10'000);
  REQUIRE(kept.size() == 512);
  for (size_t i = 0; i < kept.size(); ++i) CHECK(OrderedJson::parse(kept[i]) == lines[lines.size() - kept.size() + i]);
}

TEST_CASE("audit log: the last entries of a model") {
  telemetry::UpdateCounters counters;
  AuditLog log(counters);
  CHECK(!log.has_file());
  for (int i = 0; i < 5; ++i)
    for (const char* model : {"a", "b"}) {
      AuditEntry entry = entry_of("committed", model);
      entry.weight_version = static_cast<uint64_t>(i) + 1;
      log.add(entry);
    }
  CHECK(log.last("", 100).size() == 10);
  CHECK(log.last("none", 100).empty());
  CHECK(log.last("a", 0).empty());
  const std::vector<std::string> two = log.last("a", 2);
  REQUIRE(two.size() == 2);
  CHECK(OrderedJson::parse(two[0])["generation"] == 4);
  CHECK(OrderedJson::parse(two[1])["generation"] == 5);
  CHECK(counters.audit_failures == 0);
}

}  // namespace sconce::server::rollout
