#!/usr/bin/env bash
# testing: with -cpu 1,2,4 a benchmark with b.Loop measures its first row with the last number of CPUs.
#
# What one would expect: the documentation of -cpu says that it specifies a list of GOMAXPROCS values for which the
# benchmarks should be executed, so each row is measured with the number that its name ends in, as rows of b.N are.
#
# What happens with Go 1.26.8 and 1.27.4: the first sample of a benchmark with b.Loop runs with the GOMAXPROCS of the
# list's last number, although its row has the name of the first one. With -count 2 its second sample is right, and so
# are all other rows. Loops over b.N are right.
#
# Why it matters to whoever compares RPC stacks: the row without a suffix is the one that is read as "one core", and
# between one core and two the order of gRPC and JSON may change. With -count one sample of many is of another machine,
# which benchstat takes for noise. Set runtime.GOMAXPROCS before the loop, or give one number at a time.
#
# Seen with Go 1.26.8, GOMAXPROCS during each sample:
#   BenchmarkLoop 4 1, BenchmarkLoop-2 2 2, BenchmarkLoop-4 4 4
#   BenchmarkN 1 1, BenchmarkN-2 2 2, BenchmarkN-4 4 4
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export GOTOOLCHAIN=${GOTOOLCHAIN_OF_FINDING:-go1.26.8} GOWORK=off

printf 'module example.com/finding\n\ngo 1.26.0\n' > go.mod
cat > loop_test.go <<'GO'
package finding

import (
	"runtime"
	"testing"
)

func BenchmarkLoop(b *testing.B) {
	for b.Loop() {
	}
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}

func BenchmarkN(b *testing.B) {
	for range b.N {
	}
	b.ReportMetric(float64(runtime.GOMAXPROCS(0)), "procs")
}
GO

rows=$(go test -bench . -cpu 1,2,4 -benchtime 1ms -count 2 | awk '/^Benchmark/ { all[$1] = all[$1] " " int($(NF - 1)) }
  END { for (row in all) print row all[row] }' | sort)
printf '%s\n' "$rows"
[ "$rows" = 'BenchmarkLoop 4 1
BenchmarkLoop-2 2 2
BenchmarkLoop-4 4 4
BenchmarkN 1 1
BenchmarkN-2 2 2
BenchmarkN-4 4 4' ] || { echo 'the first row of b.Loop, or another one, has another GOMAXPROCS now'; exit 1; }
