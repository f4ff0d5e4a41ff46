/* exchange.pml -- how the CTAs of a cluster that split K exchange their sums (reduce.cuh in kernel/sm90 and
   kernel/sm100): by st.async, whose bytes count on a barrier of the CTA that receives them. A CTA has GROUPS k groups,
   on 10.x one, each with a part of every sum. The first group of a CTA finishes its share of the sums. All other parts
   of that share are sent to it, from its own CTA, too; each is one store of one byte, which lands when it likes. A CTA
   ends when all its roles have: the groups, and the role that initialises the barrier and fills the rings.

   Sums have memory of their own. Then the cluster meets at its start, when the barriers have been initialised, and
   threads wait for that when they send. With IN_RINGS sums lie where the rings were. Then the cluster meets when all
   rings have been read. Slices whose bit is set in EMPTY have no k-tiles and send nothing. CTAs whose bit is set in
   SHARELESS finish nothing and receive nothing.

   Switches plant a bug each; all of them make the check fail:
     NO_MEETING       a group sends without waiting for the cluster
     MEETING_EARLY    with IN_RINGS: the cluster meets at its start
     INIT_LATE        without IN_RINGS: a CTA arrives at the meeting before its barrier is initialised
     NO_SUMS_WAIT     a group finishes without waiting for the others' parts
     NO_BYTES         a CTA expects no bytes
     OWN_BYTES        a CTA expects the part of the group that finishes, too
     EMPTY_BYTES      a CTA expects parts of slices in EMPTY, too
     SHARELESS_SENT   parts are sent to CTAs in SHARELESS, too, which do not expect them
     TWO_ARRIVALS     the barrier waits for an arrival that nobody makes */
#ifndef CTAS
#define CTAS 2
#endif
#ifndef GROUPS
#define GROUPS 1
#endif
#ifndef EMPTY
#define EMPTY 0
#endif
#ifndef SHARELESS
#define SHARELESS 0
#endif
#ifdef TWO_ARRIVALS
#define COUNT(b) 2
#else
#define COUNT(b) 1
#endif
#define BARRIERS CTAS
#define OWNER(b) (b)
#include "barrier.pml"

#define ROLES (GROUPS + 1)
#define HAS(mask, cta) (((mask) >> (cta)) & 1)

byte running[CTAS];              /* roles that have not ended */
byte reading[CTAS];              /* k groups that have still to read the rings */
bool prepared[CTAS];             /* the role that initialises has met the groups of its CTA */
byte met;                        /* roles that have arrived at the barrier of the cluster */
bool flying[CTAS * CTAS * GROUPS]; /* part of group g of a CTA on its way to another */
byte received[CTAS];
#define PART(from, g, to) flying[((from) * GROUPS + (g)) * CTAS + (to)]

/* What is sent to a CTA. */
#define SENDERS(mask) ((1 - HAS(mask, 0)) + (1 - HAS(mask, 1)) + (CTAS > 2 -> 1 - HAS(mask, 2) : 0) + \
                       (CTAS > 3 -> 1 - HAS(mask, 3) : 0))
#define PARTS_FOR(cta, mask) (HAS(SHARELESS, cta) -> 0 : GROUPS * SENDERS(mask) - (1 - HAS(mask, cta)))
#if defined(NO_BYTES)
#define EXPECTED(cta) 0
#elif defined(OWN_BYTES)
#define EXPECTED(cta) (PARTS_FOR(cta, EMPTY) + 1)
#elif defined(EMPTY_BYTES)
#define EXPECTED(cta) PARTS_FOR(cta, 0)
#else
#define EXPECTED(cta) PARTS_FOR(cta, EMPTY)
#endif
#ifdef SHARELESS_SENT
#define SENT_TO(cta) true
#else
#define SENT_TO(cta) (!HAS(SHARELESS, cta))
#endif
#ifdef NO_MEETING
#define ALL_MET true
#else
#define ALL_MET (met == CTAS * ROLES)
#endif
#ifdef NO_SUMS_WAIT
#define SUMS_THERE(cta) true
#else
#define SUMS_THERE(cta) wait(cta, 0)
#endif
#if defined(IN_RINGS) && !defined(MEETING_EARLY)
#define AT_START 0
#define AT_END 1
#else
#define AT_START 1
#define AT_END 0
#endif

inline leave() {
  running[cta]--;
  ended[cta] = (running[cta] == 0)
}

/* Initialises the barrier and fills the rings. */
proctype Load(byte cta) {
#ifdef INIT_LATE
  atomic { met = met + AT_START }
#endif
  atomic { pending[cta] = COUNT(cta); initialised[cta] = true }
  atomic { arrive(cta, EXPECTED(cta)) }
#ifndef INIT_LATE
  atomic { met = met + AT_START }
#endif
  prepared[cta] = true;
  atomic { reading[cta] == 0 -> met = met + AT_END; leave() }
}

proctype Group(byte cta; byte g) {
  byte to;
  atomic { met = met + AT_START }
  atomic { prepared[cta] -> reading[cta]-- }
  atomic { met = met + AT_END }
  atomic {
    ALL_MET ->
    for (to : 0 .. CTAS - 1) {
      if
      :: SENT_TO(to) && !HAS(EMPTY, cta) && !(to == cta && g == 0) -> PART(cta, g, to) = true
      :: else
      fi
    }
    to = 0
  }
  atomic {
    g > 0 || HAS(SHARELESS, cta) || SUMS_THERE(cta) ->
    assert(g > 0 || HAS(SHARELESS, cta) || received[cta] == PARTS_FOR(cta, EMPTY));
    leave()
  }
}

/* A part on its way. */
proctype Store(byte from; byte g; byte to) {
end:
  do
  :: atomic {
       PART(from, g, to) ->
#ifdef IN_RINGS
       assert(reading[to] == 0);
#endif
       PART(from, g, to) = false;
       received[to]++;
       land(to, 1)
     }
  od
}

init {
  byte i, j, g;
  atomic {
    for (i : 0 .. CTAS - 1) {
      running[i] = ROLES;
      reading[i] = GROUPS;
      run Load(i);
      for (g : 0 .. GROUPS - 1) {
        run Group(i, g);
        for (j : 0 .. CTAS - 1) {
          if
          :: SENT_TO(j) && !HAS(EMPTY, i) && !(j == i && g == 0) -> run Store(i, g, j)
          :: else
          fi
        }
      }
    }
  }
}
