package report

import (
	"cmp"
	"io"
	"slices"

	"github.com/rpcbench/rpcbench/internal/report/table"
)

// Counted tells whether calls were counted, and nothing was timed.
func (s Summary) Counted() bool { return s.Plan.Processes == 0 && s.Counts() != nil }

// Page is the file of Write for people.
func (s Summary) Page() string {
	if s.Counted() {
		return "report.md"
	}
	return "report.html"
}

// spared are columns of counts that a terminal may have no room for.
var spared = []string{"reads", "server's writes", "server's reads", "allocated, B", "server's allocations",
	"allocated by the server, B", "connections"}

// CountsText writes what was counted for a terminal that is so wide.
func (s Summary) CountsText(w io.Writer, width int) error {
	t := s.Counts()
	for i, c := range t.Columns {
		t.Columns[i].Spare = slices.Contains(spared, c.Name)
	}
	text := table.Wrap(s.Title()+" on "+cmp.Or(s.Head(), "an unknown machine"), width)
	for _, warning := range s.Warnings {
		text += table.Wrap("Warning: "+warning+".", width)
	}
	_, err := io.WriteString(w, text+"\n")
	err = cmp.Or(err, t.Text(w, width))
	for _, line := range s.Builds() {
		_, failed := io.WriteString(w, table.Wrap(line, width))
		err = cmp.Or(err, failed)
	}
	return err
}
