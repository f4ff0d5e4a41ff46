// moe_layer_test.cpp -- what takes rows by index, and a whole layer of experts, on the device and by the
// twins on the host, byte by byte: rows that are quantised by index against the same rows copied first,
// rows of 16 bits against copies one by one, and the five calls of a layer against launches for each
// token. Most of it is judged.
#include <algorithm>

#include "kernel/judged.h"
#include "kernel/moe.h"
#include "support/device_set.h"
#include "support/stream.h"

using namespace dualgemm_test;

namespace {

// A quantisation by index, and the same of a copy.
struct Gathered {
  Division division;
  int32_t k, x_rows;
  dualgemm_dtype_t dtype;
  dualgemm_scale_mode_t mode;
  int64_t ldx;
  std::vector<int32_t> index;
  Buffer x, copy;

  Gathered(const Division& d, int32_t k_, int32_t x_rows_, dualgemm_dtype_t type,
           dualgemm_scale_mode_t scales)
      : division(d),
        k(k_),
        x_rows(x_rows_),
        dtype(type),
        mode(scales),
        ldx(k + 16),
        x(static_cast<size_t>(x_rows * ldx) * bytes_of(type)),
        copy(static_cast<size_t>(d.rows * ldx) * bytes_of(type)) {
    Rng random(static_cast<uint64_t>(d.rows + k));
    fill(x, dtype, 10);
    fill(copy, dtype, 11);  // of rows that are not in use, too
    const auto row_bytes = static_cast<int64_t>(bytes_of(dtype)) * ldx;
    const int32_t outside[] = {-1, x_rows, INT32_MIN, INT32_MAX};
    for (int64_t row = 0; row < d.rows; ++row) {
      const bool inside = random.below(4) != 0;
      index.push_back(inside ? random.between(0, x_rows - 1) : outside[random.below(4)]);
      uint8_t* const to = copy.host() + row * row_bytes;
      if (inside) std::memcpy(to, x.host() + index.back() * row_bytes, static_cast<size_t>(row_bytes));
      else std::memset(to, 0, static_cast<size_t>(row_bytes));
    }
  }

  dualgemm_quantize_args_t args(const void* from, const int32_t* row_index, const int32_t* group_rows,
                                void* q, void* sf, float* scales) const {
    dualgemm_quantize_args_t args;
    dualgemm_quantize_args_init(&args);
    args.rows = division.rows, args.k = k, args.x_dtype = dtype, args.ldx = ldx;
    args.group_mode = division.mode, args.groups = division.groups();
    if (division.mode != DUALGEMM_GROUP_NONE) args.group_rows = group_rows;
    args.x = from, args.q = q, args.sf = sf;
    args.row_index = row_index, args.x_rows = row_index ? x_rows : 0;
    args.scale_mode = mode;
    if (mode == DUALGEMM_SCALE_GIVEN) args.global_scale = 3;
    if (mode == DUALGEMM_SCALE_TENSOR) args.tensor_scales = scales;
    if (mode == DUALGEMM_SCALE_ROW) args.row_scale = scales;
    return args;
  }
};

void check_gathered(const Gathered& g) {
  INFO(g.division.text() << ", k " << g.k << ", type " << g.dtype << ", mode " << g.mode);
  Buffer q(static_cast<size_t>(g.division.rows * g.k / 2)),
      scales(static_cast<size_t>(g.division.rows + 3) * 4),
      sf(static_cast<size_t>(g.division.blocks) * ref::sf_bytes(128, g.k));
  const DeviceArray<int32_t> index(g.index), group_rows(g.division.group_rows);
  const DeviceBuffer x(g.x), q_device(q), sf_device(sf), scales_device(scales);
  const auto on_device = g.args(x.data(), index.data(), group_rows.data(), q_device.data(), sf_device.data(),
                                scales_device.data<float>());
  check_status(dualgemm_quantize(&on_device, nullptr));
  Buffer q_host(q), sf_host(sf), scales_host(scales);
  const auto on_host = g.args(g.x.host(), g.index.data(), g.division.group_rows.data(), q_host.host(),
                              sf_host.host(), scales_host.data<float>());
  check_status(dualgemm_quantize_host_ex(&on_host));
  const auto of_copy =
      g.args(g.copy.host(), nullptr, g.division.group_rows.data(), q.host(), sf.host(), scales.data<float>());
  check_status(dualgemm_quantize_host_ex(&of_copy));
  CHECK(q_device.difference(q) == "");
  CHECK(sf_device.difference(sf) == "");
  CHECK(scales_device.difference(scales) == "");
  CHECK(difference(q_host, q) == "");
  CHECK(difference(sf_host, sf) == "");
  CHECK(difference(scales_host, scales) == "");
}

}  // namespace

TEST_CASE("quantise: rows by index are those of a copy", "[moe][quantize]") {
  Judged judged;
  const Division all[] = {batch_of(1), batch_of(133), offsets({33, 0, 129, 1}, 0, 0),
                          offsets({0, 64, 30}, 7, 20)};
  int32_t turn = 0;
  for (const dualgemm_scale_mode_t mode : {DUALGEMM_SCALE_GIVEN, DUALGEMM_SCALE_TENSOR, DUALGEMM_SCALE_ROW})
    for (const dualgemm_dtype_t dtype : kTypes)
      for (const Division& division : all) {
        if (turn++ % 2 == 0) check_gathered({division, 32 * (1 + turn % 5), turn % 40 + 1, dtype, mode});
      }
  CHECK(judged.findings() == "");
}

namespace {

// A copy by index of rows of 16 bits.
struct Copied {
  int32_t rows, k, x_rows;
  dualgemm_dtype_t dtype;
  bool compact;
  int64_t ldx, ld_out;
  Buffer index, x, out, out_after;

  Copied(int32_t rows_, int32_t k_, int32_t x_rows_, dualgemm_dtype_t type, bool without_gaps)
      : rows(rows_),
        k(k_),
        x_rows(x_rows_),
        dtype(type),
        compact(without_gaps),
        ldx(k + (compact ? 0 : 24)),
        ld_out(k + (compact ? 0 : 40)),
        index(static_cast<size_t>(rows) * 4),
        x(static_cast<size_t>(x_rows * ldx) * 2),
        out(static_cast<size_t>(rows * ld_out) * 2),
        out_after(out) {
    Rng random(static_cast<uint64_t>(rows + k));
    for (size_t i = 0; i < x.size(); ++i) x.host()[i] = static_cast<uint8_t>(random.below(256));
    for (size_t i = 0; i < out.size(); ++i) out.host()[i] = static_cast<uint8_t>(random.below(256));
    out_after = out;
    const int32_t outside[] = {-1, x_rows, INT32_MIN, INT32_MAX};
    for (int64_t row = 0; row < rows; ++row) {
      const bool inside = random.below(4) != 0;
      const int32_t from = inside ? random.between(0, x_rows - 1) : outside[random.below(4)];
      index.put(row, from);
      if (!inside) continue;
      for (int64_t column = 0; column < k; ++column)
        out_after.put(row * ld_out + column, x.get<uint16_t>(from * ldx + column));
    }
  }

  template <class Buffers>
  dualgemm_moe_gather_args_t args(Buffers& row_index, Buffers& from, Buffers& to) const {
    dualgemm_moe_gather_args_t args;
    dualgemm_moe_gather_args_init(&args);
    args.rows = rows, args.k = k, args.x_rows = x_rows, args.x_dtype = dtype;
    args.row_index = row_index.template data<int32_t>();
    args.x = from.data(), args.out = to.data();
    if (!compact) args.ldx = ldx, args.ld_out = ld_out;
    return args;
  }

  void check_device() const {
    const DeviceBuffer index_device(index), x_device(x), out_device(out);
    const dualgemm_moe_gather_args_t on_device = args(index_device, x_device, out_device);
    check_status(dualgemm_moe_gather(&on_device, nullptr));
    CHECK(out_device.difference(out_after) == "");
    CHECK(x_device.difference(x) == "");
    CHECK(index_device.difference(index) == "");
  }
};

void check_copied(Copied c) {
  INFO(c.rows << " rows of " << c.x_rows << ", k " << c.k << ", type " << c.dtype << ", compact "
              << c.compact);
  c.check_device();
  const dualgemm_moe_gather_args_t on_host = c.args(c.index, c.x, c.out);
  check_status(dualgemm_moe_gather_host(&on_host));
  CHECK(difference(c.out, c.out_after) == "");
}

}  // namespace

// A tile is 32 rows by 256 columns.
TEST_CASE("gather: rows by index are copied, and those that nobody owns stay", "[moe]") {
  Judged judged;
  const int32_t ks[] = {8, 64, 72, 248, 256, 264, 520}, all_rows[] = {1, 31, 32, 33, 100};
  int32_t turn = 0;
  for (const int32_t k : ks)
    for (const int32_t rows : all_rows) {
      check_copied({rows, k, turn % 11 + 1, kTypes[turn % 2], turn % 3 == 0});
      ++turn;
    }
  CHECK(judged.findings() == "");
}

// Four CTAs run on each of 148 SMs.
TEST_CASE("gather: a CTA has several tiles", "[moe]") {
  check_copied({20000, 264, 300, DUALGEMM_DTYPE_FP16, false});
}

TEST_CASE("gather: every schedule gives the same bits", "[moe]") {
  const Copied c(70, 328, 9, DUALGEMM_DTYPE_BF16, false);
  for (const char* const mode : kModes) {
    INFO(mode);
    const Scheduled scheduled(mode, 29);
    c.check_device();
  }
}

namespace {

// A whole layer of experts: permute, quantise or gather, gate and up to NVFP4, down, combine.
struct Layer {
  bool quantises;  // else A is bf16, as x
  bool by_launch;  // the down launch multiplies rows by the router's weights, else the sum does
  static constexpr int32_t kTokens = 11, kTopK = 3, kExperts = 4, kN = 96, kK = 64, kOut = 72,
                           kRows = kTokens * kTopK;
  DeviceArray<uint16_t> x;
  DeviceArray<float> topk_weights, row_weight, row_scale;
  DeviceArray<int32_t> ids, group_rows, row_token, token_row;
  DeviceArray<uint16_t> gathered;
  DeviceArray<uint8_t> a, sfa, b, sfb, hidden, sf_hidden, b_down, sfb_down;
  DeviceArray<uint16_t> c, out;

  Layer(bool in_nvfp4, bool weights_by_launch)
      : quantises(in_nvfp4),
        by_launch(weights_by_launch),
        x(some(kTokens * kK, 1)),
        topk_weights(all_weights()),
        row_weight(kRows),
        row_scale(kRows),
        ids(kRows, 0),
        group_rows(kExperts + 1),
        row_token(kRows),
        token_row(kRows),
        gathered(kRows * kK),
        a(kRows * kK / 2),
        sfa(ref::sf_bytes(128, kK) * kExperts),
        b(bytes(2 * kExperts * kN * kK / 2, 2)),
        sfb(2 * kExperts * ref::sf_bytes(kN, kK), 0x38),
        hidden(kRows * kN / 2),
        sf_hidden(ref::sf_bytes(128, kN) * kExperts),
        b_down(bytes(kExperts * kOut * kN / 2, 3)),
        sfb_down(kExperts * ref::sf_bytes(kOut, kN), 0x30),
        c(kRows * kOut),
        out(kTokens * kOut) {}

  // The two launches of some rows in `a`; whose experts they are is left to the caller.
  dualgemm_args_t up_args(int32_t rows) const {
    dualgemm_args_t up;
    dualgemm_args_init(&up);
    up.m = rows, up.n = kN, up.k = kK;
    if (quantises) up.a = a.data(), up.sfa = sfa.data(), up.a_row_scale = row_scale.data();
    else up.a = gathered.data(), up.a_dtype = DUALGEMM_DTYPE_BF16;
    up.b1 = b.data(), up.b2 = b.data() + b.size() / 2;
    up.sfb1 = sfb.data(), up.sfb2 = sfb.data() + sfb.size() / 2;
    up.alpha1 = up.alpha2 = 0.0625f;
    up.c = hidden.data(), up.sfc = sf_hidden.data(), up.c_dtype = DUALGEMM_DTYPE_NVFP4;
    return up;
  }
  dualgemm_args_t down_args(int32_t rows) const {
    dualgemm_args_t down;
    dualgemm_args_init(&down);
    down.products = 1;
    down.m = rows, down.n = kOut, down.k = kN;
    down.a = hidden.data(), down.sfa = sf_hidden.data();
    down.b1 = b_down.data(), down.sfb1 = sfb_down.data();
    if (by_launch) down.c_row_scale = row_weight.data();
    down.c = c.data();
    return down;
  }

  void enqueue_a(uint32_t flags, cudaStream_t stream) const {
    if (!quantises) {
      dualgemm_moe_gather_args_t gather;
      dualgemm_moe_gather_args_init(&gather);
      gather.flags = flags;
      gather.rows = kRows, gather.k = kK, gather.x_rows = kTokens;
      gather.row_index = row_token.data(), gather.x = x.data(), gather.out = gathered.data();
      check_status(dualgemm_moe_gather(&gather, stream));
      return;
    }
    dualgemm_quantize_args_t quantize;
    dualgemm_quantize_args_init(&quantize);
    quantize.flags = flags;
    quantize.rows = kRows, quantize.k = kK;
    quantize.group_mode = DUALGEMM_GROUP_OFFSETS, quantize.groups = kExperts;
    quantize.group_rows = group_rows.data();
    quantize.x = x.data(), quantize.q = a.data(), quantize.sf = sfa.data();
    quantize.scale_mode = DUALGEMM_SCALE_ROW, quantize.row_scale = row_scale.data();
    quantize.row_index = row_token.data(), quantize.x_rows = kTokens;
    check_status(dualgemm_quantize(&quantize, stream));
  }

  void enqueue(uint32_t flags, cudaStream_t stream) const {
    dualgemm_moe_permute_args_t permute;
    dualgemm_moe_permute_args_init(&permute);
    permute.flags = flags & DUALGEMM_FLAG_PDL;
    permute.tokens = kTokens, permute.top_k = kTopK, permute.experts = kExperts;
    permute.topk_ids = ids.data(), permute.group_rows = group_rows.data();
    permute.row_token = row_token.data(), permute.token_row = token_row.data();
    if (by_launch) permute.topk_weights = topk_weights.data(), permute.row_weight = row_weight.data();
    check_status(dualgemm_moe_permute(&permute, stream));

    enqueue_a(flags & DUALGEMM_FLAG_PDL, stream);

    for (dualgemm_args_t args : {up_args(kRows), down_args(kRows)}) {
      args.flags = flags | DUALGEMM_FLAG_BATCH_INVARIANT;
      args.group_mode = DUALGEMM_GROUP_OFFSETS, args.groups = kExperts, args.group_rows = group_rows.data();
      check_status(dualgemm_launch_ex(&args, stream));
    }

    dualgemm_moe_combine_args_t combine;
    dualgemm_moe_combine_args_init(&combine);
    combine.flags = flags & DUALGEMM_FLAG_PDL;
    combine.tokens = kTokens, combine.top_k = kTopK, combine.n = kOut;
    combine.token_row = token_row.data(), combine.c = c.data(), combine.out = out.data();
    if (!by_launch) combine.topk_weights = topk_weights.data();
    check_status(dualgemm_moe_combine(&combine, stream));
  }

  void quantise_token(int32_t token) const {
    dualgemm_quantize_args_t quantize;
    dualgemm_quantize_args_init(&quantize);
    quantize.rows = 1, quantize.k = kK;
    quantize.x = x.data() + token * kK, quantize.q = a.data(), quantize.sf = sfa.data();
    quantize.scale_mode = DUALGEMM_SCALE_ROW, quantize.row_scale = row_scale.data();
    check_status(dualgemm_quantize(&quantize, nullptr));
  }

  // The sums that token by token, expert by expert, the launch without groups gives.
  std::vector<uint16_t> token_by_token(const std::vector<int32_t>& choices) const;

  static std::vector<uint16_t> some(size_t count, uint64_t seed) {
    Rng random(seed);
    std::vector<uint16_t> values(count);
    for (uint16_t& bits : values)
      bits = static_cast<uint16_t>(random.below(2) << 15 | (0x3F00 + random.below(256)));
    return values;
  }
  // A token's differ, and most are no power of two.
  static std::vector<float> all_weights() {
    std::vector<float> values(kRows);
    for (size_t i = 0; i < kRows; ++i) values[i] = 0.07f * static_cast<float>(1 + i % 10);
    return values;
  }
  static std::vector<uint8_t> bytes(size_t count, uint64_t seed) {
    Rng random(seed);
    std::vector<uint8_t> values(count);
    for (uint8_t& value : values) value = static_cast<uint8_t>(random.below(256));
    return values;
  }
};

std::vector<uint16_t> Layer::token_by_token(const std::vector<int32_t>& choices) const {
  std::vector<uint16_t> all(kTokens * kOut);
  const std::vector<float> weights = all_weights();
  for (int32_t token = 0; token < kTokens; ++token) {
    std::vector<float> sums(kOut, 0.0f);
    for (int32_t slot = 0; slot < kTopK; ++slot) {
      const auto choice = static_cast<size_t>(token * kTopK + slot);
      const int32_t expert = choices[choice];
      if (expert < 0 || expert >= kExperts) continue;
      check_cuda(cudaMemcpy(row_weight.data(), &weights[choice], sizeof(float), cudaMemcpyHostToDevice),
                 "a weight");
      dualgemm_args_t up = up_args(1), down = down_args(1);
      if (quantises) quantise_token(token);
      else up.a = x.data() + token * kK;
      const auto of_expert = [expert](const void* start, size_t bytes) {
        return static_cast<const uint8_t*>(start) + static_cast<size_t>(expert) * bytes;
      };
      for (const void** weights : {&up.b1, &up.b2}) *weights = of_expert(*weights, size_t{kN} * kK / 2);
      for (const void** factors : {&up.sfb1, &up.sfb2}) *factors = of_expert(*factors, ref::sf_bytes(kN, kK));
      down.b1 = of_expert(down.b1, size_t{kOut} * kN / 2);
      down.sfb1 = of_expert(down.sfb1, ref::sf_bytes(kOut, kN));
      for (dualgemm_args_t* args : {&up, &down}) {
        args->flags = DUALGEMM_FLAG_BATCH_INVARIANT;
        check_status(dualgemm_launch_ex(args, nullptr));
      }
      const std::vector<uint16_t> got = c.host();
      for (size_t i = 0; i < kOut; ++i)
        sums[i] = multiply_add(by_launch ? 1 : weights[choice], static_cast<float>(ref::bf16_decode(got[i])),
                               sums[i]);
    }
    for (size_t i = 0; i < kOut; ++i)
      all[static_cast<size_t>(token) * kOut + i] = nearest(DUALGEMM_DTYPE_BF16, sums[i]);
  }
  return all;
}

void check_layer(bool in_nvfp4, bool weights_by_launch) {
  INFO("weights by the down launch: " << weights_by_launch);
  const Layer layer(in_nvfp4, weights_by_launch);
  const Stream stream;
  layer.enqueue(0, stream.get());  // this loads the kernels, as dualgemm_init loads all
  check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  const Captured graph(
      [&](cudaStream_t stream) { layer.enqueue(DUALGEMM_FLAG_PDL | DUALGEMM_FLAG_STATIC_WEIGHTS, stream); });
  for (const Kind kind : {Kind::kAll, Kind::kSome, Kind::kNone}) {
    INFO(static_cast<int>(kind));
    const Routing r = routing(Layer::kTokens, Layer::kTopK, Layer::kExperts, kind, 12);
    check_cuda(cudaMemcpy(layer.ids.data(), r.ids.data(), r.ids.size() * 4, cudaMemcpyHostToDevice), "ids");
    check_cuda(cudaMemset(layer.out.data(), 0xEE, layer.out.size() * 2), "cudaMemset");
    Judged judged;
    graph.replay();
    CHECK(judged.findings() == "");
    const std::vector<uint16_t> out = layer.out.host();
    CHECK((kind == Kind::kNone) ==
          (std::count(out.begin(), out.end(), 0) == static_cast<int64_t>(out.size())));
    CHECK((out == layer.token_by_token(r.ids)));
  }
}

}  // namespace

TEST_CASE("the five calls of a layer are captured into one graph, and replay with the choices they then find",
          "[moe]") {
  for (const bool weights_by_launch : {false, true}) check_layer(true, weights_by_launch);
}

TEST_CASE("the five calls of a layer take an A of 16 bits on Hopper", "[moe]") {
  dualgemm_device_t device;
  dualgemm_device_init(&device);
  check_status(dualgemm_current_device(&device));
  if (device.cc_major != 9) return;
  for (const bool weights_by_launch : {false, true}) check_layer(false, weights_by_launch);
}
