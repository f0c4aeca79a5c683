#!/bin/sh
# Whether g++ made vectors of what each activation does to float32, forward and backward, and of
# kernels of infinite width: a select that it takes for a branch, or a call that it does not inline,
# makes a loop twenty times as long, and no test of numbers tells.
#   vector_loops.sh LIBRARY
# Counts instructions on registers of 32 and 64 bytes in the functions that a Program ends in; of
# kernels divisions and roots, of which every activation has some.
library=$1
for tool in objdump c++filt; do
  command -v "$tool" > /dev/null || { echo "SKIPPED vector loops: no $tool"; exit 0; }
done
grep -qw avx2 /proc/cpuinfo 2> /dev/null || { echo "SKIPPED vector loops: no AVX2"; exit 0; }

objdump --disassemble --no-show-raw-insn "$library" | awk '
/^[0-9a-f]+ <.*>:$/ {
  name = substr($2, 2, length($2) - 3)
  # MapElements<float, LeakyRelu>, PreluForward<float, true>, as they are mangled.
  looks = match(name, /(MapElementsIf|PullElementsIf|PreluForwardIf|PreluBackwardIf)[A-Za-z0-9_]*EE/)
  if (looks) loop = substr(name, RSTART, index(substr(name, RSTART), "EE"))
  if (looks && !(loop in wide)) wide[loop] = 0
  # Pairs<float, true>: with sums of Gaussians.
  pair = match(name, /5PairsI[df]Lb[01]EE/) ? substr(name, RSTART, RLENGTH) : ""
  if (pair && !(pair in quotients)) quotients[pair] = 0
}
looks && /%[yz]mm/ { wide[loop]++ }
pair && /v(div|sqrt)pd.*%[yz]mm/ { quotients[pair]++ }
END {
  least = 6  # two loads, or one and a constant, arithmetic, a store, in each of two loops
  for (loop in wide) {
    count++
    if (wide[loop] >= least) continue
    printf "vector loops: %s has %d wide instructions, wanted %d or more\n", loop, wide[loop], least
    failed = 1
  }
  # Nine functions both ways, silu with a beta too, prelu by one slope and by one each.
  if (count < 24) { printf "vector loops: found %d loops, wanted 24 or more\n", count; failed = 1 }
  for (pair in quotients) {
    pairs++
    least = pair ~ /Lb1/ ? 60 : 30
    if (quotients[pair] >= least) continue
    printf "vector loops: %s has %d wide divisions and roots, wanted %d or more\n", pair,
           quotients[pair], least
    failed = 1
  }
  if (pairs != 4) { printf "vector loops: found %d kernels of pairs, wanted 4\n", pairs; failed = 1 }
  if (!failed) printf "vector loops: %d of %d, and %d of %d of pairs\n", count, count, pairs, pairs
  exit failed
}'
