#include "src/device/device_backend.h"

#include <doctest/doctest.h>

#include "sconce/error.h"
#include "tests/errors.h"

using namespace sconce;

TEST_CASE("device backend: a kind that there is none of is refused") {
  CHECK(why_no_device(DeviceType::kMeta).find("not supported") != std::string::npos);
  CHECK_THROWS_AS(device_backend(DeviceType::kMeta), Error);
}

TEST_CASE("device backend: hosts without CUDA say why, every time") {
  const std::string reason = why_no_device(DeviceType::kCuda);
  if (reason.empty()) {  // a host with a device
    CHECK(device_backend(DeviceType::kCuda).count() > 0);
    return;
  }
  CHECK(reason.starts_with("CUDA devices "));
  CHECK(why_no_device(DeviceType::kCuda) == reason);
  CHECK(code_of([] { device_backend(DeviceType::kCuda); }) == ErrorCode::kUnavailable);
}

TEST_CASE("device backend: files of a model are those of the innermost scope") {
  struct None final : DeviceFiles {
    std::span<const std::byte> find(std::string_view) const override { return {}; }
  } outer, inner;
  CHECK(DeviceFiles::current() == nullptr);
  {
    const DeviceFiles::Scope a(&outer);
    CHECK(DeviceFiles::current() == &outer);
    {
      const DeviceFiles::Scope b(&inner);
      CHECK(DeviceFiles::current() == &inner);
    }
    CHECK(DeviceFiles::current() == &outer);
  }
  CHECK(DeviceFiles::current() == nullptr);
}
