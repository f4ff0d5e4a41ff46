/* overlap.pml -- accumulators that share columns of tensor memory, and scale factors that pass through windows
   (mma.cuh, epilogue.cuh, tmem_map.cuh in kernel/sm100). A pair of CTAs: the mma thread of its leader, the tensor core
   and two epilogue warps in each CTA, one for each half of the columns. The rings are pair.pml's; here operands and
   scale factors are always there.

   Columns are counted in chunks of 32. Buffer 0 has chunks 0..7, gate and up, buffer 1 chunks 6..13; both have 6 and 7,
   the upper half of up in buffer 0 and the lower half of gate in buffer 1. One acc_full and one acc_empty serve both:
   the buffer is the phase. A warp reads first what the buffers share, and releases it; both products of a chunk go
   together.

   The scale factors of each step pass through a window: a copy into it, then the mma that reads it. The tensor core
   executes mma in the order of issue, copies too, and no mma before the copies issued earlier; but it may execute a
   copy while an earlier mma still reads. A commit follows the mma and copies issued earlier and arrives when it
   likes. Tiles are numbered from 1.

   Switches plant a bug each; all of them make the check fail:
     ACC_STAGES=2        a pair of barriers for each buffer
     NO_ACC_WAIT         the mma does not wait for the epilogue
     ACC_EMPTY_COUNT=2   ... for its own CTA's only
     RELEASED_EARLY      a warp releases before it reads
     ONE_ORDER           a warp reads buffer 1 in the order of buffer 0
     NO_WINDOW_WAIT      nobody waits before the copy into a window
     WINDOW_COMMIT_EARLY the window is committed after the copy, before the mma that reads it
     WINDOW_MULTICAST    its commit arrives in the other CTA, too, where nobody waits for it
     NO_WINDOW_DRAIN NO_ACC_DRAIN  the mma thread ends without waiting for what may still arrive

   With DISJOINT, buffers that share nothing, ACC_STAGES=2 is right. */
#ifndef ACC_STAGES
#define ACC_STAGES 1
#endif
#ifndef ACC_EMPTY_COUNT
#define ACC_EMPTY_COUNT 4
#endif
#ifndef TILES
#define TILES 4
#endif
#ifndef K_STEPS
#define K_STEPS 4 /* of a tile, a window each */
#endif
#ifndef WINDOWS
#define WINDOWS 2
#endif
#define STEPS (TILES * K_STEPS)

#define ACC_EMPTY(a) (a)
#define WINDOW_FREE(w) (ACC_STAGES + (w))
#define ACC_FULL(c, a) (ACC_STAGES + WINDOWS + (c) * ACC_STAGES + (a))
#define OTHER_WINDOW_FREE(w) (3 * ACC_STAGES + WINDOWS + (w))
#define BARRIERS (3 * ACC_STAGES + 2 * WINDOWS)
#define OWNER(b) ((b) < ACC_FULL(1, 0) -> 0 : 1)
#define COUNT(b) ((b) < ACC_STAGES -> ACC_EMPTY_COUNT : 1)
#include "barrier.pml"

#ifdef DISJOINT
#define SHARED 0
#else
#define SHARED 2
#endif
#define CHUNKS (16 - SHARED)
#define CHUNK(cta, buffer, i) ((cta) * CHUNKS + (buffer) * (8 - SHARED) + (i))

byte unread[2 * CHUNKS]; /* tile whose sums nobody has read, of the columns of a chunk */
byte issued;             /* steps whose copy and mma have been issued */
byte copied;             /* ... and whose copy has been executed */
byte multiplied;         /* ... and whose mma */
byte arriving[BARRIERS]; /* arrivals on their way */
byte running = 5;        /* roles that have not ended */

/* Conditions that a switch takes away. */
#ifdef NO_ACC_WAIT
#define ACC_FREE(a, phase) true
#else
#define ACC_FREE(a, phase) wait(ACC_EMPTY(a), phase)
#endif
#ifdef NO_WINDOW_WAIT
#define WINDOW_READ(w, phase) true
#else
#define WINDOW_READ(w, phase) wait(WINDOW_FREE(w), phase)
#endif
#ifdef NO_WINDOW_DRAIN
#define WINDOW_DRAINS 0
#else
#define WINDOW_DRAINS WINDOWS
#endif
#ifdef NO_ACC_DRAIN
#define ACC_DRAINS 0
#else
#define ACC_DRAINS ACC_STAGES
#endif

proctype Mma() {
  byte a, w, k;
  bit acc_phase = 1, window_phase = 1;
  do
  :: atomic {
       issued < STEPS && (k > 0 || ACC_FREE(a, acc_phase)) && WINDOW_READ(w, window_phase) ->
       issued++;
       advance(w, window_phase, WINDOWS);
       k++;
       if
       :: k == K_STEPS -> k = 0; advance(a, acc_phase, ACC_STAGES)
       :: else
       fi
     }
  :: issued == STEPS -> break
  od;
  do
  :: atomic { k < WINDOW_DRAINS && wait(WINDOW_FREE(w), window_phase) -> advance(w, window_phase, WINDOWS); k++ }
  :: k == WINDOW_DRAINS -> break
  od;
  k = 0;
  do
  :: atomic { k < ACC_DRAINS && wait(ACC_EMPTY(a), acc_phase) -> advance(a, acc_phase, ACC_STAGES); k++ }
  :: k == ACC_DRAINS -> break
  od;
  running--
}

inline overwrite(chunk) {
  assert(unread[chunk] == (multiplied % K_STEPS == 0 -> 0 : tile));
  unread[chunk] = tile
}

inline commit_window(w) {
  arriving[WINDOW_FREE(w)]++;
#ifdef WINDOW_MULTICAST
  arriving[OTHER_WINDOW_FREE(w)]++
#endif
}

proctype TensorCore() {
  byte i, tile;
#ifdef WINDOW_COMMIT_EARLY
  byte committed;
#endif
end:
  do
  :: atomic {
       copied < issued ->
       assert(copied < multiplied + WINDOWS); /* what lies in the window has been read */
       copied++
     }
  :: atomic {
       multiplied < copied ->
       tile = multiplied / K_STEPS + 1;
       for (i : 0 .. 7) { overwrite(CHUNK(0, (tile - 1) % 2, i)); overwrite(CHUNK(1, (tile - 1) % 2, i)) }
       multiplied++;
#ifndef WINDOW_COMMIT_EARLY
       commit_window((multiplied - 1) % WINDOWS);
#endif
       if
       :: multiplied % K_STEPS == 0 ->
          arriving[ACC_FULL(0, (tile - 1) % ACC_STAGES)]++;
          arriving[ACC_FULL(1, (tile - 1) % ACC_STAGES)]++
       :: else
       fi;
       i = 0; tile = 0
     }
#ifdef WINDOW_COMMIT_EARLY
  :: atomic { committed < copied && committed <= multiplied -> commit_window(committed % WINDOWS); committed++ }
#endif
  od
}

/* Arrivals of commits and of epilogue warps at the leader. */
proctype Arrival(byte b) {
end:
  do
  :: atomic { arriving[b] > 0 -> arriving[b]--; arrive(b, 0) }
  od
}

/* Both products of the results of chunk i of a warp, 0 or 1 in the order of reading. */
inline read(cta, half, buffer, i, tile) {
#ifdef ONE_ORDER
  chunk = CHUNK(cta, buffer, half + 2 * (1 - (i)));
#else
  chunk = CHUNK(cta, buffer, half + 2 * ((buffer) == (i)));
#endif
  assert(unread[chunk] == tile && unread[chunk + 4] == tile && multiplied >= tile * K_STEPS);
  unread[chunk] = 0;
  unread[chunk + 4] = 0;
  chunk = 0
}

#ifdef DISJOINT
#define RELEASING 1
#else
#define RELEASING 0
#endif
inline release(i) {
  if
  :: i == RELEASING -> arriving[ACC_EMPTY(a)]++
  :: else
  fi
}

proctype Epilogue(bit cta; bit half) {
  byte a, tile = 1, chunk, i;
  bit phase;
#if ACC_STAGES == 1
#define BUFFER phase
#else
#define BUFFER a
#endif
  do
  :: atomic {
       tile <= TILES && (i > 0 || wait(ACC_FULL(cta, a), phase)) ->
#ifdef RELEASED_EARLY
       release(i)
     }
     atomic {
       read(cta, half, BUFFER, i, tile);
#else
       read(cta, half, BUFFER, i, tile);
       release(i);
#endif
       i++;
       if
       :: i == 2 -> i = 0; tile++; advance(a, phase, ACC_STAGES)
       :: else
       fi
     }
  :: tile > TILES -> break
  od;
  running--
}

init {
  byte i;
  atomic {
    for (i : 0 .. BARRIERS - 1) { pending[i] = COUNT(i); run Arrival(i) }
    initialised[0] = true;
    initialised[1] = true;
    run Mma(); run TensorCore();
    for (i : 0 .. 1) { run Epilogue(i, 0); run Epilogue(i, 1) }
  }
  atomic { running == 0; ended[0] = true; ended[1] = true } /* a barrier of the cluster */
}
