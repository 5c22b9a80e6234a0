package shell

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/testkit"
)

// steps are those of a run of three parts, that is slower than expected and then not: seconds since the step before,
// whether a part begins, what is done, and the seconds that are left of the part.
var steps = []struct {
	after int
	part  bool
	what  string
	left  int
}{
	{0, true, "linking", 10}, {10, false, "linking", 5}, {5, true, "process 1 of 8", 20},
	{10, false, "process 2 of 8", 30},
	{34, false, "process 8 of 8", 1}, {2, false, "going on: process 9", 50}, {58, false, "going on: process 20", 4},
	{3, true, "counting", 5}, {60, false, "counting", 5}, {5, false, "", 0},
}

// walk makes the steps, and calls said after each.
func walk(k *Clock, said func(i int)) {
	show := k.Show
	for i, step := range steps {
		<-time.After(time.Duration(step.after) * time.Second)
		if step.part {
			show = k.Part()
		}
		show(step.what, time.Duration(step.left)*time.Second)
		said(i)
	}
}

var parts = []time.Duration{10 * time.Second, 20 * time.Second, 5 * time.Second}

// Where there is no terminal, a line says at the beginning how long all parts take, and another one each minute what is
// done and how much is left, also while nothing begins. A command whose lines nobody reads ends.
func TestLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in, err := os.Pipe()
		require.NoError(t, err)
		defer in.Close()
		ctx, k := NewClock(t.Context(), in, parts...)
		k.Spare = 7 * time.Second
		walk(k, func(int) {})
		_, _ = in.WriteString("end\n")
		lines := bufio.NewReader(out)
		for _, want := range []string{"35s left of about 35s, and 7s more if lines are undecided: linking",
			"5s left of about 1m5s: process 8 of 8",
			"8s left of about 2m8s: going on: process 20", "3m0s so far, longer than expected: counting"} {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "rpcbench: "+want+"\n", line)
		}
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "end\n", line)
		k.Show("counting", time.Second)
		require.NoError(t, ctx.Err())
		require.NoError(t, out.Close())
		<-time.After(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, ctx.Err(), context.Canceled, "nobody reads")
	})
}

// A step that takes longer than expected says so, as long as it goes on, however much later parts take.
func TestLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in, err := os.Pipe()
		require.NoError(t, err)
		defer in.Close()
		defer out.Close()
		_, k := NewClock(t.Context(), in, 4*time.Second, 10*time.Minute)
		defer k.End()
		k.Part()("linking", 4*time.Second)
		<-time.After(2*time.Minute + time.Second)
		k.Part()("process 1 of 8", 10*time.Minute)
		<-time.After(time.Minute)
		synctest.Wait()
		lines := bufio.NewReader(out)
		for _, want := range []string{"10m4s left of about 10m4s: linking", "1m0s so far, longer than expected: linking",
			"2m0s so far, longer than expected: linking", "9m1s left of about 12m1s: process 1 of 8"} {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			require.Equal(t, "rpcbench: "+want+"\n", line)
		}
	})
}

// A bar has what is done and how much is left. Its share and the time that is left go back only where a step takes
// longer than the one before expected, and it fits a terminal whose width changes. It goes on by itself, and leaves an
// empty line.
func TestBar(t *testing.T) {
	t.Setenv("TERM", "xterm")
	bar := regexp.MustCompile(`^\[(#*)(\.*)\] +(\d+)%, (?:(\w+) left|overdue): (.*)$`)
	for _, columns := range []int{100, 80, 40, 24} {
		side, shown := testkit.Terminal(t, columns)
		synctest.Test(t, func(t *testing.T) {
			share, left, bars, backs, lines := -1, time.Hour, 0, 0, bufio.NewReader(shown)
			read := func() (last string) {
				_, err := side.WriteString("\a")
				require.NoError(t, err)
				drawn, err := lines.ReadString('\a') // since the step before
				require.NoError(t, err)
				for _, line := range strings.Split(strings.TrimSuffix(drawn, "\a"), "\r\x1b[K")[1:] {
					require.Less(t, utf8.RuneCountInString(line), columns, line)
					last = line
					if found := bar.FindStringSubmatch(line); found != nil {
						n, err := strconv.Atoi(found[3])
						require.NoError(t, err)
						least := left
						if found[4] != "" {
							least, err = time.ParseDuration(found[4])
							require.NoError(t, err)
						}
						if n < share || least > left {
							backs++
						}
						share, left, bars = n, least, bars+1
					}
				}
				return last
			}
			_, k := NewClock(t.Context(), side, parts...)
			defer k.End()
			walk(k, func(i int) {
				synctest.Wait()
				last := read()
				require.Equal(t, steps[i].what == "", last == "")
				if columns >= 80 && last != "" {
					require.True(t, strings.HasSuffix(last, ": "+steps[i].what), last)
				}
				columns = 10 + (columns+37)%70
				testkit.Resize(t, side, columns)
			})
			require.Greater(t, bars, 100, "one a second")
			require.Less(t, backs, len(steps), "at the steps after which more is left than before")
		})
	}
}

// What can't write over a line is no terminal.
func TestTerminals(t *testing.T) {
	side, _ := testkit.Terminal(t, 80)
	for kind, want := range map[string]bool{"xterm": true, "dumb": false, "": false} {
		t.Setenv("TERM", kind)
		require.Equal(t, want, isTerminal(side), kind)
	}
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	require.False(t, isTerminal(file))
}
