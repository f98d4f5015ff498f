// The fake model's container: y = x * w + b over a dynamic batch, x [B, FAKE_FEATURES] float32, with the two buffers of
// constants, the states and the ownership that AOTInductorModelContainer of torch 2.15 has.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "fake_abi.h"
#include "fake_constants.h"
#include "fake_knobs.h"

namespace fake {

FakeKnobs& knobs();
void wait_while_held(float second = 0);        // of a run whose first row has `second` in its second column
void check_device(const std::string& device);  // throws std::runtime_error

// Owns one tensor handle, and counts it.
class Handle {
 public:
  Handle() = default;
  explicit Handle(AtenTensorHandle handle);
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { reset(); }
  AtenTensorHandle get() const { return handle_; }
  AtenTensorHandle release();
  void reset();
  float* data() const;

 private:
  AtenTensorHandle handle_ = nullptr;
};

struct Free {
  void operator()(unsigned char* bytes) const { std::free(bytes); }
};
using Blob = std::unique_ptr<unsigned char, Free>;

using Constants = std::map<std::string, AtenTensorHandle>;  // borrowed

class Container {
 public:
  Container(size_t models, const std::string& device);
  // Without loading: the caller's constants are all there is, and are folded at once.
  Container(size_t models, const std::string& device, const Constants& constants);
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  // Steals the inputs. `shared` takes part in the container's locking.
  void run(AtenTensorHandle* inputs, AtenTensorHandle* outputs, bool shared);
  void fold(bool inactive);
  void update(const Constants& constants, bool inactive, bool full, bool user_managed);
  void update_from_blob(const unsigned char* blob);
  void swap();
  void free_inactive();
  // Borrowed handles by FQN, as far as there are any.
  std::vector<std::pair<const char*, AtenTensorHandle>> extract(bool inactive) const;
  const std::vector<AOTInductorConstantMapEntry>& extract_entries(bool inactive);

 private:
  enum class State { kNone, kInitialized, kFolded };
  struct Set {
    Blob blob;
    std::map<std::string, Handle> tensors;
    std::array<float*, kConstantCount> data{};  // read once, when a tensor is set
    State state = State::kNone;
  };
  Set& active() { return sets_[active_]; }
  Set& inactive() { return sets_[1 - active_]; }
  void load(Set& set);
  void check_full(const Constants& constants) const;
  void put(Set& set, size_t constant, Handle tensor);
  void fold_set(Set& set);
  void run_model(AtenTensorHandle* inputs, AtenTensorHandle* outputs);

  int32_t device_index_ = 0;
  StoredConstants stored_;
  std::array<Set, 2> sets_;
  size_t active_ = 0;
  std::shared_mutex execution_;  // shared by runs, exclusive for folding and swapping
  std::mutex pool_;
  std::condition_variable returned_;
  size_t idle_;
  std::vector<AOTInductorConstantMapEntry> entries_;
};

}  // namespace fake
