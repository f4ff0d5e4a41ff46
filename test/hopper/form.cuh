// form.cuh -- one arithmetic instruction form against a table of inputs. UNARY, BINARY, TERNARY and
// PREDICATE define a kernel around one instruction and register it as a case under the instruction's own
// spelling. Operands are registers of 16 (h), 32 (r) or 64 (l) bits; the inputs are those of inputs(): every
// pattern of a single 16-bit operand, otherwise special values in all combinations, then random ones.
#pragma once

#include "test/hopper/device.cuh"

namespace hopper {

using Register_h = uint16_t;
using Register_r = uint32_t;
using Register_l = uint64_t;

constexpr uint32_t kElements = 65536;

// Operand `position` of `count` for element i of a form, the same for every form of this shape.
template <class T>
std::vector<T> inputs(int position, int count);

template <class Form>
__global__ void form1(const typename Form::A* a, typename Form::D* d) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  d[i] = Form::apply(a[i]);
}
template <class Form>
__global__ void form2(const typename Form::A* a, const typename Form::B* b, typename Form::D* d) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  d[i] = Form::apply(a[i], b[i]);
}
template <class Form>
__global__ void form3(const typename Form::A* a, const typename Form::B* b, const typename Form::C* c,
                      typename Form::D* d) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  d[i] = Form::apply(a[i], b[i], c[i]);
}

constexpr uint32_t kBlock = 256;

template <class Form>
void run1(Recorder& out) {
  const Buffer<typename Form::A> a(inputs<typename Form::A>(0, 1));
  Buffer<typename Form::D> d(kElements);
  launch({kElements / kBlock, kBlock}, form1<Form>, a.data(), d.data());
  out.exact(Form::name(), d.host());
}
template <class Form>
void run2(Recorder& out) {
  const Buffer<typename Form::A> a(inputs<typename Form::A>(0, 2));
  const Buffer<typename Form::B> b(inputs<typename Form::B>(1, 2));
  Buffer<typename Form::D> d(kElements);
  launch({kElements / kBlock, kBlock}, form2<Form>, a.data(), b.data(), d.data());
  out.exact(Form::name(), d.host());
}
template <class Form>
void run3(Recorder& out) {
  const Buffer<typename Form::A> a(inputs<typename Form::A>(0, 3));
  const Buffer<typename Form::B> b(inputs<typename Form::B>(1, 3));
  const Buffer<typename Form::C> c(inputs<typename Form::C>(2, 3));
  Buffer<typename Form::D> d(kElements);
  launch({kElements / kBlock, kBlock}, form3<Form>, a.data(), b.data(), c.data(), d.data());
  out.exact(Form::name(), d.host());
}

}  // namespace hopper

#define HOPPER_JOIN_(a, b) a##b
#define HOPPER_JOIN(a, b) HOPPER_JOIN_(a, b)

#define HOPPER_FORM1(id, dr, ar, label, text)                                                           \
  namespace {                                                                                           \
  struct HOPPER_JOIN(Form, id) {                                                                        \
    using D = hopper::Register_##dr;                                                                    \
    using A = hopper::Register_##ar;                                                                    \
    static std::string name() { return "alu/" label; }                                                  \
    static __device__ D apply(A a) {                                                                    \
      D d;                                                                                              \
      asm volatile(text : "=" #dr(d) : #ar(a));                                                         \
      return d;                                                                                         \
    }                                                                                                   \
  };                                                                                                    \
  const hopper::Register HOPPER_JOIN(register_, id)("alu/" label, hopper::run1<HOPPER_JOIN(Form, id)>); \
  }
#define HOPPER_FORM2(id, dr, ar, br, label, text)                                                       \
  namespace {                                                                                           \
  struct HOPPER_JOIN(Form, id) {                                                                        \
    using D = hopper::Register_##dr;                                                                    \
    using A = hopper::Register_##ar;                                                                    \
    using B = hopper::Register_##br;                                                                    \
    static std::string name() { return "alu/" label; }                                                  \
    static __device__ D apply(A a, B b) {                                                               \
      D d;                                                                                              \
      asm volatile(text : "=" #dr(d) : #ar(a), #br(b));                                                 \
      return d;                                                                                         \
    }                                                                                                   \
  };                                                                                                    \
  const hopper::Register HOPPER_JOIN(register_, id)("alu/" label, hopper::run2<HOPPER_JOIN(Form, id)>); \
  }
#define HOPPER_FORM3(id, dr, ar, br, cr, label, text)                                                   \
  namespace {                                                                                           \
  struct HOPPER_JOIN(Form, id) {                                                                        \
    using D = hopper::Register_##dr;                                                                    \
    using A = hopper::Register_##ar;                                                                    \
    using B = hopper::Register_##br;                                                                    \
    using C = hopper::Register_##cr;                                                                    \
    static std::string name() { return "alu/" label; }                                                  \
    static __device__ D apply(A a, B b, C c) {                                                          \
      D d;                                                                                              \
      asm volatile(text : "=" #dr(d) : #ar(a), #br(b), #cr(c));                                         \
      return d;                                                                                         \
    }                                                                                                   \
  };                                                                                                    \
  const hopper::Register HOPPER_JOIN(register_, id)("alu/" label, hopper::run3<HOPPER_JOIN(Form, id)>); \
  }

#define UNARY(d, a, spelling) HOPPER_FORM1(__COUNTER__, d, a, spelling, spelling " %0, %1;")
#define BINARY(d, a, b, spelling) HOPPER_FORM2(__COUNTER__, d, a, b, spelling, spelling " %0, %1, %2;")
#define TERNARY(d, a, b, c, spelling) \
  HOPPER_FORM3(__COUNTER__, d, a, b, c, spelling, spelling " %0, %1, %2, %3;")
// Both halves of a predicate pair as bits 0 and 1 of a register.
#define PREDICATE(a, b, spelling)                             \
  HOPPER_FORM2(__COUNTER__, r, a, b, spelling,                \
               "{ .reg .pred p, q; .reg .b32 x, y; " spelling \
               " p|q, %1, %2; selp.u32 x, 1, 0, p; selp.u32 y, 2, 0, q; or.b32 %0, x, y; }")
