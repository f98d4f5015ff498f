#include "server/commands/weights_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "sconce/check.h"
#include "server/commands/terminal.h"

namespace sconce::server::commands {
namespace {

using Json = nlohmann::json;

std::atomic<bool> interrupted{false};

// While weights are sent, Ctrl-C stops that and drops what is staged.
class Interruption {
 public:
  Interruption() : before_(std::signal(SIGINT, [](int) { interrupted = true; })) {}
  ~Interruption() { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

// The active set, as GET .../weights describes it.
struct Active {
  uint64_t generation = 0;
  std::string version;  // label, or the generation
};

std::optional<Active> active_of(const Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object()) return std::nullopt;
  const auto generation = json.find("generation"), version = json.find("weight_version");
  if (generation == json.end() || !generation->is_number_unsigned()) return std::nullopt;
  return Active{generation->get<uint64_t>(),
                version != json.end() && version->is_string() ? version->get<std::string>() : std::string()};
}

class Push {
 public:
  Push(const std::vector<AdminClient>& servers, const PushOptions& options)
      : servers_(servers), options_(options), states_(servers.size()) {}

  // If an error is thrown between staging and commit, nothing stays staged.
  ~Push() { abort_staged(); }

  int run() {
    const std::unique_ptr<WeightFile> file = open();
    const SafetensorsEncoder size(open());
    std::cout << fmt::format("{}: {} tensors, {}\n", options_.file, file->entries().size(), format_bytes(size.bytes()));
    if (!look()) return 1;
    SafetensorsEncoder whole(open());
    const Sha256Digest digest = digest_of(whole);
    if (!stage(digest)) return 1;
    if (options_.dry_run) return 0;
    return commit();
  }

 private:
  struct State {
    uint64_t before = 0;  // generation that was active
    bool staged = false;  // or may be
    bool committed = false;
    UploadFlags flags;
  };

  std::unique_ptr<WeightFile> open() const {
    FileOptions options;
    options.package_model = options_.package_model;
    return WeightFile::open(options_.file, options);
  }

  std::string target(std::string_view action = {}) const {
    return weights_target(options_.model, options_.version, action);
  }

  // Before large reads or sends, checks that all servers answer, have the model and admit us.
  bool look() {
    const std::vector<Answer> answers = ask_all(servers_.size(), [&](size_t i) { return servers_[i].get(target()); });
    bool good = true;
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::optional<Active> active = active_of(answers[i]);
      if (active)
        states_[i].before = active->generation;
      else
        report(servers_[i], good = false,
               answers[i].ok() ? "its answer is none of an admin port" : answers[i].reason());
    }
    if (!good) std::cout << "nothing was sent\n";
    return good;
  }

  std::string query() const {
    std::string text = options_.partial ? "?mode=partial" : "?mode=full";
    if (!options_.label.empty()) text += "&label=" + percent_encoded(options_.label);
    if (options_.dry_run) text += "&dry_run=true";
    if (options_.check_finite) text += "&check_finite=true";
    for (size_t i = 0; i < options_.ignore.size(); ++i)
      text += (i == 0 ? "&ignore=" : ",") + percent_encoded(options_.ignore[i]);
    return text;
  }

  bool stage(const Sha256Digest& digest) {
    const Interruption interruption;
    std::vector<std::future<Answer>> running = start_asking(servers_.size(), [this, &digest](size_t i) {
      // The first failure stops the others.
      struct StopAll {
        Push& push;
        bool good = false;
        ~StopAll() {
          if (!good) push.stop();
        }
      } stop_all{*this};
      SafetensorsEncoder body(open());
      states_[i].staged = !options_.dry_run;  // until an answer says otherwise
      const Answer answer = servers_[i].upload(target() + query(), body, digest, states_[i].flags);
      if (answer.status != 0 || !answer.delivered) states_[i].staged = answer.ok() && !options_.dry_run;
      stop_all.good = answer.ok();
      return answer;
    });
    show_progress(running);
    const std::vector<Answer> answers = answers_of(std::move(running));
    const bool good = std::all_of(answers.begin(), answers.end(), [](const Answer& a) { return a.ok(); });
    for (size_t i = 0; i < answers.size(); ++i) {
      const bool ok = answers[i].ok();
      report(servers_[i], ok, ok ? options_.dry_run ? "would be accepted" : "staged" : answers[i].reason());
    }
    if (!good) {
      abort_staged();
      std::cout << (interrupted ? "interrupted: no server has changed\n" : "no server has changed\n");
    }
    return good;
  }

  void stop() {
    for (State& state : states_) state.flags.stop = true;
  }

  void show_progress(const std::vector<std::future<Answer>>& running) {
    using namespace std::chrono_literals;
    const uint64_t total = SafetensorsEncoder(open()).bytes() * servers_.size();
    const auto start = std::chrono::steady_clock::now();
    const auto ready = [](const std::future<Answer>& one) { return one.wait_for(0s) == std::future_status::ready; };
    while (!std::all_of(running.begin(), running.end(), ready)) {
      if (interrupted) stop();
      std::this_thread::sleep_for(50ms);
      if (!on_terminal()) continue;
      uint64_t sent = 0;
      for (const State& state : states_) sent += state.flags.sent;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const double share = static_cast<double>(sent) / static_cast<double>(std::max<uint64_t>(total, 1));
      constexpr int kWidth = 30;
      const int full = static_cast<int>(share * kWidth);
      std::cout << fmt::format("\r\x1b[K[{:=<{}}{: <{}}] {:3.0f} %  {}/s", "", full, "", kWidth - full, 100 * share,
                               format_bytes(static_cast<uint64_t>(static_cast<double>(sent) / seconds)))
                << std::flush;
    }
    if (on_terminal()) std::cout << "\r\x1b[K" << std::flush;
  }

  // Drops what is or may be staged, on every server.
  void abort_staged() {
    const std::vector<Answer> answers = ask_all(
        servers_.size(), [&](size_t i) { return states_[i].staged ? servers_[i].post(target("/abort")) : Answer(); });
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!std::exchange(states_[i].staged, false)) continue;
      // 400: nothing is staged there
      const bool good = answers[i].ok() || answers[i].status == 400;
      if (!good)
        report(servers_[i], false, "may have weights staged that could not be dropped: " + answers[i].reason());
    }
  }

  int commit() {
    const std::vector<Answer> answers =
        ask_all(servers_.size(), [&](size_t i) { return servers_[i].post(target("/commit")); });
    bool good = true;
    std::vector<Active> active(servers_.size());
    for (size_t i = 0; i < answers.size(); ++i) {
      std::optional<Active> now = active_of(answers[i]);
      // Without an answer, ask the server what it did.
      if (!answers[i].ok() || !now) now = active_of(servers_[i].get(target()));
      states_[i].committed = now && now->generation != states_[i].before;
      if (answers[i].ok() || states_[i].committed) states_[i].staged = false;
      if (now) active[i] = *now;
      if (!states_[i].committed) {
        good = false;
        report(servers_[i], false, "did not commit: " + answers[i].reason());
      }
    }
    if (good) {
      for (size_t i = 0; i < active.size(); ++i)
        report(servers_[i], true, fmt::format("serves {} as generation {}", active[i].version, active[i].generation));
      return 0;
    }
    roll_back();
    return 1;
  }

  void roll_back() {
    const std::vector<Answer> answers = ask_all(servers_.size(), [&](size_t i) {
      return states_[i].committed ? servers_[i].post(target("/rollback")) : Answer();
    });
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!states_[i].committed) continue;
      const bool good = answers[i].ok();
      report(servers_[i], good,
             good ? "rolled back" : "serves the new weights, and could not roll back: " + answers[i].reason());
    }
    abort_staged();
  }

  const std::vector<AdminClient>& servers_;
  const PushOptions& options_;
  std::vector<State> states_;
};

}  // namespace

std::string weights_target(const std::string& model, const std::string& version, std::string_view action) {
  std::string target = "/v2/admin/models/" + percent_encoded(model);
  if (!version.empty()) target += "/versions/" + percent_encoded(version);
  return target + "/weights" + std::string(action);
}

std::vector<std::future<Answer>> start_asking(size_t servers, const Ask& ask) {
  std::vector<std::future<Answer>> running;
  for (size_t i = 0; i < servers; ++i) running.push_back(std::async(std::launch::async, ask, i));
  return running;
}

std::vector<Answer> answers_of(std::vector<std::future<Answer>> running) {
  std::vector<Answer> answers;
  for (std::future<Answer>& one : running) answers.push_back(one.get());
  return answers;
}

std::vector<Answer> ask_all(size_t servers, const Ask& ask) { return answers_of(start_asking(servers, ask)); }

void report(const AdminClient& client, bool good, const std::string& text) {
  std::cout << fmt::format("{}: {}\n", client.server().text, good ? text : red(text)) << std::flush;
}

int push_weights(const std::vector<AdminClient>& servers, const PushOptions& options) {
  return Push(servers, options).run();
}

}  // namespace sconce::server::commands
