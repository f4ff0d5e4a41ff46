// grouped_product.h -- the GEMMs of all groups in one call of cuBLAS: D = A B^T of fp16 or bf16 operands for
// each group, whose rows the host has to know.
#pragma once

#include <unordered_map>
#include <vector>

#include "cublaslt.h"
#include "measure.h"
#include "operands.h"

namespace bench {

class GroupedProduct {
 public:
  // Computes the products of the groups of `workload`, all in one GEMM for each group that has a row: without
  // alphas into `products`, or, where that is null, with them into C.
  GroupedProduct(const lt::Library& library, const Workload& workload, OperandFormat format,
                 const OperandSets& operands, uint16_t* products);

  // Returns a status of the library, for the operands of the input set whose C this is.
  int launch(const void* c, void* workspace, cudaStream_t stream) const;

 private:
  // Where each group has its weights, its A and its products; the lists lie on the device. Input sets that
  // have their operands in common have a C each.
  struct Addresses {
    using List = dualgemm_test::DeviceArray<const void*>;
    Addresses(const std::vector<const void*>& of_b, const std::vector<const void*>& of_a,
              const std::vector<const void*>& of_d)
        : b(of_b), a(of_a), d(of_d) {}
    List b, a, d;
  };

  const lt::Library& library_;
  int type_;
  // Of each group that has a row.
  std::vector<int> transposed_, as_it_is_, columns_, rows_, k_, ones_;
  std::vector<float> alpha_, beta_;
  std::unordered_map<const void*, Addresses> of_;
};

}  // namespace bench
