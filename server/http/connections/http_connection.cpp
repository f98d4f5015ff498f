#include "server/http/connections/http_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <utility>

#include "server/support/failure.h"
#include "server/support/log.h"

namespace sconce::server::http {
namespace {

namespace asio = boost::asio;

// Number of requests of one connection that are answered before other connections are served.
constexpr int kInARow = 16;
// Memory that a connection keeps for its next request.
constexpr size_t kKeepBytes = 256 * 1024;
constexpr std::chrono::seconds kLingerTime{2};

// This limit does not apply to uploads of weights, which the stream reads.
uint64_t most_body(const ServerConfig& config, Listeners listener) noexcept {
  return listener == kAdmin ? INT64_MAX : static_cast<uint64_t>(config.max_body_bytes);
}

}  // namespace

HttpConnection::HttpConnection(IoThread& io_thread, Descriptor socket, Listeners listener, OpenConnections::Slot slot,
                               std::string peer)
    : io_thread_(io_thread),
      slot_(std::move(slot)),
      transport_(std::move(socket), io_thread.tls_of(listener)),
      clock_(*io_thread.shared().now),
      reader_(io_thread.shared().config, most_body(io_thread.shared().config, listener),
              io_thread.shared().request_memory, transport_, clock_, listener == kPublic),
      writer_(transport_, clock_),
      stream_(io_thread.handler().open(*this, reader_, listener, std::move(peer))) {}

HttpConnection::~HttpConnection() {
  if (largest() > kKeepBytes || freed_) io_thread_.freed_much();
}

void HttpConnection::start(IoThread::Connections::iterator self) {
  self_ = self;
  const int on = 1;
  (void)::setsockopt(transport_.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const ServerConfig& config = io_thread_.shared().config;
  const Clock::time_point now = clock_.now();
  clock_.moved(now);
  clock_.begin_phase(now);
  clock_.until(now + (transport_.encrypted() ? config.tls_handshake_timeout : config.header_timeout));
  if (transport_.encrypted()) state_ = State::kHandshake;
  try {
    io_thread_.loop().watch(transport_.descriptor(), *this);
  } catch (...) {
    close();
    throw;
  }
}

// Runs steps() until a step waits. The only place where a request's exceptions are caught.
void HttpConnection::proceed() noexcept {
  const LogRequest log_request(stream_->request_id(), stream_->peer());
  for (;;) {
    std::exception_ptr problem;
    try {
      return steps();
    } catch (...) {
      problem = std::current_exception();
    }
    // After part of an answer was sent, no other answer can follow.
    if (state_ == State::kWriting || stream_->streaming()) return close();
    try {
      stream_->fail(problem);
      begin_answer();
    } catch (...) {
      return close();
    }
  }
}

void HttpConnection::steps() {
  reads_ = 0;
  for (int answered = 0;;) {
    Next next = Next::kContinue;
    switch (state_) {
      case State::kHandshake:
        next = handshake();
        break;
      case State::kReading:
        if (answered >= kInARow) return ask_again();
        next = read_request();
        break;
      case State::kReturned:
        follow(stream_->resume());
        break;
      case State::kWriting:
        deferred_ = writer_.untouched() && !io_thread_.sends_now(*this, stream_->start(), clock_.phase_start());
        if (deferred_) return;
        next = write();
        if (next == Next::kContinue) ++answered;
        break;
      case State::kWaiting:
      case State::kLingering:
      case State::kClosed:
        return;
    }
    if (next == Next::kWait) return;
  }
}

HttpConnection::Next HttpConnection::handshake() {
  error_code ec;
  if (transport_.handshake(ec)) {
    state_ = State::kReading;
    const Clock::time_point now = clock_.now();
    clock_.begin_phase(now);
    clock_.until(now + io_thread_.shared().config.header_timeout);
    return Next::kContinue;
  }
  if (ec != asio::error::would_block) {
    log_debug("TLS handshake failed: {}", printable(transport_.handshake_problem()));
    close();
    return Next::kWait;
  }
  return Next::kWait;
}

HttpConnection::Next HttpConnection::read_request() {
  RequestReader::Step step = reader_.step();
  if (step == RequestReader::Step::kMore) {
    const std::span<char> room = reader_.room();
    if (!room.empty()) return receive(room);
    step = RequestReader::Step::kRefused;
  }
  // A completed change must not be reported as failed because memory for the answer is short.
  writer_.reserve();
  switch (step) {
    case RequestReader::Step::kHead: {
      const Clock::time_point now = reader_.head_in_one_piece() ? reader_.head_time() : clock_.now();
      clock_.begin_phase(now);
      follow(stream_->begin(now));
      break;
    }
    case RequestReader::Step::kBody:
      follow(stream_->dispatch());
      break;
    case RequestReader::Step::kTooLong:
      follow(stream_->refuse_length());
      break;
    default:
      follow(stream_->refuse(reader_.refusal().status, reader_.refusal().message));
      break;
  }
  return Next::kContinue;
}

void HttpConnection::follow(HttpStream::Next next) {
  switch (next) {
    case HttpStream::Next::kReadBody:
      if (!reader_.begin_body()) close();
      break;
    case HttpStream::Next::kWait:
      wait();
      break;
    case HttpStream::Next::kAnswer:
      begin_answer();
      break;
    case HttpStream::Next::kPiece: {
      const ServerConfig& config = io_thread_.shared().config;
      writer_.go_on(stream_->response(), Pace::of(config.write_timeout, config.min_rate));
      state_ = State::kWriting;
      break;
    }
    case HttpStream::Next::kSent:
      stream_->count_answer();
      ConnectionCounters::add(io_thread_.counters().sent, stream_->sent_elsewhere());
      stream_->end(stream_->sent_elsewhere(), clock_.now());
      close();
      break;
    case HttpStream::Next::kHangUp:
      close();
      break;
  }
}

void HttpConnection::wait() {
  state_ = State::kWaiting;
  const HttpStream::Waiting waiting = stream_->waiting();
  // A thread may read from the socket itself and leave part of the received bytes.
  if (!waiting.reads_ahead) readable_ = true;
  if (waiting.events) read_ahead();
  if (!waiting.timed) return;
  // The run may have ended by now, but its notice waits for this thread.
  clock_.until(stream_->deadline());
  io_thread_.wake_by(clock_.deadline());
  if (waiting.reads_ahead) read_ahead();
}

// Another thread has released the request.
void HttpConnection::on_notice() noexcept {
  if (state_ == State::kWaiting) {
    state_ = State::kReturned;
    return proceed();
  }
  // The connection was closed or answered meanwhile.
  stream_->take_back();
  retire_if_over();
}

void HttpConnection::send_answer() noexcept {
  deferred_ = false;
  proceed();
}

void HttpConnection::begin_answer() {
  const ServerConfig& config = io_thread_.shared().config;
  const ResponseWriter::Form form = stream_->finish_response();
  const Clock::time_point answered = stream_->answered();
  writer_.begin(stream_->response(), form, io_thread_.date(), Pace::of(config.write_timeout, config.min_rate),
                answered == Clock::time_point{} ? clock_.now() : answered);
  state_ = State::kWriting;
  stream_->count_answer();
}

HttpConnection::Next HttpConnection::write() {
  while (!writer_.done()) {
    error_code ec;
    const size_t sent = writer_.write(ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) return Next::kWait;
    if (ec) {
      close();
      return Next::kWait;
    }
    ConnectionCounters::add(io_thread_.counters().sent, sent);
  }
  if (stream_->streaming()) {
    follow(stream_->next_piece());
    return Next::kContinue;
  }
  finish_request();
  return state_ == State::kReading ? Next::kContinue : Next::kWait;
}

void HttpConnection::finish_request() {
  stream_->end(writer_.bytes(), clock_.phase_start());
  const bool unread = reader_.unfinished();
  reader_.end();
  // The next request may come late and may not need large memory.
  if (largest() > kKeepBytes && !stream_->lent()) trim(kKeepBytes);
  if (writer_.closes()) return linger(unread);
  state_ = State::kReading;
  reads_ = 0;
  // An answer that was sent at once took microseconds, which are negligible for the timeout.
  const Clock::time_point now = writer_.done_at_once() ? clock_.phase_start() : clock_.now();
  clock_.begin_phase(now);
  clock_.until(now + io_thread_.shared().config.idle_timeout);
}

// unread: part of the request was not read.
void HttpConnection::linger(bool unread) noexcept {
  // Without unread bytes the client gets no reset, so the connection is closed at once.
  if (!unread) return close();
  state_ = State::kLingering;
  transport_.shutdown_send();
  clock_.until(clock_.now() + kLingerTime);
  thrown_away_ = 0;
  throw_away();
}

void HttpConnection::close() noexcept {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  stream_->abandon();
  io_thread_.loop().forget(transport_.descriptor());
  transport_.close();
  retire_if_over();
}

void HttpConnection::retire_if_over() noexcept {
  if (state_ == State::kClosed && !stream_->lent() && !std::exchange(retired_, true)) io_thread_.retire(self_);
}

}  // namespace sconce::server::http
