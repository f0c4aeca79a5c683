#!/bin/sh
# core <- kernels <- nn <- ntk <- keel.h <- experiments; tests and bench see all. Includes of our
# own files are relative, so that installed headers work unchanged. Prints each breach: file:line.
cd "${1:-$(dirname "$0")/..}" || exit 2

# Hidden folders (virtual environments of bench/peers) and the consumer, an outsider, are not ours.
find core kernels nn ntk experiments tests bench keel.h \
  \( -name '.?*' -o -path tests/consumer \) -prune -o \
  \( -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' \) -print \
  2>/dev/null | sort | xargs awk '
BEGIN {
  split("core kernels nn ntk experiments", order)
  for (i in order) level[order[i]] = i + 0
  level["keel.h"] = 4.5
  level["tests"] = level["bench"] = 6
}
function breach(why) { printf "%s:%d: %s\n", FILENAME, FNR, why; breaches++ }
FNR == 1 {
  files++
  depth = split(FILENAME, part, "/")
  from = part[1]
}
/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  target = $0
  sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
  quoted = substr(target, 1, 1) == "\""
  target = substr(target, 2)
  sub(/[">].*/, "", target)
  if (!quoted) {
    split(target, head, "/")
    if (head[1] == "keel" || (head[1] in level) && target ~ /\.(h|cuh)$/)
      breach("own header <" target "> must be included by relative path")
    next
  }
  if (target ~ /^\//) { breach("absolute include " target); next }

  # The folder the include points to, from the root of the repository.
  n = split(target, step, "/")
  top = depth - 1
  for (i = 1; i <= top; i++) path[i] = part[i]
  for (i = 1; i <= n; i++) {
    if (step[i] == "..") { if (--top < 0) break }
    else if (step[i] != ".") path[++top] = step[i]
  }
  if (top < 0) { breach(target " leaves the repository"); next }
  file = path[1]
  for (i = 2; i <= top; i++) file = file "/" path[i]
  if ((getline line < file) < 0) { breach(target " is no file relative to this one"); next }
  close(file)
  if (!(path[1] in level)) { breach(target " lies outside the source folders"); next }
  if (level[path[1]] > level[from]) breach(from " must not include " path[1] " (" target ")")
}
END {
  printf "include arrows: %d files, %d breaches\n", files, breaches
  exit breaches > 0
}'
