// Package frozen reads what the rule of verdicts needs of every process that calibrations have recorded: the file
// internal/verdict/testdata/processes.txt. Tests of the rule read it, and the study's calibration writes it.
package frozen

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench/internal/verdict"
)

// Comparison is all processes that compared two stacks within an hour.
type Comparison struct {
	Hour       string // the folder of the records, below the study's results
	Origin     string // their day, machine and commit
	Experiment string // of the calibration
	Compared   string // contestant and base
	Processes  []verdict.Process
}

// PerRepeat is how many processes a calibration compares at a time.
const PerRepeat = 16

// Repeats cuts the processes into comparisons of n in a row. What is left over at the end makes none.
func (c Comparison) Repeats(n int) [][]verdict.Process {
	return slices.Collect(slices.Chunk(c.Processes[:len(c.Processes)/n*n], n))
}

// Plan is what the comparison set out to do.
func (c Comparison) Plan() verdict.Plan {
	cores := c.Experiment == "defaultprocs"
	return verdict.Plan{NeedsCores: cores, OneCaller: cores}
}

// Columns are the line of a process: layout, times and CPU times of base, copy and contestant, and three ratios.
func Columns(p verdict.Process) string {
	return fmt.Sprintf("%d %.0f %.0f %.0f %.0f %.0f %.0f %.5f %.5f %.5f", p.Layout, p.Ns[0], p.Ns[1], p.Ns[2], p.CPUNs[0],
		p.CPUNs[1], p.CPUNs[2], p.Time.Ratio, p.Time.Copy, p.Time.ToCopy)
}

// Read reads the file. It fails if a line would not be written as it stands.
func Read(file string) (all []Comparison, err error) {
	text, err := os.ReadFile(file)
	hour, origin := "", ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "hour":
			hour, origin = words[1], strings.Join(words[2:], " ")
		case words[0] == "comparison":
			all = append(all, Comparison{hour, origin, words[1], strings.Join(words[2:], " "), nil})
		default:
			var p verdict.Process
			_, err := fmt.Sscan(line, &p.Layout, &p.Ns[0], &p.Ns[1], &p.Ns[2], &p.CPUNs[0], &p.CPUNs[1], &p.CPUNs[2],
				&p.Time.Ratio, &p.Time.Copy, &p.Time.ToCopy)
			if err != nil || Columns(p) != strings.Join(words, " ") {
				return nil, fmt.Errorf("%s: no process, or not as it is written: %s (%w)", file, line, err)
			}
			last := &all[len(all)-1]
			last.Processes = append(last.Processes, p)
		}
	}
	return all, err
}
