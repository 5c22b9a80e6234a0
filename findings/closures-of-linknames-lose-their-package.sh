#!/usr/bin/env bash
# Go 1.27: closures in some functions of package runtime are called "_.goready.func1", without their package.
#
# What one would expect: a closure is named after the function that it is in or was inlined into, with the package in
# front, such as runtime.closechan.goready.func1, and a tool may sort the samples of a CPU profile by that prefix.
#
# What happens with Go 1.27.4: the closure in runtime.goready, a function with a linkname, is one symbol,
# _.goready.func1. With Go 1.26.8 each function that inlines goready has its own, and all begin with "runtime.".
#
# Why it matters to whoever compares RPC stacks: waking goroutines is much of what a small call costs. Code that takes a
# name without a known package for the service's own bills that time to the service once the release changes.
#
# Seen, symbols that end in goready.func1, without and with the prefix "runtime.":
#   go1.26.8: 0 without, 6 with
#   go1.27.4: 1 without, 0 with
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod

cat > go.mod <<'MOD'
module example.com/finding

go 1.26.0
MOD
cat > main.go <<'GO'
package main

func main() {
	c := make(chan int)
	go func() { c <- 1 }()
	println(<-c)
}
GO
changed=''
for release in go1.26.8 go1.27.4; do
  export GOTOOLCHAIN=$release
  go build -o program .
  symbols=$(go tool nm program | awk '{ print $3 }' | grep -E 'goready\.func1$')
  without=$(grep -vc '^runtime\.' <<<"$symbols" || true)
  with=$(grep -c '^runtime\.' <<<"$symbols" || true)
  printf '%s: %d without, %d with\n' "$release" "$without" "$with"
  case $release in
  go1.26.8) [ "$without" = 0 ] && [ "$with" -gt 0 ] || changed=1 ;;
  go1.27.4) [ "$symbols" = _.goready.func1 ] || changed=1 ;;
  esac
done
[ -z "$changed" ] || { echo 'changed: closures of goready have other names'; exit 1; }
