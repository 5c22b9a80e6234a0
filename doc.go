// Package rpcbench compares ways to serve and call one API in Go: gRPC with protobuf, JSON over HTTP, and others, each
// in a package of its own. This package is the contract they share: the create-user API, its validation and errors, and
// [Start], which runs a server and a client of any stack as a fixture.
//
// Benchmarks are in bench_test.go: go test -bench=. -benchmem. The command cmd/rpcbench compares stacks with verdicts, and
// docs/method.md says how. The suite that proves a stack, and the loops that time it,
// are in package stacktest, for stacks from outside this module too.
//
// The measurements have these properties, and a test holds each:
//
//   - The code that a row's label names ran, in client and server, and no rival's: TestConformance, TestFakesFail.
//   - A variant does what its comment says, and its main value doesn't: TestVariantsDoWhatTheyClaim.
//   - Nothing is encoded before a call, or kept from one to the next, on either side: TestFakesFail.
//   - An op is one call of the next user, and figures are per call: TestAnOpIsOneCallOfTheNextUser,
//     TestEachCallerGoesRoundItsUsers, TestPercentilesAreThoseOfTheirNames, TestCPUPerCall.
//   - Servers end idle and silent connections: TestFakesFail. A start is bounded, and a measuring child ends with its parent:
//     TestStartIsBounded, TestAChildEndsWithItsInput.
//   - Every call crosses the fixture's own connections, as many as declared: TestConformance. A row that opened more inside
//     its timed loop fails, but for what a busy machine may cause, which the row prints: TestBrokenStackHasNoRow,
//     TestReconnectIsPrinted.
//   - A row runs with the GOMAXPROCS of its label: TestRowsHaveThePsOfTheirLabel.
//   - Every reply is decoded and compared with its own request, on every op: TestConformance, TestFakesFail.
//   - Mistakes end the same way on every stack: TestConformance, TestFailuresHaveOneStatusEach.
//   - Nothing is compressed, and nothing asks for compression, unless the row says so: TestConformance.
//   - Stacks of one protocol can be crossed, and of different ones refuse each other: TestCrossConforms,
//     TestProtocolsRefuseEachOther.
//   - What a format or library loses is declared, case by case: TestConformance.
//   - A Call allocates no more than the same work written by hand against the library: TestAllocationsAtMostDirect.
//   - The loop around a call allocates nothing: TestHarnessAllocatesNothing.
//   - A row costs the same first, last and alone in its process: TestRowsCostTheSame.
//   - Nothing grows with the number of calls: TestNothingGrows.
//   - On a simulated machine whose drift and stalls slow both arms alike, the interval of one process holds the true ratio as
//     often as it says: TestPairedReadingOfASharedMachine. Pairing is what makes it so: TestUnpairedReadingsLose.
//   - Where processes in a row share what the machine did, the interval of versus allows for that, and a comparison whose base
//     moved is undecided: TestIntervalOfProcessesInARow, TestUndecidedWhenTheBaseMoves.
//   - A slice pays for its own garbage: TestSlicesThatEndWithACollection.
//   - A comparison measures anew for each GOMAXPROCS and each repeat, and keeps what it has measured if a stack fails:
//     TestVersusRows, TestVersusKeepsWhatItMeasured.
//   - A server in another process is told apart from its client, in figures and in keys, and ends with it:
//     TestServerElsewhere, TestAServerInAChild, TestAChildEndsWithItsParent.
//   - A stack that fails has no row: TestBrokenStackHasNoRow.
//   - Each scenario's op is what its name says, on both sides: TestScenarios. Names, keys and units of the rows are fixed:
//     TestRows. Each flag changes what client and server do: TestFlags.
//   - At a fixed rate no call is left out or timed from a later start than planned: TestStallIsInTheTail,
//     TestDropsAreCounted. What the generator adds is printed beside it: TestLatenessEndsWhenTheCallBegins.
//   - The emulated link costs what its preset says, and not a byte: TestLinkRoundTrip, TestLinkDial, TestLinkPayload,
//     TestLinkCarriesTheBytes.
//   - A codec does the same in each op, keeps nothing of the one before, and its row fails if it doesn't: TestOpsAreEqual,
//     TestNothingIsLeft, TestCodecRows. What a library loses or fails at is declared and listed: TestHostileValues, TestMalformed.
//   - A figure that can't be had is absent, and every other reaches the output: TestEveryFigureReachesTheOutput.
//   - Results of two commits are one table for benchstat: TestBenchstatMakesOneTable.
//   - Who imports one stack compiles no other: TestImports.
package rpcbench
