// An IoThread that a test turns by hand, on a clock that stands still, with streams that do what a request's target
// says. Clients are the other ends of socket pairs. No thread, no waiting: what happens depends on nothing but the
// test.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/connections/http_connection.h"
#include "server/http/connections/http_handler.h"
#include "server/http/connections/io_thread.h"
#include "server/support/config.h"
#include "server/support/files/descriptor.h"

namespace sconce::server::test {

using Clock = http::IoThread::Clock;

// What a client has read.
struct Answer {
  int status = 0;
  std::string fields, body;  // the body without its chunks' frames
  bool whole = false;        // to the end of its length, or to its last chunk
  bool has(std::string_view field) const { return fields.find(field) != std::string::npos; }
};

class Client {
 public:
  explicit Client(Descriptor end) : end_(std::move(end)) {}

  void send(std::string_view bytes) const;  // the socket must take all of them
  void get(const std::string& target, const std::string& fields = {}) const;
  void post(const std::string& target, std::string_view body, const std::string& fields = {}) const;
  void finish() const;                       // sends no more, still reads
  void leave() { end_ = Descriptor(); }      // a reset, if there are unread bytes
  void leave_answers() const;                // takes no more, still sends
  std::string take(size_t most = SIZE_MAX);  // the bytes that came, at most so many
  std::vector<Answer> answers();             // of the bytes that came since the last call
  Answer answer();                           // the only one among them
  bool ended();                              // the server sends no more, and all that it sent was taken
  int descriptor() const { return end_.get(); }

 private:
  Descriptor end_;
  bool ended_ = false;
};

class Served;

// Targets; all but /soon, /refuse and /throw-first read the body before they do it.
//   /echo     answers with the body          /soon     answers before the body
//   /slow     the same, and takes a second   /big      answers with 8 MiB
//   /small    takes 4 bytes of body          /refuse   refuses with 403 before the body
//   /throw    throws                         /throw-first  throws before the body
//   /throw-twice  and so does fail()         /hang     has no memory for the answer
//   /run      another thread has it, 15 s    /queue    the same, and can be cancelled
//   /pieces   the same as /run, in pieces    /task     another thread has it and its socket, for ever
//   /sent     the same as /task, and that thread sends the answer
//   /feed     a stream of events
class FakeStream final : public http::HttpStream {
 public:
  FakeStream(Served& served, http::HttpConnection& connection, http::RequestReader& reader, http::Listeners listener,
             std::string peer);
  ~FakeStream() override;

  // As the thread that has the request. The notice follows.
  void let_go(std::string_view answer = "done");
  void throw_problem();
  void add_piece(std::string_view text, bool last = false);
  void queue_piece(std::string_view text, bool last = false) {
    pieces_.push_back({std::string(text), last});
  }  // no notice
  // What the feed tells at the next tick.
  void tell(std::string_view event) { events_ += event; }
  void keep_computing() { computing_ = true; }
  http::HttpConnection& connection() noexcept { return connection_; }

  Next begin(Clock::time_point now) override;
  Next dispatch() override;
  Next resume() override;
  Next next_piece() override;
  Next refuse(int status, std::string_view message) override;
  Next refuse_length() override;
  void fail(const std::exception_ptr& problem) override;
  void run_out_of_time() override;
  Next end_feed() override;
  http::ResponseWriter::Form finish_response() override;
  void count_answer() noexcept override;
  void end(size_t bytes, Clock::time_point encoded) override;
  uint64_t sent_elsewhere() const noexcept override { return 100; }
  Waiting waiting() const noexcept override { return waiting_; }
  Clock::time_point deadline() const noexcept override { return deadline_; }
  bool lent() const noexcept override { return lent_; }
  bool computing() const noexcept override { return lent_ && computing_; }
  bool cancel_for_client() noexcept override;
  void abandon() noexcept override;
  void take_back() noexcept override;
  Clock::time_point answered() const noexcept override { return {}; }
  size_t capacity() const noexcept override { return capacity_; }
  void trim(size_t keep) noexcept override;

 private:
  Next answer(int status, std::string_view body);
  Next lend(Waiting waiting);
  Next piece();
  void note(std::string text) const;

  Served& served_;
  http::HttpConnection& connection_;
  http::RequestReader& reader_;
  http::ResponseWriter::Form form_{.close = true};
  std::string target_, reply_, events_;
  struct Piece {
    std::string text;
    bool last;
  };
  std::deque<Piece> pieces_;
  Waiting waiting_;
  size_t capacity_ = 0;  // of the answer's text
  Clock::time_point deadline_{};
  bool lent_ = false, computing_ = false, throws_ = false;
};

class Served {
 public:
  static ServerConfig defaults();
  // One that has its own times and limits. A test has one at a time, since they share the clock.
  explicit Served(ServerConfig config = defaults());
  ~Served();

  Client connect(http::Listeners listener = http::kPublic);
  FakeStream& stream(size_t i = 0) { return *streams.at(i); }  // of the ith connection; gone: null
  // One iteration of the loop, without waiting; and as many as it takes until nothing changes.
  void run_once();
  void settle();
  // Turns after this time, which has come to the nanosecond.
  void after(Clock::duration time);
  // What the streams were asked since the last call: "begin /echo, dispatch 3, count 200, end".
  std::string seen();
  int64_t open() const { return connections.of(http::kPublic); }
  uint64_t received() { return io.counters().received; }
  uint64_t sent() { return io.counters().sent; }
  uint64_t closed() { return io.counters().closed; }

  static Clock::time_point now() noexcept;
  static void pass(Clock::duration time) noexcept;  // without a turn

  const ServerConfig config;
  std::vector<http::ConnectionCounters> counters{1};
  http::OpenConnections connections;
  RequestBudget memory{16 << 20};
  http::Credentials credentials{config};
  LogLimit refusals, failures;
  std::vector<FakeStream*> streams;
  Clock::duration run_time = std::chrono::seconds(15);  // of /run, /queue and /pieces; none of the settings' times
  std::vector<std::string> notes;
  int ticks = 0, rests = 0;            // of the handler
  std::atomic<bool> abandoned{false};  // a stream was
  http::IoThread io;
};

}  // namespace sconce::server::test
