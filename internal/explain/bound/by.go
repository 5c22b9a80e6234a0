package bound

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/report/table"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// labelling is how samples get labels.
const labelling = "grpc-go (1.82 and later) sets grpc.method if the service's environment has " +
	"GRPC_GO_SERVER_GOROUTINE_LABELS=grpc.method=true, and pprof.Do sets any label"

// lacks refuses a label that no sample has.
func (s Service) lacks() error {
	switch {
	case s.By == "" || slices.Contains(s.Labels, s.By):
		return nil
	case len(s.Labels) == 0:
		return shell.Wrong("bound: -by %s: no sample of %s has a label: %s", s.By, s.Name, labelling)
	}
	named := strings.ReplaceAll(s.labelled(), "%", "%%")
	return shell.Unknown("bound: -by %s: no sample has this label: %sthe labels are "+named, s.By, s.Labels)
}

// labelled names the labels, or the first of many.
func (s Service) labelled() string {
	const most = 10
	named := slices.Clone(s.Labels[:min(most, len(s.Labels))])
	if more := len(s.Labels) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	return strings.Join(named, ", ")
}

// value is what samples with one value of the label take.
type value struct {
	name                    string
	samples, rpcs, handlers int64
	cpu                     time.Duration
}

func (v *value) add(more value) {
	v.samples, v.rpcs, v.handlers, v.cpu = v.samples+more.samples, v.rpcs+more.rpcs, v.handlers+more.handlers,
		v.cpu+more.cpu
}

// values are those of the label, those that take most first, and what samples without one take.
func (s Service) values() (with []value, without value) {
	by := map[string]*value{}
	for _, p := range s.Parts {
		v := by[p.Label]
		if v == nil {
			v = &value{name: p.Label}
			by[p.Label] = v
		}
		more := value{samples: p.Samples, cpu: p.CPU}
		if InRPCs(p) {
			more.rpcs = p.Samples
		}
		if p.Layer == Handlers {
			more.handlers = p.Samples
		}
		v.add(more)
	}
	if none := by[""]; none != nil {
		without = *none
		delete(by, "")
	}
	for _, v := range slices.SortedFunc(maps.Values(by), func(a, b *value) int {
		return cmp.Or(cmp.Compare(b.samples, a.samples), cmp.Compare(a.name, b.name))
	}) {
		with = append(with, *v)
	}
	return with, without
}

// printBy splits the CPU by the values of the label. Unless there is one, it says how to have that.
func (s Service) printBy(w io.Writer) error {
	switch {
	case s.By == "" && len(s.Labels) == 0:
		return shell.Say(w, "\nCPU by method needs labels, and no sample has one: %s.", labelling)
	case s.By == "":
		return shell.Say(w, "\nSamples have labels: %s. -by %s splits the CPU by the values of one.", s.labelled(),
			s.Labels[0])
	}
	const most = 20 // rows
	with, without := s.values()
	all, rest := without, value{}
	for i, v := range with {
		if all.add(v); i >= most {
			rest.add(v)
		}
	}
	share := func(n, of int64) string { return fmt.Sprintf("%.1f", 100*float64(n)/float64(of)) }
	said := fmt.Sprintf("%s%% of the samples have the label %s", share(all.samples-without.samples, all.samples),
		inRow(s.By))
	if without.samples > 0 {
		nobodys := s.share(func(p layers.Part) bool { return p.Layer == Nobodys && p.Label == "" })
		said += fmt.Sprintf(", which the scheduler and the collector (%.1f%%) never have", nobodys)
	}
	err := shell.Say(w, "\n%s. RPCs and handlers are shares of a row.", said)
	if s.Twice > 0 {
		err = errors.Join(err, shell.Say(w, "Of the samples %d have several values of it, and a row of these together.",
			s.Twice))
	}
	if len(with) > most {
		err = errors.Join(err, shell.Say(w, "Of its %d values, the %d that take most have rows.", len(with), most))
	}
	t := table.New(1, inRow(s.By), "CPU, s", "of all, %", "RPCs, %", "handlers, %", "samples")
	add := func(name string, v value) {
		if v.samples > 0 {
			t.Add(name, fmt.Sprintf("%.2f", v.cpu.Seconds()), share(v.samples, all.samples), share(v.rpcs, v.samples),
				share(v.handlers, v.samples), fmt.Sprint(v.samples))
		}
	}
	for _, v := range with[:min(most, len(with))] {
		add(inRow(v.name), v)
	}
	add(fmt.Sprintf("%d others", len(with)-most), rest)
	add("without the label", without)
	add("sum", all)
	return errors.Join(err, shell.Say(w, ""), t.Text(w, shell.Width(w)))
}

// inRow is a label, or a value of one, that fits a row.
func inRow(text string) string {
	const most = 50
	if letters := []rune(layers.Plain(text)); len(letters) > most {
		return string(letters[:most/2]) + "…" + string(letters[len(letters)-most/2+1:])
	}
	return layers.Plain(text)
}
