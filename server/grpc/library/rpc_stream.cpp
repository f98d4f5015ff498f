#include "server/grpc/library/rpc_stream.h"

#include <algorithm>
#include <utility>

#include "server/grpc/library/no_memory.h"
#include "server/grpc/library/status_text.h"

namespace sconce::server::rpc {
namespace {

const GrpcStatus kDraining{GrpcCode::kUnavailable,
                           "the server ends, and takes no more requests of this stream: send them to another one"};
const GrpcStatus kNoMemory = own_status_after(GrpcCode::kResourceExhausted);

}  // namespace

void RpcStream::begin(bool errors_end) noexcept {
  const MutexLock lock(mutex_);
  errors_end_ = errors_end;
  go_on();
}

void RpcStream::was_read(bool ok) noexcept {
  std::shared_ptr<Entry> entry;
  GrpcCaller caller;
  {
    const MutexLock lock(mutex_);
    reading_ = false;
    if (!ok || cancelled_ || draining_) {
      ended_ = true;
      return go_on();
    }
    const GrpcCode problem = outcome_of([&] {
      mutex_.assert_held();
      caller = wire_.caller();
      entry = take_request();
    });
    if (problem != GrpcCode::kOk) {
      fail(problem);
      return go_on();
    }
    starting_ = true;
  }
  if (entry->entered && entry->inference->start(caller, read_)) return;
  const MutexLock lock(mutex_);
  starting_ = false;
  entry->ready = true;
  entry->refused = entry->entered ? &kNoMemory : &kTooManyCalls;
  go_on();
}

std::shared_ptr<RpcStream::Entry> RpcStream::take_request() {
  auto entry = std::make_shared<Entry>(wire_);
  entry->inference = wire_.make_inference([this, of = entry.get()] { ended(*of); }, [this] { handed(); });
  entries_.push_back(entry);
  return entry;
}

void RpcStream::was_written(bool ok) noexcept {
  std::shared_ptr<Entry> over;
  bool more = false;
  {
    const MutexLock lock(mutex_);
    writing_ = false;
    over = std::move(written_);
    more = ok && !cancelled_ && over->refused == nullptr && over->inference->more();
    if (more) {
      // Other requests with several answers are served first.
      over->ready = false;
      entries_.splice(entries_.end(), entries_, std::find(entries_.begin(), entries_.end(), over));
      users_++;
    } else {
      entries_.remove(over);
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

void RpcStream::cancel() noexcept {
  {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    users_++;  // while this is not 0, the stream does not end
  }
  for (;;) {
    std::shared_ptr<Entry> next;
    {
      const MutexLock lock(mutex_);
      const auto found =
          std::find_if(entries_.begin(), entries_.end(), [](const auto& entry) { return !entry->cancelled; });
      if (found == entries_.end()) break;
      next = *found;
      next->cancelled = true;
    }
    next->inference->cancel();
  }
  const MutexLock lock(mutex_);
  users_--;
  go_on();
}

void RpcStream::drain() noexcept {
  const MutexLock lock(mutex_);
  if (ended_ || cancelled_ || draining_) return;
  ended_ = draining_ = true;
  if (!has_memory([this] {
        mutex_.assert_held();
        status_ = status_of(kDraining);
      }))
    status_ = grpc::Status(grpc::UNAVAILABLE, {});
  go_on();
}

bool RpcStream::works() noexcept {
  const MutexLock lock(mutex_);
  return !entries_.empty();
}

void RpcStream::handed() noexcept {
  const MutexLock lock(mutex_);
  starting_ = false;
  go_on();
}

void RpcStream::ended(Entry& entry) noexcept {
  const MutexLock lock(mutex_);
  entry.ready = true;
  entry.several = entry.several || entry.inference->more();
  go_on();
}

// The first entry whose answer may be sent; null: none.
std::shared_ptr<RpcStream::Entry> RpcStream::next_ready() const noexcept {
  bool in_turn = true;
  for (const auto& entry : entries_) {
    if (entry->ready && (in_turn || entry->several)) return entry;
    in_turn = in_turn && entry->several;
  }
  return nullptr;
}

// Reads the next request, writes the next answer, or ends the stream, whichever is possible.
void RpcStream::go_on() noexcept {
  if (finished_) return;
  if (!writing_ && !cancelled_ && (written_ = next_ready())) {
    const GrpcCode problem = outcome_of([this] {
      mutex_.assert_held();
      write_next(*written_);
    });
    if (problem != GrpcCode::kOk) fail(problem);
  }
  if (!ended_ && !cancelled_ && !reading_ && !starting_ && entries_.size() < window_) {
    reading_ = true;
    wire_.read(read_);
  }
  if (writing_ || starting_ || users_ > 0) return;
  const bool all_ready = std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) { return entry->ready; });
  // gRPC then ends a read in progress.
  if (cancelled_ ? all_ready : ended_ && (draining_ || !reading_) && entries_.empty()) {
    finished_ = true;
    wire_.finish(status_);
  }
}

void RpcStream::write_next(const Entry& entry) {
  const GrpcStatus* status = entry.refused != nullptr ? entry.refused : &entry.inference->status();
  if (status->code == GrpcCode::kOk && !entry.inference->respond(true, write_)) status = &kNoMemory;
  if (status->code != GrpcCode::kOk) {
    if (errors_end_) {
      status_ = status_of(*status);
      cancelled_ = true;
      return;
    }
    grpc::ByteBuffer answer = stream_error(entry.inference->id(), status->message);
    write_.Swap(&answer);
  }
  writing_ = true;
  wire_.write(write_);
}

// No more answers are written. The stream ends when its requests have ended.
void RpcStream::fail(GrpcCode problem) noexcept {
  cancelled_ = true;
  status_ = status_after(problem);
}

}  // namespace sconce::server::rpc
