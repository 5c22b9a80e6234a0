package command

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/versus"
)

func TestProgressIsForTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	progress(file)("x", time.Second, 2*time.Second)
	info, err := file.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
}

// What goes on is beyond what was announced, and its line does not fall back.
func TestPercentNeverFall(t *testing.T) {
	var out bytes.Buffer
	show := onLine(&out)
	for _, step := range []struct {
		what      string
		left, all time.Duration
		want      string
	}{
		{"a", 8 * time.Second, 10 * time.Second, " 20 %, 8s left: a"},
		{"b, which is slow", 19 * time.Second, 20 * time.Second, " 20 %, 19s left: b, which is slow"},
		{"c", 2 * time.Second, 20 * time.Second, " 90 %, 2s left: c"},
		{"going on: d", 111 * time.Second, 0, "up to 1m51s more: going on: d"},
		{"e", 30 * time.Second, 120 * time.Second, " 90 %, 30s left: e"},
		{"", 0, 0, ""},
	} {
		out.Reset()
		show(step.what, step.left, step.all)
		require.Equal(t, "\r\x1b[K"+step.want, out.String())
	}
}

// All parts of a run are announced, whichever tells. What takes more than a quarter longer is told when it is known,
// and what goes on when it begins.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, in, err := os.Pipe()
		require.NoError(t, err)
		defer in.Close()
		lines, ended := bufio.NewReader(out), false
		said := func() string {
			_, _ = in.WriteString("\n")
			var all string
			for line := ""; line != "\n"; line, _ = lines.ReadString('\n') {
				all += line
			}
			return all
		}
		seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
		k := newClock(in, func() { ended = true }, seconds(10), seconds(20), seconds(5))
		show := k.part()
		for _, step := range []struct {
			after           int
			part            bool // the next one begins
			what            string
			left, all, more int
			want            string
		}{
			{0, false, "linking", 10, 10, 0, "rpcbench: 35s left of about 35s: linking\n"},
			{10, false, "linking", 5, 10, 0, ""},
			{5, true, "process 1 of 8", 20, 20, 0, ""},
			{10, false, "process 2 of 8", 20, 40, 0, "rpcbench: 25s left of about 50s: process 2 of 8\n"},
			{35, false, "process 8 of 8", 1, 40, 0, "rpcbench: 6s left of about 1m6s: process 8 of 8\n"},
			{1, false, "going on: process 9", 100, 0, 0, "rpcbench: up to 1m45s more: going on: process 9\n"},
			{59, false, "going on: process 20", 41, 0, 0, ""},
			{1, false, "going on: process 21", 40, 0, 0, "rpcbench: up to 45s more: going on: process 21\n"},
			{40, true, "counting", 5, 5, 0, ""},
		} {
			<-time.After(seconds(step.after))
			if step.part {
				show = k.part()
			}
			show(step.what, seconds(step.left), seconds(step.all))
			require.Equal(t, step.want, said(), "%+v", step)
		}
		require.False(t, ended)
		require.NoError(t, out.Close())
		<-time.After(time.Minute)
		show("counting", time.Second, time.Second)
		require.True(t, ended, "nobody reads")
	})
}

// What is announced has links, rates and counts.
func TestAnnounced(t *testing.T) {
	takes := func(args []string, only string, thorough bool) []time.Duration {
		c := unflagged(t, ours())
		require.NoError(t, c.take(args, only, thorough, map[string]bool{"workloads": true}))
		return []time.Duration{c.linking(), c.looking(), c.campaign().Takes(), c.counting()}
	}
	one, builds := takes(nil, "small", false), takes([]string{"httpjson@HEAD", "httpjson"}, "small", false)
	require.Zero(t, one[0]+one[1], "the short answer is of this program")
	require.Equal(t, 2*aCount, one[3])
	require.Equal(t, 16*aLink, builds[0])
	require.Equal(t, 8*aLink, takes(nil, "small", true)[0])
	require.Positive(t, takes(nil, "small-load", false)[1])
	require.Zero(t, takes(nil, "small-1000-per-second", false)[1], "nobody looks for a rate that is given")
	require.Greater(t, builds[2], 12*versus.Turn*8*versus.FewestBlocks, "two slices of three arms, for four times as long")
}
