package pages

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
)

var (
	callersIn = regexp.MustCompile(`\bcallers\.(\d+)|(\d+) callers`)
	apartIn   = regexp.MustCompile(`(?:^|\.)apart(?:\.|$)`)
	rateIn    = regexp.MustCompile(`([\d,]+) (?:calls )?a second`)
)

// renamedWorkloads are parts of the names that workloads had before they said what they send, with what they are today.
var renamedWorkloads = strings.NewReplacer("structured-1kB", "structured-2kB", "structured-10kB", "structured-18kB",
	"flex.1kB", "flex.2kB", "flex.10kB", "flex.18kB")

// complete fills in what older results don't say of an answer's workload, by its name, its title and what was measured.
// No record has it otherwise.
func complete(a *report.Answer) {
	a.Workload = renamedWorkloads.Replace(a.Workload)
	calls := slices.DeleteFunc(strings.Split(a.Does, ", "), func(part string) bool {
		return part == "ordinary load" || strings.HasPrefix(part, "saturated: ")
	})
	if joined := strings.Join(calls, ", "); a.Calls == "" && joined != a.Does {
		a.Calls = joined
	}
	if a.Callers > 0 {
		return
	}
	planned := a.BaseLoad.Completed > 0
	a.Apart = a.BaseMeans.ServerCPUNs > 0 || apartIn.MatchString(a.Workload)
	a.Chosen = planned && strings.Contains(a.Does, "ordinary load")
	if found := rateIn.FindStringSubmatch(a.Does); planned && a.Rate == 0 && found != nil {
		a.Rate, _ = strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
	}
	if planned && a.Rate == 0 {
		a.Rate, _ = strconv.ParseFloat(a.Value, 64)
	}
	a.Callers = 1
	if found := callersIn.FindStringSubmatch(a.Workload + " " + a.Does); found != nil {
		a.Callers, _ = strconv.Atoi(cmp.Or(found[1], found[2]))
	} else if planned || a.Value == report.Saturated {
		a.Callers = 100
	}
}
