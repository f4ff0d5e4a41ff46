/* barrier.pml -- mbarriers as the PTX ISA describes them: a phase ends when no arrivals and no bytes are pending. Bytes
   may land before they are announced, so the count of bytes is signed. A waiter sees the parity of a phase, not its
   number. The including model says how many barriers there are (BARRIERS), what completes a phase (COUNT(b)), in which
   CTA a barrier lies (OWNER(b)), and how many CTAs there are (CTAS) if not two. An arrival at a CTA that has ended, or
   has not yet initialised its barriers, is an error. */
#ifndef CTAS
#define CTAS 2
#endif
byte pending[BARRIERS];
short bytes[BARRIERS];
bit parity[BARRIERS]; /* of the phase under way */
bool initialised[CTAS], ended[CTAS];

inline settle(b) {
  if
  :: pending[b] == 0 && bytes[b] == 0 -> parity[b] = 1 - parity[b]; pending[b] = COUNT(b)
  :: else
  fi
}
inline arrive(b, announced) {
  assert(initialised[OWNER(b)] && !ended[OWNER(b)]);
  bytes[b] = bytes[b] + announced;
  assert(pending[b] > 0);
  pending[b]--;
  settle(b)
}
inline land(b, landed) {
  assert(initialised[OWNER(b)] && !ended[OWNER(b)]);
  bytes[b] = bytes[b] - landed;
  settle(b)
}
#define wait(b, p) (parity[b] != p)

/* A position in a ring of `stages`. */
inline advance(index, phase, stages) {
  index++;
  if
  :: index == stages -> index = 0; phase = 1 - phase
  :: else
  fi
}

/* A ring of one or two stages whose filling end has come to (index, phase) is drained: what was filled is empty again.
   The next position is the other stage, where there is one, a round later where it is the first. */
#define drained(first, stages, index, phase) \
  (wait((first) + (index), phase) &&        \
   wait((first) + ((index) + 1) % (stages), ((index) + 1 == (stages) && (stages) > 1 -> 1 - (phase) : (phase))))
