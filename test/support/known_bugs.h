// known_bugs.h -- the bugs that kernels are known to have had, by number. Three rooms plant them and name
// them by these numbers: mutation/ in the PTX of the shipping kernels, defects/ in small kernels,
// hopper/planted.cu in kernels of which compute-sanitizer gave its verdict on a GPU.
#pragma once

namespace dualgemm_test {

struct KnownBug {
  int number;
  const char* text;
};

// Bugs 1 to 48 are those of kernels of this kind, those from 49 on belong to the mechanisms of this family,
// and those from 64 on to any CUDA program.
inline constexpr int kFirstOfFamily = 49, kFirstOfAnyProgram = 64;

inline constexpr KnownBug kKnownBugs[] = {
    {1, "a stage is announced without its bytes"},
    {2, "fewer bytes are expected than are copied"},
    {3, "more bytes are expected than are copied"},
    {4, "the consumer starts with the wrong parity"},
    {5, "the producer starts with the wrong parity"},
    {6, "the phase bit is not flipped where the ring wraps"},
    {7, "consumer and producer disagree on the stage"},
    {8, "no wait for the full barrier"},
    {9, "no wait for the empty barrier, or one that orders nothing"},
    {10, "a commit at the wrong place, by the wrong thread or to the wrong barrier"},
    {11, "an arrival releases a stage that mma still read"},
    {12, "no proxy fence between ordinary stores and a copy of the same bytes"},
    {13, "the proxy fence stands in the issuer alone, before the barrier that joins the writers"},
    {14, "no barrier between the writers and the copy of what they wrote"},
    {15, "no tcgen05.fence::after_thread_sync after the wait"},
    {16, "no tcgen05.fence::before_thread_sync before the arrival"},
    {17, "the accumulators are released before wait::ld"},
    {18, "no wait::st before mma reads tensor memory"},
    {19, "a shared buffer is reused before a store has read it"},
    {20, "the CTA exits before a store has read its buffer"},
    {21, "a flag is raised when a store has only been read"},
    {22, "no barrier between mbarrier.init and the first use"},
    {23, "no fence after mbarrier.init for the other CTA"},
    {24, "the address of tensor memory is read without a barrier"},
    {25, "a column of scale factors is off"},
    {26, "scale factors are copied over columns that mma still read"},
    {27, "the swizzle of the descriptor is not that of the tensor map"},
    {28, "a step along K is too short"},
    {29, "the first mma of a tile accumulates"},
    {30, "a barrier counts one arrival too many or too few"},
    {31, "an arrival or a wait across CTAs has CTA scope"},
    {32, "a commit, an arrival or a copy reaches one CTA of those that wait for it"},
    {33, "the bytes of the other CTA are not waited for"},
    {34, "a CTA exits while another still reaches for its memory"},
    {35, "the accumulators do not take turns, or are not waited for"},
    {36, "a mailbox is written again before all have read it"},
    {37, "tensor memory is not given back, or not as it was allocated"},
    {38, "a warp reads lanes of tensor memory that are another warp's"},
    {39, "the elected lane goes on before the lanes of its warp have met"},
    {40, "the whole warp issues what one thread should"},
    {41, "a named or CTA barrier with the wrong count or form"},
    {42, "no wait for the grid or the stream that writes the inputs"},
    {43, "a tensor map is patched without a fence, or while a copy uses it"},
    {44, "the consumer drops the tail"},
    {45, "the instruction descriptor names the wrong scale factors"},
    {46, "setmaxnreg asks for more than the pool holds"},
    {47, "the tile of C aliases a stage that mma still read"},
    {48, "the bytes of a box are counted without its part past the edge"},

    {49, "partial sums are sent while the ring of their owner may be in use"},
    {50, "partial sums are added up before they need have arrived"},
    {51, "no proxy fence between the ring and the partial sums"},
    {52, "partial sums go to the wrong rank"},
    {53, "all slices of K send to the place of the first"},
    {54, "a scale stage is given back before the mma that read it"},
    {55, "the stages are not drained"},
    {56, "the scale stages are not drained"},
    {57, "a scale stage of two k-tiles is given back after the first"},
    {58, "the second of two overlapping pairs is read with the shared columns last"},
    {59, "both overlapping pairs are read the wrong way round"},
    {60, "scale factors are copied into a window without waiting for it"},
    {61, "no window is given back"},
    {62, "the windows are not drained"},
    {63, "no barrier between the table of groups and its readers"},

    {64, "no proxy fence between the reads of a stage and the copy that fills it again"},
    {65, "a live mbarrier is initialised again, or stored to"},
    {66, "no cluster barrier, or one that orders nothing, between a store to another CTA and its load"},
    {67, "the CTA that is stored to may not have started"},
    {68, "no wait for st.async"},
    {69, "a CTA expects no bytes of a multicast that reaches it"},
    {70, "no named barrier between a write and its readers"},
    {71, "no __syncwarp between the lanes of a warp"},
    {72, "all lanes write one word"},
    {73, "an aligned instruction that a part of the warp executes"},
    {74, "no __syncthreads between a write and its readers, or before the next write"},
    {75, "no wait for cp.async, or no barrier after it"},
    {76, "a flag without release, without acquire, with too small a scope, or none"},
    {77, "blocks count themselves without an atomic or without a fence"},
    {78, "two blocks write one word"},
    {79, "an access outside every allocation, or to freed memory"},
    {80, "memory is read that nobody wrote"},
};

}  // namespace dualgemm_test
