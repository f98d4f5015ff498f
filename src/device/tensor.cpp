#include "sconce/tensor.h"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "sconce/check.h"
#include "src/device/cpu_arena.h"
#include "src/device/device_backend.h"

namespace sconce {
namespace {

StoragePtr allocate(size_t bytes, Device device) {
  return device.type == DeviceType::kCpu ? allocate_cpu(bytes) : device_backend(device).allocate(bytes, device);
}

}  // namespace

void Tensor::set_dims(IntSpan sizes, IntSpan strides) {
  SCONCE_CHECK(sizes.size() == strides.size(), kInvalidArgument, "tensor: ", sizes.size(), " sizes but ",
               strides.size(), " strides");
  SCONCE_CHECK(sizes.size() <= kMaxRank, kInvalidArgument, "tensor: rank ", sizes.size(), " exceeds ", kMaxRank);
  const size_t rank = sizes.size();
  int64_t numel = 1;
  bool overflow = false;
  for (const int64_t size : sizes) overflow |= __builtin_mul_overflow(numel, size, &numel);
  if (overflow) numel = std::find(sizes.begin(), sizes.end(), 0) != sizes.end() ? 0 : -1;
  SCONCE_CHECK(numel >= 0, kInvalidArgument, "tensor: sizes ", to_string(sizes), " are negative or overflow");
  int64_t* dims = rank <= kInlineRank ? inline_ : new int64_t[2 * rank];
  std::copy(sizes.begin(), sizes.end(), dims);
  std::copy(strides.begin(), strides.end(), dims + rank);
  if (dims_ != inline_ && dims_ != dims) delete[] dims_;
  dims_ = dims;
  rank_ = static_cast<uint8_t>(rank);
  numel_ = numel;
}

Tensor::Tensor(StoragePtr storage, DType dtype, IntSpan sizes, IntSpan strides, int64_t offset, Layout layout)
    : dims_(inline_) {
  storage_ = std::move(storage);
  SCONCE_CHECK(storage_, kInternal, "tensor without storage");
  device_ = storage_->device();
  dtype_ = dtype;
  layout_ = layout;
  offset_ = offset;
  if (layout == Layout::kStrided) {
    const size_t needed = storage_bytes_needed(sizes, strides, offset, dtype_bytes(dtype));
    SCONCE_CHECK(needed <= storage_->bytes(), kInvalidArgument, "tensor: sizes ", to_string(sizes), " strides ",
                 to_string(strides), " offset ", offset, " need ", needed, " bytes, the storage has ",
                 storage_->bytes());
  }
  set_dims(sizes, strides);
}

Tensor::Tensor(const Tensor& other)
    : storage_(other.storage_),
      offset_(other.offset_),
      numel_(other.numel_),
      dims_(inline_),
      rank_(other.rank_),
      dtype_(other.dtype_),
      device_(other.device_),
      layout_(other.layout_) {
  if (rank_ > kInlineRank) dims_ = new int64_t[2 * size_t{rank_}];
  std::copy_n(other.dims_, 2 * size_t{rank_}, dims_);
}

Tensor::Tensor(Tensor&& other) noexcept
    : storage_(std::move(other.storage_)),
      offset_(other.offset_),
      numel_(other.numel_),
      dims_(inline_),
      rank_(other.rank_),
      dtype_(other.dtype_),
      device_(other.device_),
      layout_(other.layout_) {
  if (other.dims_ != other.inline_)
    dims_ = std::exchange(other.dims_, other.inline_);
  else
    std::copy_n(other.inline_, 2 * size_t{rank_}, inline_);
  other.rank_ = 0;
  other.numel_ = 0;
  other.offset_ = 0;
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this == &other) return *this;
  this->~Tensor();
  return *new (this) Tensor(std::move(other));
}

Tensor Tensor::empty_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  const size_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_bytes(dtype));
  return Tensor(allocate(bytes, device), dtype, sizes, strides);
}

Tensor Tensor::empty(IntSpan sizes, DType dtype, Device device) {
  SCONCE_CHECK(sizes.size() <= kMaxRank, kInvalidArgument, "tensor: rank ", sizes.size(), " exceeds ", kMaxRank);
  int64_t strides[kMaxRank];
  contiguous_strides(sizes, strides);
  return empty_strided(sizes, {strides, sizes.size()}, dtype, device);
}

Tensor Tensor::from_blob(void* data, IntSpan sizes, IntSpan strides, DType dtype, Device device,
                         Storage::Release release, void* context) {
  const size_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_bytes(dtype));
  return Tensor(StoragePtr::adopt(new Storage(data, bytes, device, release, context)), dtype, sizes, strides);
}

bool Tensor::is_contiguous() const noexcept {
  if (numel_ == 0) return true;
  int64_t expected = 1;
  for (int d = rank_ - 1; d >= 0; --d) {
    if (dims_[d] == 1) continue;
    if (dims_[rank_ + d] != expected) return false;
    expected *= dims_[d];
  }
  return true;
}

bool Tensor::is_dense() const noexcept {
  int order[kMaxRank];
  int n = 0;
  for (int d = 0; d < rank_; ++d)
    if (dims_[d] != 1) order[n++] = d;
  if (numel_ == 0) return true;
  std::sort(order, order + n, [&](int a, int b) { return dims_[rank_ + a] < dims_[rank_ + b]; });
  int64_t expected = 1;
  for (int i = 0; i < n; ++i) {
    if (dims_[rank_ + order[i]] != expected) return false;
    expected *= dims_[order[i]];
  }
  return true;
}

Tensor Tensor::as_strided(IntSpan sizes, IntSpan strides, int64_t offset) const {
  return Tensor(storage_, dtype_, sizes, strides, offset);
}
Tensor Tensor::view_as(DType dtype, IntSpan sizes, IntSpan strides, int64_t offset) const {
  return Tensor(storage_, dtype, sizes, strides, offset);
}

void contiguous_strides(IntSpan sizes, int64_t* out) noexcept {
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out[d] = stride;
    // storage_bytes_needed detects the overflow of a bad shape; here it must only be defined behaviour.
    stride =
        static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1)));
  }
}

size_t storage_bytes_needed(IntSpan sizes, IntSpan strides, int64_t offset, size_t itemsize) {
  SCONCE_CHECK(sizes.size() == strides.size(), kInvalidArgument, "tensor: ", sizes.size(), " sizes but ",
               strides.size(), " strides");
  SCONCE_CHECK(offset >= 0, kInvalidArgument, "tensor: negative storage offset ", offset);
  int64_t last = offset;
  bool overflow = false, zero = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    SCONCE_CHECK(sizes[d] >= 0, kInvalidArgument, "tensor: negative size in ", to_string(sizes));
    SCONCE_CHECK(strides[d] >= 0, kInvalidArgument, "tensor: negative stride in ", to_string(strides));
    if (sizes[d] == 0) {
      zero = true;
      continue;
    }
    int64_t span;
    overflow |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &span);
    overflow |= __builtin_add_overflow(last, span, &last);
  }
  if (zero) return 0;
  int64_t bytes;
  overflow |= __builtin_add_overflow(last, 1, &last);
  overflow |= __builtin_mul_overflow(last, static_cast<int64_t>(itemsize), &bytes);
  SCONCE_CHECK(!overflow, kInvalidArgument, "tensor: sizes ", to_string(sizes), " strides ", to_string(strides),
               " overflow");
  return static_cast<size_t>(bytes);
}

std::string to_string(IntSpan values) {
  std::ostringstream text;
  text << '[';
  for (size_t i = 0; i < values.size(); ++i) text << (i ? ", " : "") << values[i];
  text << ']';
  return text.str();
}

std::string describe(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = std::string(dtype_name(tensor.dtype())) + " " + to_string(tensor.sizes());
  if (!tensor.is_contiguous()) text += " strides " + to_string(tensor.strides());
  return text;
}

}  // namespace sconce
