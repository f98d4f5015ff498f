#include "server/registry/remote/credentials/s3_signer.h"

#include <algorithm>

#include "server/registry/remote/credentials/aws_signature.h"
#include "server/registry/remote/transfer/transfer.h"
#include "server/support/log.h"

namespace sconce::server::registry {
namespace {

// Services accept requests up to 15 minutes off their own time.
constexpr std::chrono::seconds kWrongClock{60};

bool has_expired(const StoreError& error) {
  constexpr std::string_view kCodes[] = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                         "InvalidToken"};
  return std::find(std::begin(kCodes), std::end(kCodes), error.code) != std::end(kCodes);
}

}  // namespace

std::string S3Service::region_of(const std::string& bucket) const {
  const MutexLock lock(mutex_);
  const auto known = regions_.find(bucket);
  return known == regions_.end() ? region_ : known->second;
}

void S3Service::learn_region(const std::string& bucket, const std::string& region) {
  const MutexLock lock(mutex_);
  regions_[bucket] = region;
}

std::string S3Service::url_of(const std::string& bucket, const std::string& region) const {
  if (!endpoint_.empty()) return endpoint_ + "/" + bucket;
  const std::string host = "s3." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  // A certificate for *.s3.amazonaws.com does not cover names with further dots.
  return bucket.find('.') == std::string::npos ? "https://" + bucket + "." + host : "https://" + host + "/" + bucket;
}

RemoteRequest S3Signer::sign(RemoteRequest request) {
  request.signed_as.region = service_->region_of(bucket_);
  if (request.url.starts_with(first_url_))
    request.url.replace(0, first_url_.size(), service_->url_of(bucket_, request.signed_as.region));
  CredentialCache* const credentials = service_->credentials();
  const auto current = credentials ? credentials->get() : std::nullopt;
  if (!current) return request;
  request.signed_as.issue = current->number;
  request.signed_as.clock_offset = service_->clock_offset();
  sign_for_aws(request, current->credentials, request.signed_as.region, "s3",
               std::chrono::system_clock::now() + request.signed_as.clock_offset);
  return request;
}

bool S3Signer::correct(const RemoteAnswer& refusal) {
  const StoreError& error = refusal.error;
  const SignedAs& was = refusal.signed_as;
  if (!error.region.empty() && error.region != was.region) {
    if (error.region != service_->region_of(bucket_)) {
      log_info("bucket {} is in region {}, not in {}", bucket_, error.region, was.region);
      service_->learn_region(bucket_, error.region);
    }
    return true;
  }
  CredentialCache* const credentials = service_->credentials();
  if (!credentials || was.issue == 0) return false;
  if (has_expired(error)) return credentials->renew(was.issue);
  if (error.code != "RequestTimeTooSkewed") return false;
  const auto there = parse_http_date(refusal.field("date"));
  if (!there) return false;
  const auto offset = std::chrono::duration_cast<std::chrono::seconds>(*there - std::chrono::system_clock::now());
  if (std::chrono::abs(offset - was.clock_offset) < kWrongClock) return false;
  if (std::chrono::abs(offset - service_->clock_offset()) < kWrongClock)
    return true;  // another thread has already corrected it
  log_warn("the clock of this machine differs from the store's by {} s: requests are signed with the store's time",
           offset.count());
  service_->learn_clock_offset(offset);
  return true;
}

std::string S3Signer::describe() const {
  const CredentialCache* const credentials = service_->credentials();
  return credentials ? credentials->describe() : "no credentials were found";
}

}  // namespace sconce::server::registry
