#include "src/runner/replicas/graph_runs.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace sconce::runner {
namespace {

// Calls visit(number) for all that identifies a shape, until it returns false.
template <class Visit>
bool each_number(std::span<const Tensor> inputs, Visit visit) {
  for (const Tensor& input : inputs) {
    if (!visit(int64_t{static_cast<int8_t>(input.dtype())}) || !visit(input.dim())) return false;
    for (const IntSpan numbers : {input.sizes(), input.strides()})
      for (const int64_t number : numbers)
        if (!visit(number)) return false;
  }
  return true;
}

bool matches(const std::vector<int64_t>& key, std::span<const Tensor> inputs) {
  size_t at = 0;
  return each_number(inputs, [&](int64_t number) { return at < key.size() && key[at++] == number; }) &&
         at == key.size();
}

}  // namespace

bool GraphReport::refused(std::string why, bool for_good) {
  const MutexLock lock(mutex_);
  if (!recordable()) return false;
  why_.swap(why);
  for_good_.store(for_good, std::memory_order_relaxed);
  return for_good;
}
void GraphReport::recorded(int change) noexcept {
  recorded_.fetch_add(change, std::memory_order_relaxed);
  if (change < 0) return;
  const MutexLock lock(mutex_);
  if (recordable()) why_.clear();
}
std::string GraphReport::why_none() const {
  const MutexLock lock(mutex_);
  return why_;
}

GraphRuns::GraphRuns(size_t most, std::shared_ptr<GraphReport> report) : most_(most), report_(std::move(report)) {}

GraphRuns::~GraphRuns() {
  for (const auto& shape : shapes_) drop(*shape);
}

GraphRuns::Shape* GraphRuns::find(std::span<const Tensor> inputs) {
  if (refused_) return nullptr;
  ++uses_;
  for (const auto& shape : shapes_)
    if (matches(shape->key, inputs)) {
      shape->used = uses_;
      ++shape->runs;
      return shape.get();
    }
  // Shapes that came once must not displace those that keep coming.
  if (shapes_.size() >= 8 * most_) {
    const auto oldest = std::min_element(shapes_.begin(), shapes_.end(), [](const auto& a, const auto& b) {
      return std::pair(static_cast<bool>(a->graph), a->used) < std::pair(static_cast<bool>(b->graph), b->used);
    });
    drop(**oldest);
    shapes_.erase(oldest);
  }
  Shape& made = *shapes_.emplace_back(std::make_unique<Shape>());
  each_number(inputs, [&](int64_t number) {
    made.key.push_back(number);
    return true;
  });
  made.used = uses_;
  made.runs = 1;
  return &made;
}

void GraphRuns::drop(Shape& shape) noexcept {
  if (shape.graph) report_->recorded(-1);
  shape.graph.reset();
  shape.inputs.clear();
  shape.outputs.clear();
  shape.staged.clear();
}

void GraphRuns::clear() noexcept {
  for (const auto& shape : shapes_) drop(*shape);
  shapes_.clear();
}

void GraphRuns::make_room(const Shape& shape) {
  Shape* oldest = nullptr;
  size_t count = 0;
  for (const auto& each : shapes_) {
    if (!each->graph || each.get() == &shape) continue;
    ++count;
    if (!oldest || each->used < oldest->used) oldest = each.get();
  }
  if (count < most_) return;
  drop(*oldest);
  oldest->runs = 0;
}

void GraphRuns::keep(Shape& shape, std::unique_ptr<DeviceGraph> graph) {
  shape.graph = std::move(graph);
  shape.failed = 0;
  report_->recorded(1);
}

void GraphRuns::postpone(Shape& shape, std::string why) {
  drop(shape);
  shape.runs = 0;
  ++shape.failed;
  report_->refused(std::move(why), false);
}

void GraphRuns::refuse(std::string why) {
  for (const auto& shape : shapes_) drop(*shape);
  shapes_.clear();
  refused_ = true;
  const std::string text = why;
  if (report_->refused(std::move(why), true))
    std::fprintf(stderr, "[INFO] a model runs without CUDA graphs: %s\n", text.c_str());
}

}  // namespace sconce::runner
