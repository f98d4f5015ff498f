#include "server/support/json/number_reader.h"
#include "server/support/json/tensor_json.h"

namespace sconce::server {
namespace {

inline const char* skip_space(const char* p, const char* end) noexcept {
  while (p != end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// Tracks nesting. The first row that closes at a level fixes the row length of that level.
class ShapeTracker {
 public:
  int depth() const noexcept { return depth_; }
  bool open() noexcept {  // false if elements were seen at this depth
    if (leaf_ >= 0 && depth_ >= leaf_) return false;
    counts_[depth_++] = 0;
    return true;
  }
  bool elements_here() noexcept {  // false if elements or rows were seen at another depth
    if (leaf_ < 0 && deepest_ <= depth_) leaf_ = depth_;
    return leaf_ == depth_;
  }
  void count(int64_t n) noexcept { counts_[depth_ - 1] += n; }
  bool close() noexcept {  // false if the row's length differs from its siblings'
    --depth_;
    if (!known_[depth_]) {
      known_[depth_] = true;
      sizes_[depth_] = counts_[depth_];
    }
    if (depth_ + 1 > deepest_) deepest_ = depth_ + 1;
    return sizes_[depth_] == counts_[depth_];
  }
  void store(NestedShape& shape) const noexcept {
    shape.rank = deepest_;
    for (int i = 0; i < deepest_; ++i) shape.sizes[static_cast<size_t>(i)] = sizes_[i];
  }

 private:
  int64_t counts_[JsonCursor::kMaxDepth];
  int64_t sizes_[JsonCursor::kMaxDepth];
  bool known_[JsonCursor::kMaxDepth] = {};
  int depth_ = 0, leaf_ = -1, deepest_ = 0;
};

template <class T>
T* more_room(ElementSink& sink, JsonCursor& in, const char* p) {
  if (sink.grow == nullptr) {
    in.set_position(p);
    in.fail("more elements than the shape holds");
  }
  sink.grow(sink);
  return reinterpret_cast<T*>(sink.data) + sink.count;
}

template <class T>
void read_all(JsonCursor& in, ElementSink& sink, NestedShape* shape) {
  const ElementReader<T> reader(in);
  const char* const end = in.end();
  const char* p = skip_space(in.position(), end);
  T* out = reinterpret_cast<T*>(sink.data) + sink.count;
  if (p == end || *p != '[') {
    if (p == end) reader.fail(p, "expected an array");
    if (sink.count == sink.capacity) out = more_room<T>(sink, in, p);
    in.set_position(reader.read(p, *out));
    ++sink.count;
    if (shape != nullptr) shape->rank = 0;
    return;
  }

  ShapeTracker tracker;
  const char* const ragged = "rows of different length or depth";
  for (;;) {
    p = skip_space(p, end);
    if (p != end && *p == '[') {
      if (tracker.depth() == JsonCursor::kMaxDepth) reader.fail(p, "nested deeper than 100 levels");
      if (!tracker.open() && shape != nullptr) reader.fail(p, ragged);
      p = skip_space(p + 1, end);
      if (p == end || *p != ']') continue;
    } else {
      if (shape != nullptr && !tracker.elements_here()) reader.fail(p, ragged);
      const size_t first = sink.count;
      const T* limit = reinterpret_cast<T*>(sink.data) + sink.capacity;
      for (;;) {
        if (out == limit) [[unlikely]] {
          sink.count = static_cast<size_t>(out - reinterpret_cast<T*>(sink.data));
          out = more_room<T>(sink, in, p);
          limit = reinterpret_cast<T*>(sink.data) + sink.capacity;
        }
        p = skip_space(reader.read(p, *out), end);
        ++out;
        if (p == end || *p != ',') break;
        p = skip_space(p + 1, end);
        if (p != end && *p == '[') break;
      }
      sink.count = static_cast<size_t>(out - reinterpret_cast<T*>(sink.data));
      tracker.count(static_cast<int64_t>(sink.count - first));
      if (p != end && *p == '[') continue;
    }
    // Rows that end at this position.
    while (p != end && *p == ']') {
      if (!tracker.close() && shape != nullptr) reader.fail(p, ragged);
      p = skip_space(p + 1, end);
      if (tracker.depth() == 0) {
        in.set_position(p);
        if (shape != nullptr) tracker.store(*shape);
        return;
      }
      tracker.count(1);
    }
    if (p == end || *p != ',') reader.fail(p, "expected ',' or ']'");
    ++p;
  }
}

}  // namespace

void read_elements(JsonCursor& in, DType dtype, ElementSink& sink, NestedShape* shape) {
  with_element_type(dtype, [&]<class T>() { read_all<T>(in, sink, shape); });
}

}  // namespace sconce::server
