// Package baseline answers what this library's own layers cost. Only tests are in it.
//
// A direct form is a stack's call written by hand from the documentation of net/http, grpc-go or connect-go, without Stack,
// Client or Call. TestSameMessages holds a direct form to the stack's own bytes: a form that did less would make the stack
// look slow, and one that did more would hide what the stack costs. TestAllocationsAtMostDirect fails when a stack's call
// allocates more than the direct form's, on any machine.
//
// BenchmarkOverhead measures the time, in pairs (package timing). Run it with one P, where wall time is CPU time:
//
//	go test ./internal/baseline -run '^$' -bench Overhead -benchtime 60s -cpu 1
//
// ns/op is the stack's time and direct-ns/op the direct form's, each a median over blocks. direct-ratio is the stack's time
// divided by the direct form's, with its 95 % interval beside it. aa-ratio compares the direct form with a second fixture of
// the same: what its interval holds beside 1 is noise. Ratios are absent when the time is too short for an interval.
// One op is one block of all arms, so B/op and allocs/op of -benchmem mean nothing here. An interval speaks for one
// process: run several.
package baseline
