package shell

// Former is the error of a flag, as in "run -quick", or of something else that a command took once: one line that says
// what is typed now. It is nil of what no command ever took. The args are those of the line.
func Former(what string, args ...any) error {
	now, known := map[string]string{
		"run -quick": "run: -quick is what run does without it: leave it out, or give -thorough for half an hour",
	}[what]
	if !known {
		return nil
	}
	return Wrong(now, args...)
}
