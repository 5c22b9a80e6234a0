package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable: three forms of a table, whose cells hold any text.
func TestTable(t *testing.T) {
	a := New(2, "what", "who", "µs", "verdict", "over time")
	a.Columns[3].Words, a.Columns[3].Class = true, true
	a.Columns[4].Words, a.Columns[4].Line = true, true
	a.Add("a|b <i>", "x", "1.0", "slower: it is", "0,1 2,3")
	a.Add("c\td", "", "10.0", "", "")
	var text strings.Builder
	require.NoError(t, a.Text(&text))
	require.Equal(t, "what     who  µs    verdict\n"+
		"a|b <i>  x    1.0   slower: it is\n"+
		"c d           10.0  \n", text.String())
	require.Equal(t, `| what | who | µs | verdict |
|---|---|---:|---|
| a\|b &lt;i> | x | 1.0 | slower: it is |
| c d |  | 10.0 |  |
`, a.Markdown())
	require.Equal(t, `<div class="wide"><table>
<tr><th>what<th class="l">who<th>µs<th class="l">verdict<th class="l">over time</tr>
<tr><td>a|b &lt;i&gt;<td class="l">x<td>1.0<td class="l w slower">slower: it is`+
		`<td class="l"><svg viewBox="-2 0 124 24"><polyline points="0,1 2,3"/></svg></tr>
<tr><td>c	d<td class="l"><td>10.0<td class="l"><td class="l"></tr>
</table></div>`, a.HTML())
}
