#include "server/cli/weights/reconcile.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "server/cli/weights/push.h"
#include "server/support/json_cursor.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// How long after the end of a push's lease a renewal is still awaited.
constexpr auto kBeyond = 500ms;

enum class Decision : int8_t { kNone, kCommit, kUndo, kAbort, kWait };

struct Finding {
  Decision decision = Decision::kNone;
  std::string why;
  double wait = 0;  // seconds until the deciding server has decided
};

class Reconciliation {
 public:
  explicit Reconciliation(const ReconcileOptions& options) : options_(options), servers_(options.servers) {}

  bool look() {
    const std::vector<http::Answer> answers =
        ask_all(servers_.size(), [&](size_t i) { return servers_[i].get(target("/pushes")); });
    states_.clear();
    for (const http::Answer& answer : answers) states_.push_back(pushes_of(answer));
    return std::all_of(states_.begin(), states_.end(), [](const ServerPushes& s) { return s.answered; });
  }

  void report_silent() const {
    for (size_t i = 0; i < servers_.size(); ++i)
      if (!states_[i].answered) report(servers_[i], false, states_[i].problem);
  }

  // Decides all pushes that can be decided. Returns whether none is open.
  bool reconcile() {
    bool good = true;
    for (const std::string& id : open_ids()) good &= reconcile(id);
    return good;
  }

 private:
  std::string target(const std::string& action) const {
    return weights_target(options_.model, options_.version, action);
  }

  // Pushes that at least one server has not decided, and pushes that were undone on some servers only.
  std::set<std::string> open_ids() const {
    std::set<std::string> ids, undone;
    for (const ServerPushes& server : states_)
      for (const PushStatus& push : server.pushes)
        if (push.undone()) undone.insert(push.id);
    for (const ServerPushes& server : states_)
      for (const PushStatus& push : server.pushes)
        if (push.open() || (push.committed() && push.active && undone.contains(push.id))) ids.insert(push.id);
    return ids;
  }

  bool reconcile(const std::string& id) {
    double left = 0;
    for (Clock::time_point end = Clock::time_point::max();;) {
      const Finding finding = judge(id);
      if (finding.decision == Decision::kNone) return true;
      if (finding.decision != Decision::kWait) return carry_out(id, finding);
      // Its coordinator may be alive: then it renews the lease.
      if (finding.wait > 0 && end == Clock::time_point::max())
        end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(finding.wait * 1000)) + kBeyond;
      const bool renewed = left > 0 && finding.wait > left;
      if (finding.wait <= 0 || renewed || Clock::now() > end) {
        std::cout << red(fmt::format("push {} is not decided: {}", id, renewed ? "it is under way" : finding.why))
                  << "\n";
        return false;
      }
      left = finding.wait;
      std::this_thread::sleep_for(100ms);
      look();
    }
  }

  bool is_gone(const std::string& url) const {
    return std::any_of(options_.gone.begin(), options_.gone.end(),
                       [&](const std::string& gone) { return http::url_of(http::parse_admin_server(gone)) == url; });
  }

  // The rule: if one server has undone the push, all undo it; if one has committed, all commit; if the first server of
  // the push, or one that asked it, has ended the push, all end it.
  Finding judge(const std::string& id) const {
    const PushStatus* any = nullptr;
    bool open = false, committed = false, undone = false, ended = false, active = false, silent = false;
    std::set<size_t> seen;
    for (const ServerPushes& server : states_) {
      silent |= !server.answered;
      const PushStatus* const push = server.find(id);
      if (!push) continue;
      any = push->members.empty() && any ? any : push;
      seen.insert(push->member);
      open |= push->open();
      committed |= push->committed();
      active |= push->committed() && push->active;
      undone |= push->undone();
      ended |= push->ended();
    }
    if (!any || (!open && !(undone && active))) return {};
    if (undone) return {Decision::kUndo, "it was undone on a server"};
    if (committed) return {Decision::kCommit, "a server has committed it"};
    if (ended) return {Decision::kAbort, "a server has ended it"};
    return judge_uncommitted(id, any->members, seen, silent);
  }

  Finding judge_uncommitted(const std::string& id, const std::vector<std::string>& members,
                            const std::set<size_t>& seen, bool silent) const {
    for (const ServerPushes& server : states_)
      if (const PushStatus* const push = server.find(id); push && push->member == 0 && push->open())
        return {Decision::kWait, "its lease is renewed", std::max(push->expires_in, 0.05)};
    // The deciding server does not know the push, or is not among the given servers.
    size_t unheard = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      if (seen.contains(i) || is_gone(members[i])) continue;
      const auto ours = [&](const http::AdminClient& client) { return http::url_of(client.server()) == members[i]; };
      const auto at = std::find_if(servers_.begin(), servers_.end(), ours);
      const bool heard = at != servers_.end() && states_[static_cast<size_t>(at - servers_.begin())].answered;
      if (!heard) ++unheard;
      if (!heard && i == 0)
        return {Decision::kWait, members[0] +
                                     " decides, and does not answer: name it with --to, or with --gone if it "
                                     "will not come back"};
    }
    if (unheard > 0 || (silent && members.empty()))
      return {Decision::kWait,
              "the server that decides has lost it, and others do not answer: name them with --to, or "
              "with --gone if they will not come back"};
    return {Decision::kAbort, "no server has committed it"};
  }

  static const char* action_for(Decision decision, const PushStatus* push) {
    switch (decision) {
      case Decision::kCommit:
        return push && push->open() ? "/commit" : nullptr;
      case Decision::kUndo:
        if (push && push->committed()) return push->active ? "/rollback" : nullptr;
        return push && push->open() ? "/abort" : nullptr;
      default:
        return !push || push->open() ? "/abort" : nullptr;
    }
  }

  bool carry_out(const std::string& id, const Finding& finding) const {
    const char* const words = finding.decision == Decision::kCommit ? "committed"
                              : finding.decision == Decision::kUndo ? "undone"
                                                                    : "aborted";
    std::cout << fmt::format("push {} is {}: {}\n", id, words, finding.why);
    const std::vector<http::Answer> answers = ask_all(servers_.size(), [&](size_t i) {
      const char* const action = action_for(finding.decision, states_[i].find(id));
      http::Answer none;
      none.status = 204;
      if (!action || !states_[i].answered) return none;
      return servers_[i].post(target(std::string(action) + "?push=" + id));
    });
    bool good = true;
    for (size_t i = 0; i < answers.size(); ++i)
      if (!answers[i].ok()) report(servers_[i], good = false, answers[i].reason());
    return good;
  }

  const ReconcileOptions& options_;
  const std::vector<http::AdminClient>& servers_;
  std::vector<ServerPushes> states_;
};

// A temporary weights file with a signature file.
struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() / "sconce-reconcile-XXXXXX.safetensors").string();
  TemporaryFile() {
    constexpr int kSuffix = 12;  // ".safetensors"
    const int fd = ::mkstemps(path.data(), kSuffix);
    SCONCE_CHECK(fd >= 0, kIo, "cannot make a temporary file: ", path);
    ::close(fd);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
};

// The servers' weight sets, and which servers have the chosen set.
class Difference {
 public:
  explicit Difference(const ReconcileOptions& options) : options_(options), servers_(options.servers) {
    const std::vector<http::Answer> sets = ask_all(servers_.size(), [&](size_t i) {
      return servers_[i].get(options.set.empty()
                                 ? weights_target(options.model, options.version, "?digest=true")
                                 : set_target(options.model, options.version, options.set, "?digest=true"));
    });
    const std::vector<http::Answer> pushes = ask_all(servers_.size(), [&](size_t i) {
      return servers_[i].get(weights_target(options.model, options.version, "/pushes"));
    });
    for (size_t i = 0; i < servers_.size(); ++i) {
      std::optional<Active> active = options.set.empty() ? active_of(sets[i]) : named_of(sets[i]);
      if (!active || active->digest.empty()) {
        report(servers_[i], complete_ = false,
               sets[i].ok() ? "its answer is not from an admin port" : sets[i].reason());
        active.reset();
      }
      bool pushed = false;
      for (const PushStatus& push : pushes_of(pushes[i]).pushes)
        pushed |= push.active && push.set == options.set && active && push.weight_version == active->weight_version;
      active_.push_back(std::move(active));
      pushed_.push_back(pushed);
    }
  }

  bool complete() const { return complete_; }
  bool has(size_t i) const { return active_[i].has_value(); }

  // The named server, or the one with the latest publication by a push, or any server if all serve the same set.
  std::optional<size_t> source() const {
    std::optional<size_t> best;
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (!active_[i]) continue;
      if (!options_.from.empty()) {
        if (http::url_of(servers_[i].server()) == http::url_of(http::parse_admin_server(options_.from))) return i;
        continue;
      }
      if (pushed_[i] && (!best || active_[i]->since > active_[*best]->since)) best = i;
    }
    if (!best && options_.from.empty() && all_same()) best = first();
    return best;
  }

  std::vector<size_t> others(size_t source) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < servers_.size(); ++i)
      if (active_[i] && active_[i]->digest != active_[source]->digest) found.push_back(i);
    return found;
  }

  const Active& active(size_t i) const { return *active_[i]; }

  // Raises the weight version on servers that serve the source's set under a lower version than others. Returns whether
  // all servers then serve that set under one version.
  bool level(size_t source) {
    if (active_[source]->weight_version == 0) return others(source).empty();  // no server has the named set
    uint64_t most = 0;
    const auto same = [&](size_t i) { return active_[i] && active_[i]->digest == active_[source]->digest; };
    for (size_t i = 0; i < servers_.size(); ++i)
      if (same(i)) most = std::max(most, active_[i]->weight_version);
    std::string body = fmt::format("{{\"weight_version\":{},\"digest\":", most);
    append_json_string(body, active_[source]->digest);
    body += "}";
    const std::vector<http::Answer> answers = ask_all(servers_.size(), [&](size_t i) {
      http::Answer none;
      none.status = 204;
      if (!same(i) || active_[i]->weight_version == most) return none;
      return servers_[i].post(options_.set.empty()
                                  ? weights_target(options_.model, options_.version, "/set-version")
                                  : set_target(options_.model, options_.version, options_.set, "/set-version"),
                              body);
    });
    bool good = others(source).empty();
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].ok())
        report(servers_[i], good = false,
               fmt::format("serves these weights as weight version {}, and others as {}: {}",
                           active_[i]->weight_version, most, answers[i].reason()));
      else if (const std::optional<Active> now = options_.set.empty() ? active_of(answers[i]) : named_of(answers[i]))
        std::tie(active_[i]->weight_version, active_[i]->version) = std::tie(now->weight_version, now->version);
    }
    return good;
  }

  void print() const {
    for (size_t i = 0; i < servers_.size(); ++i)
      if (active_[i] && active_[i]->weight_version == 0)
        report(servers_[i], true, fmt::format("has no set '{}'", options_.set));
      else if (active_[i] && !options_.set.empty())
        report(servers_[i], true,
               fmt::format("has set '{}' as weight version {}, {}", options_.set, active_[i]->weight_version,
                           active_[i]->digest));
      else if (active_[i])
        report(servers_[i], true,
               fmt::format("serves {} as weight version {}, {}", active_[i]->version, active_[i]->weight_version,
                           active_[i]->digest));
  }

 private:
  std::optional<size_t> first() const {
    for (size_t i = 0; i < active_.size(); ++i)
      if (active_[i]) return i;
    return std::nullopt;
  }
  bool all_same() const {
    const std::optional<size_t> one = first();
    return one && others(*one).empty();
  }

  const ReconcileOptions& options_;
  const std::vector<http::AdminClient>& servers_;
  bool complete_ = true;
  std::vector<std::optional<Active>> active_;
  std::vector<bool> pushed_;
};

int give_set(const ReconcileOptions& options, const Difference& difference, size_t source,
             const std::vector<size_t>& wanting) {
  const http::AdminClient& from = options.servers[source];
  std::vector<http::AdminClient> to;
  for (const size_t i : wanting) to.push_back(options.servers[i]);
  PushOptions push;
  push.model = options.model;
  push.version = options.version;
  push.package_model = options.package_model;
  push.label = difference.active(source).label;
  push.set = options.set;
  if (options.set.empty()) push.digest = difference.active(source).digest;
  push.file = options.file;
  std::optional<TemporaryFile> fetched;
  if (push.file.empty()) {
    fetched.emplace();
    push.file = fetched->path;
    const std::string held = options.set.empty() ? weights_target(options.model, options.version, "/active")
                                                 : set_target(options.model, options.version, options.set, "/weights");
    const http::Answer answer = fetch_file(from, held, push.file);
    if (!answer.ok()) {
      for (const http::AdminClient& client : to)
        report(client, false, "needs the weights that " + from.server().text + " serves");
      std::cout << fmt::format("they cannot be fetched from {} ({}): name their file\n", from.server().text,
                               answer.reason());
      return 1;
    }
  }
  return push_weights(to, push);
}

}  // namespace

bool reconcile_open(const ReconcileOptions& options) {
  Reconciliation reconciliation(options);
  if (!reconciliation.look()) {
    reconciliation.report_silent();
    return false;
  }
  return reconciliation.reconcile();
}

int reconcile_weights(const ReconcileOptions& options) {
  Reconciliation reconciliation(options);
  const bool all_there = reconciliation.look();
  reconciliation.report_silent();
  const bool reconciled = reconciliation.reconcile();
  if (!reconciled) return 1;
  std::optional<Difference> difference(std::in_place, options);
  const std::optional<size_t> source = difference->source();
  if (!source) {
    difference->print();
    std::cout
        << red("the servers differ, and no push says which weights count: name a server that has them with --from")
        << "\n";
    return 1;
  }
  const std::vector<size_t> wanting = difference->others(*source);
  if (!wanting.empty() && difference->active(*source).weight_version == 0) {
    difference->print();
    std::cout << red("the server that counts has no such set: remove it from the others") << "\n";
    return 1;
  }
  if (!wanting.empty()) {
    if (give_set(options, *difference, *source, wanting) != 0) return 1;
    difference.emplace(options);
    if (!difference->has(*source)) return 1;
  }
  const bool level = difference->level(*source);
  difference->print();
  return all_there && difference->complete() && level ? 0 : 1;
}

}  // namespace sconce::server::cli
