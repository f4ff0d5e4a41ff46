// experts.cpp -- see experts.h.
#include "experts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/ref/formats.h"
#include "test/ref/nvfp4.h"
#include "verify.h"

namespace bench {
namespace {

// Whatever the sizes of the groups are, they have at most so many blocks of 128 rows.
size_t most_factors(const Shape& up) {
  const int64_t blocks = (up.m + 127 * std::min<int64_t>(up.problems(), up.m)) / 128;
  return static_cast<size_t>(blocks) * dualgemm_sf_size(128, up.k);
}

std::vector<float> random_weights(size_t count, Rng& random) {
  std::vector<float> out(count);
  for (float& weight : out) weight = static_cast<float>(random.unit());
  return out;
}

// Returns the choices, as rows of their experts: those of an expert in the order of the tokens.
std::vector<int32_t> sorted_choices(const std::vector<int32_t>& ids) {
  std::vector<int32_t> out(ids.size());
  std::iota(out.begin(), out.end(), 0);
  std::stable_sort(out.begin(), out.end(),
                   [&ids](int32_t a, int32_t b) { return ids[size_t(a)] < ids[size_t(b)]; });
  return out;
}

}  // namespace

Experts::Experts(const Layer& layer, Rng& random)
    : layer_(layer),
      tokens_(random_halves(layer.tokens, layer.up.k, DUALGEMM_DTYPE_BF16, random)),
      weights_(random_weights(layer.ids.size(), random)),
      x_(tokens_),
      a_(static_cast<size_t>(int64_t{layer.up.m} * layer.up.k / 2)),
      sfa_(most_factors(layer.up)),
      ids_(layer.ids),
      group_rows_(static_cast<size_t>(layer.up.problems()) + 1),
      row_token_(layer.ids.size()),
      token_row_(layer.ids.size()),
      topk_weights_(weights_),
      out_(static_cast<size_t>(int64_t{layer.tokens} * layer.up.k)) {}

void Experts::bind(Calls* calls) const {
  auto& [permute, quantize, up, down, combine] = *calls;
  dualgemm_moe_permute_args_init(&permute);
  permute.tokens = layer_.tokens, permute.top_k = layer_.top_k, permute.experts = layer_.up.problems();
  permute.topk_ids = ids_.data(), permute.group_rows = group_rows_.data();
  permute.row_token = row_token_.data(), permute.token_row = token_row_.data();
  dualgemm_quantize_args_init(&quantize);
  quantize.rows = layer_.up.m, quantize.k = layer_.up.k;
  quantize.group_mode = DUALGEMM_GROUP_OFFSETS, quantize.groups = layer_.up.problems();
  quantize.group_rows = group_rows_.data();
  quantize.x = x_.data(), quantize.q = a_.data(), quantize.sf = sfa_.data();
  quantize.row_index = row_token_.data(), quantize.x_rows = layer_.tokens;
  up.a = a_.data(), up.sfa = sfa_.data();
  up.group_rows = down.group_rows = group_rows_.data();
  dualgemm_moe_combine_args_init(&combine);
  combine.tokens = layer_.tokens, combine.top_k = layer_.top_k, combine.n = layer_.down.n;
  combine.c_dtype = combine.out_dtype = kOut;
  combine.token_row = token_row_.data(), combine.topk_weights = topk_weights_.data();
  combine.c = down.c, combine.out = out_.data();
}

void Experts::forget() const {
  const auto fill = [](void* data, size_t bytes) {
    check_cuda(cudaMemset(data, kUnwritten, bytes), "cudaMemset");
  };
  fill(a_.data(), a_.size());
  fill(sfa_.data(), sfa_.size());
  for (const auto* rows : {&group_rows_, &row_token_, &token_row_}) fill(rows->data(), rows->size() * 4);
  fill(out_.data(), out_.size() * 2);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

std::string Experts::verify_rows() const {
  const std::vector<int32_t> choices = sorted_choices(layer_.ids), group_rows = group_rows_.host(),
                             row_token = row_token_.host(), token_row = token_row_.host();
  int32_t end = 0;
  for (size_t group = 0; group < group_rows.size(); ++group) {
    if (group_rows[group] != end)
      return fmt::format("group_rows[{}] = {}, not {}", group, group_rows[group], end);
    if (group + 1 < group_rows.size()) end += layer_.up.rows(static_cast<int32_t>(group));
  }
  for (size_t row = 0; row < choices.size(); ++row) {
    const auto choice = static_cast<size_t>(choices[row]);
    if (row_token[row] != choices[row] / layer_.top_k || token_row[choice] != static_cast<int32_t>(row))
      return fmt::format("row {} is not that of choice {}", row, choice);
  }
  return {};
}

std::string Experts::verify_codes(const InputSet& up, int samples) const {
  const std::vector<int32_t> choices = sorted_choices(layer_.ids);
  const std::vector<uint8_t> codes = a_.host(), factors = sfa_.host();
  const int64_t k = layer_.up.k, blocks = k / ref::kBlock, all = int64_t{layer_.up.m} * blocks;
  const int64_t step = std::max<int64_t>(1, all / samples) | 1;
  int32_t group = 0;
  for (int64_t at = 0; at < all; at += step) {
    const int64_t row = at / blocks, block = at % blocks;
    while (row >= up.place(group + 1).row) ++group;
    double exact[ref::kBlock];
    uint8_t expected[ref::kBlock];
    for (int64_t i = 0; i < ref::kBlock; ++i) {
      const int64_t from = choices[size_t(row)] / layer_.top_k * k + block * ref::kBlock + i;
      exact[i] = ref::decode(ref::Format::kBf16,
                             tokens_[size_t(2 * from)] | uint32_t{tokens_[size_t(2 * from + 1)]} << 8);
    }
    const uint8_t factor = ref::quantise_block(exact, 1, expected);
    bool same = factors[up.place(group).sfa + ref::sf_offset(k, row - up.place(group).row, block)] == factor;
    for (int64_t i = 0; i < ref::kBlock; ++i)
      same &= ref::nibble(codes.data(), row * k + block * ref::kBlock + i) == expected[i];
    if (!same) return fmt::format("block {} of row {} is not that of its token", block, row);
  }
  return {};
}

std::string Experts::verify_sums(const std::vector<uint8_t>& c, int samples) const {
  const std::vector<int32_t> choices = sorted_choices(layer_.ids);
  std::vector<int64_t> row_of(choices.size());
  for (size_t row = 0; row < choices.size(); ++row) row_of[size_t(choices[row])] = static_cast<int64_t>(row);
  const std::vector<uint16_t> out = out_.host();
  const int64_t n = layer_.down.n, all = layer_.tokens * n;
  const int64_t step = std::max<int64_t>(1, all / samples) | 1;
  for (int64_t at = 0; at < all; at += step) {
    float sum = 0;
    for (int64_t slot = 0; slot < layer_.top_k; ++slot) {
      const auto choice = static_cast<size_t>(at / n * layer_.top_k + slot);
      const auto from = static_cast<size_t>(2 * (row_of[choice] * n + at % n));
      const double element = ref::decode(ref::Format::kFp16, c[from] | uint32_t{c[from + 1]} << 8);
      sum = std::fma(weights_[choice], static_cast<float>(element), sum);
    }
    const double got = ref::decode(ref::Format::kFp16, out[size_t(at)]);
    if (!ref::may_become(ref::Format::kFp16, sum, 0, got))
      return fmt::format("column {} of token {} = {}, expected {}", at % n, at / n, got, sum);
  }
  return {};
}

}  // namespace bench
