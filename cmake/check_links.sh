#!/bin/sh
# Every picture and file that a page links to is there, and every name in what it says to break at in
# a debugger stands in the sources. Prints each that is not: file:line: target.
cd "${1:-$(dirname "$0")/..}" || exit 2

pages=$(find . \( -name '.?*' -o -name 'build*' -o -name 'figures' -o -name 'table1' -o -name 'out' \) -prune -o \
  -name '*.md' -print | sort)
[ -n "$pages" ] || { echo "check_links: no pages in $PWD" >&2; exit 2; }
for page in $pages; do
  grep -no '](\([^)]*\))' "$page" | while IFS= read -r found; do
    target=${found#*](}
    target=${target%)}
    case $target in *://* | '#'*) continue ;; esac
    [ -e "$(dirname "$page")/${target%%#*}" ] || echo "${page#./}:${found%%:*}: no $target"
  done
  grep -noE '`(t|r)?break [^`]*' "$page" | while IFS= read -r found; do
    for name in $(echo "${found#*break }" | grep -oE '[A-Za-z_]+' | grep -vxE 'operator|float|true'); do
      grep -rqwF "$name" core kernels nn ntk experiments tests/emulated_cuda ||
        echo "${page#./}:${found%%:*}: no $name to break at"
    done
  done
done | {
  missing=0
  while IFS= read -r line; do
    echo "$line"
    missing=1
  done
  exit $missing
}
