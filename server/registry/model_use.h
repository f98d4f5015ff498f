// ModelUse: a request's reference to a served model. While it lives, the model is not evicted.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "server/registry/served_model.h"

namespace sconce::server::registry {

class ModelUse {
 public:
  ModelUse() noexcept = default;
  // place: index of the thread, whose counter counts the use. Empty if the model is being evicted.
  ModelUse(const std::shared_ptr<ServedModel>& model, size_t place, std::chrono::steady_clock::time_point now) noexcept
      : place_(place) {
    if (model->uses() == nullptr || model->uses()->enter(place, now)) model_ = model;
  }
  ModelUse(ModelUse&& other) noexcept : model_(std::move(other.model_)), place_(other.place_) {}
  ModelUse& operator=(ModelUse&& other) noexcept {
    reset();
    model_ = std::move(other.model_);
    place_ = other.place_;
    return *this;
  }
  ~ModelUse() { reset(); }

  explicit operator bool() const noexcept { return model_ != nullptr; }
  ServedModel& operator*() const noexcept { return *model_; }
  ServedModel* operator->() const noexcept { return model_.get(); }
  void reset() noexcept {
    if (!model_) return;
    if (ModelUses* const uses = model_->uses()) uses->leave(place_);
    model_.reset();
  }

 private:
  std::shared_ptr<ServedModel> model_;
  size_t place_ = 0;
};

}  // namespace sconce::server::registry
