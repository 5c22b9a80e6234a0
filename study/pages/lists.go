package pages

import (
	"path"
	"regexp"
)

const unmaintained = "github.com/json-iterator/go" // as its repository says

// versioned is an import path with the version in the go.mod of the tool or of the study, if it is no standard library.
func (m *maker) versioned(name string) string {
	versions := m.read("go.mod") + m.read("study/go.mod")
	for module := name; module != "."; module = path.Dir(module) {
		required := regexp.MustCompile(`(?m)^\s` + regexp.QuoteMeta(module) + ` (v\S+)`)
		if found := required.FindStringSubmatch(versions); found != nil && module == unmaintained {
			return name + " " + found[1] + " (no longer maintained)"
		} else if found != nil {
			return name + " " + found[1]
		}
	}
	return name
}
