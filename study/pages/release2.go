package pages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/rpcbench/rpcbench/internal/report"
	"github.com/rpcbench/rpcbench/internal/verdict"
)

// object is one of JSON.
type object = map[string]any

// renamed are names of release 2, each with its present one.
type renamed map[string]string

var (
	inFigure = renamed{"ratio": "ratio", "lo": "lo", "hi": "hi", "level": "level", "on_one_side": "on_one_side",
		"margin": "margin", "copy_floor": "copy_differs", "moved": "base_varied", "base_ns": "base_ns", "ns": "stack_ns",
		"bases": "bases_ns"}
	inAnswer = renamed{"workload": "workload", "does": "title", "value": "value", "gomaxprocs": "gomaxprocs",
		"stack": "stack", "rate": "rate", "others": "other_programs", "busy": "busy", "unchecked": "unchecked"}
	inProcesses = renamed{"planned": "planned", "processes": "counted", "one_core": "one_core",
		"no_second_core": "no_second_core", "disturbed": "disturbed"}
	inBaseMeans  = renamed{"base_cpu_ns": "cpu_ns", "base_server_cpu_ns": "server_cpu_ns", "base_calls": "in_flight"}
	inStackMeans = renamed{"cpu_ns": "cpu_ns", "server_cpu_ns": "server_cpu_ns", "calls_in_flight": "in_flight"}
	inLoad       = renamed{"free": "idle", "switches": "switches_per_call", "reached": "completed", "dropped": "skipped",
		"late_ns": "late_p99_ns"}
	inPercentile = renamed{"base": "base_ns", "copy": "copy_ns", "ns": "stack_ns", "ratio": "ratio", "lo": "lo",
		"hi": "hi"}
	inCounts = renamed{"calls": "calls", "sent": "sent_bytes", "received": "received_bytes", "writes": "writes",
		"reads": "reads", "allocs": "allocs", "alloc_bytes": "alloc_bytes", "connections": "connections",
		"server_allocs": "server_allocs", "server_alloc_bytes": "server_alloc_bytes"}
	inBody = renamed{"stack": "stack", "format": "format", "codec": "codec", "request": "request_bytes",
		"reply": "reply_bytes", "gzip_request": "gzip_request_bytes", "gzip_reply": "gzip_reply_bytes", "encode": "encode",
		"decode": "decode"}
	inSpan   = renamed{"ns": "ns", "lo": "lo_ns", "hi": "hi_ns"}
	inPlan   = renamed{"processes": "processes", "layouts": "layouts", "seed": "seed"}
	verdicts = renamed{"faster": "less", "slower": "more", "equal": "same"}
)

// of are the values of an object by their present names.
func (names renamed) of(old any) object {
	from, _ := old.(object)
	to := object{}
	for was, is := range names {
		if value, found := from[was]; found {
			to[is] = value
		}
	}
	return to
}

// read reads what a run left in a folder, of this release or of release 2, and completes what is older.
func read(dir string) (s report.Summary, err error) {
	var of struct{ Release int }
	data, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil && json.Unmarshal(data, &of) == nil && of.Release == 2 {
		s, err = read2(dir, string(data))
	} else {
		s, err = report.Read(dir)
	}
	for i := range s.Answers {
		complete(&s.Answers[i])
	}
	return s, err
}

func read2(dir, data string) (s report.Summary, err error) {
	text, err := release2(data)
	if err == nil {
		s, err = report.Parse(dir, text)
	}
	if err == nil {
		var raw []byte
		raw, err = os.ReadFile(filepath.Join(dir, "bench.txt"))
		s.Raw = string(raw)
	}
	return s, err
}

// release2 makes a summary of release 2 one of this release.
func release2(data string) (string, error) {
	var s object
	decoder := json.NewDecoder(strings.NewReader(data))
	decoder.UseNumber() // as they stand
	if err := decoder.Decode(&s); err != nil {
		return "", err
	}
	answers, _ := s["answers"].([]any)
	for i, a := range answers {
		if old, ok := a.(object); ok {
			answers[i] = answer2(old)
		}
	}
	call, _ := s["call"].(object)
	bodies, _ := call["bodies"].([]any)
	for i, old := range bodies {
		body := inBody.of(old)
		body["encode"], body["decode"] = inSpan.of(body["encode"]), inSpan.of(body["decode"])
		bodies[i] = body
	}
	s["release"], s["plan"] = report.Release, inPlan.of(s)
	var made bytes.Buffer
	err := json.NewEncoder(&made).Encode(s)
	return made.String(), err
}

// answer2 is an answer. Its result was that of time, with one of CPU inside, or that of CPU at a planned rate.
func answer2(old object) object {
	a := inAnswer.of(old)
	a["processes"] = inProcesses.of(old)
	a["base_means"], a["stack_means"] = inBaseMeans.of(old), inStackMeans.of(old)
	a["base_load"], a["stack_load"] = inLoad.of(old["base_load"]), inLoad.of(old["load"])
	for was, is := range map[string]string{"base_facts": "base_counts", "facts": "stack_counts"} {
		if old[was] != nil {
			a[is] = inCounts.of(old[was])
		}
	}
	percentiles, all := object{}, old["percentiles"]
	for _, name := range []string{"P50", "P95", "P99", "P999"} {
		if of, _ := all.(object); of[name] != nil {
			percentiles[strings.ToLower(name)] = inPercentile.of(of[name])
		}
	}
	a["percentiles"], a["leads"] = percentiles, report.ByTime
	cpu, atRate := old["cpu"], float(inLoad.of(old["base_load"])["completed"]) > 0
	switch {
	case atRate:
		a["cpu"], a["leads"] = figure2(old), report.ByCPU
	default:
		a["time"] = figure2(old)
		if cpu != nil {
			a["cpu"] = figure2(cpu)
		}
		if old["leads"] == "CPU" {
			a["leads"] = report.ByCPU
		}
	}
	return a
}

// figure2 is what a result has of one quantity. Its reason is a sentence.
func figure2(old any) object {
	f, from := inFigure.of(old), object{}
	if of, ok := old.(object); ok {
		from = of
	}
	was, _ := from["verdict"].(string)
	f["verdict"] = cmp.Or(verdicts[was], was, string(verdict.Undecided))
	if reason, _ := from["reason"].(string); reason != "" {
		f["reason"] = object{"kind": reason}
	}
	if floor := verdict.Floor(float(f["copy_differs"]), float(f["base_varied"])); floor > 0 {
		f["noise_floor"] = floor
	}
	return f
}

// float is what a value of JSON is, or 0.
func float(value any) float64 {
	n, _ := value.(json.Number)
	f, _ := n.Float64()
	return f
}
