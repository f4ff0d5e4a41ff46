// form.cuh -- one arithmetic instruction form against a table of inputs. UNARY, BINARY, TERNARY and
// PREDICATE define a kernel around one instruction and register it as a case under the instruction's own
// spelling. Operands are registers of 16 (h), 32 (r) or 64 (l) bits; the inputs are those of inputs(): every
// pattern of a single 16-bit operand, otherwise special values in all combinations, then random ones.
#pragma once

#include <tuple>
#include <utility>

#include "test/sim/conformance/device.cuh"

namespace conformance {

using Register_h = uint16_t;
using Register_r = uint32_t;
using Register_l = uint64_t;

constexpr uint32_t kElements = 65536;

// Returns operand `position` of `count` for element i of a form, the same for every form of this shape.
template <class T>
std::vector<T> inputs(int position, int count);

template <class Form, class D, class... Operands>
__global__ void form(D* d, const Operands*... x) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  d[i] = Form::apply(x[i]...);
}

constexpr uint32_t kBlock = 256;

// The kernel comes as an argument, so that this is compiled once for each combination of operands, of which
// there are few, and not once for each of hundreds of forms.
template <class D, class... Operands>
void run_form(const char* name, void (*kernel)(D*, const Operands*...), Recorder& out) {
  const auto run = [&]<size_t... I>(std::index_sequence<I...>) {
    constexpr int kOperands = sizeof...(I);
    const std::tuple<Buffer<Operands>...> operands{inputs<Operands>(int(I), kOperands)...};
    Buffer<D> d(kElements);
    launch({kElements / kBlock, kBlock}, kernel, d.data(), std::get<I>(operands).data()...);
    out.exact(name, d.host());
  };
  run(std::index_sequence_for<Operands...>{});
}

}  // namespace conformance

#define CONFORMANCE_JOIN_(a, b) a##b
#define CONFORMANCE_JOIN(a, b) CONFORMANCE_JOIN_(a, b)

// Registers the form of this number; after the label come the types of its result and its operands.
#define CONFORMANCE_CASE(id, label, ...)                                                                     \
  const conformance::Register CONFORMANCE_JOIN(register_, id)("alu/" label, [](conformance::Recorder& out) { \
    conformance::run_form("alu/" label, conformance::form<CONFORMANCE_JOIN(Form, id), __VA_ARGS__>, out);    \
  });
#define CONFORMANCE_FORM1(id, dr, ar, label, text)                                    \
  namespace {                                                                         \
  struct CONFORMANCE_JOIN(Form, id) {                                                 \
    using D = conformance::Register_##dr;                                             \
    static __device__ D apply(conformance::Register_##ar a) {                         \
      D d;                                                                            \
      asm volatile(text : "=" #dr(d) : #ar(a));                                       \
      return d;                                                                       \
    }                                                                                 \
  };                                                                                  \
  CONFORMANCE_CASE(id, label, conformance::Register_##dr, conformance::Register_##ar) \
  }
#define CONFORMANCE_FORM2(id, dr, ar, br, label, text)                                      \
  namespace {                                                                               \
  struct CONFORMANCE_JOIN(Form, id) {                                                       \
    using D = conformance::Register_##dr;                                                   \
    static __device__ D apply(conformance::Register_##ar a, conformance::Register_##br b) { \
      D d;                                                                                  \
      asm volatile(text : "=" #dr(d) : #ar(a), #br(b));                                     \
      return d;                                                                             \
    }                                                                                       \
  };                                                                                        \
  CONFORMANCE_CASE(id, label, conformance::Register_##dr, conformance::Register_##ar,       \
                   conformance::Register_##br)                                              \
  }
#define CONFORMANCE_FORM3(id, dr, ar, br, cr, label, text)                                \
  namespace {                                                                             \
  struct CONFORMANCE_JOIN(Form, id) {                                                     \
    using D = conformance::Register_##dr;                                                 \
    static __device__ D apply(conformance::Register_##ar a, conformance::Register_##br b, \
                              conformance::Register_##cr c) {                             \
      D d;                                                                                \
      asm volatile(text : "=" #dr(d) : #ar(a), #br(b), #cr(c));                           \
      return d;                                                                           \
    }                                                                                     \
  };                                                                                      \
  CONFORMANCE_CASE(id, label, conformance::Register_##dr, conformance::Register_##ar,     \
                   conformance::Register_##br, conformance::Register_##cr)                \
  }

#define UNARY(d, a, spelling) CONFORMANCE_FORM1(__COUNTER__, d, a, spelling, spelling " %0, %1;")
#define BINARY(d, a, b, spelling) CONFORMANCE_FORM2(__COUNTER__, d, a, b, spelling, spelling " %0, %1, %2;")
#define TERNARY(d, a, b, c, spelling) \
  CONFORMANCE_FORM3(__COUNTER__, d, a, b, c, spelling, spelling " %0, %1, %2, %3;")
// The halves of a predicate pair become bits 0 and 1 of a register.
#define PREDICATE(a, b, spelling)                                  \
  CONFORMANCE_FORM2(__COUNTER__, r, a, b, spelling,                \
                    "{ .reg .pred p, q; .reg .b32 x, y; " spelling \
                    " p|q, %1, %2; selp.u32 x, 1, 0, p; selp.u32 y, 2, 0, q; or.b32 %0, x, y; }")

// UNARIES(d, a, x, y) is UNARY(d, a, x) UNARY(d, a, y), for up to 64 instructions; the other plural macros do
// the same.
// EACH(M, x, y) is M(x) M(y), for up to 16, and lists may stand in M. A macro does not expand itself:
// _AGAIN names it for the next of a list, which one of many scans of the result then expands.
#define CONFORMANCE_PARENTHESES ()
#define CONFORMANCE_LIST(...) __VA_ARGS__
#define CONFORMANCE_CALL(m, ...) m(__VA_ARGS__)
#define CONFORMANCE_4(...) __VA_ARGS__
#define CONFORMANCE_16(...) CONFORMANCE_4(CONFORMANCE_4(CONFORMANCE_4(CONFORMANCE_4(__VA_ARGS__))))
#define CONFORMANCE_64(...) CONFORMANCE_16(CONFORMANCE_16(CONFORMANCE_16(CONFORMANCE_16(__VA_ARGS__))))
#define CONFORMANCE_SCAN(...) CONFORMANCE_64(CONFORMANCE_64(CONFORMANCE_64(CONFORMANCE_64(__VA_ARGS__))))
#define CONFORMANCE_FORMS(m, first, x, ...)      \
  CONFORMANCE_CALL(m, CONFORMANCE_LIST first, x) \
  __VA_OPT__(CONFORMANCE_FORMS_AGAIN CONFORMANCE_PARENTHESES(m, first, __VA_ARGS__))
#define CONFORMANCE_FORMS_AGAIN() CONFORMANCE_FORMS
#define UNARIES(d, a, ...) CONFORMANCE_SCAN(CONFORMANCE_FORMS(UNARY, (d, a), __VA_ARGS__))
#define BINARIES(d, a, b, ...) CONFORMANCE_SCAN(CONFORMANCE_FORMS(BINARY, (d, a, b), __VA_ARGS__))
#define TERNARIES(d, a, b, c, ...) CONFORMANCE_SCAN(CONFORMANCE_FORMS(TERNARY, (d, a, b, c), __VA_ARGS__))
#define PREDICATES(a, b, ...) CONFORMANCE_SCAN(CONFORMANCE_FORMS(PREDICATE, (a, b), __VA_ARGS__))
#define CONFORMANCE_EACH_4(...) __VA_ARGS__
#define CONFORMANCE_EACH_16(...) \
  CONFORMANCE_EACH_4(CONFORMANCE_EACH_4(CONFORMANCE_EACH_4(CONFORMANCE_EACH_4(__VA_ARGS__))))
#define CONFORMANCE_EACH_SCAN(...) \
  CONFORMANCE_EACH_16(CONFORMANCE_EACH_16(CONFORMANCE_EACH_16(CONFORMANCE_EACH_16(__VA_ARGS__))))
#define CONFORMANCE_EACH(m, x, ...) \
  m(x) __VA_OPT__(CONFORMANCE_EACH_AGAIN CONFORMANCE_PARENTHESES(m, __VA_ARGS__))
#define CONFORMANCE_EACH_AGAIN() CONFORMANCE_EACH
#define EACH(m, ...) CONFORMANCE_EACH_SCAN(CONFORMANCE_EACH(m, __VA_ARGS__))
