// A WeightUpdate that keeps what it is given, and minds that its memory is used as the contract says.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sconce/check.h"
#include "sconce/weights.h"

namespace sconce::testing {

class FakeUpdate : public WeightUpdate {
 public:
  // one_scratch: all entries share the same memory, one after the other.
  explicit FakeUpdate(bool one_scratch = false) : one_scratch_(one_scratch) {}

  void declare(std::span<const WeightEntry> entries) override {
    CHECK(!declared_);
    declared_ = true;
    for (const WeightEntry& entry : entries) {
      SCONCE_CHECK(entry.name.find("refused") == std::string::npos, kNotFound,
                   "no constant of this name: ", entry.name);
      uint64_t bytes = dtype_bytes(entry.dtype);
      for (const int64_t size : entry.shape) bytes *= static_cast<uint64_t>(size);
      SCONCE_CHECK(bytes <= kMaxBytes, kOutOfMemory, "no memory for: ", entry.name);
      entries_.push_back({entry, {bytes, std::byte{0xcd}}, 0});
    }
  }

  std::span<std::byte> memory(size_t entry) override {
    Entry& e = entries_.at(entry);
    CHECK(e.state == 0);
    e.state = 1;
    if (one_scratch_) {
      CHECK(!busy_);  // one entry at a time
      busy_ = true;
      scratch_.assign(e.values.size(), std::byte{0xcd});
      return scratch_;
    }
    return e.values;
  }

  void complete(size_t entry) override {
    Entry& e = entries_.at(entry);
    CHECK(e.state == 1);
    e.state = 2;
    if (one_scratch_) {
      e.values = scratch_;
      scratch_.assign(scratch_.size(), std::byte{0xab});
      busy_ = false;
    }
    ++completed_;
  }

  void set_label(std::string) override {}
  void finish() override { FAIL("a source does not finish an update"); }

  bool declared() const { return declared_; }
  size_t completed() const { return completed_; }
  size_t size() const { return entries_.size(); }
  bool whole() const { return declared_ && completed_ == entries_.size(); }
  const WeightEntry* entry(const std::string& name) const {
    for (const Entry& e : entries_)
      if (e.entry.name == name) return &e.entry;
    return nullptr;
  }
  // The bytes of a completed entry.
  std::string bytes(const std::string& name) const {
    for (const Entry& e : entries_)
      if (e.entry.name == name) {
        CHECK(e.state == 2);
        return {reinterpret_cast<const char*>(e.values.data()), e.values.size()};
      }
    FAIL("no entry of this name: ", name);
    return "";
  }
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const std::string text = bytes(name);
    std::vector<T> out(text.size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), text.data(), text.size());
    return out;
  }

 private:
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 28;
  struct Entry {
    WeightEntry entry;
    std::vector<std::byte> values;
    int state;  // 0 declared, 1 given out, 2 complete
  };
  const bool one_scratch_;
  bool declared_ = false, busy_ = false;
  size_t completed_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::byte> scratch_;
};

}  // namespace sconce::testing
