package pages

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/rpcbench/rpcbench/internal/layers"
)

var (
	workloadLine = regexp.MustCompile(`(?m)^# \S+: workload=(\S+)`)
	lessLine     = regexp.MustCompile(`(?m)^(\S+) less (\S+)$`)
	layerLine    = regexp.MustCompile(`(?m)^(\S.*?)  +[-+]\S+ +[-+]\S+ +[-+]\S+ +([-+]\S+) +([\d.]+)`)
)

// differences has a column for each file that rpcbench explain wrote of two stacks: by how much the CPU time per call
// of the one is more than that of the other, layer by layer.
func differences(b *block) string {
	head, line := "| layer |", "|---|"
	var columns []map[string]string
	for _, file := range b.from {
		text := b.read(file)
		at := lessLine.FindStringSubmatchIndex(text)
		if at == nil {
			b.fail("%s compares no two stacks", file)
			return ""
		}
		head += fmt.Sprintf(" `%s` less `%s`", text[at[2]:at[3]], text[at[4]:at[5]])
		if m := workloadLine.FindStringSubmatch(text); m != nil && m[1] != tiny {
			head += ", " + m[1]
		}
		head += " |"
		line += "---:|"
		column := map[string]string{}
		for _, m := range layerLine.FindAllStringSubmatch(text[at[1]:], -1) {
			column[m[1]] = m[2] + " ± " + m[3]
		}
		columns = append(columns, column)
	}
	table := head + "\n" + line + "\n"
	for _, layer := range append(layers.Names(), "sum") {
		row, sampled := "| "+layer+" |", false
		for _, column := range columns {
			sampled = sampled || column[layer] != ""
			row += " " + cmp.Or(column[layer], "–") + " |"
		}
		if sampled {
			table += row + "\n"
		}
	}
	return table
}
