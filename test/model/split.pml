/* split.pml -- a tile whose K is split over a cluster of two CTAs (kernel/common/load.cuh; mma.cuh, reduce.cuh,
   dual_gemm.cuh in kernel/sm100): each runs its own rings over its part of K; after a meeting of the cluster the
   epilogue of each sends partial sums into the memory of the rings of the other, counted on a barrier there; when all
   that a CTA expects has come, it adds up and ends on its own. A CTA without k-tiles commits its accumulators at once
   and sends nothing.

   The rings are as in pair.pml, the stages of both numbered one after another: operands of a k-tile, and scale factors
   of one. Into each stage the two load roles bring a piece each, which counts as one byte. Each CTA owns half of the
   columns. Its partial sums of the other half are two stores (st.async) of one byte each, which land when they like.
   k-tiles are numbered from 1. exchange.pml has the exchange alone, among more CTAs.

   Switches plant a bug each; all of them make the check fail:
     NO_RING_DRAIN NO_SCALE_DRAIN  the load roles end without waiting for arrivals still under way, of one ring
     NO_MEETING          partial sums are sent while the other CTA's rings may be in use
     NO_SUMS_WAIT        sums are taken without waiting for the other CTA's part
     FEW_BYTES           a CTA expects one store of the two
     EMPTY_BYTES         a CTA expects stores of one without k-tiles, too; with STEPS_0=0
     FULL_COUNT=1        a full barrier expects one load role
     NO_EMPTY_WAIT NO_SCALE_WAIT   the load roles do not wait for the mma that read the stage
     NO_ACC_WAIT         partial sums are sent without waiting for the mma */
#ifndef FULL_COUNT
#define FULL_COUNT 2
#endif
#ifndef STEPS_0
#define STEPS_0 3
#endif
#ifndef STEPS_1
#define STEPS_1 3
#endif
#define STEPS(c) ((c) == 0 -> STEPS_0 : STEPS_1)
#ifndef STAGES
#define STAGES 2
#endif
#ifndef SCALE_STAGES
#define SCALE_STAGES 1
#endif
#define ALL_STAGES (STAGES + SCALE_STAGES)

#define FULL(c, s) ((c) * BARRIERS_PER_CTA + (s))
#define SCALE_FULL(c, q) FULL(c, STAGES + (q))
#define EMPTY(c, s) ((c) * BARRIERS_PER_CTA + ALL_STAGES + (s))
#define SCALE_EMPTY(c, q) EMPTY(c, STAGES + (q))
#define ACC_FULL(c) ((c) * BARRIERS_PER_CTA + 2 * ALL_STAGES)
#define SUMS_FULL(c) (ACC_FULL(c) + 1)
#define BARRIERS_PER_CTA (2 * ALL_STAGES + 2)
#define BARRIERS (2 * BARRIERS_PER_CTA)
#define OWNER(b) ((b) / BARRIERS_PER_CTA)
#define COUNT(b) ((b) % BARRIERS_PER_CTA < ALL_STAGES -> FULL_COUNT : 1)
#include "barrier.pml"

typedef Stage {
  byte k_tile; /* that is arriving or has arrived */
  byte flying; /* pieces on their way */
  byte landed
}
Stage stage[2 * ALL_STAGES];
#define STAGE(c, s) stage[(c) * ALL_STAGES + (s)]
#define PIECES 2

byte issued[2];     /* k-tiles whose mma have been issued */
byte multiplied[2]; /* ... and executed */
bool committed[2];  /* the accumulators of a CTA, once all its mma are issued */
byte arriving[BARRIERS];
byte running[2];    /* roles of a CTA that have not ended */
byte met;           /* CTAs that have arrived at the barrier of the cluster */
byte sending[2];    /* stores on their way to a CTA */
byte sums[2];       /* ... and arrived */
#define STORES 2

/* Conditions that a switch takes away. */
#ifdef NO_EMPTY_WAIT
#define STAGE_FREE(c, s, phase) true
#else
#define STAGE_FREE(c, s, phase) wait(EMPTY(c, s), phase)
#endif
#ifdef NO_SCALE_WAIT
#define SCALES_FREE(c, q, phase) true
#else
#define SCALES_FREE(c, q, phase) wait(SCALE_EMPTY(c, q), phase)
#endif
#ifdef NO_ACC_WAIT
#define ACC_READY(c) true
#else
#define ACC_READY(c) wait(ACC_FULL(c), 0)
#endif
#ifdef NO_RING_DRAIN
#define RING_DRAINED(c, s, phase) true
#else
#define RING_DRAINED(c, s, phase) drained(EMPTY(c, 0), STAGES, s, phase)
#endif
#ifdef NO_SCALE_DRAIN
#define SCALES_DRAINED(c, q, phase) true
#else
#define SCALES_DRAINED(c, q, phase) drained(SCALE_EMPTY(c, 0), SCALE_STAGES, q, phase)
#endif
#ifdef NO_MEETING
#define ALL_MET true
#else
#define ALL_MET met == 2
#endif
#ifdef NO_SUMS_WAIT
#define SUMS_THERE(c) true
#else
#define SUMS_THERE(c) wait(SUMS_FULL(c), 0)
#endif
#define SENT_TO(c) (STEPS(1 - (c)) > 0 -> STORES : 0)
#if defined(FEW_BYTES)
#define EXPECTED(c) (SENT_TO(c) > 0 -> 1 : 0)
#elif defined(EMPTY_BYTES)
#define EXPECTED(c) STORES
#else
#define EXPECTED(c) SENT_TO(c)
#endif

inline fly(c, s, value) {
  if
  :: STAGE(c, s).k_tile != value ->
     assert(STAGE(c, s).flying == 0);
     STAGE(c, s).k_tile = value;
     STAGE(c, s).landed = 0
  :: else
  fi;
  STAGE(c, s).flying++
}

/* Two of them in each CTA. Of a k-tile first the scale factors. */
proctype Load(bit cta) {
  byte s, q, k_tile, filling;
  bit phase = 1, scale_phase = 1;
  do
  :: atomic {
       filling == k_tile && k_tile < STEPS(cta) && SCALES_FREE(cta, q, scale_phase) ->
       filling++;
       arrive(SCALE_FULL(cta, q), 1);
       fly(cta, STAGES + q, filling);
       advance(q, scale_phase, SCALE_STAGES)
     }
  :: atomic {
       filling > k_tile && STAGE_FREE(cta, s, phase) ->
       k_tile++;
       arrive(FULL(cta, s), 1);
       fly(cta, s, k_tile);
       advance(s, phase, STAGES)
     }
  :: atomic {
       k_tile == STEPS(cta) && RING_DRAINED(cta, s, phase) && SCALES_DRAINED(cta, q, scale_phase) ->
       running[cta]--;
       break
     }
  od
}

/* A piece lands when it likes, where nobody has still to read and no partial sum lies. */
proctype Copy(bit cta; byte s) {
end:
  do
  :: atomic {
       STAGE(cta, s).flying > 0 ->
       assert(!ended[cta] && STAGE(cta, s).k_tile <= multiplied[cta] + (s < STAGES -> STAGES : SCALE_STAGES));
       assert(sums[cta] == 0);
       STAGE(cta, s).flying--;
       STAGE(cta, s).landed++;
       land(FULL(cta, s), 1)
     }
  od
}

proctype Mma(bit cta) {
  byte s, q;
  bit phase, scale_phase;
  do
  :: atomic {
       issued[cta] < STEPS(cta) && wait(SCALE_FULL(cta, q), scale_phase) && wait(FULL(cta, s), phase) ->
       issued[cta]++;
       advance(s, phase, STAGES);
       advance(q, scale_phase, SCALE_STAGES)
     }
  :: atomic {
       issued[cta] == STEPS(cta) ->
       committed[cta] = true;
       running[cta]--;
       break
     }
  od
}

inline use(s) {
  assert(STAGE(cta, s).k_tile == multiplied[cta] && STAGE(cta, s).landed == PIECES);
  arriving[EMPTY(cta, s)]++
}

proctype TensorCore(bit cta) {
  byte s, q;
  bool final;
end:
  do
  :: atomic {
       multiplied[cta] < issued[cta] ->
       s = multiplied[cta] % STAGES;
       q = STAGES + multiplied[cta] % SCALE_STAGES;
       multiplied[cta]++;
       use(s);
       use(q);
       assert(sums[cta] == 0);
       s = 0; q = 0
     }
  :: atomic {
       committed[cta] && !final && multiplied[cta] == STEPS(cta) ->
       arriving[ACC_FULL(cta)]++;
       final = true
     }
  od
}

/* Arrivals of commits. */
proctype Arrival(byte b) {
end:
  do
  :: atomic { arriving[b] > 0 -> arriving[b]--; arrive(b, 0) }
  od
}

/* A partial sum on its way to the other CTA. */
proctype Store(bit to) {
end:
  do
  :: atomic {
       sending[to] > 0 ->
       assert(multiplied[to] == STEPS(to)); /* the ring is no longer read, so nothing is on its way into it */
       sending[to]--;
       sums[to]++;
       land(SUMS_FULL(to), 1)
     }
  od
}

/* The epilogue, and what all warps of a CTA do together after their roles. */
proctype Cta(bit cta) {
  atomic { arrive(SUMS_FULL(cta), EXPECTED(cta)) }
  atomic { ACC_READY(cta); running[cta]-- }
  atomic { running[cta] == 0; met++ }
  atomic {
    ALL_MET;
    if
    :: STEPS(cta) > 0 ->
       assert(multiplied[cta] == STEPS(cta)); /* what is sent is final */
       sending[1 - cta] = STORES
    :: else
    fi
  }
  atomic {
    SUMS_THERE(cta);
    assert(sums[cta] == SENT_TO(cta));
    ended[cta] = true
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. BARRIERS - 1) { pending[i] = COUNT(i) }
    for (i : 0 .. 1) {
      initialised[i] = true;
      running[i] = 4; /* two loads, mma, epilogue */
      run Load(i); run Load(i); run Mma(i); run TensorCore(i); run Cta(i);
      run Store(i); run Arrival(ACC_FULL(i))
    }
    for (i : 0 .. ALL_STAGES - 1) { run Copy(0, i); run Copy(1, i); run Arrival(EMPTY(0, i)); run Arrival(EMPTY(1, i)) }
  }
}
