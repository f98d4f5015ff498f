// Memory runs out at each step of a weights upload: the answer is 507, the served weights stay, and nothing leaks.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sconce/model.h"
#include "server/http/input_buffer.h"
#include "server/http/request_parser.h"
#include "server/http/transport.h"
#include "server/rollout/weights_job.h"
#include "tests/runner/counted_memory.h"
#include "tests/server/one_model_rollout.h"

namespace sconce::server::rollout {

using sconce::test::FailingMemory;

namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

// {"scale.w": float32[4], "scale.b": float32[4]}, each 5.
std::string weights() {
  const std::string header = R"({"scale.w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                             R"("scale.b":{"dtype":"F32","shape":[4],"data_offsets":[16,32]}})";
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  text += header;
  const float five = 5;
  for (int i = 0; i < 8; ++i) text.append(reinterpret_cast<const char*>(&five), sizeof five);
  return text;
}

std::string chunked(const std::string& body) {
  char size[32];
  std::string text;
  for (size_t at = 0; at < body.size(); at += 50) {
    const std::string piece = body.substr(at, 50);
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    text += size + piece + "\r\n";
  }
  return text + "0\r\n\r\n";
}

struct World : test::OneModelRollout {
  World() : OneModelRollout("fake_folded") { folder.write("new.safetensors", weights()); }
  std::vector<float> answer() const {
    const Tensor x = Tensor::empty(std::vector<int64_t>{1, 4}, DType::kFloat32);
    for (int i = 0; i < 4; ++i) x.data_as<float>()[i] = 1.5F;
    const std::vector<Tensor> inputs{x};
    std::vector<Tensor> outputs(1);
    model().run(inputs, outputs);
    const float* y = outputs[0].data_as<float>();
    return {y, y + 4};
  }
};

// The two ends of a connection on which a request has arrived, its header read.
struct Arrived {
  asio::io_context context;
  tcp::socket client{context};
  std::optional<http::Transport> transport;
  std::optional<http::RequestParser> parser;
  http::InputBuffer input{16384};

  explicit Arrived(const std::string& fields, const std::string& body) {
    tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    client.connect(acceptor.local_endpoint());
    tcp::socket socket = acceptor.accept();
    socket.non_blocking(true);
    transport.emplace(Descriptor(socket.release()), nullptr);
    const std::string head = "POST /w HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
    asio::write(client, asio::buffer(body));
    std::memcpy(input.room().data(), head.data(), head.size());
    input.add(head.size());
    parser.emplace(INT64_MAX);
    boost::beast::error_code ec;
    input.use(parser->put(asio::const_buffer(input.here().data(), input.size()), ec));
    REQUIRE(parser->is_header_done());
  }

  AdminRequest request(const std::string& query) {
    AdminRequest request;
    request.model = "fake";
    request.query = query;
    request.upload = true;
    request.source = {&*transport, &*parser, &input};
    return request;
  }
};

// Performs a request as AdminThreads does.
AdminAnswer perform(Rollout& rollout, AdminRequest request, int& answers) {
  AdminAnswer answer;
  const auto done = [&](AdminAnswer given) {
    answer = std::move(given);
    ++answers;
  };
  std::exception_ptr problem;
  std::shared_ptr<WeightsJob> job;
  try {
    job = std::make_shared<WeightsJob>(rollout, std::move(request), done);
    job->run();
  } catch (...) {
    problem = std::current_exception();
  }
  if (!job) {
    answers = 1;
    return {507, {}};
  }
  try {
    if (problem) job->fail(problem);
  } catch (...) {
    job->abandon();
  }
  return answer;
}

void with_every_allocation_failing(const std::function<AdminRequest()>& make) {
  World world;
  Model& model = world.model();
  const std::vector<float> before = world.answer();
  FakeKnobs* const knobs = fake::loaded().back();
  const int64_t containers = knobs->live_containers;
  int failures = 0;
  for (int64_t n = 1;; ++n) {
    REQUIRE(n < 20'000);
    CAPTURE(n);
    AdminRequest request = make();
    AdminAnswer answer;
    int answers = 0;
    bool failed;
    {
      const FailingMemory memory(n);
      answer = perform(*world.rollout, std::move(request), answers);
      failed = memory.failed();
    }
    CHECK(answers == 1);
    if (answer.status == 200) {
      // The failed allocation was not essential, so the update succeeded.
      CHECK(world.answer() != before);
      model.rollback_weights();
      model.release_previous();
    } else {
      CHECK(answer.status == 507);
      ++failures;
    }
    CHECK(world.answer() == before);
    CHECK(knobs->live_containers == containers);
    CHECK(model.weight_sets().size() == 1);
    // The model is not busy, and the record of the operation is over.
    for (const auto& operation : world.rollout->operations.list()) CHECK(operation->over());
    if (failed) continue;
    CHECK(answer.status == 200);
    CHECK(failures > 30);
    return;
  }
}

}  // namespace

TEST_CASE("weights faults: no memory at any step of an upload, of a known length or in chunks") {
  const std::string body = weights();
  for (const bool chunks : {false, true}) {
    CAPTURE(chunks);
    std::optional<Arrived> arrived;
    with_every_allocation_failing([&] {
      if (chunks)
        arrived.emplace("Transfer-Encoding: chunked\r\n", chunked(body));
      else
        arrived.emplace("Content-Length: " + std::to_string(body.size()) + "\r\n", body);
      return arrived->request("commit=true&label=a-label-that-no-small-string-holds");
    });
  }
}

TEST_CASE("weights faults: no memory at any step of a file's staging") {
  with_every_allocation_failing([] {
    AdminRequest request;
    request.model = "fake";
    request.query = "commit=true&label=a-label-that-no-small-string-holds";
    request.body = R"({"file": "new.safetensors"})";
    return request;
  });
}

}  // namespace sconce::server::rollout
