/* pdl.pml -- programmatic dependent launch of grids of this kernel in a row (kernel/sm100/dual_gemm.cuh,
   kernel/common/groups.cuh). Each reads what the one before wrote: activations, factors, sizes of groups, and weights
   unless they are said to be static; and it writes where the one before reads: two buffers take turns. A grid starts
   once every CTA of the one before has executed griddepcontrol.launch_dependents, which may stand anywhere, or has
   ended; griddepcontrol.wait of a role returns when all of the preceding grid has ended. Nothing else holds a grid
   back, not even one two places earlier.

   Each CTA writes its part of the output and reads all of the input. Loads are issued and read at any time until they
   land; the epilogue reads the factors at once and writes once all loads have landed. Buffers hold the number of the
   grid that wrote them, from 1.

   With GROUPED a role of each CTA first reads the sizes of groups, and the others start when the table is written.

   Switches plant a bug each; all of them make the check fail:
     NO_ACTIVATIONS_WAIT NO_WEIGHTS_WAIT NO_EPILOGUE_WAIT NO_TABLE_WAIT  a role does not wait; the last one with GROUPED
     SETUP_READS         a role that need not wait reads a factor, if only to drop it
     NO_TABLE_BARRIER    with GROUPED: roles start before the table is written
   With STATIC_WEIGHTS the load role of the weights needs no wait and has none. */
#ifndef GRIDS
#define GRIDS 3
#endif
#define CTAS 2
#define ROLES 4

byte wrote[2 * CTAS];          /* grid that wrote this part of a buffer */
byte triggered[GRIDS];         /* CTAs that let the next grid start */
byte running[GRIDS];           /* roles of a grid that have not ended */
byte landed[GRIDS * CTAS];     /* load roles of a CTA whose loads have landed */
bool table[GRIDS * CTAS];      /* the table of groups is written */
#define CTA (g * CTAS + cta)

#define STARTED (g == 0 || triggered[g - 1] == CTAS)
#define WAITED (g == 0 || running[g - 1] == 0)
#if defined(GROUPED) && !defined(NO_TABLE_BARRIER)
#define PREPARED (STARTED && table[CTA])
#else
#define PREPARED STARTED
#endif

/* Conditions that a switch takes away. */
#ifdef NO_ACTIVATIONS_WAIT
#define ACTIVATIONS_WAITED true
#else
#define ACTIVATIONS_WAITED WAITED
#endif
#if defined(NO_WEIGHTS_WAIT) || defined(STATIC_WEIGHTS)
#define WEIGHTS_WAITED true
#else
#define WEIGHTS_WAITED WAITED
#endif
#ifdef NO_EPILOGUE_WAIT
#define EPILOGUE_WAITED true
#else
#define EPILOGUE_WAITED WAITED
#endif
#ifdef NO_TABLE_WAIT
#define TABLE_WAITED true
#else
#define TABLE_WAITED WAITED
#endif

/* Buffer 0 is the input of grid 0; all its parts are there. */
#define INPUT(part) wrote[(g % 2) * CTAS + (part)]
#define OUTPUT(part) wrote[((g + 1) % 2) * CTAS + (part)]
inline read() { assert(INPUT(0) == g && INPUT(1) == g) }

/* What a role does first: it walks over the tiles. */
inline walk() {
#ifdef GROUPED
  assert(table[CTA])
#else
  skip
#endif
}

proctype Activations(byte g; bit cta) {
#ifdef GROUPED
  atomic { STARTED && TABLE_WAITED; read(); table[CTA] = true }
#endif
  atomic { PREPARED && ACTIVATIONS_WAITED; walk(); read() }
  atomic { read(); landed[CTA]++; running[g]-- }
}

proctype Weights(byte g; bit cta) {
#ifdef STATIC_WEIGHTS
  atomic { PREPARED && WEIGHTS_WAITED; walk(); landed[CTA]++; running[g]-- }
#else
  atomic { PREPARED && WEIGHTS_WAITED; walk(); read() }
  atomic { read(); landed[CTA]++; running[g]-- }
#endif
}

proctype Epilogue(byte g; bit cta) {
  atomic { PREPARED && EPILOGUE_WAITED; walk(); read() }
  atomic { landed[CTA] == 2; OUTPUT(cta) = g + 1; running[g]-- }
}

/* Executes launch_dependents: early, or when the other roles have ended. */
proctype SetUp(byte g; bit cta) {
  atomic {
    PREPARED;
#ifdef SETUP_READS
    read();
#endif
    triggered[g]++;
    running[g]--
  }
}

init {
  byte i;
  atomic {
    for (i : 0 .. GRIDS - 1) {
      running[i] = ROLES * CTAS;
      run Activations(i, 0); run Weights(i, 0); run Epilogue(i, 0); run SetUp(i, 0);
      run Activations(i, 1); run Weights(i, 1); run Epilogue(i, 1); run SetUp(i, 1)
    }
  }
  atomic {
    running[GRIDS - 1] == 0;
    for (i : 0 .. CTAS - 1) {
      assert(wrote[(GRIDS % 2) * CTAS + i] == GRIDS && wrote[((GRIDS + 1) % 2) * CTAS + i] == GRIDS - 1)
    }
  }
}
