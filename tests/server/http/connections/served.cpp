#include "tests/server/http/connections/served.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace sconce::server::test {
namespace {

constexpr size_t kBig = 8 << 20;

// Any time but zero, which stands for "never" in places.
std::atomic<Clock::rep> time_now{std::chrono::nanoseconds(std::chrono::hours(1)).count()};

size_t number_after(std::string_view fields, std::string_view name, int base = 10) {
  size_t number = 0;
  const size_t at = fields.find(name);
  REQUIRE(at != std::string_view::npos);
  std::from_chars(fields.data() + at + name.size(), fields.data() + fields.size(), number, base);
  return number;
}

// Takes the frames of chunks off. Returns how many bytes they took.
size_t unchunk(std::string_view bytes, Answer& answer) {
  for (size_t at = 0;;) {
    const size_t line = bytes.find("\r\n", at);
    if (line == std::string_view::npos) return bytes.size();
    const size_t size = number_after(bytes.substr(at), "", 16);
    if (size == 0) {
      REQUIRE(bytes.substr(line, 4) == "\r\n\r\n");
      answer.whole = true;
      return line + 4;
    }
    REQUIRE(bytes.substr(line + 2 + size, 2) == "\r\n");
    answer.body += bytes.substr(line + 2, size);
    at = line + 2 + size + 2;
  }
}

class FakeHandler final : public http::HttpHandler {
 public:
  explicit FakeHandler(Served& served) : served_(served) {}
  std::unique_ptr<http::HttpStream> open(http::HttpConnection& connection, http::RequestReader& reader,
                                         http::Listeners listener, std::string peer) override {
    auto stream = std::make_unique<FakeStream>(served_, connection, reader, listener, std::move(peer));
    served_.streams.push_back(stream.get());
    return stream;
  }
  void tick() override { ++served_.ticks; }
  void rest() noexcept override { ++served_.rests; }

 private:
  Served& served_;
};

}  // namespace

void Client::send(std::string_view bytes) const {
  REQUIRE(::send(end_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

void Client::get(const std::string& target, const std::string& fields) const {
  send("GET " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
}

void Client::post(const std::string& target, std::string_view body, const std::string& fields) const {
  send("POST " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
       "\r\n\r\n" + std::string(body));
}

void Client::finish() const { REQUIRE(::shutdown(end_.get(), SHUT_WR) == 0); }

void Client::leave_answers() const { REQUIRE(::shutdown(end_.get(), SHUT_RD) == 0); }

std::string Client::take(size_t most) {
  std::string all;
  char piece[65536];
  while (all.size() < most) {
    const ssize_t bytes = ::recv(end_.get(), piece, std::min(sizeof piece, most - all.size()), 0);
    if (bytes <= 0) {
      ended_ |= bytes == 0 || errno != EAGAIN;
      break;
    }
    all.append(piece, static_cast<size_t>(bytes));
  }
  return all;
}

std::vector<Answer> Client::answers() {
  const std::string all = take();
  std::vector<Answer> found;
  for (std::string_view left = all; !left.empty();) {
    Answer& answer = found.emplace_back();
    const size_t end = left.find("\r\n\r\n");
    REQUIRE(end != std::string_view::npos);
    answer.fields = left.substr(0, end + 2);
    left.remove_prefix(end + 4);
    answer.status = static_cast<int>(number_after(answer.fields, "HTTP/1.1 "));
    size_t used = left.size();
    if (answer.has("Transfer-Encoding: chunked")) {
      used = unchunk(left, answer);
    } else if (answer.has("Content-Length: ")) {
      const size_t length = number_after(answer.fields, "Content-Length: ");
      answer.whole = length <= left.size();
      used = std::min(length, left.size());
      answer.body = left.substr(0, used);
    } else {
      // A line without a body, such as 100 Continue, or one that ends with the connection.
      used = answer.has("\r\nContent-Type") ? used : 0;
      answer.body = left.substr(0, used);
      answer.whole = used == 0;
    }
    left.remove_prefix(used);
  }
  return found;
}

Answer Client::answer() {
  std::vector<Answer> all = answers();
  REQUIRE(all.size() == 1);
  return all.front();
}

bool Client::ended() {
  CHECK(take() == "");
  return ended_;
}

FakeStream::FakeStream(Served& served, http::HttpConnection& connection, http::RequestReader& reader,
                       http::Listeners listener, std::string peer)
    : http::HttpStream(listener, std::move(peer)), served_(served), connection_(connection), reader_(reader) {}

FakeStream::~FakeStream() {
  note("gone");
  std::replace(served_.streams.begin(), served_.streams.end(), this, static_cast<FakeStream*>(nullptr));
}

void FakeStream::note(std::string text) const { served_.notes.push_back(std::move(text)); }

void FakeStream::let_go(std::string_view answer) {
  reply_ = answer;
  connection_.notify();
}

void FakeStream::throw_problem() {
  throws_ = true;
  connection_.notify();
}

void FakeStream::add_piece(std::string_view text, bool last) {
  queue_piece(text, last);
  connection_.notify();
}

FakeStream::Next FakeStream::answer(int status, std::string_view body) {
  response_.reset();
  response_.status = status;
  response_.type = http::content_type::kText;
  response_.set_text(body);
  return Next::kAnswer;
}

FakeStream::Next FakeStream::lend(Waiting waiting) {
  lent_ = true;
  waiting_ = waiting;
  deadline_ = Served::now() + served_.run_time;
  return Next::kWait;
}

FakeStream::Next FakeStream::begin(Clock::time_point now) {
  start_ = now;
  const http::RequestHeader& head = reader_.head();
  form_ = {head.http11, head.head_only, !reader_.keep_alive()};
  target_ = head.target;
  note("begin " + target_);
  if (target_ == "/throw-first") throw std::runtime_error("first");
  if (target_ == "/soon") return answer(200, "soon");
  if (target_ == "/refuse") return refuse(403, "refused");
  if (target_ == "/small") {
    reader_.limit_body(4);
    if (reader_.content_length() > 4) return refuse_length();
  }
  return Next::kReadBody;
}

FakeStream::Next FakeStream::dispatch() {
  const BodyBuffer& body = reader_.body();
  note("dispatch " + std::to_string(body.size()));
  const std::string_view text(reinterpret_cast<const char*>(body.begin()), body.size());
  if (target_ == "/throw" || target_ == "/throw-twice") throw std::runtime_error("problem");
  if (target_ == "/hang") return Next::kHangUp;
  if (target_ == "/big") return answer(200, std::string(kBig, 'b'));
  if (target_ == "/run" || target_ == "/queue") return lend({.timed = true});
  if (target_ == "/task" || target_ == "/sent") return lend({.reads_ahead = false});
  if (target_ == "/pieces") {
    response_.reset();
    response_.streamed = true;
    return lend({.timed = true});
  }
  if (target_ == "/feed") {
    response_.reset();
    response_.type = http::content_type::kEvents;
    response_.streamed = true;
    form_.close = true;
    waiting_ = {.events = true};
    events_ = "hello\n";
    return piece();
  }
  if (target_ == "/slow") Served::pass(std::chrono::seconds(1));
  return answer(200, text);
}

FakeStream::Next FakeStream::piece() {
  const bool first = !streaming_;
  if (!events_.empty()) pieces_.push_back({std::exchange(events_, {}), false});
  if (pieces_.empty()) return Next::kWait;
  const Piece next = std::move(pieces_.front());
  pieces_.pop_front();
  response_.begin_piece(form_.http11);
  response_.text().append(next.text);
  response_.end_piece(form_.http11, next.last);
  streaming_ = !next.last;
  if (next.last) {
    lent_ = false;
    waiting_ = {};
  }
  return first ? Next::kAnswer : Next::kPiece;
}

FakeStream::Next FakeStream::resume() {
  note("resume");
  if (std::exchange(throws_, false)) {
    lent_ = false;
    throw std::runtime_error("problem of a thread");
  }
  if (waiting_.events || target_ == "/pieces") return piece();
  lent_ = false;
  waiting_ = {};
  return target_ == "/sent" ? Next::kSent : answer(200, reply_);
}

FakeStream::Next FakeStream::next_piece() {
  note("next");
  return piece();
}

FakeStream::Next FakeStream::refuse(int status, std::string_view message) {
  note("refuse " + std::to_string(status));
  form_.close = true;
  return answer(status, message);
}

FakeStream::Next FakeStream::refuse_length() { return refuse(413, "too long"); }

void FakeStream::fail(const std::exception_ptr& problem) {
  note("fail");
  if (target_ == "/throw-twice") throw std::runtime_error("again");
  try {
    std::rethrow_exception(problem);
  } catch (const std::exception& one) {
    answer(500, one.what());
  }
}

void FakeStream::run_out_of_time() {
  note("late");
  // A run still uses this memory, so it cannot serve another request.
  if (!cancel_for_client()) form_.close = true;
  answer(504, "late");
}

FakeStream::Next FakeStream::end_feed() {
  note("end feed");
  response_.begin_piece(form_.http11);
  response_.text().append("bye\n");
  response_.end_piece(form_.http11, true);
  streaming_ = false;
  return Next::kPiece;
}

http::ResponseWriter::Form FakeStream::finish_response() {
  if (reader_.unfinished()) form_.close = true;
  return form_;
}

void FakeStream::count_answer() noexcept { note("count " + std::to_string(response_.status)); }

void FakeStream::end(size_t bytes, Clock::time_point) {
  CHECK(bytes > 0);
  note("end");
  if (!lent_) waiting_ = {};
  capacity_ = response_.text().capacity();
  largest_ = std::max(largest_, capacity_);
}

bool FakeStream::cancel_for_client() noexcept {
  note("cancel");
  if (target_ != "/queue") return false;
  lent_ = false;
  waiting_ = {};
  return true;
}

void FakeStream::abandon() noexcept {
  note("abandon");
  served_.abandoned = true;
}

void FakeStream::take_back() noexcept {
  note("take back");
  lent_ = false;
}

void FakeStream::trim(size_t keep) noexcept {
  CHECK(!lent_);
  if (capacity_ > keep) response_.text().release();
  capacity_ = response_.text().capacity();
  largest_ = 0;
}

ServerConfig Served::defaults() {
  ServerConfig config;
  config.busy_poll = std::chrono::microseconds(0);
  config.max_header_bytes = 4096;
  return config;
}

Served::Served(ServerConfig config)
    : config(std::move(config)),
      io({this->config, counters, connections, memory, credentials, refusals, failures, &Served::now}, 0) {
  io.answer_by(std::make_unique<FakeHandler>(*this));
}

Served::~Served() { io.stop(); }

Clock::time_point Served::now() noexcept { return Clock::time_point(Clock::duration(time_now.load())); }

void Served::pass(Clock::duration time) noexcept { time_now += time.count(); }

Client Served::connect(http::Listeners listener) {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  Client client{Descriptor(ends[0])};
  const auto address = boost::asio::ip::make_address("192.0.2.7");
  io.serve(http::Accepted(Descriptor(ends[1]), {address, 50000}, listener,
                          http::OpenConnections::Slot(connections, listener)));
  run_once();
  return client;
}

void Served::run_once() {
  io.loop().wake();
  io.run_once();
}

void Served::settle() {
  for (int i = 0; i < 12; ++i) run_once();
}

void Served::after(Clock::duration time) {
  pass(time);
  settle();
}

std::string Served::seen() {
  std::string text;
  for (const std::string& note : std::exchange(notes, {})) text += (text.empty() ? "" : ", ") + note;
  return text;
}

}  // namespace sconce::server::test
