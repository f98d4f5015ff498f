// The baseline: a bare Beast server, shaped like Beast's own examples, that reads each request and answers a fixed
// body. usage: beast_server PORT THREADS BODY_BYTES
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

size_t answer_bytes = 64;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : stream_(std::move(socket)) {}
  void read() {
    parser_.emplace();
    parser_->body_limit(256 << 20);
    stream_.expires_after(std::chrono::seconds(30));
    http::async_read(stream_, buffer_, *parser_, beast::bind_front_handler(&Session::on_read, shared_from_this()));
  }

 private:
  void on_read(beast::error_code ec, size_t) {
    if (ec) return;
    response_ = {http::status::ok, parser_->get().version()};
    response_.set(http::field::content_type, "application/octet-stream");
    response_.set("Inference-Header-Content-Length", "48");
    response_.body().assign(answer_bytes, 'x');
    response_.keep_alive(parser_->get().keep_alive());
    response_.prepare_payload();
    http::async_write(stream_, response_, beast::bind_front_handler(&Session::on_write, shared_from_this()));
  }
  void on_write(beast::error_code ec, size_t) {
    if (ec || !response_.keep_alive()) return;
    read();
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

class Acceptor {
 public:
  Acceptor(asio::io_context& context, uint16_t port)
      : context_(context), acceptor_(context, {asio::ip::make_address("127.0.0.1"), port}) {}
  void accept() {
    acceptor_.async_accept(asio::make_strand(context_), [this](beast::error_code ec, tcp::socket socket) {
      if (!ec) {
        socket.set_option(tcp::no_delay(true));
        std::make_shared<Session>(std::move(socket))->read();
      }
      accept();
    });
  }

 private:
  asio::io_context& context_;
  tcp::acceptor acceptor_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int threads = std::atoi(argv[2]);
  answer_bytes = static_cast<size_t>(std::atoll(argv[3]));
  asio::io_context context(threads);
  Acceptor acceptor(context, static_cast<uint16_t>(std::atoi(argv[1])));
  acceptor.accept();
  std::vector<std::thread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back([&] { context.run(); });
  context.run();
  for (std::thread& thread : pool) thread.join();
  return 0;
}
