package stacktest

import (
	"flag"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Procs gives a row the GOMAXPROCS that its label will name. Every row of this package calls it; so does a benchmark of your
// own that uses b.Loop.
//
// Package testing calls a benchmark for the first time before it sets GOMAXPROCS for -cpu, and a b.Loop benchmark does all its
// work in that call (golang/go#49980). So with -cpu 1,2 the first row labelled as one of 1 P ran with what the row before it
// had left. Package testing sets GOMAXPROCS right before every later call, so Procs changes it in the first call alone.
func Procs(b *testing.B) {
	b.Helper()
	f := flag.Lookup("test.cpu")
	if f == nil || f.Value.String() == "" {
		return // one GOMAXPROCS for all rows
	}
	list := strings.Split(f.Value.String(), ",")
	first, err := strconv.Atoi(strings.TrimSpace(list[0]))
	if err != nil {
		return // package testing refuses the list
	}
	if p := placed(); p.seen != nil {
		if p.seen[b.Name()] {
			return
		}
		p.seen[b.Name()] = true
	} else if len(list) > 1 {
		b.Fatal("rpcbench: a list in -cpu needs a TestMain that calls stacktest.Main: give one number")
	}
	runtime.GOMAXPROCS(first)
}
