#include "server/rollout/push/relay.h"

#include <string_view>

#include "sconce/check.h"
#include "server/support/failure.h"

namespace sconce::server::rollout {
namespace {

// Maximum wait for the answer, which comes after the last server of the chain has folded the weights.
constexpr std::chrono::seconds kAnswerPatience{3600};
// Maximum wait for the reason of a server that accepts no more bytes.
constexpr std::chrono::seconds kReasonPatience{1};

ErrorCode code_of(int status) noexcept {
  switch (status) {
    case 400:
      return ErrorCode::kInvalidArgument;
    case 401:
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return ErrorCode::kBusy;
    case 413:
      return ErrorCode::kTooLarge;
    case 507:
      return ErrorCode::kOutOfMemory;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Relay::Relay(const PushPeers& peers, const PushTerms& terms, std::chrono::seconds patience, std::function<void()> check)
    : url_(terms.members[terms.member + 1]),
      next_(peers.relay_client(url_, terms.authorization, patience)),
      check_(std::move(check)),
      upload_(next_.connection()) {}

void Relay::fail(const http::Answer& answer) const {
  std::string reason = answer.reason();
  // An error of a later server already names that server.
  const size_t status = reason.find(": ");
  if (status != std::string::npos && reason.find("relay: ") == status + 2)
    reason.erase(0, status + 2);
  else
    reason = "relay: " + url_ + ": " + reason;
  if (answer.status == 422) throw Refused(reason);
  throw Error(code_of(answer.status), reason);
}

void Relay::begin(const std::string& target, uint64_t bytes, const http::UploadFields& fields) {
  const auto checked = [this] {
    check_();
    return true;
  };
  if (!next_.begin_upload(upload_, target, bytes, fields, checked)) fail(upload_.answer(kReasonPatience));
}

void Relay::send(std::span<const std::byte> piece) {
  if (!upload_.send(piece)) fail(upload_.answer(kReasonPatience));
}

void Relay::end() {
  const http::Answer answer = upload_.answer(kAnswerPatience);
  if (!answer.ok()) fail(answer);
}

std::string query_for_next(const std::string& query, const PushTerms& terms) {
  std::string next;
  for (std::string_view rest = query; !rest.empty();) {
    const size_t end = rest.find('&');
    const std::string_view part = rest.substr(0, end);
    if (!part.starts_with("member=")) next.append(next.empty() ? "" : "&").append(part);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return next + "&member=" + std::to_string(terms.member + 1);
}

}  // namespace sconce::server::rollout
