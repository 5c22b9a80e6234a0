// Package rpcbench compares ways to serve and call one API in Go: gRPC with protobuf, JSON over HTTP, and others, each
// in a package of its own. This package is the contract they share: the create-user API, its validation and errors, and
// [Start], which runs a server and a client of any stack as a fixture.
//
// Benchmarks are in bench_test.go: go test -bench=. -benchmem. The command cmd/rpcbench compares stacks with verdicts, as
// docs/method.md explains. Package stacktest has the suite that proves a stack and the loops that time it, for anybody's stack.
//
// The measurements have these properties, and a test holds each:
//
//   - The code that a row's label names ran, in client and server, and no rival's: TestConformance, TestFakesFail.
//   - A variant does what its comment says, and its main value doesn't: TestVariantsDoWhatTheyClaim.
//   - Nothing is encoded before a call, or kept from one to the next, on either side: TestFakesFail.
//   - An op is one call of the next user. Figures are per call: TestAnOpIsOneCallOfTheNextUser,
//     TestEachCallerGoesRoundItsUsers, TestPercentilesAreThoseOfTheirNames, TestCPUPerCall.
//   - Servers end idle and silent connections: TestFakesFail. A start is bounded: TestStartIsBounded. A measuring child
//     ends with its parent: TestAChildEndsWithItsInput.
//   - Every call crosses the fixture's own connections, as many as declared: TestConformance. A row that opens more while it
//     is timed fails, or prints what a busy machine may cause: TestBrokenStackHasNoRow, TestReconnectIsPrinted.
//   - A row runs with the GOMAXPROCS of its label: TestRowsHaveThePsOfTheirLabel.
//   - Every reply is decoded and compared with its own request, on every op: TestConformance, TestFakesFail.
//   - Mistakes end the same way on every stack: TestConformance, TestFailuresHaveOneStatusEach.
//   - Nothing is compressed, and nothing asks for compression, unless the row says so: TestConformance.
//   - Stacks of one protocol can be crossed: TestCrossConforms. Others refuse each other: TestProtocolsRefuseEachOther.
//   - What a format or library loses is declared, case by case: TestConformance.
//   - A Call allocates no more than the same work written by hand against the library: TestAllocationsAtMostDirect.
//   - The loop around a call allocates nothing: TestHarnessAllocatesNothing.
//   - A row costs the same first, last and alone in its process: TestRowsCostTheSame.
//   - Nothing grows with the number of calls: TestNothingGrows.
//   - Where drift and stalls of a simulated machine slow both arms alike, the interval of one process holds the true ratio as
//     often as it says: TestPairedReadingOfASharedMachine. Pairing is the reason: TestUnpairedReadingsLose.
//   - The interval of versus allows for what processes in a row share: TestIntervalOfProcessesInARow. A comparison whose base
//     moved is undecided: TestUndecidedWhenTheBaseMoves.
//   - A slice pays for its own garbage: TestSlicesThatEndWithACollection.
//   - A comparison measures anew for each GOMAXPROCS and each repeat, and keeps what it has measured if a stack fails:
//     TestVersusRows, TestVersusKeepsWhatItMeasured.
//   - A server in another process has figures and keys of its own, and ends with its client: TestServerElsewhere,
//     TestAServerInAChild, TestAChildEndsWithItsParent.
//   - A stack that fails has no row: TestBrokenStackHasNoRow.
//   - Each scenario's op is what its name says, on both sides: TestScenarios. Names, keys and units of the rows are fixed:
//     TestRows. Each flag changes what client and server do: TestFlags.
//   - At a fixed rate no call is left out or timed from a later start than planned: TestStallIsInTheTail,
//     TestDropsAreCounted. What the generator adds is printed beside it: TestLatenessEndsWhenTheCallBegins.
//   - The emulated link delays as its preset says, and adds no byte: TestLinkRoundTrip, TestLinkDial, TestLinkPayload,
//     TestLinkCarriesTheBytes.
//   - A codec does the same in each op and keeps nothing of the one before, or its row fails: TestOpsAreEqual,
//     TestNothingIsLeft, TestCodecRows. What a library loses or fails at is declared: TestHostileValues, TestMalformed.
//   - A figure that can't be had is absent, and every other reaches the output: TestEveryFigureReachesTheOutput.
//   - Results of two commits are one table for benchstat: TestBenchstatMakesOneTable.
//   - Importing one stack does not compile the others: TestImports.
package rpcbench
