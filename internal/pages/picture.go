package pages

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
)

var picture = regexp.MustCompile(`(?m)^<!-- picture (\S+) of ([a-z ]+) -->\n<img src="(\S+)" `)

// Pictures draws the pictures that a page shows, by their files' paths from root.
func Pictures(root, path, text string) (map[string][]byte, error) {
	drawn := map[string][]byte{}
	found := picture.FindAllStringSubmatch(text, -1)
	if len(found) != strings.Count(text, "<!-- picture ") {
		return nil, fmt.Errorf("%s: write <!-- picture FILE of TABLE -->, and begin the next line with <img", path)
	}
	for _, m := range found {
		b := &block{root: root}
		for _, table := range begin.FindAllStringSubmatch(text, -1) {
			if table[1] == m[2] {
				b.from, b.machines = places(table)
			}
		}
		up := strings.Repeat("../", strings.Count(path, "/"))
		if len(b.machines) == 0 || len(b.from) != len(b.machines) || up+m[1] != m[3] {
			return nil, fmt.Errorf("%s: picture %s: the page lacks a table %q of a run per machine, or shows %s", path, m[1],
				m[2], m[3])
		}
		var runs []report.Machine
		for i := range b.machines {
			runs = append(runs, report.Machine{Name: b.machines[i], Summary: b.run(b.from[i])})
		}
		if b.err != nil {
			return nil, fmt.Errorf("%s: picture %s: %w", path, m[1], b.err)
		}
		var svg bytes.Buffer
		if err := report.Draw(runs...).SVG(&svg); err != nil {
			return nil, err
		}
		drawn[m[1]] = svg.Bytes()
	}
	return drawn, nil
}
