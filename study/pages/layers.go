package pages

import (
	"regexp"
	"strings"
)

var (
	workloadLine = regexp.MustCompile(`(?m)^# \S+: workload=(\S+)`)
	lessLine     = regexp.MustCompile(`(?m)^(\S+) (?:less|minus) (\S+)$`)
	layerLine    = regexp.MustCompile(`(?m)^(\S.*?)  +[-+]\S+ +[-+]\S+ +[-+]\S+ +([-+]\S+) +([\d.]+)`)
)

// difference is what rpcbench explain wrote of two stacks: by how much more CPU time a call of the one takes in each
// layer.
type difference struct {
	Stack, Base, Workload string
	Layers                map[string]string
}

func (m *maker) difference(file string) difference {
	text := m.read(file)
	at := lessLine.FindStringSubmatchIndex(text)
	workload := workloadLine.FindStringSubmatch(text)
	if at == nil || workload == nil {
		fail("%s compares no two stacks", file)
	}
	d := difference{text[at[2]:at[3]], text[at[4]:at[5]], workload[1], map[string]string{}}
	for _, m := range layerLine.FindAllStringSubmatch(text[at[1]:], -1) {
		d.Layers[m[1]] = m[2] + " ± " + m[3]
	}
	return d
}

// More is how much longer the stack takes in a layer, or in "sum", without a sign.
func (d difference) More(layer string) string {
	more, ok := strings.CutPrefix(d.Layers[layer], "+")
	if !ok {
		fail("%s takes no longer than %s in %q", d.Stack, d.Base, layer)
	}
	return more
}
