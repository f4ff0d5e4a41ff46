/* pair.pml -- the pipeline of a pair of CTAs (kernel/common/load.cuh; mma.cuh, epilogue.cuh, dual_gemm.cuh in
   kernel/sm100): CTA 0 leads. Two load roles in each CTA, one for the weights and one for the activations, fill two
   rings: a stage of the first holds the operands of a k-tile, a stage of the second the scale factors of SCALE_K_TILES
   k-tiles; where a tile ends in the middle of such a stage, the rest of it is not used. The leader's full barriers
   count the bytes of both CTAs, announced by its own two load roles; the scale factors of the weights are multicast
   into both. One mma role works on both CTAs; its commits arrive in both, each when it likes. The epilogues of both
   release the accumulators at the leader.

   Before: barriers are initialised, then a barrier of the cluster, then the load roles start, while the two set-up
   warps allocate the tensor memory of both CTAs together and meet mma and epilogue at a barrier of their CTA. After:
   roles drain what may still arrive, then a barrier of the cluster, then tensor memory is freed.

   The stages of both rings are numbered one after another, so are their barriers. The mma reads a stage of both CTAs at
   once, so it is one here, and its pieces are alike, so they are counted: operands are one from each load role of a
   CTA; scale factors one from its activations, and from its weights one for either CTA. Every piece lands when it likes
   and counts as one byte. An epilogue is one warp per CTA. k-tiles and fillings of a stage of scale factors are
   numbered from 1.

   Switches plant a bug each; all of them make the check fail:
     NO_RING_DRAIN NO_SCALE_DRAIN NO_ACC_DRAIN  a ring is not drained, or the accumulators are not
     NO_START_BARRIER    nobody waits for the other CTA's barriers to be initialised
     NO_ALLOC_WAIT       mma and epilogue do not wait for the allocation of tensor memory
     ALLOC_ALONE         a set-up warp does not wait for the other CTA's
     NO_END_BARRIER      tensor memory is freed without waiting for the other CTA
     FULL_COUNT=1        the full barriers of operands expect one load role
     SCALE_FULL_COUNT=1  those of scale factors
     ACC_EMPTY_COUNT=1   the leader waits for one epilogue of two
     OWN_BYTES           the leader announces its own bytes only
     OWN_SCALE_BYTES     ... of the scale factors of the weights: those that it brings, not what the other multicasts
     NO_EMPTY_WAIT NO_SCALE_WAIT  the load roles do not wait for the mma that read the stage
     NO_FIRST_WAITS=3    as many k-tiles are loaded without a wait, one more than there are stages
     NO_ACC_WAIT         the mma does not wait for the epilogues
     OWN_COMMIT          commits arrive in the leader only
     SCALES_FREED_EARLY  a stage of scale factors is committed after its first k-tile
     SCALES_KEPT         ... only after its last k-tile, also where the tile ends before
   With COPY_AHEAD the scale factors of the next k-tile are awaited, to be copied to tensor memory, before the mma of a
   k-tile are issued: right with two stages, and with one a deadlock. */
#ifndef FULL_COUNT
#define FULL_COUNT 2
#endif
#ifndef SCALE_FULL_COUNT
#define SCALE_FULL_COUNT 2
#endif
#ifndef ACC_EMPTY_COUNT
#define ACC_EMPTY_COUNT 2
#endif
#ifndef ACC_STAGES
#define ACC_STAGES 1
#endif
#ifndef TILES
#define TILES 2
#endif
#ifndef K_TILES
#define K_TILES 2
#endif
#ifndef STAGES
#define STAGES 2
#endif
#ifndef SCALE_STAGES
#define SCALE_STAGES 1
#endif
#ifndef SCALE_K_TILES
#define SCALE_K_TILES 1
#endif
#ifndef NO_FIRST_WAITS
#define NO_FIRST_WAITS 0
#endif
#define ALL_STAGES (STAGES + SCALE_STAGES)
#define STEPS (TILES * K_TILES)

#define FULL(s) (s)
#define SCALE_FULL(q) FULL(STAGES + (q))
#define ACC_EMPTY(a) (ALL_STAGES + (a))
#define EMPTY(c, s) (ALL_STAGES + ACC_STAGES + (c) * (ALL_STAGES + ACC_STAGES) + (s))
#define SCALE_EMPTY(c, q) EMPTY(c, STAGES + (q))
#define ACC_FULL(c, a) (EMPTY(c, ALL_STAGES) + (a))
#define BARRIERS (3 * (ALL_STAGES + ACC_STAGES))
#define OWNER(b) ((b) < EMPTY(1, 0) -> 0 : 1)
#define COUNT(b) \
  ((b) < STAGES -> FULL_COUNT : ((b) < ALL_STAGES -> SCALE_FULL_COUNT : ((b) < EMPTY(0, 0) -> ACC_EMPTY_COUNT : 1)))
#include "barrier.pml"

typedef Stage {
  byte holds;  /* k-tile, or filling of scale factors, that is arriving or has arrived */
  byte flying; /* pieces on their way */
  byte landed
}
Stage stage[ALL_STAGES];
#define PIECES(s) ((s) < STAGES -> 4 : 6)

byte issued;                  /* k-tiles whose mma have been issued */
byte multiplied;              /* ... and executed, in that order, at any time later */
byte fillings;                /* of scale factors that all their mma have read */
byte accumulated[ACC_STAGES]; /* tile in the accumulators, from 1 */
byte arriving[BARRIERS];      /* arrivals on their way */
byte read[2];                 /* tiles whose accumulators this CTA has read */
bool allocating[2]; /* set-up warps that have asked for tensor memory: both together get it */
#define ALLOCATED (allocating[0] && allocating[1])
byte running[2];              /* roles of a CTA that have not ended */

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
#define ACC_FREE(a, phase) true
#else
#define ACC_FREE(a, phase) wait(ACC_EMPTY(a), phase)
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
#ifdef NO_ACC_DRAIN
#define ACC_DRAINED(a, phase) true
#else
#define ACC_DRAINED(a, phase) drained(ACC_EMPTY(0), ACC_STAGES, a, phase)
#endif
#ifdef NO_START_BARRIER
#define STARTED(c) initialised[c]
#else
#define STARTED(c) (initialised[0] && initialised[1])
#endif
#ifdef NO_ALLOC_WAIT
#define SET_UP(c) STARTED(c)
#elif defined(ALLOC_ALONE)
#define SET_UP(c) allocating[c]
#else
#define SET_UP(c) ALLOCATED
#endif

/* What is read by k-tile k of a tile: the first and the last k-tile of a stage of scale factors. */
#define SCALES_BEGIN(k) ((k) % SCALE_K_TILES == 0)
#define SCALES_END(k) ((k) % SCALE_K_TILES == SCALE_K_TILES - 1 || (k) == K_TILES - 1)
#if defined(SCALES_FREED_EARLY)
#define SCALES_COMMIT(k) SCALES_BEGIN(k)
#elif defined(SCALES_KEPT)
#define SCALES_COMMIT(k) ((k) % SCALE_K_TILES == SCALE_K_TILES - 1)
#else
#define SCALES_COMMIT(k) SCALES_END(k)
#endif

/* Pieces on their way, to where nobody has still to read. The first of a new content ends what lay there. */
inline fly(s, value, pieces) {
  if
  :: stage[s].holds != value ->
     assert(stage[s].flying == 0);
     stage[s].holds = value;
     stage[s].landed = 0
  :: else
  fi;
  assert(value <= (s < STAGES -> multiplied + STAGES : fillings + SCALE_STAGES));
  stage[s].flying = stage[s].flying + pieces
}

/* Bytes that the leader announces for a piece that each CTA brings itself. */
#ifdef OWN_BYTES
#define OWN_AND_OTHER 1
#else
#define OWN_AND_OTHER 2
#endif
inline announce(cta, s, count) {
  if
  :: cta == 0 -> arrive(FULL(s), count)
  :: else
  fi
}

/* Of a k-tile first the scale factors, where it is the first of its stage. */
#define WEIGHTS 0
#define ACTIVATIONS 1
proctype Load(bit cta; bit part) {
  byte s, q, k, k_tile, filling;
  bit phase = 1, scale_phase = 1;
  bool scaled;
  do
  :: atomic {
       STARTED(cta) && k_tile < STEPS && SCALES_BEGIN(k) && !scaled && SCALES_FREE(cta, q, scale_phase) ->
       filling++;
       if
       :: part == WEIGHTS ->
#ifdef OWN_SCALE_BYTES
          announce(cta, STAGES + q, 2);
#else
          announce(cta, STAGES + q, 4);
#endif
          fly(STAGES + q, filling, 2)
       :: else ->
          announce(cta, STAGES + q, OWN_AND_OTHER);
          fly(STAGES + q, filling, 1)
       fi;
       advance(q, scale_phase, SCALE_STAGES);
       scaled = true
     }
  :: atomic {
       k_tile < STEPS && (!SCALES_BEGIN(k) || scaled) && (k_tile < NO_FIRST_WAITS || STAGE_FREE(cta, s, phase)) ->
       k_tile++;
       announce(cta, s, OWN_AND_OTHER);
       fly(s, k_tile, 1);
       advance(s, phase, STAGES);
       scaled = false;
       k++;
       if
       :: k == K_TILES -> k = 0
       :: else
       fi
     }
  :: atomic {
       k_tile == STEPS && RING_DRAINED(cta, s, phase) && SCALES_DRAINED(cta, q, scale_phase) ->
       running[cta]--;
       break
     }
  od
}

/* A piece lands when it likes and counts on the leader's barrier. */
proctype Copy(byte s) {
end:
  do
  :: atomic {
       stage[s].flying > 0 ->
       assert(!ended[0] && !ended[1]);
       stage[s].flying--;
       stage[s].landed++;
       land(FULL(s), 1)
     }
  od
}

/* The stage of the next k-tile, where that is another: the one after q. */
#ifdef COPY_AHEAD
#define NEXT_SCALES_READY(k, q, phase) \
  ((k) == K_TILES - 1 || !SCALES_BEGIN((k) + 1) || \
   wait(SCALE_FULL(((q) + 1) % SCALE_STAGES), ((q) + 1 == SCALE_STAGES -> 1 - (phase) : (phase))))
#else
#define NEXT_SCALES_READY(k, q, phase) true
#endif

proctype Mma() {
  byte s, q, a, k;
  bit phase, scale_phase, acc_phase = 1;
  do
  :: atomic {
       SET_UP(0) && issued < STEPS && (k > 0 || ACC_FREE(a, acc_phase)) && wait(FULL(s), phase) &&
       (!SCALES_BEGIN(k) || wait(SCALE_FULL(q), scale_phase)) && NEXT_SCALES_READY(k, q, scale_phase) ->
       issued++;
       advance(s, phase, STAGES);
       if
       :: SCALES_END(k) -> advance(q, scale_phase, SCALE_STAGES)
       :: else
       fi;
       k++;
       if
       :: k == K_TILES -> k = 0; advance(a, acc_phase, ACC_STAGES)
       :: else
       fi
     }
  :: atomic { issued == STEPS && ACC_DRAINED(a, acc_phase) -> running[0]--; break }
  od
}

inline commit(b, other) {
  arriving[b]++;
#ifndef OWN_COMMIT
  arriving[other]++
#endif
}

#define WHOLE(s, content) (stage[s].holds == (content) && stage[s].landed == PIECES(s))

proctype TensorCore() {
  byte k, s, q, tile;
end:
  do
  :: atomic {
       multiplied < issued ->
       assert(ALLOCATED);
       s = multiplied % STAGES;
       q = STAGES + fillings % SCALE_STAGES;
       k = multiplied % K_TILES;
       tile = multiplied / K_TILES;
       assert(WHOLE(s, multiplied + 1) && WHOLE(q, fillings + 1));
       assert(read[0] + ACC_STAGES > tile && read[1] + ACC_STAGES > tile);
       accumulated[tile % ACC_STAGES] = tile + 1;
       multiplied++;
       commit(EMPTY(0, s), EMPTY(1, s));
       if
       :: SCALES_COMMIT(k) -> commit(EMPTY(0, q), EMPTY(1, q))
       :: else
       fi;
       if
       :: SCALES_END(k) -> fillings++
       :: else
       fi;
       if
       :: k == K_TILES - 1 -> commit(ACC_FULL(0, tile % ACC_STAGES), ACC_FULL(1, tile % ACC_STAGES))
       :: else
       fi;
       k = 0; s = 0; q = 0; tile = 0
     }
  od
}

/* Arrivals through the asynchronous proxy or from the other CTA. */
proctype Arrival(byte b) {
end:
  do
  :: atomic { arriving[b] > 0 -> arriving[b]--; arrive(b, 0) }
  od
}

proctype Epilogue(bit cta) {
  byte a, tile;
  bit phase;
  do
  :: atomic {
       SET_UP(cta) && tile < TILES && wait(ACC_FULL(cta, a), phase) ->
       assert(ALLOCATED);
       assert(accumulated[a] == tile + 1 && multiplied >= (tile + 1) * K_TILES);
       read[cta]++;
       arriving[ACC_EMPTY(a)]++;
       advance(a, phase, ACC_STAGES);
       tile++
     }
  :: atomic { tile == TILES -> running[cta]--; break }
  od
}

/* The warp that sets up, and what all warps of a CTA do before and after their roles. */
proctype Cta(bit cta) {
  initialised[cta] = true;
  atomic { STARTED(cta); allocating[cta] = true }
#ifdef NO_END_BARRIER
  (running[cta] == 0);
#else
  (running[0] == 0 && running[1] == 0);
#endif
  atomic {
    assert(read[0] == TILES && read[1] == TILES); /* what is freed now is the tensor memory of both */
    ended[cta] = true
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. BARRIERS - 1) { pending[i] = COUNT(i) }
    running[0] = 4; /* two loads, mma, epilogue */
    running[1] = 3;
    for (i : 0 .. ALL_STAGES - 1) { run Copy(i) }
    for (i : ALL_STAGES .. BARRIERS - 1) { run Arrival(i) }
    run TensorCore(); run Mma();
    for (i : 0 .. 1) { run Load(i, WEIGHTS); run Load(i, ACTIVATIONS); run Epilogue(i); run Cta(i) }
  }
}
