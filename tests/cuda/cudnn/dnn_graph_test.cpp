// Builds cuDNN's plans for our graphs from a description of an H200. Needs cuDNN, but no device.
#include "src/cuda/cudnn/dnn_graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "src/cuda/attention/attention_graph.h"
#include "src/device/lazy_library.h"

SCONCE_LAZY_LIBRARY(cudnn);

using namespace sconce::cuda;
using Sizes = std::vector<int64_t>;

namespace {

constexpr std::string_view kH200 =
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
        "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
        "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
        "deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0,
        "totalGlobalMem": 150754820096})";

// Null if this machine has no cuDNN that accepts such a description.
const DnnDescriptor* h200() {
  static cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  if (!sconce::try_open_library(sconce_lazy_cudnn)) {
    MESSAGE("cuDNN cannot be opened here: nothing is tested");
    return nullptr;
  }
  static const DnnDescriptor device = [] {
    DnnDescriptor made(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, status);
    made.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<int64_t>(kH200.size()),
             kH200.data());
    made.finalize();
    return made;
  }();
  if (status != CUDNN_STATUS_SUCCESS) {
    MESSAGE("this cuDNN takes no description of a device: nothing is tested");
    return nullptr;
  }
  return &device;
}

Sizes packed(const Sizes& sizes, bool channels_last) {
  Sizes strides(sizes.size());
  int64_t at = channels_last ? sizes[1] : 1;
  strides[1] = 1;
  for (size_t d = sizes.size(); d-- > (channels_last ? 2u : 0u); at *= sizes[d]) strides[d] = at;
  if (channels_last) strides[0] = at;
  return strides;
}

struct Convolution {
  Sizes x, w, y, padding, stride, dilation;
};

}  // namespace

TEST_CASE("cuDNN plans every pass of convolutions: one to three dimensions, groups, strides, gaps, both formats") {
  const DnnDescriptor* const device = h200();
  if (!device) return;
  const Convolution convolutions[] = {
      {{1, 64, 28, 28}, {64, 64, 3, 3}, {1, 64, 28, 28}, {1, 1}, {1, 1}, {1, 1}},
      {{2, 6, 9, 9}, {8, 3, 3, 3}, {2, 8, 7, 7}, {0, 0}, {1, 1}, {1, 1}},
      {{2, 8, 1, 20}, {8, 1, 1, 3}, {2, 8, 1, 18}, {0, 0}, {1, 1}, {1, 1}},
      {{2, 3, 17, 19}, {5, 3, 3, 2}, {2, 5, 5, 10}, {0, 1}, {3, 2}, {2, 2}},
      {{2, 4, 7, 8, 9}, {6, 4, 3, 3, 3}, {2, 6, 5, 6, 7}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}},
  };
  for (const cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_DOUBLE})
    for (const bool channels_last : {false, true}) {
      if (type == CUDNN_DATA_DOUBLE && channels_last) continue;
      for (const DnnGraph::Pass pass : {DnnGraph::Pass::kForward, DnnGraph::Pass::kData, DnnGraph::Pass::kFilter})
        for (const Convolution& c : convolutions) {
          CAPTURE(type);
          CAPTURE(channels_last);
          CAPTURE(static_cast<int>(pass));
          CAPTURE(c.w.size());
          DnnGraph graph;
          const auto x = graph.tensor(type, c.x, packed(c.x, channels_last)),
                     w = graph.tensor(type, c.w, packed(c.w, channels_last)),
                     y = graph.tensor(type, c.y, packed(c.y, channels_last));
          graph.convolution(
              pass, {type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, c.padding, c.stride, c.dilation},
              x, w, y);
          CHECK(graph.plan_for(*device) == CUDNN_STATUS_SUCCESS);
          void* const none[2] = {};
          CHECK(graph.run(nullptr, none, nullptr) == CUDNN_STATUS_BAD_PARAM);  // expects three addresses
        }
    }
}

TEST_CASE("cuDNN refuses sizes that do not fit, and a graph of nothing, without an exception") {
  const DnnDescriptor* const device = h200();
  if (!device) return;
  DnnGraph graph;
  const Sizes x{1, 4, 8, 8}, w{4, 4, 3, 3}, y{1, 4, 8, 8}, none{0, 0}, ones{1, 1};
  const auto a = graph.tensor(CUDNN_DATA_FLOAT, x, packed(x, false)),
             b = graph.tensor(CUDNN_DATA_FLOAT, w, packed(w, false)),
             c = graph.tensor(CUDNN_DATA_FLOAT, y, packed(y, false));
  graph.convolution(DnnGraph::Pass::kForward, {CUDNN_DATA_FLOAT, none, ones, ones}, a, b, c);
  CHECK(graph.plan_for(*device) != CUDNN_STATUS_SUCCESS);
  CHECK(graph.status() != CUDNN_STATUS_SUCCESS);
  DnnGraph empty;
  CHECK(empty.plan_for(*device) != CUDNN_STATUS_SUCCESS);
}

TEST_CASE("cuDNN knows attention in our graph: all that it asks for then is the driver") {
  const DnnDescriptor* const device = h200();
  if (!device) return;
  const auto known = [&](DnnGraph& graph) {
    const cudnnStatus_t status = graph.plan_for(*device);
    CHECK(graph.status() == status);
    return status == CUDNN_STATUS_SUCCESS || status == CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING;
  };
  AttentionForm form{CUDNN_DATA_BFLOAT16, 2, 8, 8, 640, 640, 128, 128, {}, {}, {}, {}, 640, 0.1f, true, false, {}};
  for (auto* strides : {&form.q_strides, &form.k_strides, &form.v_strides, &form.out_strides}) {
    (*strides)[0] = 8 * 640 * 128;
    (*strides)[1] = 128;
    (*strides)[2] = 8 * 128;
  }
  CHECK(known(*attention_graph(form)));
  form.causal = false;
  CHECK(known(*attention_graph(form)));
  form.logsumexp_rows = 0;
  CHECK(known(*attention_graph(form)));
  form.logsumexp_rows = 672;
  form.type = CUDNN_DATA_HALF;
  CHECK(known(*attention_graph(form)));
  form.kv_heads = 2;
  CHECK(known(*attention_graph(form)));
  // A bias per head, and one shared by batches, by heads and by queries.
  form.biased = true;
  for (const bool causal : {false, true})
    for (const std::array<int64_t, 3>& strides : {std::array<int64_t, 3>{8 * 640 * 640, 640 * 640, 640},
                                                  {0, 640 * 640, 640},
                                                  {640 * 640, 0, 640},
                                                  {640, 0, 0}}) {
      form.causal = causal;
      std::copy(strides.begin(), strides.end(), form.bias_strides);
      CAPTURE(causal);
      CAPTURE(strides[0]);
      CAPTURE(strides[2]);
      CHECK(known(*attention_graph(form)));
    }
  form.keys = 635;  // rows are at multiples of 16 bytes anyway
  CHECK(known(*attention_graph(form)));

  // Not attention.
  DnnGraph other;
  const Sizes sizes{2, 8, 640, 640};
  const auto q = other.tensor(CUDNN_DATA_HALF, sizes, packed(sizes, false)),
             k = other.tensor(CUDNN_DATA_HALF, sizes, packed(sizes, false)),
             out = other.tensor(CUDNN_DATA_HALF, sizes, packed(sizes, false)),
             scores = other.between(CUDNN_DATA_FLOAT, sizes),
             most = other.between(CUDNN_DATA_FLOAT, Sizes{2, 8, 640, 1}),
             probabilities = other.between(CUDNN_DATA_HALF, sizes);
  other.matmul(q, k, scores);
  other.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  other.binary(CUDNN_POINTWISE_DIV, scores, most, probabilities);
  other.matmul(probabilities, k, out);
  CHECK_FALSE(known(other));
}
