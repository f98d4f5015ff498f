// What torchvision leaves undefined, and regions that nobody means. Cases from torchvision:
// tests/custom_ops/aten/aten_test.cpp ("vision*").
#include "src/cpu/vision/vision.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sconce/error.h"

namespace sconce::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

Tensor floats(std::vector<int64_t> sizes, const std::vector<float>& values) {
  Tensor tensor = Tensor::empty(sizes, DType::kFloat32);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.data_as<float>()[i] = values[static_cast<size_t>(i) % values.size()];
  return tensor;
}
std::vector<float> values_of(const Tensor& tensor) {
  return {tensor.data_as<float>(), tensor.data_as<float>() + tensor.numel()};
}
template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("vision: a region of an image that the input does not have is refused") {
  const Tensor image = floats({2, 4, 3, 3}, {1});
  for (const float number : {2.0f, -1.0f, kNan, kInfinity, 3e38f}) {
    const Tensor rois = floats({2, 5}, {1, 0, 0, 2, 2, number, 0, 0, 2, 2});
    for (const std::string& text :
         {refusal([&] { roi_align(image, rois, 1, 2, 2, 2, true); }), refusal([&] { roi_pool(image, rois, 1, 2, 2); }),
          refusal([&] { ps_roi_align(image, rois, 1, 2, 2, 2); }),
          refusal([&] { ps_roi_pool(image, rois, 1, 2, 2); })}) {
      CHECK(text.find("region 1 is of image") != std::string::npos);
      CHECK(text.find("input has 2 images") != std::string::npos);
    }
  }
}

TEST_CASE("vision: regions that are turned round, NaN or infinite have bins without points") {
  const Tensor image = floats({1, 1, 4, 4}, {5});
  for (const auto& roi : std::vector<std::vector<float>>{{0, 3, 3, 1, 1},
                                                         {0, 3, 1, 1, 3},
                                                         {0, kNan, 1, 2, 2},
                                                         {0, 1, 1, kNan, kNan},
                                                         {0, -kInfinity, 0, kInfinity, 3}}) {
    const Tensor rois = floats({1, 5}, roi);
    for (const int64_t ratio : {-1, 0})
      CHECK(values_of(roi_align(image, rois, 1, 1, 1, ratio, true)) == std::vector{0.0f});
    const Tensor pooled = roi_pool(image, rois, 1, 2, 2)[0];  // whatever it is, it is of the image
    for (const float value : values_of(pooled)) CHECK((value == 5 || value == 0));
  }
  CHECK(values_of(roi_align(image, floats({1, 5}, {0, kNan, 1, 2, 2}), 1, 1, 1, 2, true)) == std::vector{0.0f});
}

TEST_CASE("vision: regions of billions of points cost no more than the image") {
  const Tensor image = floats({1, 3, 4, 4}, {1});
  // The image is 1 from -1 to 4: so is 5 / length of the points along each axis.
  for (const float far : {1e4f, 1e6f, 1e9f}) {
    const Tensor out = roi_align(image, floats({1, 5}, {0, -far, -far, far, far}), 1, 1, 1, 0, true);
    const double share = 5 / (2.0 * static_cast<double>(far));
    for (const float value : values_of(out))
      CHECK(static_cast<double>(value) == doctest::Approx(share * share).epsilon(far > 1e8f ? 10 : 0.01));
  }
  for (const float far : {1e15f, 1e30f, 3e38f}) {
    const Tensor rois = floats({1, 5}, {0, -far, -far, far, far});
    for (const float value : values_of(roi_align(image, rois, 1, 1, 1, 0, true))) CHECK(value < 1e-6f);
    CHECK(values_of(roi_pool(image, rois, 1, 1, 1)[0]).size() == 3);
    CHECK(values_of(ps_roi_pool(image, rois, 1, 1, 1)[0]).size() == 3);
  }
}

TEST_CASE("vision: offsets of deform_conv2d that are no number lie outside") {
  const Tensor image = floats({1, 1, 2, 2}, {1, 2, 3, 4}), weight = floats({1, 1, 1, 1}, {1}), bias = floats({1}, {0});
  const Tensor mask = floats({1, 1}, {0});
  const Tensor offset = floats({1, 2, 2, 2}, {kNan, 0, 0, 0, 0, kNan, 0, kInfinity});
  const Tensor out = deform_conv2d(image, weight, offset, mask, bias, 1, 1, 0, 0, 1, 1, 1, 1, false);
  CHECK(values_of(out) == std::vector{0.0f, 0.0f, 3.0f, 0.0f});
}

TEST_CASE("vision: arguments of deform_conv2d with which torchvision divides by zero are refused") {
  const Tensor image = floats({1, 2, 4, 4}, {1}), weight = floats({1, 2, 1, 1}, {1}), bias = floats({1}, {0});
  const Tensor mask = floats({1, 1}, {0}), offset = floats({1, 2, 4, 4}, {0});
  const auto with = [&](int64_t stride, int64_t pad, int64_t dilation, int64_t groups, int64_t offset_groups) {
    return refusal([&] {
      deform_conv2d(image, weight, offset, mask, bias, stride, stride, pad, pad, dilation, dilation, groups,
                    offset_groups, false);
    });
  };
  CHECK(with(0, 0, 1, 1, 1).find("stride_h: 0") != std::string::npos);
  CHECK(with(1, -1, 1, 1, 1).find("pad_h: -1") != std::string::npos);
  CHECK(with(1, 0, 0, 1, 1).find("dilation_h: 0") != std::string::npos);
  CHECK(with(1, 0, 1, 0, 1).find("0 groups") != std::string::npos);
  CHECK(with(1, 0, 1, 1, 0).find("0 offset groups") != std::string::npos);
  CHECK(with(int64_t{1} << 40, 0, 1, 1, 1) != "none");
  CHECK(refusal([&] {
          ps_roi_align(image, floats({1, 5}, {0}), 1, 0, 2, 2);
        }).find("must not be 0") != std::string::npos);
}

}  // namespace sconce::cpu
