// All calls except inference: methods that the program answers as text, health, reflection.
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>
#include <health.pb.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/grpc/library/calls.h"
#include "server/grpc/library/health.h"
#include "server/grpc/library/infer_message.h"
#include "server/grpc/library/methods.h"
#include "server/grpc/library/reflection.h"

namespace sconce::server::rpc {
namespace {

using grpc::ByteBuffer;

const GrpcStatus kNoMessage{GrpcCode::kInternal, "the call has no message"};
const GrpcStatus kNoAnswer{GrpcCode::kInternal, "the answer has no message"};
const GrpcStatus kWatchEnds{GrpcCode::kCancelled, "the server ends, or the client has left"};

// The method of inference.GRPCInferenceService that the program answers as text.
bool find_method(std::string_view path, api::GrpcMethod& method) {
  constexpr std::string_view kService = "/inference.GRPCInferenceService/";
  if (!path.starts_with(kService)) return false;
  path.remove_prefix(kService.size());
  constexpr auto kMethods = static_cast<size_t>(api::GrpcMethod::kModelInfer);
  for (size_t i = 0; i < kMethods; ++i) {
    if (path != api::kGrpcMethodNames[i]) continue;
    method = static_cast<api::GrpcMethod>(i);
    return true;
  }
  return false;
}

bool read_service(ByteBuffer& message, std::string& service) {
  grpc::health::v1::HealthCheckRequest request;
  if (message.Length() > 0) {
    grpc::ProtoBufferReader reader(&message);
    if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) return false;
  }
  service = request.service();
  return true;
}

ByteBuffer health_answer(Health::Status status) {
  grpc::health::v1::HealthCheckResponse answer;
  answer.set_status(static_cast<grpc::health::v1::HealthCheckResponse::ServingStatus>(status));
  const grpc::Slice slice(answer.SerializeAsString());
  return {&slice, 1};
}

class OtherCall final : public RpcCall, private Health::Watcher {
 public:
  explicit OtherCall(Calls& calls) : RpcCall(calls, Calls::kOther) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.others.RequestCall(&context_, &to_, &calls.queue, &calls.queue, came_.tag());
  }

 private:
  enum class Kind { kUnknown, kText, kCheck, kWatch, kReflect };

  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    const std::string& path = context_.method();
    kind_ = find_method(path, method_)                                                 ? Kind::kText
            : path == "/grpc.health.v1.Health/Check"                                   ? Kind::kCheck
            : path == "/grpc.health.v1.Health/Watch"                                   ? Kind::kWatch
            : path == "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" ? Kind::kReflect
                                                                                       : Kind::kUnknown;
    kind_ == Kind::kUnknown ? finish({grpc::UNIMPLEMENTED, ""}) : read();
  }
  bool works() noexcept override { return kind_ == Kind::kText; }
  void cancel() noexcept override {
    std::shared_ptr<GrpcAnswering> answering;
    {
      const MutexLock lock(mutex_);
      ends_ = true;
      answering = answering_;
      watch();
    }
    if (answering) answering->cancel();
  }
  void over() noexcept override {
    if (kind_ == Kind::kWatch) calls_.health.remove(*this);
    { const MutexLock lock(mutex_); }  // the thread that called finish() has left
  }
  void last(const grpc::Status& status) override { to_.Finish(status, finished_.tag()); }
  void refuse(const GrpcStatus& status) noexcept {
    if (kind_ == Kind::kText) calls_.host.count(method_, status.code);
    finish(status);
  }
  void respond(const ByteBuffer& answer) {
    to_.WriteAndFinish(answer, grpc::WriteOptions(), grpc::Status::OK, finished_.tag());
  }
  void read() {
    hold();
    to_.Read(&message_, read_.tag());
  }

  void was_read(bool ok) {
    if (!ok) {
      if (kind_ == Kind::kReflect) return finish(grpc::Status::OK);
      return refuse(kNoMessage);
    }
    const GrpcCode problem = outcome_of([this] { answer(); });
    if (problem != GrpcCode::kOk) finish(status_after(problem));
  }
  void was_written(bool ok) {
    if (kind_ == Kind::kReflect) return ok ? read() : finish(grpc::Status::OK);
    const MutexLock lock(mutex_);
    writing_ = false;
    ends_ = ends_ || !ok;
    watch();
  }
  void finished(bool) {}

  // Exceptions are only thrown before the call's last operation.
  void answer() {
    GrpcStatus status;
    if (message_.Length() > calls_.options.most_text)
      return refuse({GrpcCode::kResourceExhausted, "the message is larger than this method takes"});
    const grpc_compression_algorithm algorithm = compression_of(message_);
    if (algorithm != GRPC_COMPRESS_NONE &&
        inflate(
            message_, algorithm, calls_.options.most_text, [](size_t) { return true; }, status) != Inflated::kDone)
      return refuse(status);
    std::string text;
    const GrpcStatus no_message{GrpcCode::kInvalidArgument, "not the request of this method"};
    switch (kind_) {
      case Kind::kText:
        return request_to_json(method_, message_, text) ? ask(text) : refuse(no_message);
      case Kind::kReflect: {
        if (!reflect(message_, answer_)) return refuse(no_message);
        hold();
        return to_.Write(answer_, written_.tag());
      }
      default:
        break;
    }
    if (!read_service(message_, text)) return refuse(no_message);
    if (kind_ == Kind::kWatch) return calls_.health.add(*this, text);
    const Health::Status health = calls_.health.of(text);
    if (health == Health::Status::kServiceUnknown) return refuse({GrpcCode::kNotFound, "service name unknown"});
    respond(health_answer(health));
  }
  void ask(const std::string& json) {
    const auto done = [this](const GrpcStatus& given, std::string_view text) {
      if (given.code != GrpcCode::kOk) return finish(given);
      bool is_answer = false;
      const GrpcCode problem = outcome_of([&] { is_answer = answer_from_json(method_, text, answer_); });
      if (problem != GrpcCode::kOk) return finish(status_after(problem));
      is_answer ? respond(answer_) : finish(kNoAnswer);
    };
    std::shared_ptr<GrpcAnswering> answering = calls_.host.answer(method_, caller_of(context_), json, done);
    if (!answering) return;
    bool left = false;
    {
      const MutexLock lock(mutex_);
      answering_ = answering;
      left = ends_;
    }
    if (left) answering->cancel();
  }

  void changed(Health::Status status, bool ends) noexcept override {
    const MutexLock lock(mutex_);
    status_ = status;
    ends_ = ends_ || ends;
    watches_ = true;
    watch();
  }
  // Writes the latest status, or ends.
  void watch() noexcept SCONCE_REQUIRES(mutex_) {
    if (!watches_ || writing_ || ended_) return;
    if (ends_) {
      ended_ = true;
      return finish(kWatchEnds);
    }
    if (std::exchange(told_, status_) == status_) return;
    ByteBuffer answer;
    const GrpcCode problem = outcome_of([&] {
      mutex_.assert_held();
      answer = health_answer(status_);
    });
    if (problem != GrpcCode::kOk) {
      ended_ = true;
      return finish(status_after(problem));
    }
    writing_ = true;
    hold();
    to_.Write(answer, written_.tag());
  }

  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter to_{&context_};
  Event<OtherCall, &OtherCall::was_read> read_{*this};
  Event<OtherCall, &OtherCall::was_written> written_{*this};
  Event<OtherCall, &OtherCall::finished> finished_{*this};
  std::atomic<Kind> kind_{Kind::kUnknown};
  api::GrpcMethod method_{};
  ByteBuffer message_, answer_;
  Mutex mutex_;  // guards a watcher's state, and data of calls that wait for the program
  std::shared_ptr<GrpcAnswering> answering_ SCONCE_GUARDED_BY(mutex_);
  Health::Status status_ SCONCE_GUARDED_BY(mutex_) = Health::Status::kUnknown;
  Health::Status told_ SCONCE_GUARDED_BY(mutex_) = Health::Status::kUnknown;
  bool watches_ SCONCE_GUARDED_BY(mutex_) = false, writing_ SCONCE_GUARDED_BY(mutex_) = false;
  bool ends_ SCONCE_GUARDED_BY(mutex_) = false, ended_ SCONCE_GUARDED_BY(mutex_) = false;
};

}  // namespace

void wait_for_other(Calls& calls) { new OtherCall(calls); }

}  // namespace sconce::server::rpc
