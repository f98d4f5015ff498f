// nlohmann's JSON values with a destructor that allocates nothing. nlohmann's own destructor pushes nested values onto
// a stack that allocates, which ends the process when memory runs out. Here that stack is a list threaded through the
// values themselves.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace sconce {

// An allocator type that distinguishes arrays from the stack, which has the standard allocator.
template <class T>
struct JsonAllocator : std::allocator<T> {
  JsonAllocator() noexcept = default;
  template <class U>
  JsonAllocator(const JsonAllocator<U>&) noexcept {}
  template <class U>
  struct rebind {
    using other = JsonAllocator<U>;
  };
};

// Space in each array and object for a link to the value below it on the stack.
struct JsonBelow {
  JsonBelow() noexcept = default;
  JsonBelow(const JsonBelow&) noexcept {}
  JsonBelow& operator=(const JsonBelow&) noexcept { return *this; }
  alignas(void*) std::byte value[2 * sizeof(void*)];
};

template <class T, class Allocator>
struct JsonArray : std::vector<T, Allocator>, JsonBelow {
  using std::vector<T, Allocator>::vector;
};
template <class Key, class T, class Less, class Allocator>
struct SortedJsonObject : std::map<Key, T, Less, Allocator>, JsonBelow {
  using std::map<Key, T, Less, Allocator>::map;
};
template <class Key, class T, class Less, class Allocator>
struct OrderedJsonObject : nlohmann::ordered_map<Key, T, Less, Allocator>, JsonBelow {
  OrderedJsonObject() = default;
  template <class Iterator>
  OrderedJsonObject(Iterator first, Iterator last) : nlohmann::ordered_map<Key, T, Less, Allocator>(first, last) {}
};

template <template <class, class, class...> class Object>
using JsonWith = nlohmann::basic_json<Object, JsonArray, std::string, bool, int64_t, uint64_t, double, JsonAllocator>;

using SortedJson = JsonWith<SortedJsonObject>;    // as nlohmann::json
using OrderedJson = JsonWith<OrderedJsonObject>;  // as nlohmann::ordered_json

// The stack: the members of std::vector that nlohmann's destructor uses.
template <class Json>
class JsonStack {
 public:
  using value_type = Json;

  void reserve(size_t) noexcept {}
  bool empty() const noexcept { return taken_.is_null() && top_.is_null(); }
  void push_back(Json&& value) noexcept {
    Json item(std::move(value));
    JsonBelow* const room = below(item);
    if (room == nullptr) return;  // it is empty and can be destroyed now
    static_assert(sizeof(Json) <= sizeof room->value && alignof(Json) <= alignof(void*));
    ::new (static_cast<void*>(room->value)) Json(std::move(top_));
    top_ = std::move(item);
  }
  Json& back() noexcept {
    if (taken_.is_null()) {
      taken_ = std::move(top_);
      Json* const next = std::launder(reinterpret_cast<Json*>(below(taken_)->value));
      top_ = std::move(*next);
      next->~Json();
    }
    return taken_;
  }
  void pop_back() noexcept { taken_ = Json(); }

 private:
  static JsonBelow* below(Json& value) noexcept {
    if (value.is_array()) return value.template get_ptr<typename Json::array_t*>();
    if (value.is_object()) return value.template get_ptr<typename Json::object_t*>();
    return nullptr;
  }
  Json top_, taken_;
};

}  // namespace sconce

template <>
class std::vector<sconce::SortedJson> : public sconce::JsonStack<sconce::SortedJson> {};
template <>
class std::vector<sconce::OrderedJson> : public sconce::JsonStack<sconce::OrderedJson> {};
