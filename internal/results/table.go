// Package results makes tables of what benchmarks printed.
package results

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

// Layout says what stands where in a table. Row names are what is left of a benchmark's name.
type Layout struct {
	Col   string   // key whose values are the columns
	Table string   // key whose values have a table each; "" for none. Exact units, which it can't change, have one for all
	Units []string // as benchmarks print them: a table each
}

const level = 0.95 // of intervals

// Write reads benchmark format and writes its tables: the median of each benchmark's runs and, of six runs or more, its
// 95 % interval, as benchstat has them. Units that their file declares exact are printed as they are. A benchmark without
// the key Col is left out; that none has it, or that runs of an exact unit differ, is an error.
func (l Layout) Write(w io.Writer, r io.Reader, file string) error {
	reader := benchfmt.NewReader(r, file)
	cells := map[cell][]float64{}
	var rows, cols, tables []string
	var malformed error
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			malformed = errors.Join(malformed, rec)
		case *benchfmt.Result:
			row, keys := split(rec.Name, l.Col, l.Table)
			if keys[0] == "" {
				continue
			}
			rows, cols, tables = add(rows, row), add(cols, keys[0]), add(tables, keys[1])
			for _, v := range rec.Values {
				unit, value := v.Unit, v.Value
				if v.OrigUnit != "" {
					unit, value = v.OrigUnit, v.OrigValue
				}
				table := keys[1]
				if exact(reader, unit) {
					table = ""
				}
				at := cell{unit, table, row, keys[0]}
				cells[at] = append(cells[at], value)
			}
		}
	}
	switch err := reader.Err(); {
	case err != nil:
		return fmt.Errorf("rpcbench: %w", err)
	case malformed != nil:
		return fmt.Errorf("rpcbench: %w", malformed)
	case len(rows) == 0:
		return fmt.Errorf("rpcbench: %s: no benchmark has a key %q: give it what go test -bench printed", file, l.Col)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, unit := range l.Units {
		of := tables
		if exact(reader, unit) {
			of = []string{""}
		}
		for _, table := range of {
			title := unit
			if table != "" {
				title += ", " + l.Table + "=" + table
			}
			fmt.Fprintf(t, "%s\t%s\n", title, strings.Join(cols, "\t"))
			for _, row := range rows {
				fmt.Fprint(t, row)
				for _, col := range cols {
					text, err := show(reader, unit, cells[cell{unit, table, row, col}])
					if err != nil {
						return fmt.Errorf("rpcbench: %s: %s of %s, %s=%s: %w", file, unit, row, l.Col, col, err)
					}
					fmt.Fprint(t, "\t", text)
				}
				fmt.Fprintln(t)
			}
			fmt.Fprintln(t)
		}
	}
	return t.Flush()
}

type cell struct{ unit, table, row, col string }

func exact(r *benchfmt.Reader, unit string) bool {
	return r.Units().GetAssumption(unit) == benchmath.AssumeExact
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// split takes the values of two keys out of a benchmark's name, and the number of processors, which is a column of none.
func split(name benchfmt.Name, keys ...string) (rest string, values [2]string) {
	base, parts := name.Parts()
	rest = string(base)
	for _, p := range parts {
		part := strings.TrimPrefix(string(p), "/")
		key, value, _ := strings.Cut(part, "=")
		switch i := slices.Index(keys, key); {
		case regexp.MustCompile(`^-\d+$`).MatchString(part):
		case i >= 0:
			values[i] = value
		default:
			rest += " " + part
		}
	}
	return rest, values
}

func show(r *benchfmt.Reader, unit string, values []float64) (string, error) {
	if len(values) == 0 {
		return "–", nil
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	assumed := r.Units().GetAssumption(unit)
	summary := assumed.Summary(sample, level)
	if assumed == benchmath.AssumeExact {
		return benchunit.NoOpScaler.Format(summary.Center), errors.Join(summary.Warnings...)
	}
	value, tidied := benchunit.Tidy(summary.Center, unit)
	text := benchunit.Scale(value, benchunit.ClassOf(tidied))
	if spread := summary.PctRangeString(); spread != "∞" {
		text += " ±" + spread
	}
	return text, nil
}
