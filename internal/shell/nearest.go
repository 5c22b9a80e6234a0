package shell

import (
	"fmt"
	"regexp"
	"slices"
)

// meant are words that newcomers type for the stacks that most ask about, and flags as ghz, fortio and wrk have them.
var meant = map[string]string{"grpc": "grpcprotobuf", "json": "httpjson", "rest": "httpjson", "http": "httpjson",
	"jsoniter": "httpjsoniter", "connect": "connectrpc", "-c": "-callers", "-concurrency": "-callers", "-qps": "-rate",
	"-rps": "-rate", "-r": "-rate", "-connections": "-conns", "-z": "-time", "-duration": "-time",
	"-t": "-time", "-n": "-time", "-d": "-request", "-count": "-processes", "-o": "-out", "-output": "-out",
	"load": "run", "attack": "run", "bench": "run", "compare": "run"}

// didYouMean asks for the name that was meant, in front of what else is to be said, or is "" if none is near: more than
// a third of the letters differ.
func didYouMean(typed string, names []string) string {
	nearest, least := meant[typed], len(typed)/3+1
	if attached := regexp.MustCompile(`^(-[ct])\d`).FindStringSubmatch(typed); attached != nil { // as of wrk: -c400
		nearest = meant[attached[1]]
	}
	if !slices.Contains(names, nearest) {
		nearest = ""
		for _, name := range names {
			if d := distance(typed, name); d < least {
				nearest, least = name, d
			}
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? ", nearest)
}

// Unknown is the error of a word that no list has. The format takes it and the question whether another was meant.
func Unknown(format, typed string, names []string) error {
	return Wrong(format, typed, didYouMean(typed, names))
}

// distance is how many letters are to be put in, taken out, changed, or swapped with the next, to make b of a.
func distance(a, b string) int {
	two, one, row := []int(nil), []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		two, one, row = one, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := one[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, one[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
