// grouped_product.cpp -- see grouped_product.h. cuBLAS's matrices are column-major, so that it is asked for
// D^T = B A^T: its first operand is our B, transposed, its second our A.
#include "grouped_product.h"

#include "product.h"

namespace bench {

GroupedProduct::GroupedProduct(const lt::Library& library, const Workload& workload, OperandFormat format,
                               const OperandSets& operands, uint16_t* products)
    : library_(library), type_(format == OperandFormat::kFp16 ? lt::kReal16F : lt::kReal16BF) {
  const Shape& shape = workload.shape();
  for (int32_t group = 0; group < shape.problems(); ++group) {
    if (shape.rows(group) == 0) continue;
    rows_.push_back(shape.rows(group));
    alpha_.push_back(products == nullptr ? workload.input_set(0).place(group).alpha1 : 1.0f);
  }
  const size_t groups = rows_.size();
  transposed_.assign(groups, lt::kOpTransposed);
  as_it_is_.assign(groups, lt::kOpAsItIs);
  columns_.assign(groups, static_cast<int>(shape.columns()));
  k_.assign(groups, shape.k);
  ones_.assign(groups, 1);
  beta_.assign(groups, 0.0f);
  for (int set = 0; set < workload.input_sets(); ++set) {
    void* const c = workload.input_set(set).args().c;
    const Operands& x = operands.of(c);
    auto* const to = products == nullptr ? static_cast<uint16_t*>(c) : products;
    std::vector<const void*> b, a, d;
    for (int32_t group = 0; group < shape.problems(); ++group) {
      if (shape.rows(group) == 0) continue;
      const int64_t row = workload.input_set(set).place(group).row;
      b.push_back(x.b.data() + 2 * shape.columns() * shape.k * group);
      a.push_back(static_cast<const uint8_t*>(x.a) + 2 * row * shape.k);
      d.push_back(to + row * shape.columns());
    }
    of_.try_emplace(c, b, a, d);
  }
}

int GroupedProduct::launch(const void* c, void* workspace, cudaStream_t stream) const {
  const lt::Library& x = library_;
  const Addresses& at = of_.at(c);
  // Another stream takes the workspace away.
  if (const int status = x.set_stream(x.blas, stream)) return status;
  if (const int status = x.set_workspace(x.blas, workspace, Product::kWorkspaceBytes)) return status;
  return x.grouped(x.blas, transposed_.data(), as_it_is_.data(), columns_.data(), rows_.data(), k_.data(),
                   alpha_.data(), at.b.data(), type_, k_.data(), at.a.data(), type_, k_.data(), beta_.data(),
                   const_cast<void* const*>(at.d.data()), type_, columns_.data(),
                   static_cast<int>(rows_.size()), ones_.data(), lt::kCompute32F);
}

}  // namespace bench
