#include "src/tensor/matrices/trilinear.h"

#include <bitset>
#include <utility>
#include <vector>

#include "sconce/check.h"
#include "src/operators/cpu_ops.h"
#include "src/tensor/copy.h"
#include "src/tensor/elements/dispatch.h"
#include "src/tensor/strided_loop.h"
#include "src/tensor/view.h"

namespace sconce {
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

// a * b summed over `gone`, as a batch of matrix products. Dimensions that are summed, or that neither has, are 1.
Tensor contracted(const Tensor& a, const Tensor& b, const Dims& gone, BatchProduct* bmm) {
  const int64_t rank = a.dim();
  const auto extent = [&](int64_t d) { return a.size(d) != 1 ? a.size(d) : b.size(d); };
  std::vector<int64_t> batch, rows, columns, inner;
  for (int64_t d = 0; d < rank; ++d) {
    const bool in_a = a.size(d) != 1, in_b = b.size(d) != 1;
    (gone[static_cast<size_t>(d)] ? inner : in_a && in_b ? batch : in_a ? rows : columns).push_back(d);
  }
  // Arranges the operand as [batch, second, third]. Summed dimensions are expanded to the other operand's size; all
  // others have size 1.
  const auto arranged = [&](const Tensor& t, const std::vector<int64_t>& second, const std::vector<int64_t>& third,
                            const std::vector<int64_t>& rest) {
    Shape full(t.sizes());
    for (const int64_t d : inner) full[static_cast<int>(d)] = extent(d);
    const Tensor wide = expand("_trilinear", t, full);
    std::vector<int64_t> order;
    int64_t sizes[3] = {1, 1, 1};
    int at = 0;
    for (const std::vector<int64_t>* dims : {&std::as_const(batch), &second, &third}) {
      for (const int64_t d : *dims) {
        order.push_back(d);
        sizes[at] *= wide.size(d);
      }
      ++at;
    }
    order.insert(order.end(), rest.begin(), rest.end());
    return cpu::reshape(cpu::permute(wide, order), sizes);
  };
  const Tensor product = bmm(arranged(a, rows, inner, columns), arranged(b, inner, columns, rows));
  std::vector<int64_t> sizes, order, back(static_cast<size_t>(rank));
  for (const std::vector<int64_t>* dims : {&batch, &rows, &columns, &inner})
    for (const int64_t d : *dims) {
      back[static_cast<size_t>(d)] = static_cast<int64_t>(order.size());
      order.push_back(d);
      sizes.push_back(dims == &inner ? 1 : extent(d));
    }
  return cpu::permute(cpu::reshape(product, sizes), back);
}

}  // namespace

Tensor trilinear_by(BatchProduct* product, const Tensor& i1, const Tensor& i2, const Tensor& i3, IntSpan expand1,
                    IntSpan expand2, IntSpan expand3, IntSpan sumdim) {
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
  if (!is_floating(i1.dtype()) && !is_integral(i1.dtype(), false) && i1.dtype() != DType::kComplex64 &&
      i1.dtype() != DType::kComplex128)
    fail_dispatch(i1.dtype(), "_trilinear");
  // Sums of small floats are float.
  const bool small = i1.dtype() == DType::kFloat16 || i1.dtype() == DType::kBFloat16;
  const DType computed = small ? DType::kFloat32 : i1.dtype();
  for (Tensor& operand : operands) operand = to_dtype(operand, computed);
  // Dimensions that the third operand lacks are summed right after the first two are multiplied.
  Dims early;
  for (int d = 0; d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    if (summed[at] && operands[2].size(d) == 1) early.set(at);
  }
  const Tensor pair = contracted(operands[0], operands[1], early, product);
  const Tensor all = contracted(pair, operands[2], summed & ~early, product);
  return to_dtype(contiguous(cpu::reshape(all, sizes)), i1.dtype());
}

}  // namespace sconce
