#include "server/console/peer_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "server/rollout/admin_documents.h"
#include "server/rollout/push_api.h"
#include "server/support/failure.h"
#include "server/support/json_document.h"

namespace sconce::server::console {
namespace {

constexpr std::chrono::seconds kPeriod{10}, kPatience{2};
constexpr size_t kMaxPeers = 16;  // per model

std::string shown(const std::string& version, uint64_t weight_version) {
  const std::string number = std::to_string(weight_version);
  return version == number ? "weight version " + number : fmt::format("{} (weight version {})", version, number);
}

// The weights in a server's answer to GET .../weights; empty if unknown.
std::string served_by(const http::Answer& answer) {
  const OrderedJson json = OrderedJson::parse(answer.body, nullptr, false);
  if (!answer.ok() || !json.is_object()) return {};
  const auto name = json.find("weight_version");
  if (name == json.end() || !name->is_string()) return {};
  // A server of the release before has the number beside the name alone.
  auto number = json.find("generation");
  for (const OrderedJson& set : json.value("sets", OrderedJson::array())) {
    if (number != json.end() || !set.is_object() || set.value("state", OrderedJson()) != "active") continue;
    const auto own = set.find("weight_version");
    if (own != set.end() && own->is_number_unsigned()) return shown(name->get<std::string>(), own->get<uint64_t>());
  }
  if (number == json.end() || !number->is_number_unsigned()) return {};
  return shown(name->get<std::string>(), number->get<uint64_t>());
}

}  // namespace

// A model whose weights came with a push, and the other servers of that push.
struct PeerWatch::Question {
  std::string model;
  int64_t version = 1;
  std::vector<std::string> urls;
  std::string authorization;
  std::string ours;
  uint64_t weight_version = 0;
};

std::vector<PeerWatch::Question> PeerWatch::questions() const {
  std::vector<Question> found;
  const std::shared_ptr<const registry::Catalog> catalog = rollout_.repository.snapshot();
  for (const registry::Catalog::Entry& entry : catalog->entries()) {
    for (const registry::Catalog::Version& version : entry.versions) {
      if (!version.model || version.model->is_pipeline()) continue;
      const std::vector<rollout::PushRecord> pushes = rollout_.pushes.list(rollout::place_of(version.model));
      const auto last = std::find_if(pushes.rbegin(), pushes.rend(), [](const rollout::PushRecord& push) {
        return push.state == rollout::PushState::kCommitted && push.terms.set.empty();
      });
      if (last == pushes.rend() || last->terms.members.size() < 2) continue;
      Question question{entry.name, version.version(), last->terms.members, last->terms.authorization, {}, 0};
      question.urls.erase(question.urls.begin() +
                          static_cast<ptrdiff_t>(std::min(last->terms.member, question.urls.size() - 1)));
      if (question.urls.size() > kMaxPeers) question.urls.resize(kMaxPeers);
      for (const WeightSetInfo& set : version.model->model().weight_sets()) {
        if (set.state != WeightState::kActive) continue;
        question.weight_version = set.weight_version;
        question.ours = shown(rollout::weights_name(set.weight_version, set.label), set.weight_version);
      }
      found.push_back(std::move(question));
    }
  }
  return found;
}

PeerWatch::Others PeerWatch::ask(const rollout::Rollout& rollout, const std::vector<Question>& questions) {
  Others others;
  for (const Question& question : questions) {
    for (const std::string& url : question.urls) {
      if (rollout.operations.stopping()) return others;
      std::string theirs;
      // A server that must not be asked, or cannot be reached, is not reported.
      const bool asked = succeeds([&] {
        const std::string path = http::admin_path(question.model, std::to_string(question.version)) + "/weights";
        theirs = served_by(rollout.peers.client(url, question.authorization, kPatience).get(path));
      });
      if (asked && !theirs.empty() && theirs != question.ours)
        others[{question.model, question.version}].push_back({url, theirs, question.ours, question.weight_version});
    }
  }
  return others;
}

PeerWatch::Others PeerWatch::look(Clock::time_point now) {
  if (now >= due_) {
    due_ = now + kPeriod;
    std::vector<Question> asked = questions();
    MutexLock lock(known_->mutex);
    if (asked.empty()) known_->others.clear();
    const bool begin = !asked.empty() && !known_->asking;
    if (begin) known_->asking = true;
    lock.unlock();
    const auto over = [known = known_](Others others) {
      const MutexLock lock(known->mutex);
      known->others = std::move(others);
      known->asking = false;
    };
    const auto work = [&rollout = rollout_, asked = std::move(asked), over] { over(ask(rollout, asked)); };
    if (begin && !succeeds([&] {
          rollout_.admin_threads.run(
              work, [over](const std::exception_ptr&) { over({}); }, [over] { over({}); });
        }))
      over({});
  }
  const MutexLock lock(known_->mutex);
  return known_->others;
}

}  // namespace sconce::server::console
