#include "server/rollout/weights_job.h"

#include "sconce/check.h"
#include "server/http/client/admin_client.h"
#include "server/http/content_digest.h"
#include "server/http/query.h"
#include "server/registry/documents.h"
#include "server/registry/model_weights.h"
#include "server/rollout/admin_documents.h"
#include "server/rollout/push/push_terms.h"
#include "server/rollout/push_api.h"
#include "server/rollout/served_weights.h"
#include "server/rollout/trainer_tensors/shared_tensors.h"
#include "server/rollout/work/signed_weights.h"
#include "server/rollout/work/update_query.h"
#include "server/rollout/work/weights_dir.h"
#include "server/signing/stream_digests.h"
#include "server/support/failure.h"
#include "server/support/json_cursor.h"
#include "server/support/json_document.h"
#include "server/support/log.h"
#include "src/support/excerpt.h"

namespace sconce::server::rollout {
namespace {

// Allowance for a stream's header, in addition to the weights.
constexpr uint64_t kHeaderBytes = 32 * 1024 * 1024;

WeightFormat format_from(std::string_view name) {
  constexpr std::pair<std::string_view, WeightFormat> kFormats[] = {{"safetensors", WeightFormat::kSafetensors},
                                                                    {"npz", WeightFormat::kNpz},
                                                                    {"package", WeightFormat::kPackage},
                                                                    {"blob", WeightFormat::kBlob}};
  for (const auto& [text, format] : kFormats) {
    if (text == name) return format;
  }
  SCONCE_FAIL(kInvalidArgument, "format must be safetensors, npz, package or blob, got '", excerpt(name), "'");
}

}  // namespace

WeightsJob::WeightsJob(Rollout& rollout, AdminRequest request, AdminDone done)
    : rollout_(rollout), request_(std::move(request)), done_(std::move(done)) {
  if (request_.upload) {
    const ServerConfig& config = rollout_.config;
    upload_.emplace(request_.source,
                    http::Upload::Limits{config.upload_timeout, static_cast<uint64_t>(config.upload_rate)});
    if (request_.expects_continue) upload_->expect_invitation();
  }
}

WeightsJob::~WeightsJob() = default;

// The record of a push while its set arrives. If the set is not staged at the end, the destructor ends the push.
class WeightsJob::Arrival {
 public:
  explicit Arrival(WeightsJob& job) : job_(job) {
    if (job_.options_.push) job_.rollout_.pushes.begin(job_.place_, *job_.options_.push, PushLedger::Clock::now());
  }
  ~Arrival() {
    if (!job_.options_.push || job_.over_) return;
    succeeds([this] { job_.rollout_.pushes.abort(job_.place_, job_.options_.push->id); });
  }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

 private:
  WeightsJob& job_;
};

// Drops the set that waits for its name, unless keep() is called.
class WeightsJob::HeldPush {
 public:
  explicit HeldPush(WeightsJob& job) : job_(&job) {}
  ~HeldPush() {
    if (job_) succeeds([this] { job_->model_->model().abort_set(job_->request_.set); });
  }
  HeldPush(const HeldPush&) = delete;
  HeldPush& operator=(const HeldPush&) = delete;
  void keep() noexcept { job_ = nullptr; }

 private:
  WeightsJob* job_;
};

void WeightsJob::run() {
  const LogRequest log_request(request_.id, request_.peer);
  const AuditRequest audit_request(request_);
  read_options();
  if (!request_.upload) read_reference();
  find_model();
  SCONCE_CHECK(!rollout_.draining, kUnavailable, "the server is shutting down");
  Model& model = model_->model();
  const scheduling::ModelSignature& interface = model_->interface();
  Operation::Outcome outcome = Operation::Outcome::kChecked;
  uint64_t weight_version = 0;
  {
    // The claim must end before the answer is sent. Otherwise the client's next request could find the model busy.
    const ModelClaims::Claim claim(rollout_.claims, *model_, "an update of its weights is in progress");
    if (!named() && !options_.update.dry_run) rollout_.guards.check_over(*model_);
    const Arrival arrival(*this);
    UpdateOptions update_options = options_.update;
    update_options.progress = [this](int replica, bool ready) { operation_->advance(replica, ready); };
    const std::unique_ptr<WeightUpdate> update = model.begin_update(std::move(update_options));
    operation_ = rollout_.operations.open(interface.name, interface.version, options_.update.label, model.replicas());
    operation_->set_traceparent(request_.traceparent);
    if (request_.upload) {
      receive(*update);
    } else {
      if (options_.async) answer(202, accepted_document(*operation_));
      tensors_ ? read_tensors(*update) : read_file(*update);
    }
    operation_->check_cancelled();
    if (named()) check_served(rollout_, *model_);
    operation_->enter(Operation::Phase::kFolding);
    update->finish();
    if (options_.update.dry_run) {
      if (relay_) relay_->end();
      if (options_.push) rollout_.pushes.forget(place_, options_.push->id);
    } else if (named() && options_.push) {
      // The set waits for its name.
      HeldPush held(*this);
      if (relay_) relay_->end();
      check_going_on();
      rollout_.pushes.staged(place_, options_.push->id, PushLedger::Clock::now());
      tell("staged");
      outcome = Operation::Outcome::kStaged;
      held.keep();
    } else if (named()) {
      outcome = Operation::Outcome::kNotServing;
      tell("set_filled");
    } else {
      StagedSet staged(model);
      judge();
      if (relay_) relay_->end();
      weight_version = publish();
      outcome = weight_version == 0 ? Operation::Outcome::kStaged : Operation::Outcome::kActive;
      staged.keep();
    }
    over_ = true;
  }
  operation_->end(outcome, weight_version);
  rollout_.operations.count(*operation_);
  if (outcome == Operation::Outcome::kNotServing)
    log_info("model {} version {} has set '{}', label '{}'", interface.name, interface.version, request_.set,
             excerpt(options_.update.label));
  if (weight_version != 0)
    log_info("model {} version {} has new weights: weight version {}, label '{}'", interface.name, interface.version,
             weight_version, excerpt(options_.update.label));
  answer(200, operation_document(*operation_));
}

void WeightsJob::read_options() {
  const http::Query query(request_.query,
                          {"mode",  "dry_run", "label", "async",        "commit",    "check_finite", "ignore",
                           "store", "keep",    "base",  "push",         "lease",     "members",      "member",
                           "relay", "golden",  "guard", "guard_errors", "guard_nan", "guard_p99"});
  read_update_query(query, true, options_.update);
  options_.update.label = query.text("label").value_or("");
  options_.update.set = request_.set;
  options_.update.base = query.text("base").value_or("");
  options_.update.check_finite = query.flag("check_finite");
  options_.update.dry_run = query.flag("dry_run");
  options_.async = query.flag("async");
  options_.commit = query.flag("commit");
  options_.publish = publish_options(query);
  options_.golden = golden_rule(query);
  SCONCE_CHECK(!options_.update.dry_run || !options_.commit, kInvalidArgument, "dry_run and commit exclude each other");
  options_.push = push_terms(query, request_.authorization);
  if (options_.push) {
    options_.push->label = options_.update.label;
    options_.push->set = request_.set;
    if (named()) hold_for_push();
  }
  const size_t members = options_.push ? options_.push->members.size() : 0;
  SCONCE_CHECK(!options_.commit || members <= 1, kInvalidArgument,
               "commit and members exclude each other: servers commit when all have staged");
  const bool relay = query.flag("relay");
  SCONCE_CHECK(!relay || (request_.upload && members > options_.push->member), kInvalidArgument,
               "relay needs members, this server among them, and a body of weights");
  options_.relay = relay && options_.push->member + 1 < members;
  SCONCE_CHECK(request_.set.empty() || !options_.commit, kInvalidArgument,
               "a named set is not committed: POST .../sets/NAME/promote publishes it");
}

// The set waits for its name, with a note from which a later process knows its push.
void WeightsJob::hold_for_push() {
  PushRecord record;
  record.terms = *options_.push;
  record.state = PushState::kCommitted;
  options_.update.hold = true;
  options_.update.note = weights::push_text(note_of(record));
}

void WeightsJob::find_model() {
  model_ = rollout_.repository.snapshot()->loaded(request_.model, request_.version);
  place_ = place_of(model_);
}

// Aborts an update that was cancelled, whose model was replaced, or whose push was aborted or has expired.
void WeightsJob::check_going_on() {
  operation_->check_cancelled();
  if (const uint64_t now = rollout_.repository.revision(); now != revision_) {
    check_served(rollout_, *model_);
    revision_ = now;
  }
  if (options_.push) rollout_.pushes.check_open(place_, options_.push->id);
}

void WeightsJob::begin_relay() {
  SCONCE_CHECK(upload_->length(), kInvalidArgument, "relay needs a body with Content-Length");
  const auto patience = std::chrono::ceil<std::chrono::seconds>(rollout_.config.upload_timeout);
  relay_.emplace(rollout_.peers, *options_.push, patience, [this] { check_going_on(); });
  const std::string what = named() ? "/sets/" + request_.set : "/weights";
  relay_->begin(
      http::admin_path(request_.model, request_.version) + what + "?" + query_for_next(request_.query, *options_.push),
      *upload_->length(), {request_.content_digest, request_.signature});
}

void WeightsJob::receive(WeightUpdate& update) {
  const uint64_t limit = rollout_.config.weights_limit > 0 ? static_cast<uint64_t>(rollout_.config.weights_limit)
                                                           : model_->model().info().constant_bytes + kHeaderBytes;
  upload_->limit(limit);
  std::optional<Sha256Digest> sha256 = http::content_digest(request_.content_digest);
  std::optional<signing::HeadCheck> head;
  if (must_be_signed()) {
    const signing::Verified verified = verify_upload(rollout_.signatures, request_.signature, sha256);
    head.emplace(verified.statement);
  }
  WeightStream stream(update, {.source = "body", .bytes = upload_->length(), .sha256 = sha256});
  operation_->expect_bytes(upload_->length().value_or(0));
  operation_->enter(Operation::Phase::kReceiving);
  revision_ = rollout_.repository.revision();
  const std::function<void()> check = [this] { check_going_on(); };
  if (options_.relay) begin_relay();
  upload_->invite();
  for (;;) {
    const std::span<std::byte> room = stream.next();
    const size_t bytes = upload_->read(room, check);
    if (bytes == 0) break;
    if (options_.push) rollout_.pushes.renew(place_, options_.push->id, PushLedger::Clock::now());
    if (head) head->see(room.first(bytes));
    if (relay_) relay_->send(room.first(bytes));
    stream.advance(bytes);
    operation_->add_bytes(bytes);
    if (!upload_->length()) operation_->expect_bytes(stream.bytes_total());
  }
  stream.end();
  if (options_.async) answer(202, accepted_document(*operation_));
}

void WeightsJob::read_reference() {
  SCONCE_CHECK(request_.content_digest.empty(), kInvalidArgument,
               "Content-Digest is only for application/octet-stream; the digest of a file is its 'sha256'");
  FileOptions& options = options_.file;
  JsonCursor::read_request(request_.body, [&](JsonCursor& json, std::string_view key) {
    if (key == "file") {
      file_ = json.string("'file'");
    } else if (key == "format") {
      options.format = format_from(json.string("'format'"));
    } else if (key == "sha256") {
      options.sha256 = http::digest_from_hex(json.string("'sha256'"));
    } else if (key == "package_model") {
      options.package_model = json.string("'package_model'");
    } else if (key == "ignore") {
      json.array("'ignore'", [&](size_t) { add_ignored(json.string("a name in 'ignore'"), options_.update); });
    } else if (key == "tensors") {
      read_tensor_handles(json, tensors_.emplace());
    } else {
      SCONCE_FAIL(kInvalidArgument, "unknown member of the request: '", excerpt(key), "'");
    }
  });
}

void WeightsJob::read_tensors(WeightUpdate& update) {
  rollout_.signatures.refuse_unsigned("weights in shared memory");
  SCONCE_CHECK(file_.empty() && !options_.file.sha256 && options_.file.package_model.empty() &&
                   options_.file.format == WeightFormat::kDetect,
               kInvalidArgument, "'tensors' go without 'file' and what belongs to it");
  operation_->enter(Operation::Phase::kReceiving);
  const SharedTensors shared(*tensors_);
  operation_->expect_bytes(shared.bytes());
  const auto begin = std::chrono::steady_clock::now();
  stage_tensors(update, shared.tensors());
  operation_->add_shared(shared.opening(), std::chrono::steady_clock::now() - begin);
  operation_->add_bytes(shared.bytes());
}

void WeightsJob::read_file(WeightUpdate& update) {
  FileOptions& options = options_.file;
  const WeightsFile file(rollout_.config.weights_dir, file_);
  // The tensor would be named after the descriptor.
  SCONCE_CHECK(!file_.ends_with(".npy"), kInvalidArgument, "an .npy file names no tensor, use .npz: '", excerpt(file_),
               "'");
  opened_ = file.path().string();
  std::shared_ptr<const PrivateCopy> copy;
  if (must_be_signed()) {
    copy = read_signed_weights(rollout_.signatures, rollout_.config.weights_dir, file_, file);
    opened_ = copy->path().string();
  }
  options.constants = model_->model().constants();
  operation_->follow(options);
  operation_->enter(Operation::Phase::kReceiving);
  stage_file(update, copy ? copy->path() : file.path(), options);
}

// Runs the model's golden requests, while the later servers of a relay run theirs.
void WeightsJob::judge() {
  if (!model_->weights().golden()) return;
  operation_->enter(Operation::Phase::kJudging);
  const std::optional<weights::GoldenVerdict> verdict = judge_staged(*model_, [this] { check_going_on(); });
  operation_->tell_golden(dump(weights::verdict_json(*verdict)));
  require_good(rollout_, *model_, verdict, options_.golden, options_.push ? options_.push->id : "");
}

// Returns the weight version; 0 if the set stays staged.
uint64_t WeightsJob::publish() {
  operation_->check_cancelled();
  check_served(rollout_, *model_);
  if (options_.push) rollout_.pushes.staged(place_, options_.push->id, PushLedger::Clock::now());
  tell("staged");
  if (!options_.commit) return 0;
  operation_->enter(Operation::Phase::kCommitting);
  const weights::PublishedBy by = published_by(request_);
  const Published published = options_.push
                                  ? publish_push(rollout_, place_, *model_, options_.push->id, by, options_.publish)
                                  : publish_staged(rollout_, *model_, by, options_.publish);
  if (const auto& stored = model_->weights().stored()) {
    succeeds([&] {
      weights::StoredWeights::Status status = stored->status();
      operation_->tell_stored(status.weight_version == published.weight_version, std::move(status.problem));
    });
  }
  return published.weight_version;
}

// Adds an entry to the audit log. The event has already happened, so a failure here is not an error.
void WeightsJob::tell(std::string_view event, const std::string& reason) noexcept {
  succeeds([&] {
    AuditEntry entry = event == "staged" && !named() ? audit_of(event, rollout_, *model_, WeightState::kStaged)
                                                     : audit_of(event, *model_);
    entry.label = options_.update.label;
    entry.set = request_.set;
    entry.reason = reason;
    if (options_.push) entry.push = options_.push->id;
    rollout_.audit.add(entry);
  });
}

void WeightsJob::fail(const std::exception_ptr& problem) {
  // The work is done, but memory for the answer's text was short.
  if (over_) return answer(200, {});
  Failure failure = describe_failure(problem);
  // The client sent or named a file without weights, which is the client's error.
  if (failure.code == ErrorCode::kUnsupported) failure.status = http_status(ErrorCode::kInvalidArgument);
  // The client knows the file by the name it sent, and not by the path under which it was opened.
  if (const size_t at = opened_.empty() ? std::string::npos : failure.message.find(opened_); at != std::string::npos) {
    failure.message.replace(at, opened_.size(), excerpt(file_));
  }
  if (upload_) {
    upload_->discard();
    if (upload_->timed_out()) failure.status = 408;
    if (upload_->closed()) failure = {400, ErrorCode::kInvalidArgument, failure.message};
  }
  if (operation_) {
    if (operation_->cancelled() && failure.code == ErrorCode::kCancelled) {
      failure.status = rollout_.draining ? 503 : 409;
    }
    operation_->end(failure);
    rollout_.operations.count(*operation_);
    failure.message = operation_->view().error;
    log_warn("model {} version {} keeps its weights: {}", operation_->model, operation_->version,
             printable(failure.message));
  }
  if (model_ && !options_.update.dry_run) {
    const AuditRequest audit_request(request_);
    tell("refused", failure.message);
  }
  answer(failure.status, registry::error_document(failure.message));
}

void WeightsJob::abandon() noexcept {
  if (over_) return answer(200, {});
  if (operation_ && !operation_->over()) operation_->end(Failure{507, ErrorCode::kOutOfMemory, {}});
  answer(507, {});
}

void WeightsJob::answer(int status, std::string text) {
  if (!done_) return;
  AdminAnswer answer;
  answer.status = status;
  answer.text = std::move(text);
  if (upload_) {
    answer.body_left = !upload_->complete();
    answer.received = upload_->received();
  }
  std::exchange(done_, nullptr)(std::move(answer));
}

}  // namespace sconce::server::rollout
