// contenders.cpp -- see contenders.h.
#include "contenders.h"

#include <dlfcn.h>

#include <memory>
#include <stdexcept>
#include <unordered_map>

#include "inputs.h"
#include "progress.h"
#include "unfused.h"

namespace bench {
namespace {

// What one contender has made of the input sets.
class Created {
 public:
  Created(const ContenderFunctions& functions, const Workload& workload,
          std::shared_ptr<const OperandSets> operands)
      : functions_(functions),
        shape_(workload.shape()),
        dtype_(workload.epilogue().dtype),
        operands_(std::move(operands)),
        into_c_(shape_.products == 1 && dtype_ == DUALGEMM_DTYPE_FP16 &&
                workload.epilogue().linear_activation == DUALGEMM_LINEAR_ACTIVATION_NONE),
        products_(into_c_ ? 0 : count(shape_.m * shape_.columns())) {
    for (int i = 0; i < workload.input_sets(); ++i) {
      const Operands& x = operands_->of(workload.input_set(i).args().c);
      if (of_.contains(&x)) continue;
      const contender_problem problem{shape_.m, shape_.n, shape_.k, x.a, x.b.data(), shape_.products};
      void* const created = functions_.create(&problem);
      if (created == nullptr) {
        destroy();
        throw std::runtime_error("does not take this shape");
      }
      of_[&x] = created;
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Created() { destroy(); }
  Created(const Created&) = delete;
  Created& operator=(const Created&) = delete;

  void launch(const dualgemm_args_t& args, cudaStream_t stream) const {
    void* const products = into_c_ ? args.c : products_.data();
    const int status = functions_.multiply(of_.at(&operands_->of(args.c)), products, stream);
    if (status != 0) throw std::runtime_error("contender_multiply returned " + std::to_string(status));
    if (into_c_) return;
    check_cuda(launch_activation(products_of(args, products, DUALGEMM_DTYPE_FP16), {args.m, args.n}, args.c,
                                 dtype_, stream),
               "activation");
  }
  bool into_c() const { return into_c_; }

 private:
  void destroy() {
    for (const auto& [operands, created] : of_) functions_.destroy(created);
    of_.clear();
  }

  ContenderFunctions functions_;
  Shape shape_;
  dualgemm_dtype_t dtype_;
  std::shared_ptr<const OperandSets> operands_;
  bool into_c_;                     // the products are C
  DeviceArray<uint16_t> products_;  // every launch writes them
  std::unordered_map<const Operands*, void*> of_;
};

Launch prepare(const ContenderFunctions& functions, Workload* workload, SharedOperands* operands, bool exact,
               int samples) {
  const Shape& shape = workload->shape();
  const Epilogue& epilogue = workload->epilogue();
  if (shape.grouped() || shape.batch > 1) throw std::runtime_error("contenders take one problem");
  if ((shape.products == 2 && epilogue.activation != DUALGEMM_ACTIVATION_SWIGLU) ||
      (epilogue.dtype != DUALGEMM_DTYPE_FP16 && epilogue.dtype != DUALGEMM_DTYPE_BF16))
    throw std::runtime_error("contenders compute SWIGLU, or one product, to fp16 or bf16");
  if (shape.products == 1 && (functions.takes_one_product == nullptr || functions.takes_one_product() == 0))
    throw std::runtime_error("takes two products");
  if (shape.fp8_a()) throw std::runtime_error("contenders take weights in NVFP4");
  if (shape.a_dtype == DUALGEMM_DTYPE_BF16) throw std::runtime_error("contenders take their A in fp16");
  const auto created = std::make_shared<Created>(functions, *workload, operands->in(OperandFormat::kFp16));
  const Launch launch = [created](const dualgemm_args_t& args, cudaStream_t stream) {
    created->launch(args, stream);
  };
  const Rounding rounding = created->into_c() ? Rounding::kAnyOrder : Rounding::kFp16Products;
  if (exact)
    if (const std::string wrong = workload->verify(samples, launch, rounding); !wrong.empty())
      throw std::runtime_error("wrong: " + wrong);
  return launch;
}

}  // namespace

ContenderFunctions load_contender(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("--contender: ") + dlerror());
  ContenderFunctions out;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr) throw std::runtime_error("--contender: " + path + " does not define " + name);
  };
  find(&out.name, "contender_name");
  find(&out.is_exact, "contender_is_exact");
  find(&out.create, "contender_create");
  find(&out.multiply, "contender_multiply");
  find(&out.destroy, "contender_destroy");
  out.takes_one_product =
      reinterpret_cast<decltype(out.takes_one_product)>(dlsym(library, "contender_takes_one_product"));
  return out;
}

std::vector<Contender> prepare_contenders(const std::vector<ContenderFunctions>& all, Workload* workload,
                                          SharedOperands* operands, int samples) {
  std::vector<Contender> out;
  for (const ContenderFunctions& functions : all) {
    Contender contender{functions.name(), functions.is_exact() != 0};
    try {
      show_progress(shape_text(workload->shape()) + ": " + contender.name);
      contender.launch = prepare(functions, workload, operands, contender.exact, samples);
    } catch (const std::exception& error) {
      contender.error = error.what();
      cudaGetLastError();  // what follows starts without it
    }
    out.push_back(std::move(contender));
  }
  return out;
}

}  // namespace bench
