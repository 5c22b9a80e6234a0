package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable: three forms of a table, whose cells hold any text.
func TestTable(t *testing.T) {
	a := New(2, "what", "who", "nothing", "µs", "verdict", "over time")
	a.Columns[4].Words, a.Columns[4].Class = true, true
	a.Columns[5].Words, a.Columns[5].Line = true, true
	a.Add("a|b <i>", "x", "", "1.0", a.Noted("slower", "a", "<b>"), "0,1 2,3")
	a.Add("c\td", "", "", "10.0", a.Noted("", "a"), "")
	require.Len(t, a.Filled().Columns, 5, "one that is empty is left out")
	var text strings.Builder
	require.NoError(t, a.Text(&text, Width))
	require.Equal(t, "what     who    µs  verdict\n"+
		"a|b <i>  x     1.0  slower [1] [2]\n"+
		"c d           10.0   [1]\n[1] a.\n[2] <b>.\n", text.String())
	require.Equal(t, `| what | who | µs | verdict |
|---|---|---:|---|
| a\|b &lt;i> | x | 1.0 | slower [1] [2] |
| c d |  | 10.0 |  [1] |

- [1] a.
- [2] &lt;b>.
`, a.Markdown())
	require.Equal(t, `<div class="wide"><table>
<tr><th>what<th class="l">who<th>µs<th class="l">verdict<th class="l">over time</tr>
<tr><td>a|b &lt;i&gt;<td class="l">x<td>1.0<td class="l w slower">slower [1] [2]`+
		`<td class="l"><svg viewBox="-2 0 124 24"><polyline points="0,1 2,3"/></svg></tr>
<tr><td>c	d<td class="l"><td>10.0<td class="l w "> [1]<td class="l"></tr>
</table></div>
<p class="note">[1] a.</p>
<p class="note">[2] &lt;b&gt;.</p>`, a.HTML())
}

// TestWrap: a line ends where a word does, and a figure has its unit and its error beside it.
func TestWrap(t *testing.T) {
	require.Equal(t, "It took\n  12.5 %,\n  7 µs.\n", Wrap("It took 12.5 %, 7 µs.", 12))
	require.Equal(t, "Buy 50.00\n  (SE 1.58)\n", Wrap("Buy 50.00 (SE 1.58)", 14))
	require.Equal(t, "a/path/that/is/long\n  b\n", Wrap("a/path/that/is/long b", 10), "a word is whole")
}

// TestList: where a terminal is too narrow for columns, each row is a list, whose words wrap.
func TestList(t *testing.T) {
	a := New(1, "workload", "JSON", "gRPC", "functions")
	a.Columns[3].Words = true
	a.Add("a small call", "12.5 µs", "10.0 µs", "json.Marshal 4.00 (SE 0.62), syscall.write 6.00 (SE 0.75)")
	var text strings.Builder
	require.NoError(t, a.Text(&text, 28))
	require.Equal(t, "  a small call\n    JSON: 12.5 µs\n    gRPC: 10.0 µs\n    functions: json.Marshal\n"+
		"      4.00 (SE 0.62),\n      syscall.write 6.00\n      (SE 0.75)\n", text.String())
}

// TestLongWord: a word that is wider than what the other columns leave is whole, whatever the width.
func TestLongWord(t *testing.T) {
	a := New(1, "stack", "heap", "goroutines")
	a.Columns[2].Spare = true
	a.Add("connections")
	a.Add("grpcprotobuf@google.golang.org/grpc@v1.80.0 server", "58912 (0.02 %)", "5")
	for width, want := range map[int]string{
		80: "connections                                                     heap  goroutines\n" +
			"  grpcprotobuf@google.golang.org/grpc@v1.80.0 server  58912 (0.02 %)           5\n",
		70: "connections                                                     heap\n" +
			"  grpcprotobuf@google.golang.org/grpc@v1.80.0 server  58912 (0.02 %)\n",
		60: "connections\n  grpcprotobuf@google.golang.org/grpc@v1.80.0 server\n    heap: 58912 (0.02 %)\n",
	} {
		var text strings.Builder
		require.NoError(t, a.Text(&text, width))
		require.Equal(t, want, text.String(), width)
	}
}
