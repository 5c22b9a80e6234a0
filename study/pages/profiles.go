package pages

import (
	"os"
	"path"
	"strings"

	"github.com/google/pprof/profile"
)

// share is the share of a CPU profile's samples whose outermost function begins with one of some texts. Functions have
// no path before their package.
func (m *maker) share(file string, roots []string) float64 {
	data, err := os.ReadFile(m.file(file))
	if err != nil {
		fail("%w", err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		fail("%s: %w", file, err)
	}
	all, found := 0.0, make([]float64, len(roots))
	for _, s := range p.Sample {
		lines := s.Location[len(s.Location)-1].Line
		name := path.Base(lines[len(lines)-1].Function.Name)
		all += float64(s.Value[0])
		for i, root := range roots {
			if strings.HasPrefix(name, root) {
				found[i] += float64(s.Value[0])
				break
			}
		}
	}
	sum := 0.0
	for i, n := range found {
		if n == 0 {
			fail("%s has no goroutine that begins with %s", file, roots[i])
		}
		sum += n
	}
	return sum / all
}
