/* pair.pml -- the pipeline of a pair of CTAs (kernel/load.cuh, mma.cuh, epilogue.cuh, dual_gemm.cuh): CTA 0 leads. Two load
   threads in each CTA fill a ring; the leader's full barriers count the bytes of both CTAs, announced by its own two load
   threads; the scale factors of B are multicast into both. One mma thread works on both CTAs; its commits arrive in both,
   each when it likes. The epilogues of both release the accumulators at the leader. Roles end after draining, then a
   barrier of the cluster, then the tensor memory of both is freed.

   Operands of a k-tile are one copy per CTA, scale factors one multicast copy from each CTA to both: per stage and CTA
   three pieces land, each when it likes and counted as one byte. They are alike to the reader, so the model counts them.
   An epilogue is one warp per CTA. k-tiles are numbered from 1.

   Switches plant a bug each; all of them make the check fail:
     NO_DRAIN            roles end without waiting for arrivals still under way
     NO_START_BARRIER    nobody waits for the other CTA's barriers to be initialised
     NO_END_BARRIER      tensor memory is freed without waiting for the other CTA
     FULL_COUNT=1        a full barrier expects one load thread
     ACC_EMPTY_COUNT=1   the leader waits for one epilogue of two
     OWN_BYTES           the leader announces its own bytes only
     NO_EMPTY_WAIT       the load threads do not wait for the mma that read the stage
     NO_ACC_WAIT         the mma does not wait for the epilogues
     OWN_COMMIT          commits arrive in the leader only */
#ifndef FULL_COUNT
#define FULL_COUNT 2
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
#define STAGES 2
#define STEPS (TILES * K_TILES)

#define FULL(s) (s)
#define ACC_EMPTY(a) (STAGES + (a))
#define EMPTY(c, s) (STAGES + ACC_STAGES + (c) * STAGES + (s))
#define ACC_FULL(c, a) (3 * STAGES + ACC_STAGES + (c) * ACC_STAGES + (a))
#define BARRIERS (3 * STAGES + 3 * ACC_STAGES)
#define OWNER(b) ((b) < EMPTY(1, 0) -> 0 : ((b) < ACC_FULL(0, 0) -> 1 : ((b) < ACC_FULL(1, 0) -> 0 : 1)))
#define COUNT(b) ((b) < STAGES -> FULL_COUNT : ((b) < EMPTY(0, 0) -> ACC_EMPTY_COUNT : 1))
#include "barrier.pml"

#define PIECES 3
typedef Slot {
  byte k_tile; /* that is arriving or has arrived */
  byte flying; /* pieces on their way */
  byte landed
}
Slot slot[2 * STAGES];
#define SLOT(c, s) slot[(c) * STAGES + (s)]

byte issued;                  /* k-tiles whose mma have been issued */
byte multiplied;              /* ... and executed, in that order, at any time later */
byte accumulated[ACC_STAGES]; /* tile in the accumulators, from 1 */
byte arriving[BARRIERS];      /* arrivals on their way */
byte read[2];                 /* tiles whose accumulators this CTA has read */
byte running[2];              /* roles of a CTA that have not ended */

/* The first piece of a new k-tile ends what lay there. */
inline fly(c, s, value) {
  if
  :: SLOT(c, s).k_tile != value ->
     assert(SLOT(c, s).flying == 0);
     SLOT(c, s).k_tile = value;
     SLOT(c, s).landed = 0
  :: else
  fi;
  SLOT(c, s).flying++
}

/* Conditions that a switch takes away. */
#ifdef NO_EMPTY_WAIT
#define STAGE_FREE(c, s, phase) true
#else
#define STAGE_FREE(c, s, phase) wait(EMPTY(c, s), phase)
#endif
#ifdef NO_ACC_WAIT
#define ACC_FREE(a, phase) true
#else
#define ACC_FREE(a, phase) wait(ACC_EMPTY(a), phase)
#endif
#ifdef NO_DRAIN
#define DRAINED(condition) true
#else
#define DRAINED(condition) condition
#endif

/* part 0: operands, part 1: scale factors. */
proctype Load(bit cta; bit part) {
  byte s, k_tile = 1;
  bit phase = 1;
  (initialised[cta]);
#ifndef NO_START_BARRIER
  (initialised[1 - cta]);
#endif
  do
  :: atomic {
       k_tile <= STEPS && STAGE_FREE(cta, s, phase) ->
       if
#ifdef OWN_BYTES
       :: cta == 0 -> arrive(FULL(s), 1 + part)
#else
       :: cta == 0 -> arrive(FULL(s), 2 * (1 + part))
#endif
       :: else
       fi;
       if
       :: part == 0 -> fly(cta, s, k_tile)
       :: else -> fly(0, s, k_tile); fly(1, s, k_tile)
       fi;
       advance(s, phase, STAGES);
       k_tile++
     }
  :: k_tile > STEPS -> break
  od;
  /* With two stages the next position is the other stage, a round later where it is the first. */
  atomic {
    DRAINED(wait(EMPTY(cta, s), phase) && wait(EMPTY(cta, 1 - s), (s == 1 -> 1 - phase : phase)));
    running[cta]--
  }
}

/* A piece lands when it likes, where nobody has still to read, and counts on the leader's barrier. */
proctype Copy(bit cta; byte s) {
end:
  do
  :: atomic {
       SLOT(cta, s).flying > 0 ->
       assert(!ended[cta] && SLOT(cta, s).k_tile <= multiplied + STAGES);
       SLOT(cta, s).flying--;
       SLOT(cta, s).landed++;
       land(FULL(s), 1)
     }
  od
}

proctype Mma() {
  byte s, a, k;
  bit phase, acc_phase = 1;
  (initialised[0]);
#ifndef NO_START_BARRIER
  (initialised[1]);
#endif
  do
  :: atomic {
       issued < STEPS && (k > 0 || ACC_FREE(a, acc_phase)) && wait(FULL(s), phase) ->
       issued++;
       advance(s, phase, STAGES);
       k++;
       if
       :: k == K_TILES -> k = 0; advance(a, acc_phase, ACC_STAGES)
       :: else
       fi
     }
  :: issued == STEPS -> break
  od;
  do
  :: k < ACC_STAGES -> atomic { DRAINED(wait(ACC_EMPTY(a), acc_phase)); advance(a, acc_phase, ACC_STAGES); k++ }
  :: else -> break
  od;
  running[0]--
}

inline commit(b, other) {
  arriving[b]++;
#ifndef OWN_COMMIT
  arriving[other]++
#endif
}

proctype TensorCore() {
  byte i, s, tile;
end:
  do
  :: atomic {
       multiplied < issued ->
       multiplied++;
       s = (multiplied - 1) % STAGES;
       for (i : 0 .. 1) { assert(SLOT(i, s).k_tile == multiplied && SLOT(i, s).landed == PIECES) }
       tile = (multiplied - 1) / K_TILES;
       assert(read[0] + ACC_STAGES > tile && read[1] + ACC_STAGES > tile);
       accumulated[tile % ACC_STAGES] = tile + 1;
       commit(EMPTY(0, s), EMPTY(1, s));
       if
       :: multiplied % K_TILES == 0 -> commit(ACC_FULL(0, tile % ACC_STAGES), ACC_FULL(1, tile % ACC_STAGES))
       :: else
       fi;
       i = 0;
       s = 0;
       tile = 0
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
  (initialised[cta]);
  do
  :: atomic {
       tile < TILES && wait(ACC_FULL(cta, a), phase) ->
       assert(accumulated[a] == tile + 1 && multiplied >= (tile + 1) * K_TILES);
       read[cta]++;
       arriving[ACC_EMPTY(a)]++;
       advance(a, phase, ACC_STAGES);
       tile++
     }
  :: tile == TILES -> break
  od;
  running[cta]--
}

/* What all warps of a CTA do before and after their roles. */
proctype Cta(bit cta) {
  initialised[cta] = true;
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
    for (i : 0 .. STAGES - 1) { run Copy(0, i); run Copy(1, i) }
    for (i : STAGES .. BARRIERS - 1) { run Arrival(i) }
    run TensorCore(); run Mma();
    for (i : 0 .. 1) { run Load(i, 0); run Load(i, 1); run Epilogue(i); run Cta(i) }
  }
}
