// sconce_conformance: runs conformance cases and names those that fail. The last line is "N passed, N failed".
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "tests/conformance/pool.h"
#include "tests/conformance/suites.h"

namespace sconce::conformance {
namespace {

struct Options {
  std::vector<std::string> suites;
  std::string filter, device, json, known;
  int jobs = static_cast<int>(std::thread::hardware_concurrency());
  int limit_s = 300;
  Manner manner;
  bool in_process = false, verbose = false, list = false;
};

class Report {
 public:
  explicit Report(const Options& options) : options_(options), on_terminal_(::isatty(STDOUT_FILENO) == 1) {
    if (options.known.empty()) return;
    std::ifstream file(options.known);
    if (!file) throw std::runtime_error("cannot open " + options.known);
    for (std::string line; std::getline(file, line);)
      if (const size_t space = line.find(' '); !line.empty() && line[0] != '#' && space != std::string::npos)
        known_[line.substr(0, space)] = line.substr(space + 1);
  }

  void add(const std::string& name, const std::vector<std::string>& tags, const Outcome& outcome) {
    static constexpr const char* kWords[] = {"PASS", "FAIL", "SKIP"};
    const bool known = outcome.status == Outcome::Status::kFailed && is_known(name, outcome.reason);
    const char* word = known ? "KNOWN" : kWords[static_cast<int>(outcome.status)];
    ++(known ? known_count_ : counts_[static_cast<int>(outcome.status)]);
    if (outcome.status == Outcome::Status::kPassed && known_.contains(name))
      std::cout << "NOTE " << name << ": passes, take it off " << options_.known << "\n";
    if (on_terminal_) std::cout << "\r\x1b[K";
    if (outcome.status != Outcome::Status::kPassed || options_.verbose) {
      std::cout << word << " " << name;
      if (!outcome.reason.empty()) std::cout << ": " << outcome.reason;
      std::cout << "\n";
    }
    if (on_terminal_) std::cout << passed() + failed() + skipped() << " done, " << failed() << " failed";
    std::cout << std::flush;
    cases_.push_back(
        {{"name", name}, {"status", word}, {"reason", outcome.reason}, {"seconds", outcome.seconds}, {"tags", tags}});
  }

  void close() {
    if (on_terminal_) std::cout << "\r\x1b[K";
    if (!options_.json.empty()) {
      std::ofstream file(options_.json);
      const nlohmann::json json = {{"passed", passed()},
                                   {"failed", failed()},
                                   {"skipped", skipped()},
                                   {"known", known_count_},
                                   {"cases", cases_}};
      file << json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
      if (!file.flush()) throw std::runtime_error("cannot write " + options_.json);
    }
    if (known_count_ > 0) std::cout << known_count_ << " known to fail\n";
    if (skipped() > 0) std::cout << skipped() << " skipped\n";
    std::cout << passed() << " passed, " << failed() << " failed\n";
  }
  int passed() const { return counts_[0]; }
  int failed() const { return counts_[1]; }
  int skipped() const { return counts_[2]; }

 private:
  bool is_known(const std::string& name, const std::string& reason) const {
    const auto it = known_.find(name);
    return it != known_.end() && reason.find(it->second) != std::string::npos;
  }
  const Options& options_;
  const bool on_terminal_;
  int counts_[3] = {}, known_count_ = 0;
  std::map<std::string, std::string> known_;
  nlohmann::json cases_ = nlohmann::json::array();
};

void parse(int argc, char** argv, Options& options, CLI::App& app) {
  app.add_option("SUITE", options.suites, "Suite folders, case folders or packed suites (.tar.xz)")->required();
  app.add_option("--filter", options.filter, "Only cases whose SUITE/CASE a regular expression finds something in");
  app.add_option("--device", options.device, "Only cases for this device")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--json", options.json, "Write a report to this file");
  app.add_option("--known", options.known, "File of cases known to fail: SUITE/CASE and a word of the reason");
  app.add_option("-j,--jobs", options.jobs, "Cases at a time")->check(CLI::PositiveNumber);
  app.add_option("--limit", options.limit_s, "Seconds a case may take")->check(CLI::PositiveNumber);
  app.add_option("--graphs", options.manner.graphs, "CUDA graphs that a replica keeps; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--replicas", options.manner.replicas, "Replicas of a case's model")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.manner.rounds, "How often steps are done that leave no trace")
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", options.manner.threads, "Threads that then do them all at once")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--in-process", options.in_process, "No process per case: for debuggers and sanitizers");
  app.add_flag("--list", options.list, "Name the cases and stop");
  app.add_flag("-v,--verbose", options.verbose, "Name cases that pass, too");
  app.parse(argc, argv);
}

int run(const Options& options) {
  const ScratchFolder scratch;
  Report report(options);
  const std::regex filter(options.filter);
  std::vector<Case> cases;
  std::vector<std::string> names;
  for (const FoundCase& found : find_cases(options.suites, scratch)) {
    if (!std::regex_search(found.name, filter)) continue;
    if (options.list) {
      std::cout << found.name << "\n";
      continue;
    }
    try {
      Case c = read_case(found.folder);
      if (!options.device.empty() && c.device != options.device) continue;
      if (const std::string reason = reason_to_skip(c); !reason.empty()) {
        report.add(found.name, c.tags, {Outcome::Status::kSkipped, reason, 0});
        continue;
      }
      cases.push_back(std::move(c));
      names.push_back(found.name);
    } catch (const std::exception& error) {
      report.add(found.name, {}, {Outcome::Status::kFailed, error.what(), 0});
    }
  }
  if (options.list) return 0;
  const auto done = [&](size_t i, const Outcome& outcome) { report.add(names[i], cases[i].tags, outcome); };
  if (options.in_process)
    for (size_t i = 0; i < cases.size(); ++i) done(i, run_case(cases[i], options.manner));
  else
    run_in_processes(cases, options.manner, options.jobs, std::chrono::seconds(options.limit_s), done);
  report.close();
  return report.failed() == 0 && report.passed() > 0 ? 0 : 1;
}

}  // namespace
}  // namespace sconce::conformance

int main(int argc, char** argv) {
  sconce::conformance::Options options;
  CLI::App app("Runs conformance cases (case.json, model.pt2, data.bin) through Sconce.", "sconce_conformance");
  try {
    sconce::conformance::parse(argc, argv, options, app);
    return sconce::conformance::run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::cerr << "sconce_conformance: " << error.what() << "\n";
    return 2;
  }
}
