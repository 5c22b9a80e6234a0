package shell

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/child"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
)

// Program is what the commands know of the program that they are compiled into.
type Program struct {
	Stacks []rpcbench.Stack
	Own    []rpcbench.Workload
	Main   string   // the import path of its main package
	Others []string // stacks of create-user, where Stacks stand for those of messages of one's own
}

// JSONv2 is the stack of which a build with an older Go release has nothing.
const JSONv2 = "httpjson.v2"

// Workloads are those of run, in their order.
func (p Program) Workloads() (all []workload.Planned) {
	if own := p.Stacks[0].Serves != ""; !own {
		all = workload.All()
	} else if len(p.Own) == 0 {
		all = workload.Own()
	}
	for _, w := range p.Own {
		all = append(all, workload.Planned{Workload: workload.Workload(w)})
	}
	return all
}

// Check refuses a program whose stacks can't be told apart, and a command in the environment of a child: what it starts
// would inherit that.
func (p Program) Check(args []string) error {
	names := p.Names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("this program has two stacks named %s: give each a name of its own", name)
		}
	}
	if len(names) == 0 {
		return errors.New("this program has no stacks: its main function gives them to cli.Main")
	}
	all := p.Workloads()
	for i, w := range all {
		same := func(other workload.Planned) bool { return other.Name == w.Name }
		switch err := w.Check(); {
		case err != nil:
			return fmt.Errorf("this program's workload %q: %w", w.Name, err)
		case !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(w.Name) || w.Title == "":
			return fmt.Errorf("this program's workload %q needs a Name of letters, digits, dots and dashes, "+
				"and a Title", w.Name)
		case slices.ContainsFunc(all[:i], same):
			return fmt.Errorf("this program has two workloads named %s: give each a name of its own", w.Name)
		}
	}
	if len(args) > 0 && os.Getenv(child.Variable) != "" {
		return fmt.Errorf("%s is set, which is for processes that rpcbench starts: unset it", child.Variable)
	}
	return nil
}

// Names are those of the stacks, in their order.
func (p Program) Names() (all []string) {
	for _, s := range p.Stacks {
		all = append(all, s.Name)
	}
	return all
}

// Find returns the stacks with the given names.
func (p Program) Find(names ...string) (found []rpcbench.Stack, err error) {
	known := p.Names()
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return nil, p.unknown(name)
		}
		found = append(found, p.Stacks[i])
	}
	return found, nil
}

// unknown is the error of a stack that the program lacks: why it does, if the stack is one of ours.
func (p Program) unknown(name string) error {
	known, there := p.Names(), "rpcbench list names them"
	if p.Stacks[0].Serves != "" {
		there = "there are " + strings.Join(known, ", ")
	}
	switch {
	case slices.Contains(p.Others, name):
		return Wrong("%s is for create-user, and takes no your own messages: %s", name, there)
	case name == JSONv2:
		return Wrong("%s needs encoding/json/v2, which this program lacks: build it with Go 1.27 or later, and without "+
			"GOEXPERIMENT=nojsonv2", name)
	}
	return Wrong("unknown stack %q: %s%s", name, didYouMean(name, known), there)
}

// Workload is the workload of that name.
func (p Program) Workload(name string) (workload.Planned, error) {
	all := p.Workloads()
	w, err := workload.In(all, name)
	if err != nil {
		var names []string
		for _, w := range all {
			names = append(names, w.Name)
		}
		return w, Wrong("unknown workload %q: %sthere are %s", name, didYouMean(name, names), strings.Join(names, ", "))
	}
	return w, nil
}

// Base is the stack that others are compared with unless one is named.
func (p Program) Base() string {
	for _, name := range []string{"httpjson", "httpjson.converted"} {
		if slices.Contains(p.Names(), name) {
			return name
		}
	}
	return p.Stacks[0].Name
}

// Contestants are compared with the base unless some are named.
func (p Program) Contestants() []string {
	for _, name := range []string{"grpcprotobuf", "grpcprotobuf.converted"} {
		if slices.Contains(p.Names(), name) {
			return []string{name}
		}
	}
	return p.Names()
}
