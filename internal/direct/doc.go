// Package direct answers what this library's own layers cost. For a stack it holds the same call written without them,
// as one would from the documentation of net/http, grpc-go or connect-go: the direct form, which knows no Stack, Client or
// Call and does the same work to the letter. The TestSame… tests hold it to what can be seen of that, since a form that
// did less would make ours look slow, and one that did more would hide what we cost. Where a library only encodes and
// decodes, the form is the one of net/http, which it calls through func values.
//
// TestAllocationsAtMostDirect then fails when one of our calls allocates more than a direct one, on any machine.
// BenchmarkOverhead measures the time; run it with one P, where wall time is CPU time:
//
//	go test ./internal/direct -run '^$' -bench Overhead -benchtime 60s -cpu 1
//
// Its ns/op is the stack's and direct-ns/op the direct form's, each a median over blocks of slices (package timing).
// They are for the reader's sense of size; direct-ratio, how many times as long as the direct form the stack takes, is
// measured within the blocks, and [direct-ratio-lo, direct-ratio-hi] is its interval of 95 %. The direct form is timed
// twice: aa-ratio compares it with itself, and what its interval holds beside 1 is noise. The ratios are absent when
// the time is too short for an interval. One op of package testing is one block of all arms, so the iterations printed
// are blocks, and B/op and allocs/op, which -benchmem adds, would count a block as well: don't ask for them, the test
// has them. The interval speaks for one process; run several to see the variance between them.
//
// Nothing but tests is in this package.
package direct
