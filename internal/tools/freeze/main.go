// Freeze writes what the rule of verdicts needs of every recorded process to one file, from the records that git has:
// `go run ./freeze` in the tools module's folder. Records are large, so most are in the history only. The test of that
// file makes the rule's figures from it. A later hour is frozen by running Freeze again once its records are committed.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

const (
	root  = "../.."
	file  = root + "/internal/versus/testdata/processes.txt"
	size  = 16      // processes of a repeat
	limit = 500_000 // bytes that the file may have

	about = `# What the rule of verdicts needs of every recorded process, by internal/tools/freeze. An hour has a line with the folder of its
# records, and a revision if they are in the history only. A comparison has one with its name, contestant and base. A
# process has one, in order of time, and a repeat is 16 in a row: layout (0 where none is recorded), ns per call of
# base, of its copy and of the contestant, CPU ns per call of the same, the contestant's ratio and the copy's. All are
# medians over the process's blocks. Records of two arms are left out.
`
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("freeze: ")
	text, err := freeze()
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// freeze returns the text of the file.
func freeze() ([]byte, error) {
	sources, err := recorded()
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(about)
	var folder, comparison string
	for _, source := range sources {
		data, err := git("show", source)
		if err != nil {
			return nil, err
		}
		origin, lines, err := read(source, data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		revision, name, _ := strings.Cut(source, ":")
		if path.Dir(name) != folder {
			folder, comparison = path.Dir(name), ""
			if _, err := os.Stat(path.Join(root, name)); err != nil { // only in the history
				origin += " revision=" + revision
			}
			fmt.Fprintf(out, "\nhour %s %s\n", folder, origin)
		}
		for _, l := range lines {
			if l.comparison != comparison {
				comparison = l.comparison
				fmt.Fprintln(out, "comparison", comparison)
			}
			fmt.Fprintln(out, l.figures)
		}
	}
	if out.Len() > limit {
		return nil, fmt.Errorf("%s would have %d bytes, more than %d", file, out.Len(), limit)
	}
	return out.Bytes(), nil
}

// recorded names all files of records that there are or were, as revision:path, each with the newest revision that
// wrote the path, in the order of the paths, which begin with a date.
func recorded() (sources []string, err error) {
	history, err := git("log", "--diff-filter=AM", "--format=revision %h", "--abbrev=7", "--name-only", "--",
		"results/*.jsonl")
	if err != nil {
		return nil, err
	}
	newest := map[string]string{}
	var revision string
	for name := range strings.Lines(string(history)) {
		name = strings.TrimSpace(name)
		if r, ok := strings.CutPrefix(name, "revision "); ok {
			revision = r
		} else if name != "" && newest[name] == "" {
			newest[name] = revision + ":" + name
			sources = append(sources, newest[name])
		}
	}
	slices.SortFunc(sources, func(a, b string) int {
		return strings.Compare(a[strings.Index(a, ":"):], b[strings.Index(b, ":"):])
	})
	return sources, nil
}

func git(args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

type line struct{ comparison, figures string }

// A record is as releases wrote it since the first: a slice is turn, operations, ns of wall and of CPU time and
// collections; later ones have the lead-in too.
type record struct {
	Arms   []string
	Layout int
	Blocks [][][]float64
}

// read makes the lines of a file of records, by comparison, in order of time, and says of which machine, day and commit
// they are. A records.jsonl has many comparisons, and each record names its own by task. Other files have whole repeats
// of one, which the file's name names.
func read(source string, data []byte) (origin string, lines []line, err error) {
	name, _, _ := strings.Cut(path.Base(source), ".")
	for text := range bytes.Lines(data) {
		var l struct {
			Environment []string
			Task, Began string
			Record      *record
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return "", nil, err
		}
		if origin == "" { // a file that several sessions wrote has one machine and one commit
			origin = strings.Join(slices.DeleteFunc(l.Environment, func(e string) bool {
				key, _, _ := strings.Cut(e, "=")
				return !slices.Contains([]string{"date", "go", "commit", "cpu", "kernel"}, key)
			}), " ")
		}
		if l.Record == nil || len(l.Record.Arms) < 3 { // a process failed, or the rule lacks the copy or the contestant
			continue
		}
		experiment, _, many := strings.Cut(l.Task, "/")
		if !many {
			experiment = name
		} else if len(lines) == 0 {
			origin += " began=" + l.Began
		}
		for arm := 2; arm < len(l.Record.Arms); arm++ {
			compared := fmt.Sprintf("%s %s to %s", experiment, l.Record.Arms[arm], l.Record.Arms[0])
			lines = append(lines, line{compared, l.Record.figures(arm)})
		}
	}
	if name != "records" && len(lines)%size != 0 {
		return "", nil, fmt.Errorf("%d processes are no repeats of %d", len(lines), size)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return strings.Compare(a.comparison, b.comparison) })
	return origin, lines, nil
}

// figures is the line of a process and a contestant.
func (r record) figures(contestant int) string {
	arms := []int{0, 1, contestant}
	out := fmt.Sprint(r.Layout)
	for _, of := range []int{2, 3} {
		for _, arm := range arms {
			out += fmt.Sprintf(" %.0f", r.median(func(block [][]float64) float64 { return block[arm][of] / block[arm][1] }))
		}
	}
	for _, arm := range []int{contestant, 1} {
		out += fmt.Sprintf(" %.5f", r.median(func(block [][]float64) float64 {
			return block[arm][2] / block[arm][1] / (block[0][2] / block[0][1])
		}))
	}
	return out
}

func (r record) median(value func(block [][]float64) float64) float64 {
	var values []float64
	for _, block := range r.Blocks {
		values = append(values, value(block))
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
