// The baselines of upload.py: a bare Beast server that reads each body into new memory and answers 200. The path
// selects: /beast uses Beast's own buffer_body; /asio lets Beast read the header and reads the rest straight from the
// socket. usage: beast_upload [PORT]
#include <sys/mman.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;

namespace {

// Serves one connection until it is closed.
void serve(tcp::socket& socket) {
  beast::flat_buffer buffer;
  for (;;) {
    http::request_parser<http::buffer_body> parser;
    parser.body_limit(uint64_t{64} << 30);
    beast::error_code code;
    http::read_header(socket, buffer, parser, code);
    if (code) return;
    const size_t bytes = static_cast<size_t>(parser.content_length().value_or(0));
    void* memory = nullptr;
    if (bytes > 0) {
      memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return;
    }
    if (parser.get().target() == "/asio") {
      const size_t here = std::min(buffer.size(), bytes);
      if (here > 0) std::memcpy(memory, buffer.data().data(), here);
      buffer.consume(here);
      asio::read(socket, asio::buffer(static_cast<char*>(memory) + here, bytes - here), code);
    } else {
      parser.get().body().data = memory;
      parser.get().body().size = bytes;
      parser.get().body().more = true;
      http::read(socket, buffer, parser, code);
      if (code == http::error::need_buffer) code = {};
    }
    if (bytes > 0) ::munmap(memory, bytes);
    if (code) return;
    http::response<http::empty_body> response{http::status::ok, 11};
    response.content_length(0);
    http::write(socket, response, code);
    if (code) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto port = static_cast<uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  asio::io_context context;
  tcp::acceptor acceptor(context, {asio::ip::make_address("127.0.0.1"), port});
  std::printf("%u\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  for (;;) {
    tcp::socket socket(context);
    acceptor.accept(socket);
    serve(socket);
  }
}
