package calls

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
)

// known is an explanation by two processes, whose figures are seen at a glance: 10 µs of CPU per sample and call. The
// second process has two samples more of every part.
func known(name string, samples map[layers.Part]int64, processes int64) *Explanation {
	e := &Explanation{Name: name}
	for i := range processes {
		s := layers.Split{Row: name, Calls: 1000}
		for p, n := range samples {
			p.Samples, p.CPU = n+2*i, time.Duration(n+2*i)*10*time.Millisecond
			s.Parts = append(s.Parts, p)
		}
		e.Processes = append(e.Processes, Process{Profile: s})
	}
	return e
}

func TestExplainAddsUp(t *testing.T) {
	a := known("a", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}:               99,
		{Layer: "serialisation", Side: "server", Function: "encoding/json.Unmarshal"}:             49,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.write"}:               28,
		{Layer: "networking (syscalls)", Side: "server", Function: "syscall.noise"}:               0, // and 2: +10, SE 10
		{Layer: "scheduling and wake-ups", Side: layers.Unlabelled, Function: "runtime.schedule"}: 19,
	}, 2)
	b := known("b", map[layers.Part]int64{
		{Layer: "serialisation", Side: "client", Function: "encoding/json.Marshal"}: 89,
		{Layer: "networking (syscalls)", Side: "client", Function: "syscall.read"}:  129,
	}, 2)
	for i, cpu := range []time.Duration{2050, 2151} { // µs of 100 calls
		a.Processes[i].Calls, a.Processes[i].CPU, a.Processes[i].Wall = 100, cpu*100*time.Microsecond,
			3*cpu*100*time.Microsecond
		b.Processes[i].Calls, b.Processes[i].CPU, b.Processes[i].Wall = 100, 2200*100*time.Microsecond,
			2300*100*time.Microsecond
	}
	var out strings.Builder
	require.NoError(t, errors.Join(a.Print(&out), PrintDifference(&out, a, b)))
	require.Equal(t, `
a: 2000.0 µs of CPU per call, by 400 samples of 2000 calls
Without the profiler a call takes 6301.5 µs (4376.5 to 8226.5), and 2100.5 µs (1458.8 to 2742.2) of
 | CPU: means of 200 calls.
The profiles differ from that CPU time by -100.5 µs (-106.9 to -94.1), because they miss some
 | samples and take time themselves.
layer | client, µs | server, µs | unlabelled, µs | all, µs | share | ± (95%)
serialisation | 1000.0 | 500.0 | 0.0 | 1500.0 | 75.0% | 4.2%
networking (syscalls) | 0.0 | 300.0 | 0.0 | 300.0 | 15.0% | 3.5%
scheduling and wake-ups | 0.0 | 0.0 | 200.0 | 200.0 | 10.0% | 3.0%
sum | 1000.0 | 800.0 | 200.0 | 2000.0 | 100.0%

a minus b
layer | client, µs | server, µs | unlabelled, µs | all, µs | ± (95%)
 | functions that differ most
networking (syscalls) | -1300.0 | +300.0 | +0.0 | -1000.0 | 127.1
 | syscall.read -1300.0 (SE 10.0), syscall.write +290.0 (SE 10.0)
serialisation | +100.0 | +500.0 | +0.0 | +600.0 | 127.1
 | json.Unmarshal +500.0 (SE 10.0), json.Marshal +100.0 (SE 0.0)
scheduling and wake-ups | +0.0 | +0.0 | +200.0 | +200.0 | 127.1
 | runtime.schedule +200.0 (SE 10.0)
sum | -1200.0 | +800.0 | +200.0 | -200.0 | 381.2

The difference in CPU is -200.0 µs (-581.2 to +181.2) by the profiles, and -99.5 µs (-741.2 to
 | +542.2) without the profiler.
Without the profiler, what a caller waits differs by +4001.5 µs (+2076.5 to +5926.5).
`, regexp.MustCompile(" {2,}").ReplaceAllString(out.String(), " | "))

	a.Processes[0].Procs = 2
	out.Reset()
	require.NoError(t, PrintDifference(&out, a, b))
	require.Regexp(t, `to \+5926\.5\)\. Layers do not\n  sum to that, because cores work side by side\.\n$`, out.String())
}

// Functions whose difference is not above two standard errors carry nothing.
func TestExplainNamesNoNoise(t *testing.T) {
	part := func(function string) layers.Part {
		return layers.Part{Layer: "serialisation", Side: "client", Function: function}
	}
	a := map[layers.Part]int64{part("json.equal"): 100, part("json.Marshal"): 100}
	b := map[layers.Part]int64{part("json.equal"): 90, part("json.Marshal"): 20}
	want := "json.Marshal +800.0 (SE 109.5)" // 80 samples, of which √(100 + 20) are luck
	require.Equal(t, want, carriers(known("a", a, 1), known("b", b, 1), "serialisation"))
	want = "json.Marshal +810.0 (SE 84.0)" // two processes beside a profile: 202 samples in 2000 calls, and 20 in 1000
	require.Equal(t, want, carriers(known("a", a, 2), known("b", b, 1), "serialisation"))
}
