#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "sconce/mutex.h"
#include "server/grpc/library/calls.h"
#include "server/grpc/library/rpc_inference.h"

namespace sconce::server {
namespace {

using grpc::ByteBuffer;

const GrpcStatus kDraining{GrpcCode::kUnavailable,
                           "the server ends, and takes no more requests of this stream: send them to another one"};
const GrpcStatus kNoMemoryStatus{GrpcCode::kResourceExhausted, "no memory"};

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

std::shared_ptr<RpcInference> new_inference(Calls& calls, GrpcMethod method, std::shared_ptr<CallCanceller> canceller,
                                            RpcInference::Finished finished, RpcInference::Finished handed = nullptr) {
  return std::make_shared<RpcInference>(calls.host, calls.options, calls.threads, method, std::move(canceller),
                                        std::move(finished), std::move(handed));
}

class InferCall final : public RpcCall {
 public:
  explicit InferCall(Calls& calls)
      : RpcCall(calls, Calls::kInfer),
        canceller_(std::make_shared<CancelLater>(calls.host, context_)),
        inference_(new_inference(calls, GrpcMethod::kModelInfer, canceller_, [this] { answer(); })) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_infer(context_, request_, to_, calls.queue, came_.tag());
  }

 private:
  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    if (!inference_->start(caller_of(context_), request_)) finish(kNoMemory);
  }
  void cancel() noexcept override { inference_->cancel(); }
  void over() noexcept override { canceller_->done(); }
  bool works() noexcept override { return true; }
  void finish(const grpc::Status& status) noexcept override { to_.FinishWithError(status, finished_.tag()); }
  void finished(bool) {}

  void answer() noexcept {
    const GrpcStatus& status = inference_->status();
    if (status.code != GrpcCode::kOk) return finish(status_of(status));
    const TensorAnswer& answer = inference_->answer();
    size_t bytes = 0;
    for (const TensorAnswer::Output& output : answer.outputs) bytes += output.bytes;
    const int64_t compress_above = calls_.options.compress_above;
    // gRPC compresses only for clients that accept it.
    if (compress_above > 0 && bytes > static_cast<size_t>(compress_above))
      context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    context_.AddInitialMetadata("sconce-generation", std::to_string(answer.generation));
    if (!answer.weights.empty()) context_.AddInitialMetadata("sconce-weights", std::string(answer.weights));
    ByteBuffer response;
    if (!inference_->respond(false, response)) return finish(kNoMemory);
    to_.Finish(response, grpc::Status::OK, finished_.tag());
  }

  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<ByteBuffer> to_{&context_};
  ByteBuffer request_;
  const std::shared_ptr<CancelLater> canceller_;
  const std::shared_ptr<RpcInference> inference_;
  Event<InferCall, &InferCall::finished> finished_{*this};
};

// Requests of one stream run in parallel, up to the window. Answers are sent in the order of the requests, except those
// of requests with several answers, which are sent as they come: such a request stays in the list of entries until its
// last answer. The program receives the requests one after the other, because steps of a sequence run in the order of
// receipt.
class StreamCall final : public RpcCall {
 public:
  explicit StreamCall(Calls& calls)
      : RpcCall(calls, Calls::kStream), canceller_(std::make_shared<CancelLater>(calls.host, context_)) {
    context_.AsyncNotifyWhenDone(left_.tag());
    calls.service.request_stream(context_, to_, calls.queue, came_.tag());
  }

 private:
  struct Entry {
    explicit Entry(Calls& calls) : calls(calls), entered(calls.enter()) {}
    ~Entry() { calls.leave(); }
    Entry(const Entry&) = delete;

    Calls& calls;
    const bool entered;
    std::shared_ptr<RpcInference> inference;
    bool ready = false;                   // has its answer, or failed
    const GrpcStatus* refused = nullptr;  // reason for which there is no inference
    bool several = false;                 // has several answers
  };

  grpc::ServerContext& context() noexcept override { return context_; }
  void begin() override {
    const auto asked = context_.client_metadata().find("triton_grpc_error");
    errors_end_ = asked != context_.client_metadata().end() && asked->second == "true";
    const MutexLock lock(mutex_);
    go_on();
  }
  void finish(const grpc::Status& status) noexcept override { to_.Finish(status, finished_event_.tag()); }
  void finished(bool) {}
  void was_read(bool ok) {
    std::shared_ptr<Entry> entry;
    {
      const MutexLock lock(mutex_);
      reading_ = false;
      if (ok && !cancelled_ && !draining_) {
        entry = std::make_shared<Entry>(calls_);
        entry->inference = new_inference(
            calls_, GrpcMethod::kModelStreamInfer, canceller_, [this, of = entry.get()] { end(*of); },
            [this] { handed(); });
        entries_.push_back(entry);
        starting_ = true;
      } else {
        ended_ = true;
        go_on();
      }
    }
    if (!entry) return;
    if (entry->entered && entry->inference->start(caller_of(context_), read_)) return;
    const MutexLock lock(mutex_);
    starting_ = false;
    entry->ready = true;
    entry->refused = entry->entered ? &kNoMemoryStatus : &kTooManyCalls;
    go_on();
  }
  void was_written(bool ok) {
    std::shared_ptr<Entry> over;
    bool more = false;
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      over = std::move(written_);
      more = ok && !cancelled_ && over->refused == nullptr && over->inference->more();
      entries_.erase(std::find(entries_.begin(), entries_.end(), over));
      if (more) {
        // Other requests with several answers are served first.
        over->ready = false;
        entries_.push_back(over);
        users_++;
      }
      if (!ok) ended_ = true;
      go_on();
    }
    if (!more) return;
    over->inference->next();
    const MutexLock lock(mutex_);
    users_--;
    go_on();
  }
  void cancel() noexcept override {
    std::deque<std::shared_ptr<Entry>> all;
    {
      const MutexLock lock(mutex_);
      cancelled_ = true;
      all = entries_;
      users_++;  // while this is not 0, the stream does not end
    }
    for (const auto& entry : all) entry->inference->cancel();
    const MutexLock lock(mutex_);
    users_--;
    go_on();
  }
  void over() noexcept override {
    canceller_->done();
    { const MutexLock lock(mutex_); }  // the thread that called finish() has left
  }
  bool works() noexcept override {
    const MutexLock lock(mutex_);
    return !entries_.empty();
  }
  // Requests that have arrived are answered.
  void drain() noexcept override {
    const MutexLock lock(mutex_);
    if (ended_ || cancelled_ || draining_) return;
    ended_ = draining_ = true;
    status_ = status_of(kDraining);
    go_on();
  }

  void handed() noexcept {
    const MutexLock lock(mutex_);
    starting_ = false;
    go_on();
  }
  void end(Entry& entry) noexcept {
    const MutexLock lock(mutex_);
    entry.ready = true;
    entry.several = entry.several || entry.inference->more();
    go_on();
  }
  // The first entry whose answer may be sent; null: none.
  std::shared_ptr<Entry> next_ready() const {
    bool in_turn = true;
    for (const auto& entry : entries_) {
      if (entry->ready && (in_turn || entry->several)) return entry;
      in_turn = in_turn && entry->several;
    }
    return nullptr;
  }

  // Under the mutex. Reads the next request, writes the next answer, or ends the stream, whichever is possible.
  void go_on() {
    if (finished_) return;
    if (!writing_ && !cancelled_) {
      if ((written_ = next_ready())) write_next(*written_);
    }
    if (!ended_ && !cancelled_ && !reading_ && !starting_ &&
        entries_.size() < static_cast<size_t>(calls_.options.stream_window)) {
      reading_ = true;
      hold();
      to_.Read(&read_, read_event_.tag());
    }
    if (writing_ || starting_ || users_ > 0) return;
    const bool all_ready =
        std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->ready; });
    // gRPC then ends a read in progress.
    if (cancelled_ ? all_ready : ended_ && (draining_ || !reading_) && entries_.empty()) {
      finished_ = true;
      finish(status_);
    }
  }
  void write_next(const Entry& entry) {
    const GrpcStatus* status = entry.refused != nullptr ? entry.refused : &entry.inference->status();
    if (status->code == GrpcCode::kOk && !entry.inference->respond(true, write_)) status = &kNoMemoryStatus;
    if (status->code != GrpcCode::kOk) {
      if (errors_end_) {
        status_ = status_of(*status);
        cancelled_ = true;
        return;
      }
      ByteBuffer answer = stream_error(entry.inference->id(), status->message);
      write_.Swap(&answer);
    }
    writing_ = true;
    hold();
    to_.Write(write_, written_event_.tag());
  }

  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<ByteBuffer, ByteBuffer> to_{&context_};
  Event<StreamCall, &StreamCall::was_read> read_event_{*this};
  Event<StreamCall, &StreamCall::was_written> written_event_{*this};
  Event<StreamCall, &StreamCall::finished> finished_event_{*this};
  const std::shared_ptr<CancelLater> canceller_;
  bool errors_end_ = false;  // an error ends the stream with its status
  Mutex mutex_;
  ByteBuffer read_, write_;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> written_;  // the entry whose answer is being written
  bool reading_ = false, writing_ = false, starting_ = false;
  int users_ = 0;           // number of threads that use the entries without the mutex
  bool ended_ = false;      // no more requests are read
  bool draining_ = false;   // because of shutdown
  bool cancelled_ = false;  // no more answers are written
  bool finished_ = false;
  grpc::Status status_;
};

}  // namespace

void wait_for_infer(Calls& calls) { new InferCall(calls); }
void wait_for_stream(Calls& calls) { new StreamCall(calls); }

}  // namespace sconce::server
