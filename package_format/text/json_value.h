// nlohmann's JSON values with a destructor that allocates nothing. nlohmann's own destructor pushes nested values onto
// a vector, which ends the process when memory runs out. Here the values that wait for their destruction form a list
// that is threaded through the values themselves: basic_json::json_value::destroy() is specialised for these two types
// (read for nlohmann 3.11; another signature would not compile).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace sconce {

// Room in each array and object for a link to the next value of the list.
struct JsonLink {
  JsonLink() noexcept = default;
  JsonLink(const JsonLink&) noexcept {}
  JsonLink& operator=(const JsonLink&) noexcept { return *this; }
  alignas(void*) std::byte value[2 * sizeof(void*)];
};

template <class T, class Allocator>
struct JsonArray : std::vector<T, Allocator>, JsonLink {
  using std::vector<T, Allocator>::vector;
};
template <class Key, class T, class Less, class Allocator>
struct SortedJsonObject : std::map<Key, T, Less, Allocator>, JsonLink {
  using std::map<Key, T, Less, Allocator>::map;
};
template <class Key, class T, class Less, class Allocator>
struct OrderedJsonObject : nlohmann::ordered_map<Key, T, Less, Allocator>, JsonLink {
  OrderedJsonObject() = default;
  template <class Iterator>
  OrderedJsonObject(Iterator first, Iterator last) : nlohmann::ordered_map<Key, T, Less, Allocator>(first, last) {}
};

template <template <class, class, class...> class Object>
using JsonWith = nlohmann::basic_json<Object, JsonArray, std::string, bool, int64_t, uint64_t, double>;

using SortedJson = JsonWith<SortedJsonObject>;    // as nlohmann::json
using OrderedJson = JsonWith<OrderedJsonObject>;  // as nlohmann::ordered_json

// Arrays and objects that wait for their destruction; the last one comes first.
template <class Json>
class JsonStack {
 public:
  bool empty() const noexcept { return top_.is_null(); }
  // Takes a value; only containers have something to wait for.
  void push(Json&& value) noexcept {
    JsonLink* const room = link(value);
    if (room == nullptr) return;
    static_assert(sizeof(Json) <= sizeof room->value && alignof(Json) <= alignof(void*));
    ::new (static_cast<void*>(room->value)) Json(std::move(top_));
    top_ = std::move(value);
  }
  Json pop() noexcept {
    Json item = std::move(top_);
    Json* const next = std::launder(reinterpret_cast<Json*>(link(item)->value));
    top_ = std::move(*next);
    next->~Json();
    return item;
  }
  void push_all(typename Json::array_t& array) noexcept {
    for (Json& value : array) push(std::move(value));
  }
  void push_all(typename Json::object_t& object) noexcept {
    for (auto& [key, value] : object) push(std::move(value));
  }

 private:
  static JsonLink* link(Json& value) noexcept {
    if (value.is_array()) return value.template get_ptr<typename Json::array_t*>();
    if (value.is_object()) return value.template get_ptr<typename Json::object_t*>();
    return nullptr;
  }
  Json top_;
};

template <class T>
void destroy_json_part(T* part) noexcept {
  std::allocator<T> allocator;
  std::destroy_at(part);
  allocator.deallocate(part, 1);
}

// Destroys a container after all that it contains, of any depth, without recursion.
template <class Json, class Container>
void destroy_json_container(Container* container) noexcept {
  JsonStack<Json> stack;
  stack.push_all(*container);
  while (!stack.empty()) {
    Json item = stack.pop();
    if (item.is_array())
      stack.push_all(*item.template get_ptr<typename Json::array_t*>());
    else
      stack.push_all(*item.template get_ptr<typename Json::object_t*>());
  }
  destroy_json_part(container);
}

// value: nlohmann's union of pointers, whose type is private.
template <class Json, class Value>
void destroy_json(Value& value, typename Json::value_t type) noexcept {
  switch (type) {
    case Json::value_t::array:
      return destroy_json_container<Json>(value.array);
    case Json::value_t::object:
      return destroy_json_container<Json>(value.object);
    case Json::value_t::string:
      return destroy_json_part(value.string);
    case Json::value_t::binary:
      return destroy_json_part(value.binary);
    default:
      return;
  }
}

}  // namespace sconce

template <>
inline void sconce::SortedJson::json_value::destroy(value_t type) {
  sconce::destroy_json<sconce::SortedJson>(*this, type);
}
template <>
inline void sconce::OrderedJson::json_value::destroy(value_t type) {
  sconce::destroy_json<sconce::OrderedJson>(*this, type);
}
