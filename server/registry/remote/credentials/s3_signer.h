// S3Service: a service with the S3 protocol: its address, its credentials, and facts learned from its answers: the
// regions of buckets and the error of this machine's clock. S3Signer signs requests for one bucket. Both are
// thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "sconce/mutex.h"
#include "server/registry/remote/credentials/credential_cache.h"
#include "server/registry/remote/transfer/request.h"

namespace sconce::server::registry {

class S3Service {
 public:
  // endpoint: without a trailing slash; empty: Amazon's. credentials: null: requests are not signed.
  S3Service(std::string region, std::string endpoint, std::shared_ptr<CredentialCache> credentials)
      : region_(std::move(region)), endpoint_(std::move(endpoint)), credentials_(std::move(credentials)) {}

  std::string region_of(const std::string& bucket) const;
  void learn_region(const std::string& bucket, const std::string& region);
  // The bucket's URL, without a trailing slash.
  std::string url_of(const std::string& bucket) const { return url_of(bucket, region_of(bucket)); }
  std::string url_of(const std::string& bucket, const std::string& region) const;
  std::chrono::seconds clock_offset() const noexcept { return std::chrono::seconds(clock_offset_.load()); }
  void learn_clock_offset(std::chrono::seconds offset) noexcept { clock_offset_ = offset.count(); }
  CredentialCache* credentials() const noexcept { return credentials_.get(); }
  const std::string& endpoint() const noexcept { return endpoint_; }

 private:
  const std::string region_, endpoint_;
  const std::shared_ptr<CredentialCache> credentials_;
  std::atomic<int64_t> clock_offset_{0};  // seconds by which the service's clock is ahead
  mutable Mutex mutex_;
  std::map<std::string, std::string> regions_ SCONCE_GUARDED_BY(mutex_);
};

class S3Signer final : public RequestSigner {
 public:
  S3Signer(std::shared_ptr<S3Service> service, std::string bucket)
      : service_(std::move(service)), bucket_(std::move(bucket)), first_url_(service_->url_of(bucket_)) {}
  RemoteRequest sign(RemoteRequest request) override;
  bool correct(const RemoteAnswer& refusal) override;
  std::string describe() const override;

 private:
  const std::shared_ptr<S3Service> service_;
  const std::string bucket_;
  const std::string first_url_;  // the bucket's URL in requests
};

}  // namespace sconce::server::registry
