#include "src/ops/trilinear.h"

#include <bitset>

#include "sconce/check.h"
#include "src/ops/convert.h"
#include "src/ops/copy.h"
#include "src/ops/dispatch.h"
#include "src/ops/fill.h"
#include "src/ops/multiply.h"
#include "src/ops/strided_loop.h"

namespace sconce::cpu {
namespace {

using Dims = std::bitset<Tensor::kMaxRank>;

Dims dims_of(IntSpan dims, int64_t rank) {
  Dims set;
  for (const int64_t d : dims) {
    const auto at = static_cast<size_t>(wrap_dim("_trilinear", d, rank));
    SCONCE_CHECK(!set[at], kInvalidArgument, "_trilinear: dim ", d, " appears multiple times in the list of dims");
    set.set(at);
  }
  return set;
}

Tensor unsqueezed(const Tensor& t, const Dims& places, int64_t rank) {
  Shape sizes, strides;
  int64_t own = 0;
  for (int64_t d = 0; d < rank; ++d) {
    const bool added = places[static_cast<size_t>(d)];
    sizes.push_back(added ? 1 : t.size(own));
    strides.push_back(added ? 0 : t.stride(own));
    own += !added;
  }
  return t.as_strided(sizes, strides, t.storage_offset());
}

}  // namespace

Tensor _trilinear(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1, IntSpan expand2,
                  IntSpan expand3, IntSpan sumdim, int64_t) {
  const int64_t rank = i1.dim() + static_cast<int64_t>(expand1.size());
  SCONCE_CHECK(rank <= Tensor::kMaxRank && i2.dim() + static_cast<int64_t>(expand2.size()) == rank &&
                   i3.dim() + static_cast<int64_t>(expand3.size()) == rank,
               kInvalidArgument, "_trilinear: the operands have ", rank, ", ",
               i2.dim() + static_cast<int64_t>(expand2.size()), " and ",
               i3.dim() + static_cast<int64_t>(expand3.size()), " dimensions once expanded");
  SCONCE_CHECK(i1.dtype() == i2.dtype() && i1.dtype() == i3.dtype(), kInvalidArgument,
               "_trilinear: expected one dtype, got ", dtype_name(i1.dtype()), ", ", dtype_name(i2.dtype()), " and ",
               dtype_name(i3.dtype()));
  Tensor operands[] = {unsqueezed(i1, dims_of(expand1, rank), rank), unsqueezed(i2, dims_of(expand2, rank), rank),
                       unsqueezed(i3, dims_of(expand3, rank), rank)};
  const Shape shape = broadcast_shapes(
      "_trilinear", broadcast_shapes("_trilinear", operands[0].sizes(), operands[1].sizes()), operands[2].sizes());
  const Dims summed = dims_of(sumdim, rank);
  Shape sizes;
  for (int d = 0; d < rank; ++d)
    if (!summed[static_cast<size_t>(d)]) sizes.push_back(shape[d]);
  return detail::dispatch_list<DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt64,
                               DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt8, DType::kComplex64,
                               DType::kComplex128>(i1.dtype(), "_trilinear", [&]<class T>() {
    using C = ComputeType<T>;
    Tensor sums = Tensor::empty(sizes, kDType<C>);
    zero(sums);
    Shape out_strides;
    for (int d = 0, own = 0; d < rank; ++d)
      out_strides.push_back(summed[static_cast<size_t>(d)] ? 0 : sums.stride(own++));
    const Shape a = broadcast_strides("_trilinear", operands[0], shape),
                b = broadcast_strides("_trilinear", operands[1], shape),
                c = broadcast_strides("_trilinear", operands[2], shape);
    const StridedLoop<4> loop(shape, {out_strides, a, b, c}, {sizeof(C), sizeof(T), sizeof(T), sizeof(T)});
    loop.run({static_cast<char*>(sums.data()), static_cast<char*>(operands[0].data()),
              static_cast<char*>(operands[1].data()), static_cast<char*>(operands[2].data())},
             [](char* const* p, const int64_t* stride, int64_t n) {
               for (int64_t i = 0; i < n; ++i) {
                 C& sum = *reinterpret_cast<C*>(p[0] + i * stride[0]);
                 const C x(*reinterpret_cast<const T*>(p[1] + i * stride[1])),
                     y(*reinterpret_cast<const T*>(p[2] + i * stride[2])),
                     z(*reinterpret_cast<const T*>(p[3] + i * stride[3]));
                 sum = static_cast<C>(sum + multiply(multiply(x, y), z));
               }
             });
    return to_dtype(sums, i1.dtype());
  });
}

}  // namespace sconce::cpu
