// compare.h -- is every output right? The examples compute each once more, in loops of double precision over
// what the quantised numbers are worth, and say how far from that it may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "example.h"

inline double dot(const float* a, const float* b, int k) {
  double sum = 0;
  for (int i = 0; i < k; ++i) sum += double(a[i]) * b[i];
  return sum;
}

// silu(a gate^T) * (a up^T), as plain loops have it: [m, n]. There are no alphas in this.
inline std::vector<float> gated(const float* a, const float* gate, const float* up, int m, int n, int k) {
  std::vector<float> out;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      const double g = dot(a + row * k, gate + column * k, k), u = dot(a + row * k, up + column * k, k);
      out.push_back(float(g / (1 + std::exp(-g)) * u));
    }
  }
  return out;
}

struct Comparison {
  long long outputs = 0, wrong = 0;
  void operator()(double got, double exact, double allowed) {
    ++outputs;
    if (std::fabs(got - exact) <= allowed) return;  // which NaN never is
    if (wrong++ == 0) std::printf("%g is not within %g of %g\n", got, allowed, exact);
  }
  int verdict(const char* bound) const {  // the program's exit status
    std::printf("%lld of %lld outputs beyond %s: %s\n", wrong, outputs, bound, wrong ? "WRONG" : "correct");
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  // An NVFP4 output of n columns: each element is at most a fifth of the largest of its 16 away, since the
  // codes 4 and 6 are 2 apart; and but for 1 of 100, which lie between two codes, they are what `exact`
  // becomes.
  void nvfp4(const std::vector<float>& got, const std::vector<float>& exact, int n, float scale) {
    const std::vector<float> rounded = Nvfp4(exact, int(exact.size()) / n, n, scale).values;
    int others = 0;
    for (size_t i = 0; i < exact.size(); ++i) {
      float largest = 0;
      for (size_t j = i / 16 * 16; j < i / 16 * 16 + 16; ++j)
        largest = std::max(largest, std::fabs(exact[j]));
      (*this)(got[i], exact[i], largest / 5);
      others += got[i] != rounded[i];
    }
    if (others * 100.0 <= exact.size()) return;
    std::printf("%d of %zu elements are not what they become in NVFP4\n", others, exact.size());
    wrong += others;
  }
};
