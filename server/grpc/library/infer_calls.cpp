#include <memory>
#include <string>
#include <utility>

#include "sconce/mutex.h"
#include "server/grpc/library/calls.h"
#include "server/grpc/library/rpc_inference.h"
#include "server/grpc/library/rpc_stream.h"

namespace sconce::server::rpc {
namespace {

using grpc::ByteBuffer;

// Ends a call, if it still exists, from another thread: CallRoom's lock is held by the thread that gives it up. Without
// memory it does nothing; a client that reads too slowly is given up again.
class CancelLater final : public CallCanceller, public std::enable_shared_from_this<CancelLater> {
 public:
  CancelLater(GrpcHost& host, grpc::ServerContext& context) : host_(host), context_(&context) {}
  void cancel() noexcept override {
    has_memory([this] {
      host_.lend({}, [self = shared_from_this()] {
        const MutexLock lock(self->mutex_);
        if (self->context_ != nullptr) self->context_->TryCancel();
      });
    });
  }
  void done() {
    const MutexLock lock(mutex_);
    context_ = nullptr;
  }

 private:
  GrpcHost& host_;
  Mutex mutex_;
  grpc::ServerContext* context_ SCONCE_GUARDED_BY(mutex_);
};

std::shared_ptr<RpcInference> new_inference(Calls& calls, api::GrpcMethod method,
                                            std::shared_ptr<CallCanceller> canceller, RpcInference::Finished finished,
                                            RpcInference::Finished handed = nullptr) {
  return std::make_shared<RpcInference>(calls.host, calls.options, calls.threads, method, std::move(canceller),
                                        std::move(finished), std::move(handed));
}

class InferCall final : public RpcCall {
 public:
  explicit InferCall(Calls& calls)
      : RpcCall(calls, Calls::kInfer),
        canceller_(std::make_shared<CancelLater>(calls.host, context_)),
        inference_(new_inference(calls, api::GrpcMethod::kModelInfer, canceller_, [this] { answer(); })) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_infer(context_, request_, to_, calls.queue, came_.tag());
  }

 private:
  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    if (!inference_->start(caller_of(context_), request_)) finish(status_after(GrpcCode::kResourceExhausted));
  }
  void cancel() noexcept override { inference_->cancel(); }
  void over() noexcept override { canceller_->done(); }
  bool works() noexcept override { return true; }
  void last(const grpc::Status& status) override { to_.FinishWithError(status, finished_.tag()); }
  void finished(bool) {}

  void answer() noexcept {
    const GrpcCode problem = outcome_of([this] { give_answer(); });
    if (problem != GrpcCode::kOk) finish(status_after(problem));
  }
  // Throws only before the call's last operation.
  void give_answer() {
    const GrpcStatus& status = inference_->status();
    if (status.code != GrpcCode::kOk) return finish(status);
    const codecs::TensorAnswer& answer = inference_->answer();
    size_t bytes = 0;
    for (const codecs::TensorAnswer::Output& output : answer.outputs) bytes += output.bytes;
    const int64_t compress_above = calls_.options.compress_above;
    // gRPC compresses only for clients that accept it.
    if (compress_above > 0 && bytes > static_cast<size_t>(compress_above))
      context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    const std::string weight_version = std::to_string(answer.weight_version);
    context_.AddInitialMetadata("sconce-weight-version", weight_version);
    context_.AddInitialMetadata("sconce-generation", weight_version);  // deprecated
    if (!answer.weights.empty()) context_.AddInitialMetadata("sconce-weights", std::string(answer.weights));
    ByteBuffer response;
    if (!inference_->respond(false, response)) return finish(status_after(GrpcCode::kResourceExhausted));
    to_.Finish(response, grpc::Status::OK, finished_.tag());
  }

  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<ByteBuffer> to_{&context_};
  ByteBuffer request_;
  const std::shared_ptr<CancelLater> canceller_;
  const std::shared_ptr<RpcInference> inference_;
  Event<InferCall, &InferCall::finished> finished_{*this};
};

class StreamCall final : public RpcCall, private RpcStream::Wire {
 public:
  explicit StreamCall(Calls& calls)
      : RpcCall(calls, Calls::kStream),
        canceller_(std::make_shared<CancelLater>(calls.host, context_)),
        stream_(*this, static_cast<size_t>(calls.options.stream_window)) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_stream(context_, to_, calls.queue, came_.tag());
  }

 private:
  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    const auto asked = context_.client_metadata().find("triton_grpc_error");
    stream_.begin(asked != context_.client_metadata().end() && asked->second == "true");
  }
  void last(const grpc::Status& status) override { to_.Finish(status, finished_.tag()); }
  void finished(bool) {}
  void was_read(bool ok) { stream_.was_read(ok); }
  void was_written(bool ok) { stream_.was_written(ok); }
  void cancel() noexcept override { stream_.cancel(); }
  void over() noexcept override {
    canceller_->done();
    stream_.wait_for_finisher();
  }
  bool works() noexcept override { return stream_.works(); }
  void drain() noexcept override { stream_.drain(); }

  bool enter() noexcept override { return calls_.enter(); }
  void leave() noexcept override { calls_.leave(); }
  GrpcCaller caller() override { return caller_of(context_); }
  std::shared_ptr<RpcInference> make_inference(RpcInference::Finished finished,
                                               RpcInference::Finished handed) override {
    return new_inference(calls_, api::GrpcMethod::kModelStreamInfer, canceller_, std::move(finished),
                         std::move(handed));
  }
  void read(ByteBuffer& to) noexcept override {
    hold();
    to_.Read(&to, read_.tag());
  }
  void write(const ByteBuffer& message) noexcept override {
    hold();
    to_.Write(message, written_.tag());
  }
  void finish(const grpc::Status& status) noexcept override { RpcCall::finish(status); }

  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> to_{&context_};
  Event<StreamCall, &StreamCall::was_read> read_{*this};
  Event<StreamCall, &StreamCall::was_written> written_{*this};
  Event<StreamCall, &StreamCall::finished> finished_{*this};
  const std::shared_ptr<CancelLater> canceller_;
  RpcStream stream_;
};

}  // namespace

void wait_for_infer(Calls& calls) { new InferCall(calls); }
void wait_for_stream(Calls& calls) { new StreamCall(calls); }

}  // namespace sconce::server::rpc
