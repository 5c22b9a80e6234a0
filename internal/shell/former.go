package shell

// Former is the error of a flag, as in "run -quick", or of something else that a command took once: one line that says
// what is typed now. It is nil of what no command ever took. The args are those of the line.
func Former(what string, args ...any) error {
	now, known := map[string]string{
		"run -quick": "run: -quick is what run does without it: leave it out, or give -thorough for half an hour",
		"explain of a service": "explain: %[1]s is the profile of a service: rpcbench bound %[1]s says what another " +
			"stack could save there",
		"explain -ratios":  "explain: -ratios is for the profile of a service: rpcbench bound -ratios folder profile",
		"explain -timeout": "explain: -timeout is for the profile of a URL: rpcbench bound -timeout 1m URL",
		"run -idle":        "run: memory at rest has a command of its own: rpcbench idle 1000, and then the stacks",
		"run -max-counts":  "run: counts have a command of their own: rpcbench count -max 1, and then the stacks",
	}[what]
	if !known {
		return nil
	}
	return Wrong(now, args...)
}
