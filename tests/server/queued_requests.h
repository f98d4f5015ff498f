// Requests without a connection, for tests of the queue and the batcher.
#pragma once

#include <memory>
#include <vector>

#include "sconce/tensor.h"
#include "server/scheduling/batching/batch_policy.h"
#include "server/scheduling/batching/request_queue.h"

namespace sconce::server {

inline scheduling::BatchPolicy up_to(int64_t rows) {
  scheduling::BatchPolicy policy;
  policy.max_rows = rows;
  return policy;
}

// One float32 input [rows, width] with the request's number in every element, and one output.
class TestRequest : public scheduling::QueuedRequest {
 public:
  explicit TestRequest(float number, int64_t row_count = 1, int64_t width = 2) : number_(number) {
    const int64_t sizes[] = {row_count, width};
    input_.push_back(Tensor::empty(sizes, DType::kFloat32));
    for (int64_t i = 0; i < input_[0].numel(); ++i) input_[0].data_as<float>()[i] = number;
    output_.resize(1);
    inputs = input_;
    outputs = output_;
    rows = row_count;
  }
  void finished() noexcept override { ++times_finished_; }

  float number() const noexcept { return number_; }
  int times_finished() const noexcept { return times_finished_; }
  bool done() const noexcept { return times_finished_ == 1; }
  const Tensor& output() const noexcept { return output_[0]; }
  std::vector<float> output_values() const {
    const float* data = output_[0].data_as<float>();
    return {data, data + output_[0].numel()};
  }

 private:
  float number_;
  std::vector<Tensor> input_, output_;
  int times_finished_ = 0;
};

}  // namespace sconce::server
