// HttpCall: moves long work to other threads, so that the I/O thread answers other requests meanwhile.
#include <algorithm>
#include <functional>
#include <string_view>

#include "server/api/http_call.h"
#include "server/support/failure.h"

namespace sconce::server::api {
namespace {

// Sizes that take about one millisecond on the slowest machines.
constexpr size_t kLongText = 256 * 1024;       // of JSON to parse
constexpr size_t kLongBody = 8 * 1024 * 1024;  // of tensors, which may have to be copied
constexpr size_t kLongCompressed = 1024;       // gzip may expand one byte to a thousand

}  // namespace

bool HttpCall::decodes_long() const noexcept {
  const size_t bytes = reader_.body().size();
  if (reader_.head().coding != http::Coding::kIdentity) return bytes > kLongCompressed;
  const std::optional<uint64_t> json_length = reader_.head().json_length;
  const bool has_tensors = form_of(route_of(route_)) == codecs::Inference::Form::kInfer && json_length;
  const uint64_t text = has_tensors ? std::min<uint64_t>(*json_length, bytes) : bytes;
  return text > kLongText || bytes > kLongBody;
}

bool HttpCall::answers_long() const noexcept {
  const bool compressed =
      api_.admission().config.compress_above > 0 && reader_.head().accepts != http::Coding::kIdentity;
  return call_.inference().has_long_answer(compressed);
}

HttpCall::Next HttpCall::decode_elsewhere() { return lend<&HttpCall::decode_request>(Holder::kDecoder); }

HttpCall::Next HttpCall::encode_elsewhere() { return lend<&HttpCall::encode_answer>(Holder::kEncoder); }

// Documents about this many models take longer than a quick run.
bool HttpCall::has_many_models() const {
  constexpr size_t kManyModels = 200;
  const size_t known = on_demand() != nullptr ? on_demand()->size() : 0;
  return known + api_.catalog().entries().size() > kManyModels;
}

HttpCall::Next HttpCall::write_elsewhere() { return lend<&HttpCall::write_document>(Holder::kDocument); }

void HttpCall::write_document() { write(*api_.admission().repository.snapshot()); }

template <void (HttpCall::*work)()>
HttpCall::Next HttpCall::lend(Holder holder) {
  task_.context = this;
  task_.work = [](void* context) noexcept {
    HttpCall& self = *static_cast<HttpCall*>(context);
    self.problem_ = exception_of([&] { (self.*work)(); });
    notify(context);
  };
  task_.client = ThreadPool::client_of(peer_);
  api_.admission().heavy_work.submit(task_);
  holder_ = holder;
  return Next::kWait;
}

}  // namespace sconce::server::api
