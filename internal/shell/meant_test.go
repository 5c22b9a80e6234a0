package shell

import "testing"

// Words of go test, fortio and vegeta get the flag or command that does it here, not one that is spelt alike.
func TestMeantByOtherTools(t *testing.T) {
	names := []string{"run", "count", "-conns", "-processes"}
	for typed, want := range map[string]string{"-count": "-processes", "load": "run", "attack": "run", "bench": "run"} {
		if got := didYouMean(typed, names); got != "did you mean "+want+"? " {
			t.Errorf("%s: %q", typed, got)
		}
	}
}
