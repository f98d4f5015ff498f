#include "server/cli/weights/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "sconce/check.h"
#include "sconce/weight_sources.h"
#include "server/cli/weights/push_lease.h"
#include "server/cli/weights/reconcile.h"
#include "server/http/client/url_text.h"
#include "server/signing/sign_file.h"
#include "server/support/json/base64.h"
#include "server/support/terminal/progress.h"
#include "server/support/terminal/text.h"

namespace sconce::server::cli {
namespace {

std::atomic<bool> interrupted{false};

// While weights are sent, Ctrl-C aborts the upload and drops the staged sets.
class Interruption {
 public:
  Interruption() : before_(std::signal(SIGINT, [](int) { interrupted = true; })) {}
  ~Interruption() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

// Interval and number of retries for a server that does not answer.
constexpr std::chrono::milliseconds kAskAgain{200};
constexpr int kAsks = 5;
// Interval of polling the servers' guards.
constexpr std::chrono::milliseconds kLookAgain{500};
// Longest list of members in a query; servers limit a request's header to 16 KiB.
constexpr size_t kMaxMembers = 8000;

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

class Push {
 public:
  Push(const std::vector<http::AdminClient>& servers, const PushOptions& options)
      : servers_(servers), options_(options), id_(random_id()), states_(servers.size()) {
    for (const http::AdminClient& server : servers_)
      members_ += (members_.empty() ? "" : ",") + http::encoded_value(http::url_of(server.server()));
    // The first server decides, so a list with only that server still names the one to ask.
    if (members_.size() > kMaxMembers) members_ = http::encoded_value(http::url_of(servers_.front().server()));
  }

  // If an exception is thrown before the decision to commit, nothing stays staged.
  ~Push() { abort_staged(); }

  int run() {
    const std::unique_ptr<WeightFile> file = open();
    const SafetensorsEncoder size(open());
    std::cout << fmt::format("{}: {} tensors, {}\n", options_.file, file->entries().size(), format_bytes(size.bytes()));
    if (options_.relay && members_.size() > kMaxMembers) return refuse("too many servers for --relay");
    if (!look()) return 1;
    const http::UploadFields fields = fields_of_body();
    std::optional<PushLease> lease;
    if (!options_.dry_run) lease.emplace(servers_, target("/renew" + by_id()), options_.lease);
    if (!stage(fields)) return 1;
    if (options_.dry_run) return 0;
    if (!prepare()) return 1;
    return commit();
  }

 private:
  struct State {
    bool staged = false;  // or may be
    bool committed = false;
    http::UploadFlags flags;
  };

  std::unique_ptr<WeightFile> open() const {
    FileOptions options;
    options.package_model = options_.package_model;
    return WeightFile::open(options_.file, options);
  }

  std::string target(std::string_view action = {}) const {
    return weights_target(options_.model, options_.version, action);
  }

  // The target of the upload.
  std::string place() const {
    return options_.set.empty() ? target() : set_target(options_.model, options_.version, options_.set);
  }

  std::string by_id() const { return "?push=" + id_; }

  static int refuse(const char* why) {
    std::cout << red(why) << "\nnothing was sent\n";
    return 1;
  }

  // Before large reads or uploads, checks that all servers answer, have the model and grant access, and reconciles
  // earlier pushes, unless this is a dry run.
  bool look() {
    bool good = true;
    if (options_.dry_run) {
      const std::vector<http::Answer> answers =
          ask_all(servers_.size(), [&](size_t i) { return servers_[i].get(target()); });
      for (size_t i = 0; i < answers.size(); ++i)
        if (!active_of(answers[i]))
          report(servers_[i], good = false,
                 answers[i].ok() ? "its answer is not from an admin port" : answers[i].reason());
    } else {
      good = reconcile_open({servers_, options_.model, options_.version});
    }
    if (!good) std::cout << "nothing was sent\n";
    return good;
  }

  std::string query(size_t server) const {
    std::string text = options_.partial ? "?mode=partial" : "?mode=full";
    if (!options_.label.empty()) text += "&label=" + http::encoded_value(options_.label);
    if (options_.dry_run) text += "&dry_run=true";
    if (options_.check_finite) text += "&check_finite=true";
    for (size_t i = 0; i < options_.ignore.size(); ++i)
      text += (i == 0 ? "&ignore=" : ",") + http::encoded_value(options_.ignore[i]);
    text += fmt::format("&push={}&lease={}ms&members={}&member={}", id_, options_.lease.count(), members_, server);
    if (options_.relay) text += "&relay=true";
    return text;
  }

  // The body's digest, and its signature if requested.
  http::UploadFields fields_of_body() const {
    SafetensorsEncoder body(open());
    if (options_.sign.empty()) return {http::digest_field(digest_of(body)), {}};
    const signing::SignedStream made = signing::sign_stream(
        std::filesystem::path(options_.file).filename().string(),
        [&body](std::span<std::byte> block) { return body.read(block); }, options_.sign);
    TextBuffer text;
    append_base64(text, reinterpret_cast<const std::byte*>(made.bundle.data()), made.bundle.size());
    return {http::digest_field(made.digest), std::string(text.view())};
  }

  bool stage(const http::UploadFields& fields) {
    const Interruption interruption;
    // With a relay, the first server forwards it to the others.
    const size_t uploads = options_.relay ? 1 : servers_.size();
    if (options_.relay)
      for (State& state : states_) state.staged = !options_.dry_run;
    std::vector<std::future<http::Answer>> running = start_asking(uploads, [this, &fields](size_t i) {
      // The first failure aborts the other uploads.
      struct StopAll {
        Push& push;
        bool good = false;
        ~StopAll() {
          if (!good) push.stop();
        }
      } stop_all{*this};
      SafetensorsEncoder body(open());
      states_[i].staged = !options_.dry_run;  // until an answer says otherwise
      const http::Answer answer = servers_[i].upload(place() + query(i), body, fields, states_[i].flags);
      if ((answer.status != 0 || !answer.delivered) && !options_.relay)
        states_[i].staged = answer.ok() && !options_.dry_run;
      stop_all.good = answer.ok();
      return answer;
    });
    show_progress(running);
    const std::vector<http::Answer> answers = answers_of(std::move(running));
    const bool good = std::all_of(answers.begin(), answers.end(), [](const http::Answer& a) { return a.ok(); });
    for (size_t i = 0; i < (good ? servers_.size() : answers.size()); ++i) {
      const http::Answer& answer = answers[options_.relay ? 0 : i];
      const bool ok = answer.ok();
      report(servers_[i], ok, ok ? options_.dry_run ? "would be accepted" : "staged" : answer.reason());
    }
    return good ? true : give_up();
  }

  void stop() {
    for (State& state : states_) state.flags.stop = true;
  }

  void show_progress(const std::vector<std::future<http::Answer>>& running) {
    using namespace std::chrono_literals;
    const uint64_t total = SafetensorsEncoder(open()).bytes() * running.size();
    ProgressBar bar("push");
    const auto ready = [](const std::future<http::Answer>& one) {
      return one.wait_for(0s) == std::future_status::ready;
    };
    while (!std::all_of(running.begin(), running.end(), ready)) {
      if (interrupted) stop();
      std::this_thread::sleep_for(50ms);
      uint64_t sent = 0;
      for (const State& state : states_) sent += state.flags.sent;
      bar.show(sent, total);
    }
  }

  // Drops the set on every server on which it is or may be staged.
  void abort_staged() {
    const std::vector<http::Answer> answers = ask_all(servers_.size(), [&](size_t i) {
      return states_[i].staged ? servers_[i].post(target("/abort" + by_id())) : http::Answer();
    });
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!std::exchange(states_[i].staged, false) || answers[i].ok()) continue;
      report(servers_[i], false,
             "may have weights staged that could not be dropped; they expire: " + answers[i].reason());
    }
  }

  bool give_up() {
    abort_staged();
    std::cout << (interrupted ? "interrupted: no server has changed\n" : "no server has changed\n");
    return false;
  }

  // From here on no server drops the set without asking the others, except the first one, which commits before the
  // others.
  bool prepare() {
    bool good = true;
    if (!options_.digest.empty()) {
      const std::vector<http::Answer> sets =
          ask_all(servers_.size(), [&](size_t i) { return servers_[i].get(target("?digest=true")); });
      for (size_t i = 0; i < sets.size(); ++i)
        if (staged_digest(sets[i]) != options_.digest)
          report(servers_[i], good = false, sets[i].ok() ? "has other weights staged than wanted" : sets[i].reason());
    }
    if (!good) return give_up();
    const std::vector<http::Answer> answers =
        ask_all(servers_.size(), [&](size_t i) { return servers_[i].post(target("/prepare" + by_id())); });
    for (size_t i = 0; i < answers.size(); ++i)
      if (!answers[i].ok()) report(servers_[i], good = false, "lost what was staged: " + answers[i].reason());
    return good ? true : give_up();
  }

  // Commits on a server. Without an answer, asks the server for the result. Returns its state of the push, or "" if
  // unknown.
  std::string commit_on(size_t i, http::Answer& answer) {
    std::string state;
    for (int asks = 0; asks < kAsks; ++asks) {
      answer = servers_[i].post(target("/commit" + by_id() + guard_query()));
      if (answer.ok()) return "committed";
      const ServerPushes said = pushes_of(servers_[i].get(target("/pushes" + by_id())));
      const PushStatus* const push = said.find(id_);
      if (said.answered) state = push ? push->state : "unknown";
      if (push && push->committed()) return state;
      // It is busy, or has not received the request.
      if (said.answered && !(push && push->open() && (answer.status == 0 || answer.status == 409))) break;
      std::this_thread::sleep_for(kAskAgain);
    }
    return state;
  }

  int commit() {
    // The first server's commit decides for all: from here on, none is aborted unless it is known not to have
    // committed.
    for (State& state : states_) state.staged = false;
    std::vector<http::Answer> answers(servers_.size());
    const std::string first = commit_on(0, answers[0]);
    if (first != "committed") {
      report(servers_[0], false, "did not commit: " + answers[0].reason());
      if (first.empty()) {
        std::cout << "it is not known whether it has; when it answers again, push or reconcile\n";
        return 1;
      }
      for (State& state : states_) state.staged = true;
      return give_up() ? 0 : 1;
    }
    states_[0].committed = true;
    std::vector<std::string> said(servers_.size());
    ask_all(servers_.size() - 1, [&](size_t i) {
      said[i + 1] = commit_on(i + 1, answers[i + 1]);
      return http::Answer();
    });
    bool good = true;
    for (size_t i = 1; i < servers_.size(); ++i) {
      states_[i].committed = said[i] == "committed";
      if (!states_[i].committed) report(servers_[i], good = false, "did not commit: " + answers[i].reason());
    }
    if (!good) {
      roll_back();
      return 1;
    }
    if (!options_.set.empty()) {
      for (const http::AdminClient& server : servers_)
        report(server, true, fmt::format("has the weights as set '{}'", options_.set));
      return 0;
    }
    for (size_t i = 0; i < servers_.size(); ++i) {
      const http::Answer sets = answers[i].ok() ? answers[i] : servers_[i].get(target());
      const std::optional<Active> active = active_of(sets);
      report(servers_[i], true,
             active ? fmt::format("serves {} as weight version {}", active->version, active->weight_version)
                    : "committed");
    }
    return options_.guard.empty() ? 0 : watch();
  }

  std::string guard_query() const {
    std::string text;
    const auto add = [&](const char* key, const std::string& value) {
      if (!value.empty()) text += fmt::format("&{}={}", key, http::encoded_value(value));
    };
    add("guard", options_.guard);
    add("guard_errors", options_.guard_errors);
    add("guard_nan", options_.guard_nan);
    add("guard_p99", options_.guard_p99);
    return text;
  }

  // Waits until the guards on all servers have ended. If one server rolled back, the others are rolled back, too.
  int watch() {
    std::vector<Guard> guards(servers_.size());
    const auto any = [&](const char* state) {
      return std::any_of(guards.begin(), guards.end(), [&](const Guard& guard) { return guard.state == state; });
    };
    std::cout << "watching\n";
    for (int silent = 0;;) {
      const std::vector<http::Answer> answers =
          ask_all(servers_.size(), [&](size_t i) { return servers_[i].get(target("/guard")); });
      bool all = true;
      for (size_t i = 0; i < answers.size(); ++i) {
        const std::optional<Guard> said = guard_of(answers[i]);
        all &= said.has_value();
        if (said) guards[i] = *said;
      }
      // A silent server may be restarting; without weights_store, its guard does not continue then.
      silent = all ? 0 : silent + 1;
      if (any("rolled_back") || any("failed") || (!any("watching") && (all || silent >= kAsks))) break;
      std::this_thread::sleep_for(kLookAgain);
    }
    bool good = true;
    for (size_t i = 0; i < guards.size(); ++i) {
      const bool broken = guards[i].state == "rolled_back" || guards[i].state == "failed";
      good &= !broken;
      if (broken)
        report(servers_[i], false, guards[i].state == "failed" ? guards[i].reason : "rolled back: " + guards[i].reason);
    }
    if (!good) {
      roll_back();
      return 1;
    }
    for (size_t i = 0; i < guards.size(); ++i) {
      const bool passed = guards[i].state == "passed";
      good &= passed;
      report(servers_[i], passed,
             passed ? fmt::format("passed the guard with {} requests", guards[i].requests)
                    : "did not complete the guard of the new weights");
    }
    return good ? 0 : 1;
  }

  // Again the first server before the others, because its undo decides for all.
  void roll_back() {
    std::vector<http::Answer> answers(servers_.size());
    const auto undo = [&](size_t i) {
      if (!states_[i].committed) states_[i].staged = true;
      if (states_[i].committed) answers[i] = servers_[i].post(target("/rollback" + by_id()));
      return http::Answer();
    };
    undo(0);
    ask_all(servers_.size() - 1, [&](size_t i) { return undo(i + 1); });
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!states_[i].committed) continue;
      const bool good = answers[i].ok();
      report(servers_[i], good,
             good ? "rolled back" : "serves the new weights, and could not roll back: " + answers[i].reason());
    }
    abort_staged();
  }

  const std::vector<http::AdminClient>& servers_;
  const PushOptions& options_;
  const std::string id_;
  std::string members_;  // for a query
  std::vector<State> states_;
};

}  // namespace

int push_weights(const std::vector<http::AdminClient>& servers, const PushOptions& options) {
  return Push(servers, options).run();
}

}  // namespace sconce::server::cli
