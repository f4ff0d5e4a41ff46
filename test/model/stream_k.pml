/* stream_k.pml -- a team of CTAs that share tiles along K through global memory (kernel/sm90/stream_parts.cuh), in
   launches that follow each other with the same workspace. A launch is a pass, which sets the numbers of parts to 0
   (prepare_pass.cuh), and a kernel. Before the first one another grid uses the workspace as it likes, or a launch that
   was aborted left it so.

   Programmatic dependent launch: a grid may start at any time; its wait returns when all of the grid before it has
   ended, and what that wrote has landed. Nothing else holds a grid back.

   A CTA has two threads: the first one looks at the number of parts of a tile and counts, the other one meets it
   before and after. A store of sums is on its way until it lands, when it likes, but before a release that covers it
   and before its grid ends. A load whose acquire is missing may read before. The first look at a number orders what it
   reads, but may find an old number. Atomics take effect at once.

   The team is that of stream_k.cuh's picture: three members have two tiles, the second one parts of both. With TILES=1
   they share one. A sum is the sequence of its parts.

   Switches plant a bug each; all of them make the check fail:
     NO_RELEASE          a CTA counts itself while its sums are on their way
     NO_MEETING          ... or those of the thread that does not count
     NO_LOOK_ACQUIRE NO_COUNT_ACQUIRE  sums are read although the number of parts was not acquired
     ACQUIRED_ALONE      the thread that does not count reads without having met the other one
     COUNT_APART         a CTA reads the number and writes it again
     LAST=0 LAST=2       the last one is who finds one other too few, or too many
     OWN_FIRST           the CTA that finishes a tile adds its own part first
     ONE_PLACE           a CTA leaves both of its parts in the same place
     NEXT_COUNT          the tiles of the team share a number
     NO_RESET            the pass does not set the numbers to 0
     RESET_BY_FIRST      the first member does, when it starts
     RESET_BY_LAST       who finishes a tile does, for the next launch
     NO_PASS_WAIT        the pass does not wait for the grid before it
     NO_KERNEL_WAIT      the kernel does not wait for the pass */
#ifndef LAUNCHES
#define LAUNCHES 2
#endif
#ifndef TILES
#define TILES 2
#endif
#define MEMBERS 3
#define THREADS 2

/* Member first(tile) has the beginning of a tile. */
#if TILES == 2
#define FIRST(tile) (tile)
#define PARTS 2
#define COMPLETE 12
#else
#define FIRST(tile) 0
#define PARTS 3
#define COMPLETE 123
#endif
#define SHARES(member, tile) (FIRST(tile) <= (member) && (member) < FIRST(tile) + PARTS)
#ifndef LAST
#define LAST (PARTS - 1)
#endif

#ifdef ONE_PLACE
#define PLACE(member, index) (2 * (member))
#else
#define PLACE(member, index) (2 * (member) + ((index) == 0 -> 1 : 0))
#endif
#define WORD(member, index, thread) (PLACE(member, index) * THREADS + (thread))
#define WORDS (2 * MEMBERS * THREADS)
#ifdef NEXT_COUNT
#define COUNT(tile) there[0]
#else
#define COUNT(tile) there[tile]
#endif
/* What a part of a tile is, in a launch; another grid's is 0. */
#define SUMS(launch, tile, index) (1 + (((launch) * TILES + (tile)) * PARTS + (index)))

byte word[WORDS];   /* of the places, as it has landed */
byte flying[WORDS]; /* on its way there, or 0 */
byte there[TILES];  /* numbers of parts */
byte running[2 * LAUNCHES + 1]; /* CTAs of a grid that have not ended: of another one, then of passes and kernels */
byte finished[LAUNCHES * TILES];
#define OTHER 0
#define PASS(launch) (1 + 2 * (launch))
#define KERNEL(launch) (2 + 2 * (launch))

/* Conditions that a switch takes away. */
#define ENDED(grid) (running[grid] == 0)
#ifdef NO_PASS_WAIT
#define PASS_WAITED true
#else
#define PASS_WAITED ENDED(PASS(launch) - 1)
#endif
#ifdef NO_KERNEL_WAIT
#define KERNEL_WAITED true
#else
#define KERNEL_WAITED ENDED(PASS(launch))
#endif
#define LANDED(member, thread) (flying[WORD(member, 0, thread)] == 0 && flying[WORD(member, 1, thread)] == 0)
#define ALL_LANDED(member) (LANDED(member, 0) && LANDED(member, 1))
#if defined(NO_RELEASE)
#define RELEASED(member) true
#elif defined(NO_MEETING)
#define RELEASED(member) LANDED(member, 0)
#else
#define RELEASED(member) ALL_LANDED(member)
#endif

/* Uses the workspace as it likes. What it wrote last it may still read before it ends. */
proctype Other() {
  byte left;
  if
  :: left = 0
  :: left = 1
  :: left = PARTS
  fi;
  atomic {
    there[0] = left;
    there[TILES - 1] = left
  }
  atomic {
    assert(there[0] == left && there[TILES - 1] == left);
    running[OTHER]--
  }
}

proctype Pass(byte launch) {
  atomic { PASS_WAITED }
#if !defined(NO_RESET) && !defined(RESET_BY_FIRST) && !defined(RESET_BY_LAST)
  there[0] = 0;
  there[TILES - 1] = 0;
#endif
  running[PASS(launch)]--
}

/* A store lands. */
proctype Store(byte place) {
end:
  do
  :: atomic { flying[place] != 0 -> word[place] = flying[place]; flying[place] = 0 }
  od
}

inline leave(thread) {
  /* Stores of a thread to the same word land in their order. */
  if
  :: flying[WORD(member, index, thread)] != 0 ->
     word[WORD(member, index, thread)] = flying[WORD(member, index, thread)]
  :: else
  fi;
  flying[WORD(member, index, thread)] = SUMS(launch, tile, index)
}

/* Reads the part `i` of a tile, as a thread sees it. */
#define SEEN(i, thread) (word[WORD(FIRST(tile) + (i), i, thread)] == SUMS(launch, tile, i))
#define OTHERS_SEEN(thread) \
  ((index == 0 || SEEN(0, thread)) && (index == 1 || SEEN(1, thread)) && (PARTS == 2 || index == 2 || SEEN(2, thread)))

proctype Member(byte launch; byte member) {
  byte tile, index, number, i, total;
  bool last, seen;
  atomic {
    KERNEL_WAITED;
#ifdef RESET_BY_FIRST
    if
    :: member == 0 -> there[0] = 0; there[TILES - 1] = 0
    :: else
    fi
#endif
  }
  for (tile : 0 .. TILES - 1) {
    if
    :: !SHARES(member, tile) -> skip
    :: else ->
       index = member - FIRST(tile);
       seen = true;
#if defined(NO_LOOK_ACQUIRE)
       seen = OTHERS_SEEN(0);
#elif defined(ACQUIRED_ALONE)
       seen = OTHERS_SEEN(1);
#endif
       atomic {
         if
         :: last = COUNT(tile) == LAST
         :: last = false
         fi
       }
       if
       :: last
       :: else ->
          seen = true;
          atomic { leave(0); leave(1) }
#if defined(NO_COUNT_ACQUIRE)
          seen = OTHERS_SEEN(0);
#elif defined(ACQUIRED_ALONE)
          seen = OTHERS_SEEN(1);
#endif
#ifdef COUNT_APART
          atomic { RELEASED(member); number = COUNT(tile) }
          atomic { COUNT(tile) = number + 1; last = number == LAST }
#else
          atomic { RELEASED(member); last = COUNT(tile) == LAST; COUNT(tile)++ }
#endif
       fi;
       if
       :: !last
       :: else ->
          assert(seen);
          total = 0;
#ifdef OWN_FIRST
          total = index + 1;
#endif
          for (i : 0 .. PARTS - 1) {
            if
#ifdef OWN_FIRST
            :: i == index
#else
            :: i == index -> total = total * 10 + i + 1
#endif
            :: else -> atomic { assert(SEEN(i, 0) && SEEN(i, 1)); total = total * 10 + i + 1 }
            fi
          }
          atomic {
            assert(total == COMPLETE);
            finished[launch * TILES + tile]++;
#ifdef RESET_BY_LAST
            COUNT(tile) = 0;
#endif
          }
       fi
    fi
  }
  atomic { ALL_LANDED(member); running[KERNEL(launch)]-- }
}

init {
  byte i;
  atomic {
    running[OTHER] = 1;
    run Other();
    for (i : 0 .. LAUNCHES - 1) {
      running[PASS(i)] = 1;
      running[KERNEL(i)] = MEMBERS;
      run Pass(i); run Member(i, 0); run Member(i, 1); run Member(i, 2)
    }
    for (i : 0 .. WORDS - 1) { run Store(i) }
  }
  atomic {
    ENDED(KERNEL(LAUNCHES - 1));
    for (i : 0 .. LAUNCHES * TILES - 1) { assert(finished[i] == 1) }
  }
}
