#include "server/registry/repository.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "sconce/check.h"
#include "sconce/mapped_files.h"
#include "server/registry/package_model.h"
#include "server/registry/pipeline_model.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/pipelines/pipeline_plan.h"
#include "server/scheduling/signature/triton_names.h"
#include "server/support/cores.h"
#include "server/support/failure.h"
#include "server/support/files/private_copy.h"
#include "server/support/log.h"
#include "src/support/error_context.h"
#include "src/support/excerpt.h"
#include "src/support/parse_number.h"

namespace sconce::server::registry {
namespace {

constexpr uint64_t kMaxLabels = uint64_t{16} << 20;  // bytes

// The lines of a file; empty if `path` is empty. kIo, kTooLarge.
std::vector<std::string> read_labels(const std::string& path) {
  std::vector<std::string> labels;
  if (path.empty()) return labels;
  static const std::string setting = "setting labels";
  const ErrorContext context(setting);
  const PrivateCopy file(path, kMaxLabels);
  for (std::string_view rest = file.text(); !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    labels.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return labels;
}

// Measured memory of a loaded model in addition to its code and weights: replica threads, queues, counters, memory kept
// between runs.
constexpr uint64_t kModelItself = 1024 * 1024;

void limit_batch(const ModelConfig& config, scheduling::ModelSignature& interface) {
  if (config.max_batch_size > 0) interface.max_batch_size = std::min(interface.max_batch_size, config.max_batch_size);
}

}  // namespace

const Catalog::Entry* Catalog::look_up(std::string_view name) const noexcept {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

const Catalog::Entry& Catalog::entry(std::string_view name) const {
  const Entry* found = look_up(name);
  const std::string reason = found ? std::string() : why_unknown();
  SCONCE_CHECK(reason.empty(), kUnavailable, "model '", excerpt(name), "' is not known: ", reason);
  SCONCE_CHECK(found, kNotFound, "Request for unknown model: '", excerpt(name), "' is not found");
  return *found;
}

const Catalog::Version& Catalog::find(std::string_view name, std::string_view version) const {
  const std::vector<Version>& versions = entry(name).versions;
  if (version.empty()) {
    const auto ready =
        std::find_if(versions.rbegin(), versions.rend(), [](const Version& v) { return v.state == State::kReady; });
    if (ready != versions.rend()) return *ready;
    const auto held = std::find_if(versions.rbegin(), versions.rend(),
                                   [](const Version& v) { return v.state == State::kNotServing; });
    return held != versions.rend() ? *held : versions.back();
  }
  std::optional<int64_t> number = parse_number<int64_t>(version);
  if (!number) number = version_of(entry(name).labels, version);
  for (const Version& v : versions) {
    if (number && v.version() == *number) return v;
  }
  SCONCE_FAIL(kNotFound, "Request for unknown model: '", excerpt(name), "' version ", excerpt(version),
              " is not found");
}

const std::shared_ptr<ServedModel>& Catalog::ready(std::string_view name, std::string_view version) const {
  const Version& found = find(name, version);
  if (found.state == State::kReady) return found.model;
  fail(name, version, found);
}

const std::shared_ptr<ServedModel>& Catalog::loaded(std::string_view name, std::string_view version) const {
  const Version& found = find(name, version);
  if (found.loaded()) return found.model;
  fail(name, version, found);
}

void Catalog::fail(std::string_view name, std::string_view version, const Version& found) const {
  const std::vector<Version>& versions = entry(name).versions;
  const bool all_unloaded =
      std::all_of(versions.begin(), versions.end(), [](const Version& v) { return v.state == State::kUnloaded; });
  SCONCE_CHECK(!version.empty() || !all_unloaded, kNotFound, "Request for unknown model: '", excerpt(name),
               "' has no available versions");
  const std::string& reason = found.held.empty() ? found.reason : found.held;
  SCONCE_FAIL(kUnavailable, "'", name, "' version ", found.version(), " is not at ready state",
              reason.empty() ? "" : ": ", reason);
}

bool Catalog::needs(std::string_view pipeline, std::string_view model) const {
  std::vector<std::string_view> seen, open{pipeline};
  while (!open.empty()) {
    const Entry* const entry = look_up(open.back());
    open.pop_back();
    if (!entry) continue;
    for (const Version& version : entry->versions) {
      if (!version.pipeline) continue;
      for (const scheduling::PipelineSpec::Step& step : version.pipeline->spec->steps) {
        if (step.model == model) return true;
        if (std::find(seen.begin(), seen.end(), step.model) != seen.end()) continue;
        seen.push_back(step.model);
        open.push_back(step.model);
      }
    }
  }
  return false;
}

std::string Catalog::why_unknown() const {
  const auto unknown = std::find_if(away_.begin(), away_.end(), [](const auto& one) { return !one.second.known; });
  return unknown == away_.end() ? std::string() : unknown->second.reason;
}

bool Catalog::is_ready() const noexcept {
  if (std::any_of(away_.begin(), away_.end(), [](const auto& one) { return !one.second.known; })) return false;
  bool any = !had_models_;
  for (const Entry& entry : entries_) {
    for (const Version& v : entry.versions) {
      const bool held = v.state == State::kNotServing && !v.model->uses();
      if (v.awaited || held || (v.model && v.model->failed())) return false;
      any = any || (v.model && v.fault().empty());
    }
  }
  return any;
}

Catalog::Entry& Catalog::edit(const std::string& name) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& entry, const std::string& text) { return entry.name < text; });
  if (at != entries_.end() && at->name == name) return *at;
  Entry& made = *entries_.insert(at, Entry{name, {}, {}});
  index();
  return made;
}

Catalog::Version& Catalog::edit(const PackageEntry& package) {
  std::vector<Version>& versions = edit(package.name).versions;
  auto at = std::lower_bound(versions.begin(), versions.end(), package.file.version,
                             [](const Version& v, int64_t version) { return v.version() < version; });
  if (at == versions.end() || at->version() != package.file.version) at = versions.insert(at, Version{});
  at->file = package.file;
  return *at;
}

void Catalog::erase(const std::string& name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; });
  index();
}

void Catalog::index() {
  index_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);
}

Repository::Repository(const ServerConfig& config, TimerQueue& clock, scheduling::IdleWatch& idle_watch,
                       DeferredDeleter& reaper, const std::vector<PackageEntry>& packages, size_t threads,
                       ModelBudget* budget)
    : config_(config), clock_(clock), idle_watch_(idle_watch), reaper_(reaper), threads_(threads), budget_(budget) {
  auto catalog = std::make_unique<Catalog>();
  for (const PackageEntry& package : packages) catalog->edit(package).awaited = true;
  catalog_ = reaper_.own(std::move(catalog));
}

std::shared_ptr<const Catalog> Repository::snapshot() const {
  const MutexLock lock(mutex_);
  return catalog_;
}

ModelConfig Repository::config_of(const PackageEntry& package) const {
  ModelConfig config = config_.model(package.name, package.settings);
  if (config.version_policy.empty() && config_.versions == Versions::kAll) config.version_policy = "all";
  return config;
}

template <class Edit>
void Repository::change(Edit&& edit) {
  const MutexLock changing(changing_);
  auto next = std::make_unique<Catalog>(*snapshot());
  edit(*next);
  bind_pipelines(*next);
  std::shared_ptr<const Catalog> published = reaper_.own(std::move(next));
  {
    const MutexLock lock(mutex_);
    catalog_.swap(published);
  }
  revision_.fetch_add(1, std::memory_order_release);
}

bool Repository::was_rewritten(const PackageEntry& package) const {
  const auto now = snapshot();
  const Catalog::Entry* const entry = now->look_up(package.name);
  return entry && std::any_of(entry->versions.begin(), entry->versions.end(), [&](const Catalog::Version& v) {
           const FileStamps &before = v.file.stamp, &after = package.file.stamp;
           return v.file.path == package.file.path && before.identity == after.identity &&
                  (before != after || !v.reason.empty() || !v.fault().empty());
         });
}

std::vector<Device> Repository::devices_of(const PackageEntry& package) const {
  std::vector<Device> devices;
  for (const std::string& device : config_of(package).devices) {
    const bool on_gpu = package.package->model(package.model).device_key == "cuda";
    devices.push_back(parse_device(device != "auto" ? device : on_gpu ? "cuda" : "cpu"));
  }
  return devices;
}

ModelBudget::Bytes resident_bytes(const ModelSpec& spec, std::span<const Device> devices, uint64_t constants) {
  ModelBudget::Bytes bytes;
  uint64_t& host = bytes[ModelBudget::kHost];
  host = spec.so_bytes + kModelItself;
  // Otherwise the constants are in the library, and are mapped with it.
  const bool apart = spec.weights_form != WeightsForm::kEmbedded && spec.weights_form != WeightsForm::kAppended;
  bool on_host = false;
  for (const Device& device : devices) {
    if (device.type == DeviceType::kCuda) {
      bytes[device.index] = constants;  // shared by the replicas on a device
    } else if (apart && !on_host) {
      host += constants;
      on_host = true;
    }
  }
  return bytes;
}

LoadedModel Repository::load(const PackageEntry& package, bool verify, const signing::SignatureRule& signatures) const {
  const ModelConfig config = config_of(package);
  if (!config.weights_from.empty()) signatures.refuse_unsigned("setting weights_from: what another server holds");
  if (config.sets > 0 && !config.sets_folder.empty())
    signatures.refuse_unsigned("setting sets_folder: what the server writes there");
  LoadOptions options;
  options.model_name = package.model;
  options.devices = devices_of(package);
  SCONCE_CHECK(!options.devices.empty(), kInvalidArgument, "setting devices of model '", package.name, "' is empty");
  SCONCE_CHECK(config.replicas >= 1, kInvalidArgument, "setting replicas of model '", package.name,
               "' must be 1 or more");
  SCONCE_CHECK(config.weights_from_certificate.empty() == config.weights_from_key.empty(), kInvalidArgument,
               "settings weights_from_certificate and weights_from_key of model '", package.name, "' go together");
  options.replicas = static_cast<int>(config.replicas);
  options.threads = static_cast<int>(config.threads);
  options.cuda_graphs = static_cast<int>(std::min<int64_t>(config.cuda_graphs, 1024));
  options.allow_tf32 = config.allow_tf32;
  options.cpu_set = find_cores(config.cpu_set);
  options.warm_up = config.warm_up;
  options.max_code_faults =
      static_cast<int>(std::min<int64_t>(config.max_code_faults, std::numeric_limits<int>::max()));
  options.check_inputs = config.check_inputs;
  options.check_indices = config.check_indices;
  options.verify = config.verify || verify;
  options.sets = static_cast<int>(config.sets);
  options.sets_memory = static_cast<uint64_t>(config.sets_memory);
  options.sets_instances = static_cast<int>(config.sets_instances);
  if (config.sets > 0 && !config.sets_folder.empty())
    options.sets_folder =
        std::filesystem::path(config.sets_folder) / package.name / std::to_string(package.file.version);
  options.sequences = static_cast<int>(std::min<int64_t>(config.sequences, std::numeric_limits<int>::max()));
  options.sequences_memory = static_cast<uint64_t>(config.sequences_memory);
  options.sequences_follow = config.sequence_weights == SequenceWeights::kActive;
  SCONCE_CHECK(config.sequence_idle.count() > 0, kInvalidArgument, "setting sequence_idle of model '", package.name,
               "' must be more than 0");
  for (const std::string& library : config.op_libraries)
    options.op_libraries.push_back(signatures.verified_copy(library));
  const FaultReportName reported(package.name + " version " + std::to_string(package.file.version));
  std::shared_ptr<Model> model = Model::load(package.package, std::move(options));
  scheduling::ModelSignature interface(package.name, package.file.version, model->info().spec);
  interface.labels = read_labels(config.labels);
  if (package.triton) scheduling::take_names(*package.triton, interface);
  SCONCE_CHECK(interface.controls.empty() || scheduling::has_sequences(interface, config), kInvalidArgument, "model '",
               package.name, "' has control inputs for sequences in its config.pbtxt, and no sequences: ",
               interface.mutates_constants ? "setting sequences is 0" : "the package writes no buffers");
  if (config.sequences > 0 && !interface.mutates_constants)
    log_info("model {} has no sequences: the package writes no buffers", package.name);
  return {std::move(interface), std::move(model), nullptr, {}, nullptr, nullptr};
}

void Repository::publish_loading(const PackageEntry& package) {
  const auto now = snapshot();
  if (const Catalog::Entry* entry = now->look_up(package.name)) {
    for (const Catalog::Version& v : entry->versions) {
      const bool served = v.loaded() || v.state == Catalog::State::kLoading;
      if (v.version() == package.file.version && served) return;
    }
  }
  change([&](Catalog& next) {
    Catalog::Version& version = next.edit(package);
    version.state = Catalog::State::kLoading;
    version.reason.clear();
  });
}

std::shared_ptr<scheduling::Statistics> Repository::statistics_of(const PackageEntry& package) {
  const MutexLock changing(changing_);
  auto& statistics = statistics_[{package.name, package.file.version}];
  if (!statistics) statistics = std::make_shared<scheduling::Statistics>(threads_);
  return statistics;
}

void Repository::publish(const PackageEntry& package, LoadedModel loaded, const Before& before) {
  const std::shared_ptr<scheduling::Statistics> statistics = statistics_of(package);
  const ModelConfig config = config_of(package);
  VersionLabels labels = parse_version_labels(config.version_labels);
  limit_batch(config, loaded.interface);
  std::string held = std::move(loaded.refused);
  std::shared_ptr<ServedModel> served =
      reaper_.own(std::make_unique<PackageModel>(std::move(loaded), config, statistics, clock_, config_.inline_below));
  served->tell_runs(idle_watch_);
  const bool comes_and_goes = package.file.on_demand && !config.pinned;
  if (comes_and_goes) served->may_be_unloaded(bell_);
  const scheduling::BatchPolicy& policy = served->policy();
  if (comes_and_goes) {
    log_debug("model {} version {}: runs of up to {} rows{}{}", package.name, package.file.version, policy.max_rows,
              policy.alone.empty() ? "" : ": ", policy.alone);
  } else if (policy.alone.empty()) {
    log_info("model {} version {}: requests share runs of up to {} rows: {}", package.name, package.file.version,
             policy.max_rows, scheduling::text_of(policy.rows.by));
  } else {
    log_info("model {} version {}: requests run one by one: {}", package.name, package.file.version, policy.alone);
  }
  if (held.empty()) held = served->weights().why_held();
  // If the new model's weights must not be served, a ready model of this version stays.
  const auto now = snapshot();
  if (const Catalog::Entry* const entry = held.empty() ? nullptr : now->look_up(package.name))
    for (const Catalog::Version& v : entry->versions)
      SCONCE_CHECK(v.version() != package.file.version || v.state != Catalog::State::kReady, kFailedPrecondition, held);
  if (!held.empty())
    log_warn("model {} version {} is not ready: {}", package.name, package.file.version, printable(held));
  if (before) before(served);
  if (budget_) {
    const ModelInfo& info = served->model().info();
    budget_->loaded(package.name, package.file.version, resident_bytes(info.spec, info.devices, info.constant_bytes));
  }
  change([&](Catalog& next) {
    Catalog::Version& version = next.edit(package);
    version.state = held.empty() ? Catalog::State::kReady : Catalog::State::kNotServing;
    version.reason.clear();
    version.held = std::move(held);
    version.awaited = false;
    version.model = std::move(served);
    version.pipeline.reset();
    version.bound.reset();
    next.edit(package.name).labels = std::move(labels);
    next.had_models_ = next.had_models_ || !comes_and_goes;
  });
}

void Repository::weights_changed(const ServedModel& model) {
  const std::string name = model.interface().name, held = model.weights().why_held();
  const auto differs = [&](const Catalog::Version& v) { return v.model.get() == &model && v.held != held; };
  const auto now = snapshot();
  const Catalog::Entry* const entry = now->look_up(name);
  if (!entry || std::none_of(entry->versions.begin(), entry->versions.end(), differs)) return;
  change([&](Catalog& next) {
    if (!next.look_up(name)) return;
    for (Catalog::Version& v : next.edit(name).versions) {
      if (!differs(v)) continue;
      v.state = held.empty() ? Catalog::State::kReady : Catalog::State::kNotServing;
      v.held = held;
    }
  });
  if (held.empty())
    log_info("model {} version {} is ready: its new weights are complete", name, model.interface().version);
  else
    log_warn("model {} version {} is no longer ready: {}", name, model.interface().version, printable(held));
}

void Repository::set_away(const std::string& name, const Catalog::Away& away) {
  change([&](Catalog& next) {
    if (away.reason.empty()) {
      next.away_.erase(name);
    } else {
      next.away_[name] = away;
    }
  });
}

std::string Repository::publish_pipeline(const PackageEntry& package) {
  const auto source = std::make_shared<const PipelineSource>(
      PipelineSource{package.pipeline, config_of(package), statistics_of(package), package.triton});
  VersionLabels labels = parse_version_labels(source->config.version_labels);
  std::string reason;
  change([&](Catalog& next) {
    const Catalog::Version before = next.edit(package);
    next.edit(package).pipeline = source;
    next.edit(package.name).labels = std::move(labels);
    next.had_models_ = next.had_models_ || !package.file.on_demand || source->config.pinned;
    bind_pipelines(next);
    Catalog::Version& version = next.edit(package);
    if (version.loaded()) return;
    reason = version.reason;
    // The served version stays.
    if (before.loaded() && before.pipeline) version = before;
  });
  return reason;
}

// A pipeline may be a step of another pipeline, so this repeats until nothing changes.
void Repository::bind_pipelines(Catalog& next) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Catalog::Entry& entry : next.entries_)
      for (Catalog::Version& version : entry.versions)
        if (version.pipeline) changed = bind(next, entry.name, version) || changed;
  }
}

// Returns whether the served pipeline changed, so that others may have to be bound again.
bool Repository::bind(Catalog& next, const std::string& name, Catalog::Version& version) {
  const std::shared_ptr<const PipelineSource>& source = version.pipeline;
  std::shared_ptr<ServedModel> bound;
  std::string problem = problem_of([&] {
    SCONCE_CHECK(source->config.loop.empty(), kInvalidArgument,
                 "a pipeline has no loop (setting loop), a model has one");
    SCONCE_CHECK(!next.needs(name, name), kInvalidArgument, "the pipeline is a step of itself [", source->spec->origin,
                 "]");
    std::vector<std::shared_ptr<ServedModel>> members;
    for (const scheduling::PipelineSpec::Step& step : source->spec->steps)
      members.push_back(next.ready(step.model, step.version));
    if (version.model && version.bound == source && std::ranges::equal(version.model->members(), members)) {
      bound = version.model;
      return;
    }
    std::vector<const scheduling::ModelSignature*> interfaces;
    for (const auto& member : members) {
      interfaces.push_back(&member->interface());
      SCONCE_CHECK(!member->sequences(), kUnsupported, "model '", member->interface().name,
                   "' has sequences (setting sequences), to which no step of a pipeline belongs");
    }
    scheduling::PipelinePlan plan = scheduling::plan_pipeline(*source->spec, name, version.version(), interfaces);
    limit_batch(source->config, plan.interface);
    if (source->triton) {
      plan.interface.parameters = source->triton->parameters;
      plan.interface.metric_tags = source->triton->metric_tags;
    }
    bound = reaper_.own(std::make_unique<PipelineModel>(std::move(plan), std::move(members), *source->spec,
                                                        source->config, source->statistics, clock_));
    if (version.file.on_demand && !source->config.pinned) bound->may_be_unloaded(bell_);
  });
  const bool changed = version.model != bound;
  if (bound) {
    if (changed) {
      version.reason.clear();
      log_info("pipeline {} version {} is ready: {} steps", name, version.version(), source->spec->steps.size());
    }
    version.awaited = false;
  } else {
    if (changed) log_warn("pipeline {} version {} is not ready: {}", name, version.version(), printable(problem));
    version.reason = std::move(problem);
  }
  version.state = bound ? Catalog::State::kReady : Catalog::State::kUnavailable;
  version.bound = bound ? source : nullptr;
  version.model = std::move(bound);
  return changed;
}

void Repository::publish_failure(const PackageEntry& package, std::string reason) {
  change([&](Catalog& next) {
    Catalog::Version& version = next.edit(package);
    if (!version.loaded()) version.state = Catalog::State::kUnavailable;
    version.reason = std::move(reason);
  });
}

void Repository::unload(const std::string& name, Catalog::Version& version) {
  version.state = Catalog::State::kUnloaded;
  version.reason = "unloaded";
  version.held.clear();
  version.awaited = false;
  if (version.model) version.model->end_loops("the model was unloaded");
  version.model.reset();
  version.pipeline.reset();
  version.bound.reset();
  statistics_.erase({name, version.version()});
  if (budget_) budget_->unloaded(name, version.version());
}

void Repository::keep_only(const std::string& name, std::span<const PackageEntry> packages) {
  const auto superseded = [&](const Catalog::Version& v) {
    return std::none_of(packages.begin(), packages.end(),
                        [&](const PackageEntry& p) { return p.file.version == v.version(); });
  };
  const auto now = snapshot();
  const std::vector<Catalog::Version>& versions = now->entry(name).versions;
  if (std::none_of(versions.begin(), versions.end(), superseded)) return;
  change([&](Catalog& next) {
    std::vector<Catalog::Version>& edited = next.edit(name).versions;
    std::erase_if(edited,
                  [&](const Catalog::Version& v) { return v.state == Catalog::State::kUnloaded && superseded(v); });
    changing_.assert_held();
    for (Catalog::Version& v : edited) {
      if (superseded(v)) unload(name, v);
    }
  });
}

void Repository::unload(const std::string& name) {
  snapshot()->entry(name);
  change([&](Catalog& next) {
    changing_.assert_held();
    for (Catalog::Version& v : next.edit(name).versions) unload(name, v);
  });
}

void Repository::forget(std::span<const std::string> names) {
  change([&](Catalog& next) {
    changing_.assert_held();
    for (const std::string& name : names) {
      if (!next.look_up(name)) continue;
      for (Catalog::Version& v : next.edit(name).versions) unload(name, v);
      next.erase(name);
    }
  });
}

}  // namespace sconce::server::registry
